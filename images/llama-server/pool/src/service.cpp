// SPDX-License-Identifier: Apache-2.0
#include "service.h"

#include "llamapool/buffer_pool.h"
#include "llamapool/state_budget.h"
#include "llamapool/state_buffer.h"
#include "log.h"

#include <algorithm>
#include <chrono>

namespace llamapool {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

template <typename clock>
std::int64_t seconds_of() {
    return std::chrono::duration_cast<std::chrono::seconds>(clock::now().time_since_epoch()).count();
}

std::optional<std::size_t> known_if(bool known, std::size_t value) {
    return known ? std::optional<std::size_t>(value) : std::nullopt;
}

std::string said(std::optional<std::size_t> bytes) {
    return bytes ? std::to_string(*bytes) + " bytes" : "unbounded";
}

}  // namespace

service::service(settings from, cgroup group, std::optional<std::size_t> host_bytes)
    : settings_(std::move(from)), host_bytes_(host_bytes), memory_(std::move(group)),
      admission_(buffer_pool::instance()), black_box_(settings_.termination_log), limits_file_(settings_.limits_file) {
    state_buffer::use_plain_allocation(!settings_.pooled);
    refresh();
    if (settings_.metrics_port != 0) {
        metrics_server_ = std::make_unique<metrics_server>(settings_.metrics_port, [this] { return page(); });
    }
    monitor_ = std::thread([this] { watch(); });
    preparer_ = std::thread([this] { keep_buffers_ready(); });
}

service::~service() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    stop_requested_.notify_all();
    buffer_used_.notify_all();
    admission_.allow_preparation(false);
    monitor_.join();
    preparer_.join();
}

void service::watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_requested_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; })) {
        lock.unlock();
        refresh();
        lock.lock();
    }
}

// Finding memory for a checkpoint takes longer than copying it, up to half a second where a virtual machine has handed
// its free memory back to the host. So the next buffer is made resident while the server computes: once the server has
// been seen to need more than it had, which one that reuses its own buffers never does.
void service::keep_buffers_ready() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        buffer_used_.wait(lock, [this] { return stopping_ || buffer_was_used_; });
        if (stopping_) {
            return;
        }
        buffer_was_used_ = false;
        lock.unlock();
        const std::size_t bytes = pooled_bytes_;
        while (buffer_pool::instance().buffers_for(bytes) < spare_buffers_ && admission_.prepare(bytes)) {
        }
        lock.lock();
    }
}

void service::refresh() {
    bool changed = false;
    {
        const std::lock_guard<std::mutex> lock(refreshing_);
        if (const auto read = limits_file_.poll()) {
            limits_ = *read;
            changed = true;
        }
        limits_errors_ = limits_file_.errors();
    }
    follow_memory();
    if (changed) {
        log_line("limits applied: pool cap " + said(buffer_pool::instance().statistics().cap_bytes) +
                 ", state budget " + said(admission_.budget_in_effect()));
    }
}

// Measures, and applies budget and cap that follow from the figures.
void service::follow_memory() {
    const std::lock_guard<std::mutex> lock(refreshing_);
    unmeasured_bytes_ = 0;
    const memory_figures memory = memory_.sample(seconds_of<steady_clock>(), mapping::total_bytes);
    if (settings_.pooled) {
        const auto ceiling_bytes = smallest_known(limits_.state_budget_bytes, settings_.state_budget_bytes);
        const auto budget_bytes =
            smallest_known(own_state_budget_bytes(memory.limit_bytes, memory.base_bytes), ceiling_bytes);
        const auto checkpoint_bytes = known_if(checkpoint_mapped_bytes_ > 0, checkpoint_mapped_bytes_);
        const std::size_t own_cap_bytes =
            own_pool_cap_bytes({host_bytes_, memory.limit_bytes, checkpoint_bytes, slots_});
        const std::size_t cap_bytes = limits_.pool_cap_bytes.value_or(settings_.pool_cap_bytes.value_or(own_cap_bytes));
        admission_.set_budget(budget_bytes);
        buffer_pool::instance().set_cap(std::min(cap_bytes, budget_bytes.value_or(cap_bytes)));
    }
    // Last: whoever reads the generation finds its values in effect.
    limits_generation_ = limits_.generation ? static_cast<std::int64_t>(*limits_.generation) : -1;
    black_box_.write(account());
}

