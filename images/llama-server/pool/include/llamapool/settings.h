// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace llamapool {

// Names the environment variable, its value and what would be right.
class invalid_setting : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The environment of the server, parsed once at its start. An empty variable counts as unset.
struct settings {
    bool pooled = true;                               // LLAMAPOOL_MODE: on, or off for upstream's own allocation
    std::optional<std::uint64_t> pool_cap_bytes;      // LLAMAPOOL_POOL_CAP_BYTES; unset: the server's own
    std::optional<std::uint64_t> state_budget_bytes;  // LLAMAPOOL_STATE_BUDGET_BYTES: a ceiling; unset: none
    std::uint64_t idle_trim_seconds = 60;             // LLAMAPOOL_IDLE_TRIM_SECONDS
    std::uint16_t metrics_port = 9090;                // LLAMAPOOL_METRICS_PORT; 0: no metrics port
    std::string limits_file;                          // LLAMAPOOL_LIMITS_FILE
    std::string termination_log;                      // LLAMAPOOL_TERMINATION_LOG

    using lookup = std::function<const char *(const char * name)>;

    // `get` is std::getenv in the server. Throws invalid_setting.
    static settings from_environment(const lookup & get);
};

}  // namespace llamapool
