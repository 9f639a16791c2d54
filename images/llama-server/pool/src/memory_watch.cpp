// SPDX-License-Identifier: Apache-2.0
#include "llamapool/memory_watch.h"

#include <algorithm>
#include <utility>

namespace llamapool {

memory_figures memory_watch::sample(std::int64_t now_seconds, const state_reader & state_bytes) {
    const std::lock_guard<std::mutex> one_at_a_time(sampling_);
    memory_figures figures;
    const std::uint64_t state_before_bytes = state_bytes();
    figures.usage = group_.usage();
    const std::uint64_t counted_bytes = std::max(state_before_bytes, state_bytes());
    figures.limit_bytes = group_.effective_limit_bytes();
    figures.oom_kills = group_.oom_kills();

    const std::lock_guard<std::mutex> lock(mutex_);
    if (model_loaded_) {
        loaded_seconds_ += std::max<std::int64_t>(now_seconds - sampled_at_seconds_, 0);
        if (figures.usage) {
            const std::uint64_t total = figures.usage->unreclaimable_bytes;
            const std::uint64_t base_bytes = total - std::min(total, counted_bytes);
            base_.observe(loaded_seconds_, static_cast<std::int64_t>(base_bytes));
            if (const auto untouched_bytes = std::exchange(untouched_bytes_, std::nullopt)) {
                least_base_bytes_ = *untouched_bytes > 0 ? base_bytes + *untouched_bytes : 0;
            }
        }
    }
    sampled_at_seconds_ = now_seconds;
    if (const auto base = base_.maximum()) {
        figures.base_bytes = std::max(static_cast<std::uint64_t>(*base), least_base_bytes_);
    }
    last_ = figures;
    return figures;
}

memory_figures memory_watch::last() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
}

void memory_watch::set_model_loaded(std::uint64_t untouched_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    model_loaded_ = true;
    untouched_bytes_ = untouched_bytes;
}

void memory_watch::set_model_unloaded() {
    const std::lock_guard<std::mutex> lock(mutex_);
    model_loaded_ = false;
}

}  // namespace llamapool
