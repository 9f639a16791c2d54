// SPDX-License-Identifier: Apache-2.0
#include "llamapool/streaming_copy.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace llamapool {
namespace {

std::vector<std::uint8_t> numbered(std::size_t bytes) {
    std::vector<std::uint8_t> data(bytes);
    std::iota(data.begin(), data.end(), std::uint8_t{1});
    return data;
}

TEST(streaming_copy_test, writes_what_was_asked_and_nothing_beside_it_at_any_size_and_alignment) {
    constexpr std::size_t margin = 128;
    constexpr std::uint8_t untouched = 0;
    const auto source = numbered(9000);
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 1023, 1024, 1025, 4096, 8191}) {
        for (std::size_t to = 0; to < 64; to += 3) {
            for (std::size_t from = 0; from < 64; from += 7) {
                std::vector<std::uint8_t> target(margin + bytes + margin, untouched);
                streaming_copy(target.data() + to, source.data() + from, bytes);
                const auto begin = target.begin() + static_cast<std::ptrdiff_t>(to);
                const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
                ASSERT_TRUE(std::equal(begin, end, source.begin() + static_cast<std::ptrdiff_t>(from)));
                const auto is_untouched = [](std::uint8_t byte) { return byte == untouched; };
                ASSERT_TRUE(std::all_of(target.begin(), begin, is_untouched));
                ASSERT_TRUE(std::all_of(end, target.end(), is_untouched));
            }
        }
    }
}

TEST(streaming_copy_test, is_seen_whole_by_a_thread_that_starts_after_it) {
    const auto source = numbered(std::size_t{4} << 20);
    std::vector<std::uint8_t> target(source.size());
    streaming_copy(target.data(), source.data(), source.size());
    bool same = false;
    std::thread([&] { same = target == source; }).join();
    EXPECT_TRUE(same);
}

}  // namespace
}  // namespace llamapool
