// SPDX-License-Identifier: Apache-2.0
#include "llamapool/sliding_maximum.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

TEST(sliding_maximum, is_unknown_before_the_first_value) {
    EXPECT_EQ(sliding_maximum(600).maximum(), std::nullopt);
}

TEST(sliding_maximum, keeps_the_highest_value_of_the_window) {
    sliding_maximum values(600);
    values.observe(0, 5);
    values.observe(1, 9);
    values.observe(2, 7);
    EXPECT_EQ(values.maximum(), 9);
}

TEST(sliding_maximum, forgets_a_value_when_its_window_has_passed) {
    sliding_maximum values(600);
    values.observe(0, 9);
    values.observe(100, 7);
    values.observe(599, 3);
    EXPECT_EQ(values.maximum(), 9);
    values.observe(600, 3);
    EXPECT_EQ(values.maximum(), 7);
    values.observe(700, 2);
    EXPECT_EQ(values.maximum(), 3);
}

}  // namespace
}  // namespace llamapool
