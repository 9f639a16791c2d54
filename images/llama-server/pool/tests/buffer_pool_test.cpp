// SPDX-License-Identifier: Apache-2.0
#include "llamapool/buffer_pool.h"

#include <gtest/gtest.h>
#include <vector>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

// Puts buffers of these sizes, in MiB, in order.
void put_all(buffer_pool & pool, const std::vector<std::size_t> & sizes) {
    for (const std::size_t size : sizes) {
        pool.put(mapping(size * MiB));
    }
}

TEST(buffer_pool, hands_out_again_what_was_put) {
    buffer_pool pool(200 * MiB);
    mapping buffer = pool.take(100 * MiB);
    const auto * const address = buffer.data();
    pool.put(std::move(buffer));
    EXPECT_EQ(pool.take(100 * MiB).data(), address);
    EXPECT_EQ(pool.statistics().hits, 1U);
    EXPECT_EQ(pool.statistics().misses, 1U);
}

TEST(buffer_pool, takes_the_smallest_buffer_that_is_large_enough) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {46, 40, 44});
    EXPECT_EQ(pool.take(42 * MiB).size(), 44 * MiB);
}

TEST(buffer_pool, never_hands_out_an_undersized_buffer) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40, 60, 70});
    for (const std::size_t size : {71, 64, 41, 90}) {
        EXPECT_GE(pool.take(size * MiB).size(), size * MiB);
    }
}

TEST(buffer_pool, does_not_waste_a_buffer_more_than_an_eighth_too_large) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {100});
    EXPECT_EQ(pool.take(80 * MiB).size(), 80 * MiB);
    EXPECT_EQ(pool.statistics().misses, 1U);
    EXPECT_EQ(pool.statistics().held_bytes, 100 * MiB);
}

TEST(buffer_pool, grows_a_buffer_that_is_a_little_too_small) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {96});
    EXPECT_EQ(pool.take(100 * MiB).size(), 100 * MiB);
    EXPECT_EQ(pool.statistics().hits, 1U);
    EXPECT_EQ(pool.statistics().held_bytes, 0U);
}

TEST(buffer_pool, serves_forty_growing_checkpoints_from_one_buffer) {
    buffer_pool pool(8192 * MiB);
    for (std::size_t i = 0; i < 40; ++i) {
        pool.put(pool.take((64 + 2 * i) * MiB));
    }
    EXPECT_EQ(pool.statistics().hits, 39U);
    EXPECT_EQ(pool.statistics().held_buffers, 1U);
    EXPECT_EQ(pool.statistics().high_water_bytes, 142 * MiB);
}

TEST(buffer_pool, keeps_nothing_under_the_floor) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {30});
    EXPECT_EQ(pool.statistics().held_buffers, 0U);
}

TEST(buffer_pool, takes_no_part_in_requests_under_the_floor) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {32});
    EXPECT_EQ(pool.take(31 * MiB).size(), 32 * MiB);
    EXPECT_EQ(pool.statistics().held_buffers, 1U);
    EXPECT_EQ(pool.statistics().hits + pool.statistics().misses, 0U);
}

TEST(buffer_pool, keeps_a_buffer_of_exactly_the_cap) {
    buffer_pool pool(64 * MiB);
    put_all(pool, {64});
    EXPECT_EQ(pool.statistics().held_bytes, 64 * MiB);
}

TEST(buffer_pool, declines_a_buffer_over_the_cap_without_disturbing_the_pool) {
    buffer_pool pool(100 * MiB);
    put_all(pool, {40, 50, 102});
    EXPECT_EQ(pool.statistics().held_bytes, 90 * MiB);
    EXPECT_EQ(pool.statistics().declines, 1U);
    EXPECT_EQ(pool.statistics().evictions, 0U);
}

