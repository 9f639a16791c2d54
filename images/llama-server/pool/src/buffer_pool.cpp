// SPDX-License-Identifier: Apache-2.0
#include "llamapool/buffer_pool.h"

#include <algorithm>
#include <new>
#include <utility>
#ifdef LLAMAPOOL_TEST_HIT_DELAY_MILLISECONDS
#include <chrono>
#include <thread>
#endif

namespace llamapool {

buffer_pool & buffer_pool::instance() {
    static auto * const pool = new buffer_pool(0);
    return *pool;
}

// The first position whose buffer is larger than `bytes`.
std::size_t buffer_pool::position_for(std::size_t bytes) const noexcept {
    const auto * const end = held_.begin() + held_buffers_;
    const auto * const at = std::upper_bound(
        held_.begin(), end, bytes, [](std::size_t wanted, const entry & held) { return wanted < held.buffer.size(); });
    return static_cast<std::size_t>(at - held_.begin());
}

mapping buffer_pool::remove(std::size_t position) noexcept {
    mapping buffer = std::move(held_[position].buffer);
    held_bytes_ -= buffer.size();
    std::move(held_.begin() + position + 1, held_.begin() + held_buffers_, held_.begin() + position);
    --held_buffers_;
    return buffer;
}

void buffer_pool::remove_smallest(std::size_t count, victims & out, std::size_t used) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        out[used + i] = remove(0);
    }
    counters_.evictions += count;
}

// The buffer to hand out for a request of `bytes`, or `nowhere`. Best fit; among equals the one put last, so that a
// surplus one grows old and is dropped.
std::size_t buffer_pool::choose(std::size_t bytes) const noexcept {
    if (bytes < floor_bytes) {
        return nowhere;
    }
    const std::size_t first = position_for(mapping::rounded(bytes) - 1);
    if (first < held_buffers_ && fits(held_[first].buffer.size(), bytes)) {
        return position_for(held_[first].buffer.size()) - 1;
    }
    if (first > 0 && fits(held_[first - 1].buffer.size(), bytes)) {
        return first - 1;
    }
    return nowhere;
}

// The buffer to hand out, out of the pool, or an empty one. Under the lock.
mapping buffer_pool::remove_for(std::size_t bytes) noexcept {
    ++takes_;
    const std::size_t position = choose(bytes);
    if (position == nowhere) {
        return {};
    }
    ++counters_.hits;
    return remove(position);
}

mapping buffer_pool::take(std::size_t bytes) {
    if (bytes < floor_bytes) {
        return mapping(bytes);
    }
    mapping buffer;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        buffer = remove_for(bytes);
        counters_.misses += buffer.empty() ? 1 : 0;
    }
    return buffer.empty() ? mapping(bytes) : grown(std::move(buffer), bytes);
}

mapping buffer_pool::take_held(std::size_t bytes) {
    if (bytes < floor_bytes) {
        return {};
    }
    mapping buffer;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        buffer = remove_for(bytes);
    }
    return buffer.empty() ? mapping() : grown(std::move(buffer), bytes);
}

mapping buffer_pool::grown(mapping buffer, std::size_t bytes) {
    buffer.grow(bytes);
#ifdef LLAMAPOOL_TEST_HIT_DELAY_MILLISECONDS
    std::this_thread::sleep_for(std::chrono::milliseconds(LLAMAPOOL_TEST_HIT_DELAY_MILLISECONDS));
#endif
    return buffer;
}

void buffer_pool::count_reuse() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counters_.hits;
}

