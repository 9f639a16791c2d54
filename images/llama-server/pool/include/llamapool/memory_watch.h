// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llamapool/cgroup.h"
#include "llamapool/sliding_maximum.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace llamapool {

// What is known of the memory around the process. Absent: not known, or no limit.
struct memory_figures {
    std::optional<std::uint64_t> limit_bytes;
    std::optional<cgroup_usage> usage;
    std::optional<std::uint64_t> oom_kills;
    std::optional<std::uint64_t> base_bytes;
};

// Reads the cgroup and keeps the base: the highest (unreclaimable memory - sequence state) of the last ten minutes
// with the model loaded. Time without the model does not count: a sleeping server's low figure is no base, and the
// base from before the sleep stays until new figures replace it. Thread-safe.
class memory_watch {
  public:
    static constexpr std::int64_t window_seconds = 600;

    explicit memory_watch(cgroup group) : group_(std::move(group)) {}

    // Gives the mapped sequence state at the moment of the call.
    using state_reader = std::function<std::uint64_t()>;

    // `now_seconds`: any clock that never goes back. The state is read before and after the cgroup and the higher
    // counts, so that state allocated or freed meanwhile is not taken for base.
    memory_figures sample(std::int64_t now_seconds, const state_reader & state_bytes);

    // Figures of the last sample; reads nothing and waits for no file.
    memory_figures last() const;

    // Base is taken from the samples between the two calls. It is never less than that of the first of them and
    // `untouched_bytes`, memory that is allocated and will become resident later.
    void set_model_loaded(std::uint64_t untouched_bytes);
    void set_model_unloaded();

  private:
    cgroup group_;
    std::mutex sampling_;  // one reader of the files at a time
    std::int64_t sampled_at_seconds_ = 0;
    std::int64_t loaded_seconds_ = 0;  // the window's own clock: seconds with the model loaded
    sliding_maximum base_{window_seconds};

    mutable std::mutex mutex_;  // of what follows, never held across a read
    bool model_loaded_ = false;
    std::optional<std::uint64_t> untouched_bytes_;  // until the first sample with the model
    std::uint64_t least_base_bytes_ = 0;
    memory_figures last_;
};

}  // namespace llamapool
