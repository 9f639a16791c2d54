// SPDX-License-Identifier: Apache-2.0
#include "llamapool/exposition.h"

#include <array>
#include <charconv>
#include <cstddef>

namespace llamapool {
namespace {

// The shortest text that reads back as the same number.
std::string shortest(double value) {
    std::array<char, 32> text{};
    const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
    return {text.data(), result.ptr};
}

}  // namespace

void exposition::head(const char * name, const char * help, const char * type) {
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void exposition::counter(const char * name, const char * help, std::optional<std::uint64_t> value) {
    if (value) {
        head(name, help, "counter");
        text_.append(name).append(" ").append(std::to_string(*value)).append("\n");
    }
}

void exposition::gauge(const char * name, const char * help, std::optional<std::uint64_t> value) {
    if (value) {
        gauge_with_labels(name, help, "", *value);
    }
}

void exposition::gauge_with_labels(const char * name, const char * help, const std::string & labels,
                                   std::uint64_t value) {
    head(name, help, "gauge");
    text_.append(name).append(labels).append(" ").append(std::to_string(value)).append("\n");
}

void exposition::distribution(const char * name, const char * help, const histogram::snapshot & values) {
    head(name, help, "histogram");
    std::uint64_t cumulative = 0;
    for (std::size_t i = 0; i < values.counts.size(); ++i) {
        cumulative += values.counts[i];
        const std::string bound = i < values.upper_bounds.size() ? shortest(values.upper_bounds[i]) : "+Inf";
        text_.append(name).append("_bucket{le=\"").append(bound).append("\"} ");
        text_.append(std::to_string(cumulative)).append("\n");
    }
    text_.append(name).append("_sum ").append(shortest(values.sum)).append("\n");
    text_.append(name).append("_count ").append(std::to_string(cumulative)).append("\n");
}

}  // namespace llamapool
