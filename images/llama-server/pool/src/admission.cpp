// SPDX-License-Identifier: Apache-2.0
#include "llamapool/admission.h"

#include "llamapool/mapping.h"

#include <new>
#include <utility>

namespace llamapool {

// How far all state and `fresh_bytes` more would be over the budget.
std::size_t admission::excess_bytes(std::size_t fresh_bytes) const noexcept {
    const std::size_t total_bytes = mapping::total_bytes();
    const std::size_t budget_bytes = target_bytes_;
    if (total_bytes > budget_bytes) {
        return total_bytes - budget_bytes + fresh_bytes;
    }
    const std::size_t room_bytes = budget_bytes - total_bytes;
    return fresh_bytes > room_bytes ? fresh_bytes - room_bytes : 0;
}

bool admission::evict_one(const evictor & evict) {
    for (const evictable rank :
         {evictable::cached_older_checkpoint, evictable::idle_older_checkpoint, evictable::own_older_checkpoint,
          evictable::cached_prompt, evictable::idle_newest_checkpoint}) {
        if (evict(rank)) {
            ++(rank == evictable::cached_prompt ? prompts_evicted_ : checkpoints_evicted_);
            return true;
        }
    }
    return false;
}

// Loops on mapped bytes: what was given up may still be shared, and then frees nothing, or may have gone to the pool,
// where it may be the very buffer that is wanted.
bool admission::make_room(const state_request & wanted, const evictor & evict) {
    while (true) {
        const std::size_t fresh_bytes = pool_.fresh_bytes(wanted.pooled_bytes) + mapping::rounded(wanted.mapped_bytes);
        const std::size_t excess = excess_bytes(fresh_bytes);
        if (excess == 0) {
            return true;
        }
        if (pool_.release(excess, wanted.pooled_bytes) == 0 && !abandon_preparation() && !evict_one(evict) &&
            pool_.trim() == 0) {
            return false;
        }
    }
}

bool admission::allocate(const state_request & wanted, const std::function<void()> & fill, const evictor & evict) {
    const std::lock_guard<std::mutex> lock(allocating_);
    bool admitted = make_room(wanted, evict);
    while (admitted) {
        try {
            fill();
            break;
        } catch (const std::bad_alloc &) {
            ++allocation_failures_;
        }
        if (pool_.trim() == 0 && !abandon_preparation()) {
            admitted = evict_one(evict);
            pool_.trim();  // what was given up went there
        }
    }
    take_effect();
    return admitted;
}

void admission::enforce(const evictor & evict) {
    if (over_budget()) {
        const std::lock_guard<std::mutex> lock(allocating_);
        make_room({}, evict);
        in_effect_bytes_ = target_bytes_.load();
    }
}

void admission::set_budget(std::optional<std::size_t> budget_bytes) {
    const std::lock_guard<std::mutex> lock(allocating_);
    target_bytes_ = budget_bytes.value_or(unbounded);
    pool_.release(excess_bytes(0), 0);
    if (over_budget()) {
        abandon_preparation();
    }
    take_effect();
}

mapping admission::begin_preparation(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(allocating_);
    if (!preparation_allowed_ || !pool_.has_room_for(bytes) || excess_bytes(mapping::rounded(bytes)) > 0) {
        return {};
    }
    const std::lock_guard<std::mutex> state(preparing_mutex_);
    mapping buffer = mapping::reserved(bytes);  // counted from here on
    preparing_bytes_ = buffer.size();
    abandoned_ = false;
    return buffer;
}

// In parts: the kernel holds the process's memory map while it finds pages, and giving up should not wait for all.
bool admission::make_resident(mapping & buffer) noexcept {
    try {
        for (std::size_t offset = 0; offset < buffer.size() && !abandoned_; offset += mapping::part_bytes) {
            buffer.make_resident(offset, mapping::part_bytes);
        }
    } catch (const std::bad_alloc &) {
        ++allocation_failures_;
        return false;
    }
    return !abandoned_;
}

bool admission::prepare(std::size_t bytes) {
    mapping buffer;
    try {
        buffer = begin_preparation(bytes);
    } catch (const std::bad_alloc &) {
        ++allocation_failures_;
        return false;
    }
    if (buffer.empty()) {
        return false;
    }
    const bool complete = make_resident(buffer);
    if (complete) {
        pool_.put(std::move(buffer));
    } else {
        const mapping given_up = std::move(buffer);
    }
    const std::lock_guard<std::mutex> lock(preparing_mutex_);
    preparing_bytes_ = 0;
    prepared_.notify_all();
    return complete;
}

void admission::await_preparation(std::size_t bytes) {
    std::unique_lock<std::mutex> lock(preparing_mutex_);
    if (pool_.buffers_for(bytes) == 0 && buffer_pool::fits(preparing_bytes_, bytes)) {
        prepared_.wait(lock, [this] { return preparing_bytes_ == 0; });
    }
}

void admission::allow_preparation(bool allowed) {
    const std::lock_guard<std::mutex> lock(allocating_);
    preparation_allowed_ = allowed;
    if (!allowed) {
        abandon_preparation();
    }
}

// Gives up the buffer that is being prepared, and returns when its memory is gone or in the pool. False: there was
// none. Under `allocating_`, so that no other is begun.
bool admission::abandon_preparation() {
    std::unique_lock<std::mutex> lock(preparing_mutex_);
    if (preparing_bytes_ == 0) {
        return false;
    }
    abandoned_ = true;
    prepared_.wait(lock, [this] { return preparing_bytes_ == 0; });
    return true;
}

void admission::take_effect() noexcept {
    if (!over_budget()) {
        in_effect_bytes_ = target_bytes_.load();
    }
}

std::optional<std::size_t> admission::budget_in_effect() const noexcept {
    const std::size_t bytes = in_effect_bytes_;
    return bytes == unbounded ? std::nullopt : std::optional<std::size_t>(bytes);
}

admission_counters admission::counters() const noexcept {
    return {prompts_evicted_, checkpoints_evicted_, allocation_failures_};
}

}  // namespace llamapool
