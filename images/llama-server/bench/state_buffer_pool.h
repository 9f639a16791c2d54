// SPDX-License-Identifier: Apache-2.0
#pragma once

// The published design of a checkpoint pool (llama.cpp pull request 201), written anew from its description, to be
// measured against. No image contains it. Its rules: vectors, zero-filled on a miss; best fit; caps of 1/16 of the
// host's memory and of 64 buffers; a floor of 32 MiB; a full pool displaces its smallest buffer, and only one smaller
// than the incoming one. Checkpoints are copied. The trims (on idleness, on bad_alloc) do not occur in the benchmark.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <vector>

namespace bench {

class state_buffer_pool {
  public:
    using buffer = std::vector<std::uint8_t>;

    static state_buffer_pool & instance() {
        static auto * const pool = new state_buffer_pool;  // outlives every checkpoint
        return *pool;
    }

    // Gives `wanted` the size `bytes`, in resident memory where the pool or the buffer itself has it.
    void get(buffer & wanted, std::size_t bytes) {
        if (bytes >= floor_bytes && wanted.capacity() < bytes) {
            buffer found = take(bytes);
            std::swap(wanted, found);
            put(std::move(found));
        }
        wanted.resize(bytes);
    }

    void put(buffer && offered) noexcept {
        const std::size_t bytes = offered.capacity();
        if (bytes < floor_bytes) {
            return;
        }
        buffer displaced;  // freed after the lock is given back
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto smallest = std::min_element(held_.begin(), held_.end(), smaller);
        if (!fits(bytes, 0, 0) && smallest != held_.end() && smallest->capacity() < bytes &&
            fits(bytes, smallest->capacity(), 1)) {
            displaced = remove(smallest);
        }
        if (fits(bytes, 0, 0)) {
            held_bytes_ += bytes;
            held_.push_back(std::move(offered));
        }
    }

  private:
    static constexpr std::size_t floor_bytes = std::size_t{32} << 20;
    static constexpr std::size_t max_buffers = 64;

    state_buffer_pool()
        : cap_bytes_(static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 16) {
        held_.reserve(max_buffers);  // put() must not throw
    }

    static bool smaller(const buffer & left, const buffer & right) { return left.capacity() < right.capacity(); }

    bool fits(std::size_t bytes, std::size_t freed_bytes, std::size_t freed_buffers) const {
        return held_bytes_ - freed_bytes + bytes <= cap_bytes_ && held_.size() - freed_buffers < max_buffers;
    }

    buffer remove(std::vector<buffer>::iterator position) {
        buffer removed = std::move(*position);
        held_bytes_ -= removed.capacity();
        held_.erase(position);
        return removed;
    }

    buffer take(std::size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        auto best = held_.end();
        for (auto each = held_.begin(); each != held_.end(); ++each) {
            if (each->capacity() >= bytes && (best == held_.end() || smaller(*each, *best))) {
                best = each;
            }
        }
        return best == held_.end() ? buffer() : remove(best);
    }

    std::mutex mutex_;
    std::vector<buffer> held_;
    std::size_t held_bytes_ = 0;
    std::size_t cap_bytes_;
};

}  // namespace bench
