// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llamapool/histogram.h"

#include <cstdint>
#include <optional>
#include <string>

namespace llamapool {

// Builds a page in Prometheus' text format 0.0.4.
// A value that is not known leaves its series out: an absent series says "unknown", a 0 says "none".
class exposition {
  public:
    static constexpr const char * content_type = "text/plain; version=0.0.4; charset=utf-8";

    void counter(const char * name, const char * help, std::optional<std::uint64_t> value);
    void gauge(const char * name, const char * help, std::optional<std::uint64_t> value);
    // `labels` as in {a="b"}, escaped by the caller.
    void gauge_with_labels(const char * name, const char * help, const std::string & labels, std::uint64_t value);
    void distribution(const char * name, const char * help, const histogram::snapshot & values);

    const std::string & text() const noexcept { return text_; }

  private:
    void head(const char * name, const char * help, const char * type);

    std::string text_;
};

}  // namespace llamapool
