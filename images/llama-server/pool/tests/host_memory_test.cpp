// SPDX-License-Identifier: Apache-2.0
#include "llamapool/host_memory.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

constexpr std::size_t GiB = std::size_t{1} << 30;

TEST(host_memory, is_pages_times_page_size) {
    EXPECT_EQ(host_memory_bytes(6291456, 4096), 24 * GiB);
}

TEST(host_memory, is_unknown_after_a_failed_query) {
    EXPECT_EQ(host_memory_bytes(-1, 4096), std::nullopt);
    EXPECT_EQ(host_memory_bytes(6291456, -1), std::nullopt);
    EXPECT_EQ(host_memory_bytes(0, 4096), std::nullopt);
}

TEST(host_memory, is_unknown_above_one_pebibyte) {
    EXPECT_EQ(host_memory_bytes(1L << 39, 4096), std::nullopt);
    EXPECT_EQ(host_memory_bytes(1L << 62, 4096), std::nullopt);
    EXPECT_EQ(host_memory_bytes(1L << 38, 4096), std::size_t{1} << 50);
}

TEST(host_memory, of_this_host_is_known) {
    EXPECT_GT(host_memory_bytes().value_or(0), 0U);
}

TEST(default_pool_cap, is_a_sixteenth_of_the_limit_where_that_is_smaller) {
    EXPECT_EQ(default_pool_cap_bytes(256 * GiB, 4 * GiB), GiB / 4);
}

TEST(default_pool_cap, is_a_sixteenth_of_the_host_where_that_is_smaller) {
    EXPECT_EQ(default_pool_cap_bytes(16 * GiB, 64 * GiB), GiB);
}

TEST(default_pool_cap, follows_the_one_that_is_known) {
    EXPECT_EQ(default_pool_cap_bytes(16 * GiB, std::nullopt), GiB);
    EXPECT_EQ(default_pool_cap_bytes(std::nullopt, 16 * GiB), GiB);
}

TEST(default_pool_cap, is_0_where_nothing_is_known) {
    EXPECT_EQ(default_pool_cap_bytes(std::nullopt, std::nullopt), 0U);
}

}  // namespace
}  // namespace llamapool
