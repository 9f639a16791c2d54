// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace llamapool {

// A Prometheus histogram. Thread-safe.
class histogram {
  public:
    struct snapshot {
        std::vector<double> upper_bounds;   // ascending, +Inf left out
        std::vector<std::uint64_t> counts;  // per bucket, not cumulative; one more for +Inf
        double sum = 0;
    };

    // Bounds `first`, each `factor` times the one before, until one is at least `last`.
    histogram(double first, double factor, double last);

    // 1 ms to 10 min, each bound 1.25 times the one before.
    static histogram of_seconds() { return {0.001, 1.25, 600}; }

    void observe(double value);
    snapshot read() const;

  private:
    mutable std::mutex mutex_;
    snapshot state_;
};

}  // namespace llamapool
