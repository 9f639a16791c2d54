// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llamapool/buffer_pool.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace llamapool {

// What the server can give up, in the order in which later requests miss it the least. Pooled buffers go before all.
enum class evictable : std::uint8_t {
    cached_older_checkpoint,  // of a cached prompt, not its newest
    idle_older_checkpoint,    // of an idle slot, not its newest
    own_older_checkpoint,     // of the slot that asks, not its newest; any, when it makes a newer one
    cached_prompt,            // with its last checkpoint; never the one that the incoming request matches
    idle_newest_checkpoint,   // an idle slot's last one
};

// Gives up one thing of this rank, the least recently used; false when there is none.
using evictor = std::function<bool(evictable)>;

// State that is about to be allocated, in bytes of data.
struct state_request {
    std::size_t pooled_bytes = 0;  // in one buffer that may come from the pool
    std::size_t mapped_bytes = 0;  // beside it
};

struct admission_counters {
    std::uint64_t prompts_evicted = 0;
    std::uint64_t checkpoints_evicted = 0;
    std::uint64_t allocation_failures = 0;  // each std::bad_alloc
};

// Keeps all mapped sequence state within the budget: state is allocated only through here.
//
// One thread, the server's, allocates and enforces; any thread may set the budget. The bound lives here and not in
// the allocator, where an exception would end the server.
class admission {
  public:
    explicit admission(buffer_pool & pool) : pool_(pool) {}

    // Nothing: no bound. Pooled buffers over a smaller budget are released at once; what the server holds follows
    // with its next enforce() or allocate(), and until then the old budget stays the one in effect.
    void set_budget(std::optional<std::size_t> budget_bytes);

    // The budget that all state is within, or has to be because nothing is left to give up.
    std::optional<std::size_t> budget_in_effect() const noexcept;

    // Makes room for the request, then calls `fill`, which allocates it. On std::bad_alloc gives up memory and calls
    // `fill` again. False: not even giving up all that `evict` offers was enough, and nothing was allocated.
    // Other exceptions of `fill` pass through.
    bool allocate(const state_request & wanted, const std::function<void()> & fill, const evictor & evict);

    // Maps one buffer of `bytes` for the pool ahead of its use, a part at a time, from another thread than the
    // server's. Only where the pool has room and the budget has: nothing is given up for it, and it is itself given up
    // as soon as the server needs the memory. False: it was not made, or not finished.
    bool prepare(std::size_t bytes);

    // Returns when the buffer that is being prepared is in the pool, or given up. At once, if the pool has another for
    // a request of `bytes`, or this one would not serve it. Else the server would make a second one beside it, and both
    // would be there later.
    void await_preparation(std::size_t bytes);

    // Whether prepare() does anything. Forbidding gives up the buffer that is being prepared; its memory is gone, or in
    // the pool, when the call returns.
    void allow_preparation(bool allowed);

    bool over_budget() const noexcept { return mapping::total_bytes() > target_bytes_; }

    // Gives up state until it is within the budget.
    void enforce(const evictor & evict);

    admission_counters counters() const noexcept;

  private:
    static constexpr std::size_t unbounded = SIZE_MAX;

    std::size_t excess_bytes(std::size_t fresh_bytes) const noexcept;
    bool make_room(const state_request & wanted, const evictor & evict);
    bool evict_one(const evictor & evict);
    void take_effect() noexcept;
    bool abandon_preparation();
    mapping begin_preparation(std::size_t bytes);
    bool make_resident(mapping & buffer) noexcept;

    buffer_pool & pool_;
    std::mutex allocating_;  // held while state is allocated: a budget lowered meanwhile waits, and holds afterwards
    bool preparation_allowed_ = true;
    std::mutex preparing_mutex_;
    std::condition_variable prepared_;
    std::size_t preparing_bytes_ = 0;  // as mapped; 0: nothing is being prepared
    std::atomic<bool> abandoned_{false};
    std::atomic<std::size_t> target_bytes_{unbounded};
    std::atomic<std::size_t> in_effect_bytes_{unbounded};
    std::atomic<std::uint64_t> prompts_evicted_{0};
    std::atomic<std::uint64_t> checkpoints_evicted_{0};
    std::atomic<std::uint64_t> allocation_failures_{0};
};

}  // namespace llamapool
