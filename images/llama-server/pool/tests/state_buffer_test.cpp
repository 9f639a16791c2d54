// SPDX-License-Identifier: Apache-2.0
#include "llamapool/state_buffer.h"

#include "llamapool/buffer_pool.h"

#include <gtest/gtest.h>
#include <cstring>
#include <new>
#include <type_traits>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

// Each test starts with an empty process-wide pool of 1 GiB.
class state_buffer_test : public testing::Test {
  protected:
    void SetUp() override {
        buffer_pool::instance().set_cap(1024 * MiB);
        buffer_pool::instance().trim();
        before_ = buffer_pool::instance().statistics();
    }
    void TearDown() override {
        buffer_pool::instance().trim();
        buffer_pool::instance().set_cap(0);
    }
    std::uint64_t hits() const { return buffer_pool::instance().statistics().hits - before_.hits; }
    std::uint64_t misses() const { return buffer_pool::instance().statistics().misses - before_.misses; }
    static std::size_t pooled_bytes() { return buffer_pool::instance().statistics().held_bytes; }

  private:
    pool_statistics before_;
};

TEST_F(state_buffer_test, shares_its_memory_with_a_copy) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    const std::size_t mapped = mapping::total_bytes();
    const state_buffer copy = buffer;
    EXPECT_EQ(std::as_const(buffer).data(), copy.data());
    EXPECT_EQ(copy.size(), 64 * MiB);
    EXPECT_EQ(mapping::total_bytes(), mapped);
}

TEST_F(state_buffer_test, counts_shared_memory_once) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    const state_buffer copy = buffer;
    EXPECT_EQ(state_buffer::live(state_kind::checkpoint).buffers, 1U);
    EXPECT_EQ(state_buffer::live(state_kind::checkpoint).bytes, 64 * MiB);
}

TEST_F(state_buffer_test, leaves_a_copy_alone_when_it_is_refilled) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    std::memset(buffer.data(), 1, buffer.size());
    const state_buffer copy = buffer;
    buffer.resize(64 * MiB);
    std::memset(buffer.data(), 2, buffer.size());
    EXPECT_EQ(copy.data()[0], 1);
    EXPECT_EQ(copy.data()[copy.size() - 1], 1);
}

TEST_F(state_buffer_test, gives_its_memory_to_the_pool_with_its_last_owner) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    {
        const state_buffer last = std::move(buffer);
        EXPECT_EQ(pooled_bytes(), 0U);
    }
    EXPECT_EQ(pooled_bytes(), 64 * MiB);
    EXPECT_EQ(state_buffer::live(state_kind::checkpoint).buffers, 0U);
}

TEST_F(state_buffer_test, takes_its_memory_from_the_pool) {
    { state_buffer{}.resize(64 * MiB); }
    state_buffer buffer;
    buffer.resize(64 * MiB);
    EXPECT_EQ(hits(), 1U);
    EXPECT_EQ(misses(), 1U);
}

TEST_F(state_buffer_test, counts_its_own_large_enough_memory_as_a_hit) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    const auto * const address = buffer.data();
    buffer.resize(63 * MiB);
    EXPECT_EQ(buffer.data(), address);
    EXPECT_EQ(buffer.size(), 63 * MiB);
    EXPECT_EQ(hits(), 1U);
}

TEST_F(state_buffer_test, offers_its_undersized_memory_back) {
    state_buffer buffer;
    buffer.resize(40 * MiB);
    {
        state_buffer other;
        other.resize(100 * MiB);
    }
    buffer.resize(100 * MiB);
    EXPECT_EQ(hits(), 1U);
    EXPECT_EQ(pooled_bytes(), 40 * MiB);
}

TEST_F(state_buffer_test, never_holds_the_old_and_the_new_memory_at_once) {
    buffer_pool::instance().set_cap(0);
    state_buffer buffer;
    buffer.resize(40 * MiB);
    const std::size_t before = mapping::total_bytes();
    buffer.resize(100 * MiB);
    EXPECT_EQ(mapping::total_bytes(), before + 60 * MiB);
}

TEST_F(state_buffer_test, keeps_its_memory_over_clear_as_a_vector_does) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    buffer.clear();
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(state_buffer::live(state_kind::checkpoint).bytes, 64 * MiB);
}

TEST_F(state_buffer_test, has_the_capacity_of_its_own_mapping_and_none_while_that_is_shared) {
    state_buffer buffer;
    EXPECT_EQ(buffer.capacity(), 0U);
    buffer.resize(64 * MiB - 1);
    EXPECT_EQ(buffer.capacity(), 64 * MiB);
    const state_buffer copy = buffer;
    EXPECT_EQ(buffer.capacity(), 0U);
}

TEST_F(state_buffer_test, gives_up_its_share_on_clear) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    const state_buffer copy = buffer;
    buffer.clear();
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(copy.size(), 64 * MiB);
}

TEST_F(state_buffer_test, gives_up_the_memory_of_an_empty_buffer_on_shrink_to_fit) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    buffer.clear();
    buffer.shrink_to_fit();
    EXPECT_EQ(pooled_bytes(), 64 * MiB);
}

TEST_F(state_buffer_test, maps_the_state_of_a_cached_prompt_and_does_not_pool_it) {
    const std::size_t before = mapping::total_bytes();
    {
        state_buffer buffer(state_kind::prompt);
        buffer.resize(64 * MiB);
        EXPECT_EQ(state_buffer::live(state_kind::prompt).bytes, 64 * MiB);
    }
    EXPECT_EQ(mapping::total_bytes(), before);
    EXPECT_EQ(hits() + misses(), 0U);
}

TEST_F(state_buffer_test, takes_a_pooled_buffer_for_a_cached_prompt_that_fits_and_gives_it_back) {
    { state_buffer{}.resize(64 * MiB); }
    {
        state_buffer buffer(state_kind::prompt);
        buffer.resize(60 * MiB);
        EXPECT_EQ(pooled_bytes(), 0U);
        EXPECT_EQ(state_buffer::live(state_kind::prompt).bytes, 64 * MiB);
    }
    EXPECT_EQ(pooled_bytes(), 64 * MiB);
    EXPECT_EQ(hits(), 1U);
}

TEST_F(state_buffer_test, does_not_pool_data_under_the_floor_even_where_it_rounds_up_to_it) {
    { state_buffer{}.resize(32 * MiB - 1); }
    EXPECT_EQ(pooled_bytes(), 0U);
}

TEST_F(state_buffer_test, is_empty_after_its_memory_could_not_be_had) {
    state_buffer buffer;
    EXPECT_THROW(buffer.resize(std::size_t{1} << 50), std::bad_alloc);
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(state_buffer::live(state_kind::checkpoint).buffers, 0U);
}

TEST_F(state_buffer_test, leaves_the_moved_from_buffer_empty) {
    state_buffer buffer;
    buffer.resize(64 * MiB);
    state_buffer moved(std::move(buffer));
    EXPECT_EQ(buffer.size(), 0U);  // NOLINT(bugprone-use-after-move): that it is empty is the promise
    EXPECT_EQ(moved.size(), 64 * MiB);
    buffer = std::move(moved);
    EXPECT_EQ(moved.size(), 0U);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(buffer.size(), 64 * MiB);
}

TEST_F(state_buffer_test, moves_without_throwing) {
    static_assert(std::is_nothrow_move_constructible_v<state_buffer>);
    static_assert(std::is_nothrow_move_assignable_v<state_buffer>);
    static_assert(std::is_nothrow_destructible_v<state_buffer>);
}

}  // namespace
}  // namespace llamapool
