// SPDX-License-Identifier: Apache-2.0
#include "llamapool/state_budget.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t GiB = std::size_t{1} << 30;

TEST(headroom, is_a_twentieth_and_at_least_256_MiB) {
    EXPECT_EQ(headroom_bytes(2 * GiB), 256 * MiB);
    EXPECT_EQ(headroom_bytes(40 * GiB), 2 * GiB);
}

TEST(own_state_budget, is_what_base_and_headroom_leave_of_the_limit) {
    EXPECT_EQ(own_state_budget_bytes(2048 * MiB, 500 * MiB), 1292 * MiB);
}

TEST(own_state_budget, is_0_where_they_leave_nothing) {
    EXPECT_EQ(own_state_budget_bytes(2048 * MiB, 1900 * MiB), 0U);
    EXPECT_EQ(own_state_budget_bytes(100 * MiB, 5000 * MiB), 0U);
}

TEST(own_state_budget, does_not_exist_without_a_limit_or_before_the_base_is_measured) {
    EXPECT_EQ(own_state_budget_bytes(std::nullopt, 500 * MiB), std::nullopt);
    EXPECT_EQ(own_state_budget_bytes(2048 * MiB, std::nullopt), std::nullopt);
}

TEST(smallest_known, is_the_only_known_one_or_the_smaller) {
    EXPECT_EQ(smallest_known(1, 2), 1U);
    EXPECT_EQ(smallest_known(2, 1), 1U);
    EXPECT_EQ(smallest_known(std::nullopt, 2), 2U);
    EXPECT_EQ(smallest_known(1, std::nullopt), 1U);
    EXPECT_EQ(smallest_known(std::nullopt, std::nullopt), std::nullopt);
}

TEST(own_pool_cap, is_a_sixteenth_before_a_checkpoint_was_seen) {
    EXPECT_EQ(own_pool_cap_bytes({64 * GiB, 2 * GiB, std::nullopt, 4}), 128 * MiB);
}

TEST(own_pool_cap, is_one_buffer_a_slot_where_a_sixteenth_is_less) {
    EXPECT_EQ(own_pool_cap_bytes({64 * GiB, 2 * GiB, 150 * MiB, 4}), 600 * MiB);
}

TEST(own_pool_cap, is_cut_to_whole_buffers) {
    EXPECT_EQ(own_pool_cap_bytes({64 * GiB, 16 * GiB, 150 * MiB, 4}), 900 * MiB);
}

TEST(own_pool_cap, stays_a_sixteenth_of_the_host_without_a_limit) {
    EXPECT_EQ(own_pool_cap_bytes({64 * GiB, std::nullopt, 150 * MiB, 400}), 4 * GiB);
}

}  // namespace
}  // namespace llamapool
