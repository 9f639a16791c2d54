// SPDX-License-Identifier: Apache-2.0
#include "llamapool/histogram.h"

#include <algorithm>

namespace llamapool {

histogram::histogram(double first, double factor, double last) {
    state_.upper_bounds.push_back(first);
    while (state_.upper_bounds.back() < last) {
        state_.upper_bounds.push_back(state_.upper_bounds.back() * factor);
    }
    state_.counts.resize(state_.upper_bounds.size() + 1);
}

void histogram::observe(double value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto & bounds = state_.upper_bounds;
    const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    ++state_.counts[static_cast<std::size_t>(bucket)];
    state_.sum += value;
}

histogram::snapshot histogram::read() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return state_;
}

}  // namespace llamapool
