// SPDX-License-Identifier: Apache-2.0
#include "llamapool/histogram.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

TEST(histogram, of_seconds_reaches_from_1_ms_over_10_minutes_each_bound_a_quarter_above_the_last) {
    const auto bounds = histogram::of_seconds().read().upper_bounds;
    EXPECT_DOUBLE_EQ(bounds.front(), 0.001);
    EXPECT_GE(bounds.back(), 600);
    EXPECT_LT(bounds.back(), 600 * 1.25);
    for (std::size_t i = 1; i < bounds.size(); ++i) {
        EXPECT_DOUBLE_EQ(bounds[i], bounds[i - 1] * 1.25);
    }
}

TEST(histogram, counts_a_value_in_the_first_bucket_whose_bound_it_does_not_exceed) {
    histogram values(1, 2, 4);
    for (const double value : {0.0, 1.0, 1.5, 4.0, 4.5}) {
        values.observe(value);
    }
    EXPECT_EQ(values.read().counts, (std::vector<std::uint64_t>{2, 1, 1, 1}));
    EXPECT_DOUBLE_EQ(values.read().sum, 11);
}

TEST(histogram, starts_at_0) {
    const auto values = histogram(1, 2, 4).read();
    EXPECT_EQ(values.counts, (std::vector<std::uint64_t>{0, 0, 0, 0}));
    EXPECT_EQ(values.sum, 0);
}

}  // namespace
}  // namespace llamapool