void buffer_pool::put(mapping buffer) noexcept {
    if (buffer.empty()) {
        return;
    }
    const std::size_t size = buffer.size();
    victims out;  // destroyed after the lock is given back, as is a declined buffer: unmapping takes milliseconds
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t used = drop_stale(out);

    std::size_t displaced = 0;
    std::size_t displaced_bytes = 0;
    const auto fits = [&] {
        return held_bytes_ - displaced_bytes + size <= cap_bytes_ && held_buffers_ - displaced < max_buffers;
    };
    while (!fits() && displaced < held_buffers_ && held_[displaced].buffer.size() < size) {
        displaced_bytes += held_[displaced++].buffer.size();
    }
    if (size < floor_bytes || size > cap_bytes_ || !fits()) {
        ++counters_.declines;
        return;
    }
    remove_smallest(displaced, out, used);

    const std::size_t position = position_for(size);
    std::move_backward(held_.begin() + position, held_.begin() + held_buffers_, held_.begin() + held_buffers_ + 1);
    held_[position].buffer = std::move(buffer);
    held_[position].put_at = takes_;
    ++held_buffers_;
    held_bytes_ += size;
    counters_.high_water_bytes = std::max(counters_.high_water_bytes, held_bytes_);
}

bool buffer_pool::fits(std::size_t size, std::size_t bytes) noexcept {
    const std::size_t need = mapping::rounded(bytes);
    return bytes >= floor_bytes && size >= need - slack(need) && size <= need + slack(need);
}

std::size_t buffer_pool::buffers_for(std::size_t bytes) const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(held_.begin(), held_.begin() + held_buffers_,
                      [bytes](const entry & held) { return fits(held.buffer.size(), bytes); }));
}

bool buffer_pool::has_room_for(std::size_t bytes) const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bytes >= floor_bytes && held_bytes_ + mapping::rounded(bytes) <= cap_bytes_ && held_buffers_ < max_buffers;
}

// Removes from the smallest until at most `keep_bytes` are held; returns how many went to `out`.
std::size_t buffer_pool::shrink_to(std::size_t keep_bytes, victims & out) noexcept {
    std::size_t used = 0;
    while (held_bytes_ > keep_bytes) {
        out[used++] = remove(0);
    }
    return used;
}

std::size_t buffer_pool::drop_stale(victims & out) noexcept {
    std::size_t used = 0;
    for (std::size_t i = 0; i < held_buffers_;) {
        if (takes_ - held_[i].put_at > stale_takes) {
            out[used++] = remove(i);
            ++counters_.evictions;
        } else {
            ++i;
        }
    }
    return used;
}

std::size_t buffer_pool::trim(std::size_t keep_bytes) noexcept {
    victims out;
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t before = held_bytes_;
    if (shrink_to(keep_bytes, out) > 0) {
        ++counters_.trims;
    }
    return before - held_bytes_;
}

std::size_t buffer_pool::fresh_bytes(std::size_t bytes) const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t need = mapping::rounded(bytes);
    const std::size_t position = choose(bytes);
    const std::size_t served = position == nowhere ? 0 : held_[position].buffer.size();
    return need - std::min(need, served);
}

std::size_t buffer_pool::release(std::size_t bytes, std::size_t spare_bytes) noexcept {
    victims out;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::size_t spared = choose(spare_bytes);
    std::size_t used = 0;
    std::size_t released_bytes = 0;
    for (std::size_t position = 0; released_bytes < bytes && position < held_buffers_;) {
        if (position == spared) {
            ++position;
            continue;
        }
        out[used] = remove(position);
        released_bytes += out[used++].size();
        spared -= spared != nowhere && spared > position ? 1 : 0;
    }
    counters_.trims += used > 0 ? 1 : 0;
    return released_bytes;
}

void buffer_pool::set_cap(std::size_t cap_bytes) noexcept {
    victims out;
    const std::lock_guard<std::mutex> lock(mutex_);
    cap_bytes_ = cap_bytes;
    counters_.evictions += shrink_to(cap_bytes, out);
}

pool_statistics buffer_pool::statistics() const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    pool_statistics result = counters_;
    result.held_bytes = held_bytes_;
    result.held_buffers = held_buffers_;
    result.cap_bytes = cap_bytes_;
    return result;
}

}  // namespace llamapool
