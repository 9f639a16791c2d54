// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace llamapool {

// The highest value observed over the last `window` seconds of observed time.
class sliding_maximum {
  public:
    explicit sliding_maximum(std::int64_t window_seconds) : window_seconds_(window_seconds) {}

    // `now_seconds` never decreases. Keeps only values that may still become the maximum.
    void observe(std::int64_t now_seconds, std::int64_t value) {
        while (!candidates_.empty() && candidates_.back().value <= value) {
            candidates_.pop_back();
        }
        candidates_.push_back({now_seconds, value});
        while (candidates_.front().at_seconds <= now_seconds - window_seconds_) {
            candidates_.pop_front();
        }
    }

    // Nothing before the first observation.
    std::optional<std::int64_t> maximum() const {
        return candidates_.empty() ? std::nullopt : std::optional<std::int64_t>(candidates_.front().value);
    }

  private:
    struct candidate {
        std::int64_t at_seconds;
        std::int64_t value;
    };
    std::int64_t window_seconds_;
    std::deque<candidate> candidates_;
};

}  // namespace llamapool
