// SPDX-License-Identifier: Apache-2.0
#include "llamapool/exposition.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

TEST(exposition, writes_a_counter_with_help_and_type) {
    exposition page;
    page.counter("llamapool_hits_total", "Hits.", 3);
    EXPECT_EQ(page.text(),
              "# HELP llamapool_hits_total Hits.\n# TYPE llamapool_hits_total counter\nllamapool_hits_total 3\n");
}

TEST(exposition, leaves_out_what_is_not_known) {
    exposition page;
    page.gauge("llamapool_limit_bytes", "Limit.", std::nullopt);
    page.counter("llamapool_kills_total", "Kills.", std::nullopt);
    EXPECT_EQ(page.text(), "");
}

TEST(exposition, writes_large_values_exactly) {
    exposition page;
    page.gauge("llamapool_bytes", "Bytes.", 9007199254740993);
    EXPECT_NE(page.text().find("llamapool_bytes 9007199254740993\n"), std::string::npos);
}

TEST(exposition, writes_labels) {
    exposition page;
    page.gauge_with_labels("llamapool_build_info", "Build.", R"({version="1"})", 1);
    EXPECT_NE(page.text().find("llamapool_build_info{version=\"1\"} 1\n"), std::string::npos);
}

TEST(exposition, writes_cumulative_buckets_sum_and_count) {
    exposition page;
    page.distribution("llamapool_seconds", "Time.", {{0.001, 0.00125}, {2, 0, 1}, 0.5});
    EXPECT_EQ(page.text(),
              "# HELP llamapool_seconds Time.\n# TYPE llamapool_seconds histogram\n"
              "llamapool_seconds_bucket{le=\"0.001\"} 2\nllamapool_seconds_bucket{le=\"0.00125\"} 2\n"
              "llamapool_seconds_bucket{le=\"+Inf\"} 3\nllamapool_seconds_sum 0.5\nllamapool_seconds_count 3\n");
}

}  // namespace
}  // namespace llamapool
