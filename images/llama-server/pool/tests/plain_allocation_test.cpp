// SPDX-License-Identifier: Apache-2.0
// LLAMAPOOL_MODE=off: upstream's own allocation path.
#include "llamapool/buffer_pool.h"
#include "llamapool/state_buffer.h"

#include <gtest/gtest.h>
#include <cstdint>
#include <cstring>
#include <vector>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

class plain_allocation_test : public testing::Test {
  protected:
    void SetUp() override {
        state_buffer::use_plain_allocation(true);
        buffer_pool::instance().set_cap(1024 * MiB);
    }
};

TEST_F(plain_allocation_test, maps_and_pools_nothing) {
    { state_buffer{}.resize(64 * MiB); }
    EXPECT_EQ(mapping::total_bytes(), 0U);
    EXPECT_EQ(buffer_pool::instance().statistics().held_buffers, 0U);
    EXPECT_EQ(buffer_pool::instance().statistics().misses, 0U);
}

TEST_F(plain_allocation_test, copies_as_a_vector_does) {
    state_buffer buffer;
    buffer.resize(MiB);
    std::memset(buffer.data(), 3, buffer.size());
    const state_buffer copy = buffer;
    EXPECT_NE(std::as_const(buffer).data(), copy.data());
    EXPECT_EQ(std::memcmp(std::as_const(buffer).data(), copy.data(), MiB), 0);
}

TEST_F(plain_allocation_test, zeroes_new_memory_and_keeps_the_old_content) {
    state_buffer buffer;
    buffer.resize(4);
    buffer.data()[3] = 7;
    buffer.resize(8);
    EXPECT_EQ(buffer.data()[3], 7);
    EXPECT_EQ(buffer.data()[7], 0);
}

TEST_F(plain_allocation_test, copies_a_part_of_the_state_all_the_same) {
    const std::vector<std::uint8_t> source(MiB, 5);
    state_buffer buffer;
    buffer.resize(MiB);
    state_buffer::copy(buffer.data(), source.data(), source.size());
    EXPECT_EQ(std::memcmp(buffer.data(), source.data(), MiB), 0);
}

TEST_F(plain_allocation_test, clears_and_shrinks) {
    state_buffer buffer;
    buffer.resize(MiB);
    buffer.clear();
    buffer.shrink_to_fit();
    EXPECT_TRUE(buffer.empty());
}

TEST_F(plain_allocation_test, leaves_the_moved_from_buffer_empty) {
    state_buffer buffer;
    buffer.resize(MiB);
    const state_buffer moved(std::move(buffer));
    EXPECT_TRUE(buffer.empty());  // NOLINT(bugprone-use-after-move): that it is empty is the promise
    EXPECT_EQ(moved.size(), MiB);
}

}  // namespace
}  // namespace llamapool
