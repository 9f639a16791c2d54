// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llamapool/mapping.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace llamapool {

// Figures of a pool. The counters only grow; a trim resets none of them, nor the high-water mark.
struct pool_statistics {
    std::uint64_t hits = 0;       // takes served from a pooled buffer, or from the one the caller held already
    std::uint64_t misses = 0;     // takes that mapped fresh memory
    std::uint64_t evictions = 0;  // pooled buffers displaced by a larger one, by a smaller cap or by disuse
    std::uint64_t declines = 0;   // buffers offered and not kept
    std::uint64_t trims = 0;      // trims that released something
    std::size_t held_bytes = 0;
    std::size_t held_buffers = 0;
    std::size_t high_water_bytes = 0;
    std::size_t cap_bytes = 0;
};

// A bounded store of resident buffers between two uses. Thread-safe; memory is unmapped outside the lock.
//
// Bounds on waste, all in mapped bytes:
//  * a buffer handed out is at most 1/8 larger than what was asked (`slack`);
//  * a pooled buffer at most 1/8 too small is grown by what is missing, so a checkpoint that grows from turn to turn
//    reuses its predecessor instead of leaving it behind;
//  * a buffer that `stale_takes` takes have passed over is dropped, so sizes that are asked no more do not stay;
//  * what is held never exceeds the cap, nor `max_buffers`.
class buffer_pool {
  public:
    static constexpr std::size_t floor_bytes = std::size_t{32} << 20;  // glibc's largest mmap threshold on LP64
    static constexpr std::size_t max_buffers = 64;
    static constexpr std::uint64_t stale_takes = 256;

    explicit buffer_pool(std::size_t cap_bytes) noexcept : cap_bytes_(cap_bytes) {}

    // The pool of the process. Never destroyed: a checkpoint with static storage may outlive every destructor.
    // Its cap is 0 until set_cap().
    static buffer_pool & instance();

    // A resident buffer of at least `bytes`, from the pool where one fits. Throws std::bad_alloc.
    mapping take(std::size_t bytes);

    // A buffer of at least `bytes` if the pool holds one that fits, and then a hit; else an empty one, and no miss.
    // Throws std::bad_alloc.
    mapping take_held(std::size_t bytes);

    // The caller found its own buffer large enough: the cheapest kind of hit.
    void count_reuse() noexcept;

    // Keeps the buffer if it fits the caps. When full, displaces the smallest buffers, only ones smaller than this
    // one and only if that makes enough room; otherwise the pool is left as it was and the buffer is unmapped.
    void put(mapping buffer) noexcept;

    // Whether a buffer of `size` would be handed out for a request of `bytes`.
    static bool fits(std::size_t size, std::size_t bytes) noexcept;

    // How many buffers it holds that take(bytes) could hand out.
    std::size_t buffers_for(std::size_t bytes) const noexcept;

    // Whether put() would keep one more buffer of `bytes` without displacing another.
    bool has_room_for(std::size_t bytes) const noexcept;

    // Unmaps what is held, the smallest first, until at most `keep_bytes` are. Returns the bytes released.
    std::size_t trim(std::size_t keep_bytes = 0) noexcept;

    // Bytes that take(bytes) would map beyond what the pool holds: 0 where a buffer fits.
    std::size_t fresh_bytes(std::size_t bytes) const noexcept;

    // Unmaps at least `bytes`, the smallest buffers first, but spares the one that take(spare_bytes) would hand out.
    // Returns the bytes released, which is less when there is no more.
    std::size_t release(std::size_t bytes, std::size_t spare_bytes) noexcept;

    // A smaller cap is applied at once.
    void set_cap(std::size_t cap_bytes) noexcept;

    pool_statistics statistics() const noexcept;

  private:
    struct entry {
        mapping buffer;
        std::uint64_t put_at = 0;  // in takes
    };
    using victims = std::array<mapping, max_buffers>;

    static std::size_t slack(std::size_t bytes) noexcept { return bytes / 8; }
    static constexpr std::size_t nowhere = max_buffers;
    std::size_t position_for(std::size_t bytes) const noexcept;
    std::size_t choose(std::size_t bytes) const noexcept;
    mapping remove_for(std::size_t bytes) noexcept;
    static mapping grown(mapping buffer, std::size_t bytes);
    mapping remove(std::size_t position) noexcept;
    void remove_smallest(std::size_t count, victims & out, std::size_t used) noexcept;
    std::size_t shrink_to(std::size_t keep_bytes, victims & out) noexcept;
    std::size_t drop_stale(victims & out) noexcept;

    mutable std::mutex mutex_;
    std::array<entry, max_buffers>
        held_;  // [0, held_buffers) ascending by size, then by age: no allocation to keep one
    std::size_t held_buffers_ = 0;
    std::size_t held_bytes_ = 0;
    std::size_t cap_bytes_;
    std::uint64_t takes_ = 0;
    pool_statistics counters_;
};

}  // namespace llamapool