accounting service::account() const {
    const memory_figures memory = memory_.last();
    const pool_statistics pool = buffer_pool::instance().statistics();
    accounting now;
    now.at_seconds = seconds_of<system_clock>();
    now.phase = phase_;
    now.limit_bytes = memory.limit_bytes;
    now.unreclaimable_bytes = known_if(memory.usage.has_value(), memory.usage ? memory.usage->unreclaimable_bytes : 0);
    now.base_bytes = memory.base_bytes;
    now.state_bytes = mapping::total_bytes();
    now.budget_bytes = admission_.budget_in_effect();
    now.pool_held_bytes = pool.held_bytes;
    now.cap_bytes = pool.cap_bytes;
    const std::int64_t generation = limits_generation_;
    now.generation = known_if(generation >= 0, static_cast<std::size_t>(generation));
    now.oom_kills = memory.oom_kills;
    now.asked_bytes = asked_bytes_;
    now.device_oom = device_oom_;
    return now;
}

void service::model_loaded(std::size_t slots, std::size_t untouched_bytes,
                           const std::function<std::size_t()> & measure) {
    slots_ = slots;
    if (settings_.pooled) {
        pooled_bytes_ = measure();
        checkpoint_mapped_bytes_ = mapping::rounded(pooled_bytes_);
    }
    phase_ = server_phase::ready;
    memory_.set_model_loaded(untouched_bytes);
    refresh();
    admission_.allow_preparation(true);
    std::size_t prepared = 0;
    while (prepared < slots && admission_.prepare(pooled_bytes_)) {
        ++prepared;
    }
}

void service::model_unloaded() {
    phase_ = server_phase::sleeping;
    memory_.set_model_unloaded();
    spare_buffers_ = 0;
    admission_.allow_preparation(false);
    buffer_pool::instance().trim();
}

void service::idle_for(std::int64_t idle_milliseconds) {
    const auto trim_after = static_cast<std::int64_t>(settings_.idle_trim_seconds) * 1000;
    if (trim_after > 0 && idle_milliseconds >= trim_after) {
        spare_buffers_ = 0;
        buffer_pool::instance().trim();
    }
}

void service::first_token(double seconds, std::size_t prompt_tokens) {
    time_to_first_token_seconds_.observe(seconds);
    prompt_tokens_.observe(static_cast<double>(prompt_tokens));
}

bool service::allocate(allocation what, std::size_t bytes, std::size_t draft_bytes, const std::function<void()> & fill,
                       const evictor & evict) {
    const auto start = steady_clock::now();
    const std::size_t mapped_bytes = mapping::rounded(bytes) + mapping::rounded(draft_bytes);
    asked_bytes_ = mapped_bytes;
    if (settings_.pooled && is_large(mapped_bytes)) {
        follow_memory();
    }
    const state_request wanted{bytes, mapping::rounded(draft_bytes)};
    const bool held = buffer_pool::instance().fresh_bytes(bytes) == 0;
    if (what != allocation::speculative_checkpoint) {  // which most often finds its slot's own buffer
        admission_.await_preparation(bytes);
    }
    const bool allocated = admission_.allocate(wanted, fill, evict);
    asked_bytes_ = 0;
    if (!allocated) {
        ++(what == allocation::cached_prompt ? prompts_skipped_ : checkpoints_skipped_);
    } else if (what == allocation::checkpoint) {
        checkpoint_bytes_ = bytes + draft_bytes;
        checkpoint_mapped_bytes_ = mapped_bytes;
        pooled_bytes_ = settings_.pooled ? bytes : 0;
        checkpoint_seconds_.observe(std::chrono::duration<double>(steady_clock::now() - start).count());
    }
    if (allocated && pooled_bytes_ > 0) {
        // A prompt that is saved takes a buffer and keeps those of its checkpoints, and then all slots may ask at once.
        const std::size_t spare = what == allocation::cached_prompt ? slots_ + 1 : held ? 0 : 1;
        spare_buffers_ = std::max(spare_buffers_.load(), spare);
        if (spare_buffers_ > 0) {
            const std::lock_guard<std::mutex> lock(mutex_);
            buffer_was_used_ = true;
            buffer_used_.notify_one();
        }
    }
    return allocated;
}

// Measuring costs a fraction of a millisecond: nothing beside a checkpoint, and much beside a cached prompt of a model
// that has none. Small ones add up until they are worth it, or until the monitor has measured.
bool service::is_large(std::size_t bytes) noexcept {
    return (unmeasured_bytes_ += bytes) >= buffer_pool::floor_bytes;
}

void service::aborting(const std::string & message) {
    log_line(message);
    device_oom_ = message.find("out of memory") != std::string::npos;
    black_box_.write(account());
}

}  // namespace llamapool