TEST(buffer_pool, displaces_its_smallest_buffers_for_a_larger_one) {
    buffer_pool pool(150 * MiB);
    put_all(pool, {40, 50, 60, 80});
    EXPECT_EQ(pool.statistics().held_bytes, 140 * MiB);
    EXPECT_EQ(pool.statistics().evictions, 2U);
    EXPECT_EQ(pool.take(80 * MiB).size(), 80 * MiB);
    EXPECT_EQ(pool.take(60 * MiB).size(), 60 * MiB);
}

TEST(buffer_pool, declines_when_full_of_equal_buffers) {
    buffer_pool pool(100 * MiB);
    put_all(pool, {50, 50, 50});
    EXPECT_EQ(pool.statistics().held_buffers, 2U);
    EXPECT_EQ(pool.statistics().declines, 1U);
}

TEST(buffer_pool, displaces_nothing_when_the_smaller_buffers_would_not_make_enough_room) {
    buffer_pool pool(300 * MiB);
    put_all(pool, {40, 250, 100});
    EXPECT_EQ(pool.statistics().held_bytes, 290 * MiB);
    EXPECT_EQ(pool.statistics().declines, 1U);
}

TEST(buffer_pool, holds_at_most_64_buffers) {
    buffer_pool pool(std::size_t{1} << 40);
    put_all(pool, std::vector<std::size_t>(65, 32));
    EXPECT_EQ(pool.statistics().held_buffers, 64U);
    EXPECT_EQ(pool.statistics().declines, 1U);
}

TEST(buffer_pool, displaces_the_smallest_of_64_for_a_larger_one) {
    buffer_pool pool(std::size_t{1} << 40);
    put_all(pool, std::vector<std::size_t>(64, 32));
    put_all(pool, {100});
    EXPECT_EQ(pool.statistics().held_buffers, 64U);
    EXPECT_EQ(pool.statistics().evictions, 1U);
    EXPECT_EQ(pool.take(100 * MiB).size(), 100 * MiB);
    EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST(buffer_pool, retains_nothing_at_cap_0) {
    buffer_pool pool(0);
    put_all(pool, {32, 150});
    EXPECT_EQ(pool.statistics().held_buffers, 0U);
    EXPECT_EQ(pool.statistics().declines, 2U);
}

TEST(buffer_pool, drops_a_buffer_that_256_takes_have_passed_over) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {32});
    for (std::size_t i = 0; i <= buffer_pool::stale_takes; ++i) {
        pool.put(pool.take(64 * MiB));
    }
    EXPECT_EQ(pool.statistics().held_bytes, 64 * MiB);
    EXPECT_EQ(pool.statistics().evictions, 1U);
}

TEST(buffer_pool, keeps_a_buffer_in_use_however_many_takes_go_by) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {64, 64});
    for (std::size_t i = 0; i < 3 * buffer_pool::stale_takes; ++i) {
        mapping first = pool.take(64 * MiB);
        mapping second = pool.take(64 * MiB);
        pool.put(std::move(first));
        pool.put(std::move(second));
    }
    EXPECT_EQ(pool.statistics().misses, 0U);
}

TEST(buffer_pool, applies_a_smaller_cap_at_once) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40, 50, 60});
    const std::size_t before = mapping::total_bytes();
    pool.set_cap(70 * MiB);
    EXPECT_EQ(pool.statistics().held_bytes, 60 * MiB);
    EXPECT_EQ(pool.statistics().cap_bytes, 70 * MiB);
    EXPECT_EQ(mapping::total_bytes(), before - 90 * MiB);
}

TEST(buffer_pool, unmaps_on_a_trim) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40, 50});
    const std::size_t before = mapping::total_bytes();
    EXPECT_EQ(pool.trim(), 90 * MiB);
    EXPECT_EQ(mapping::total_bytes(), before - 90 * MiB);
    EXPECT_EQ(pool.statistics().held_buffers, 0U);
}

TEST(buffer_pool, counts_only_trims_that_released_something) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40});
    pool.trim();
    pool.trim();
    EXPECT_EQ(pool.statistics().trims, 1U);
}

