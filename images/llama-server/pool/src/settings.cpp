// SPDX-License-Identifier: Apache-2.0
#include "llamapool/settings.h"

#include <charconv>

namespace llamapool {
namespace {

class reader {
  public:
    explicit reader(const settings::lookup & get) : get_(get) {}

    std::optional<std::string> text(const char * name) const {
        const char * const value = get_(name);
        return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
    }

    template <typename number>
    std::optional<number> whole_number(const char * name, const char * wanted) const {
        const auto value = text(name);
        if (!value) {
            return std::nullopt;
        }
        number result = 0;
        const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
        if (error != std::errc() || end != value->data() + value->size()) {
            throw invalid_setting(std::string(name) + " is '" + *value + "', want " + wanted);
        }
        return result;
    }

  private:
    const settings::lookup & get_;
};

}  // namespace

settings settings::from_environment(const lookup & get) {
    const reader environment(get);
    settings result;
    if (const auto mode = environment.text("LLAMAPOOL_MODE")) {
        if (*mode != "on" && *mode != "off") {
            throw invalid_setting("LLAMAPOOL_MODE is '" + *mode + "', want on or off");
        }
        result.pooled = *mode == "on";
    }
    result.pool_cap_bytes =
        environment.whole_number<std::uint64_t>("LLAMAPOOL_POOL_CAP_BYTES", "a whole number of bytes from 0");
    result.state_budget_bytes =
        environment.whole_number<std::uint64_t>("LLAMAPOOL_STATE_BUDGET_BYTES", "a whole number of bytes from 0");
    if (const auto seconds = environment.whole_number<std::uint64_t>("LLAMAPOOL_IDLE_TRIM_SECONDS",
                                                                     "a whole number of seconds from 0")) {
        result.idle_trim_seconds = *seconds;
    }
    if (const auto port = environment.whole_number<std::uint16_t>("LLAMAPOOL_METRICS_PORT",
                                                                  "a port from 1 to 65535, or 0 for none")) {
        result.metrics_port = *port;
    }
    result.limits_file = environment.text("LLAMAPOOL_LIMITS_FILE").value_or("");
    result.termination_log = environment.text("LLAMAPOOL_TERMINATION_LOG").value_or("");
    return result;
}

}  // namespace llamapool
