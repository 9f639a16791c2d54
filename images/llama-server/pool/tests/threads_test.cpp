// SPDX-License-Identifier: Apache-2.0
// To be run under ThreadSanitizer as well.
#include "llamapool/buffer_pool.h"
#include "llamapool/state_buffer.h"

#include <gtest/gtest.h>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr int workers = 8;
constexpr int rounds = 40;

// Tags the first, middle and last byte and looks at them again after others had their turn: a buffer with two owners,
// or one unmapped under its owner, shows.
bool keeps_its_tags(state_buffer & buffer, std::size_t size, std::uint8_t tag) {
    buffer.resize(size);
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
        buffer.data()[at] = tag;
    }
    const state_buffer shared = buffer;
    std::this_thread::yield();
    bool kept = true;
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
        kept = kept && shared.data()[at] == tag;
    }
    return kept;
}

TEST(threads, eight_workers_and_a_trimmer_never_meet_in_one_buffer) {
    buffer_pool & pool = buffer_pool::instance();
    pool.set_cap(200 * MiB);
    std::atomic<bool> done{false};
    std::atomic<int> broken{0};
    std::thread trimmer([&] {
        for (int i = 0; !done; ++i) {
            pool.trim();
            pool.set_cap((i % 2 == 0 ? 100 : 200) * MiB);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker) {
        threads.emplace_back([&broken, worker] {
            for (int round = 0; round < rounds; ++round) {
                state_buffer buffer;
                const std::size_t size = (32 + static_cast<std::size_t>(worker + round) % 5) * MiB;
                if (!keeps_its_tags(buffer, size, static_cast<std::uint8_t>(worker + 1))) {
                    ++broken;
                }
            }
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    done = true;
    trimmer.join();
    pool.trim();
    const pool_statistics after = pool.statistics();
    EXPECT_EQ(broken, 0);
    EXPECT_GE(after.hits + after.misses, static_cast<std::uint64_t>(workers * rounds));
    EXPECT_EQ(after.held_bytes, 0U);
    EXPECT_EQ(state_buffer::live(state_kind::checkpoint).bytes, 0U);
    pool.set_cap(0);
}

}  // namespace
}  // namespace llamapool