TEST(buffer_pool, trims_no_more_than_it_must) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40, 50, 60});
    EXPECT_EQ(pool.trim(115 * MiB), 40 * MiB);
    EXPECT_EQ(pool.statistics().held_bytes, 110 * MiB);
}

TEST(buffer_pool, says_what_a_take_would_map) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {96});
    EXPECT_EQ(pool.fresh_bytes(96 * MiB), 0U);
    EXPECT_EQ(pool.fresh_bytes(100 * MiB), 4 * MiB);
    EXPECT_EQ(pool.fresh_bytes(200 * MiB), 200 * MiB);
    EXPECT_EQ(pool.fresh_bytes(10 * MiB), 10 * MiB);
    EXPECT_EQ(pool.fresh_bytes(0), 0U);
}

TEST(buffer_pool, says_how_many_buffers_would_serve_a_request) {
    buffer_pool pool(1000 * MiB);
    put_all(pool, {60, 86, 88, 100, 112, 114});
    EXPECT_EQ(pool.buffers_for(100 * MiB), 3U);
    EXPECT_EQ(pool.buffers_for(40 * MiB), 0U);
    EXPECT_EQ(pool.buffers_for(buffer_pool::floor_bytes - 1), 0U);
}

TEST(buffer_pool, releases_the_smallest_but_the_one_that_is_wanted) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40, 50, 60});
    EXPECT_EQ(pool.release(45 * MiB, 40 * MiB), 50 * MiB);
    EXPECT_EQ(pool.fresh_bytes(40 * MiB), 0U);
    EXPECT_EQ(pool.statistics().held_bytes, 100 * MiB);
}

TEST(buffer_pool, releases_all_but_the_wanted_one_when_that_is_not_enough) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40, 50, 60});
    EXPECT_EQ(pool.release(400 * MiB, 50 * MiB), 100 * MiB);
    EXPECT_EQ(pool.release(400 * MiB, 50 * MiB), 0U);
    EXPECT_EQ(pool.statistics().held_bytes, 50 * MiB);
}

TEST(buffer_pool, keeps_its_high_water_mark_and_counters_over_a_trim) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {40, 50});
    pool.put(pool.take(40 * MiB));
    pool.trim();
    EXPECT_EQ(pool.statistics().high_water_bytes, 90 * MiB);
    EXPECT_EQ(pool.statistics().hits, 1U);
}

TEST(buffer_pool, gives_what_it_holds_and_maps_nothing_where_only_that_is_asked_for) {
    buffer_pool pool(400 * MiB);
    put_all(pool, {64});
    EXPECT_EQ(pool.take_held(60 * MiB).size(), 64 * MiB);
    EXPECT_TRUE(pool.take_held(60 * MiB).empty());
    EXPECT_EQ(pool.statistics().hits, 1U);
    EXPECT_EQ(pool.statistics().misses, 0U);
}

TEST(buffer_pool, has_room_up_to_its_cap_for_what_is_not_too_small) {
    buffer_pool pool(100 * MiB);
    put_all(pool, {40});
    EXPECT_TRUE(pool.has_room_for(60 * MiB));
    EXPECT_FALSE(pool.has_room_for(60 * MiB + 1));
    EXPECT_FALSE(pool.has_room_for(buffer_pool::floor_bytes - 1));
}

TEST(buffer_pool, is_the_same_for_the_whole_process) {
    EXPECT_EQ(&buffer_pool::instance(), &buffer_pool::instance());
}

TEST(buffer_pool, releases_without_throwing) {
    static_assert(noexcept(std::declval<buffer_pool &>().put(std::declval<mapping>())));
    static_assert(noexcept(std::declval<buffer_pool &>().trim()));
    static_assert(std::is_nothrow_move_constructible_v<mapping> && std::is_nothrow_move_assignable_v<mapping>);
}

}  // namespace
}  // namespace llamapool
