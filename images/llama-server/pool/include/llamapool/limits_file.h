// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace llamapool {

// The limits that limits.json asks for. An absent or null field: the server's own value.
struct limits {
    std::optional<std::uint64_t> generation;  // nothing: no file has been applied
    std::optional<std::uint64_t> pool_cap_bytes;
    std::optional<std::uint64_t> state_budget_bytes;  // a ceiling
};

// Says which field is wrong, its value and what would be right.
class invalid_limits : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Parses {"generation": 7, "poolCapBytes": 268435456, "stateBudgetBytes": null}; other fields are left to newer
// versions. Throws invalid_limits.
limits parse_limits(const std::string & text);

// Follows one limits.json. Not thread-safe: one thread polls.
class limits_file {
  public:
    // An empty path: never anything but the start values.
    explicit limits_file(std::filesystem::path path) : path_(std::move(path)) {}

    // Reads the file. Returns the limits to apply when they differ from the last ones returned: a changed content, or
    // none at all (the start values) when the file is gone. An invalid file keeps the last good limits; each invalid
    // content is counted and said on standard error once.
    std::optional<limits> poll();

    std::uint64_t errors() const noexcept { return errors_; }

  private:
    std::filesystem::path path_;
    std::optional<std::string> seen_;     // content of the last poll
    std::optional<std::string> applied_;  // content of the last good file; nothing: start values
    std::uint64_t errors_ = 0;
};

}  // namespace llamapool
