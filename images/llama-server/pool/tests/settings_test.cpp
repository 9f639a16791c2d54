// SPDX-License-Identifier: Apache-2.0
#include "llamapool/settings.h"

#include <gtest/gtest.h>
#include <map>

namespace llamapool {
namespace {

settings from(const std::map<std::string, std::string> & environment) {
    return settings::from_environment([&](const char * name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
    });
}

std::string error_of(const std::map<std::string, std::string> & environment) {
    try {
        from(environment);
    } catch (const invalid_setting & error) {
        return error.what();
    }
    return "";
}

TEST(settings, have_defaults_for_an_empty_environment) {
    const settings read = from({});
    EXPECT_TRUE(read.pooled);
    EXPECT_EQ(read.pool_cap_bytes, std::nullopt);
    EXPECT_EQ(read.idle_trim_seconds, 60U);
    EXPECT_EQ(read.metrics_port, 9090);
    EXPECT_EQ(read.limits_file, "");
}

TEST(settings, are_read_from_the_environment) {
    const settings read = from({{"LLAMAPOOL_MODE", "off"},
                                {"LLAMAPOOL_POOL_CAP_BYTES", "0"},
                                {"LLAMAPOOL_STATE_BUDGET_BYTES", "800000000"},
                                {"LLAMAPOOL_TERMINATION_LOG", "/dev/termination-log"},
                                {"LLAMAPOOL_IDLE_TRIM_SECONDS", "5"},
                                {"LLAMAPOOL_METRICS_PORT", "9191"},
                                {"LLAMAPOOL_LIMITS_FILE", "/etc/llamapool/limits.json"}});
    EXPECT_FALSE(read.pooled);
    EXPECT_EQ(read.pool_cap_bytes, 0U);
    EXPECT_EQ(read.idle_trim_seconds, 5U);
    EXPECT_EQ(read.metrics_port, 9191);
    EXPECT_EQ(read.limits_file, "/etc/llamapool/limits.json");
    EXPECT_EQ(read.state_budget_bytes, 800000000U);
    EXPECT_EQ(read.termination_log, "/dev/termination-log");
}

TEST(settings, take_an_empty_variable_for_unset) {
    EXPECT_EQ(from({{"LLAMAPOOL_POOL_CAP_BYTES", ""}}).pool_cap_bytes, std::nullopt);
}

TEST(settings, name_the_variable_its_value_and_what_would_be_right) {
    EXPECT_EQ(error_of({{"LLAMAPOOL_MODE", "auto"}}), "LLAMAPOOL_MODE is 'auto', want on or off");
    EXPECT_EQ(error_of({{"LLAMAPOOL_POOL_CAP_BYTES", "1Gi"}}),
              "LLAMAPOOL_POOL_CAP_BYTES is '1Gi', want a whole number of bytes from 0");
    EXPECT_EQ(error_of({{"LLAMAPOOL_POOL_CAP_BYTES", "-1"}}),
              "LLAMAPOOL_POOL_CAP_BYTES is '-1', want a whole number of bytes from 0");
    EXPECT_EQ(error_of({{"LLAMAPOOL_IDLE_TRIM_SECONDS", " 5"}}),
              "LLAMAPOOL_IDLE_TRIM_SECONDS is ' 5', want a whole number of seconds from 0");
    EXPECT_EQ(error_of({{"LLAMAPOOL_METRICS_PORT", "65536"}}),
              "LLAMAPOOL_METRICS_PORT is '65536', want a port from 1 to 65535, or 0 for none");
}

}  // namespace
}  // namespace llamapool
