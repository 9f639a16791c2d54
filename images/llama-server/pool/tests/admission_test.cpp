// SPDX-License-Identifier: Apache-2.0
#include "llamapool/admission.h"

#include "llamapool/state_buffer.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t size_bytes = 40 * MiB;

const evictor nothing_to_give = [](evictable) { return false; };

// A server in small: buffers by the rank at which they are given up, oldest first.
class admission_test : public testing::Test {
  protected:
    admission_test() : admission_(buffer_pool::instance()) { buffer_pool::instance().set_cap(1000 * MiB); }
    ~admission_test() override {
        held_.clear();
        buffer_pool::instance().trim();
        buffer_pool::instance().set_cap(0);
    }

    void hold(evictable rank, std::size_t bytes = size_bytes) {
        const bool prompt = rank == evictable::cached_prompt;
        held_[rank].emplace_back(prompt ? state_kind::prompt : state_kind::checkpoint).resize(bytes);
    }
    void pool(std::size_t bytes = size_bytes) { buffer_pool::instance().put(mapping(bytes)); }

    bool give_up(evictable rank) {
        if (held_[rank].empty()) {
            return false;
        }
        held_[rank].pop_front();
        given_up_.push_back(rank);
        return true;
    }
    evictor all() {
        return [this](evictable rank) { return give_up(rank); };
    }

    bool ask(state_buffer & buffer, const evictor & evict, std::size_t bytes = size_bytes) {
        return admission_.allocate(
            {bytes, 0}, [&] { buffer.resize(bytes); }, evict);
    }

    // A thread that prepares a buffer, and is at it.
    std::thread begin_to_prepare(std::size_t bytes) {
        const std::size_t before_bytes = mapping::total_bytes();
        std::thread preparer([this, bytes] { admission_.prepare(bytes); });
        while (mapping::total_bytes() == before_bytes) {
            std::this_thread::yield();
        }
        return preparer;
    }

    admission admission_;
    std::map<evictable, std::deque<state_buffer>> held_;
    std::vector<evictable> given_up_;
};

TEST_F(admission_test, admits_everything_without_a_budget) {
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, nothing_to_give));
    EXPECT_EQ(admission_.budget_in_effect(), std::nullopt);
}

TEST_F(admission_test, admits_what_fits_the_budget_exactly) {
    admission_.set_budget(size_bytes);
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, nothing_to_give));
}

TEST_F(admission_test, skips_what_does_not_fit_and_allocates_nothing) {
    admission_.set_budget(size_bytes - 1);
    state_buffer buffer;
    EXPECT_FALSE(ask(buffer, nothing_to_give));
    EXPECT_EQ(mapping::total_bytes(), 0U);
}

TEST_F(admission_test, counts_whole_mapped_buffers) {
    admission_.set_budget(size_bytes);
    state_buffer buffer;
    EXPECT_FALSE(ask(buffer, nothing_to_give, size_bytes + 1));
}

TEST_F(admission_test, gives_up_in_the_order_that_later_requests_miss_the_least) {
    const std::vector<evictable> order{evictable::cached_older_checkpoint, evictable::idle_older_checkpoint,
                                       evictable::own_older_checkpoint, evictable::cached_prompt,
                                       evictable::idle_newest_checkpoint};
    std::for_each(order.rbegin(), order.rend(), [this](evictable rank) { hold(rank); });
    admission_.set_budget(mapping::total_bytes());
    std::deque<state_buffer> made;
    for (std::size_t i = 0; i < order.size(); ++i) {
        EXPECT_TRUE(ask(made.emplace_back(), all()));
    }
    EXPECT_EQ(given_up_, order);
    EXPECT_FALSE(ask(made.emplace_back(), all()));
}

TEST_F(admission_test, gives_up_pooled_buffers_before_anything_else) {
    pool(60 * MiB);
    hold(evictable::cached_prompt);
    admission_.set_budget(100 * MiB);
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, all()));
    EXPECT_TRUE(given_up_.empty());
    EXPECT_EQ(buffer_pool::instance().statistics().held_bytes, 0U);
}

TEST_F(admission_test, uses_a_pooled_buffer_that_fits_and_gives_up_nothing) {
    hold(evictable::cached_prompt);
    pool(size_bytes);
    admission_.set_budget(80 * MiB);
    const auto hits = buffer_pool::instance().statistics().hits;
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, all()));
    EXPECT_TRUE(given_up_.empty());
    EXPECT_EQ(buffer_pool::instance().statistics().hits, hits + 1);
}

TEST_F(admission_test, takes_over_the_very_buffer_that_was_given_up) {
    hold(evictable::idle_older_checkpoint);
    admission_.set_budget(size_bytes);
    const auto hits = buffer_pool::instance().statistics().hits;
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, all()));
    EXPECT_EQ(buffer_pool::instance().statistics().hits, hits + 1);
    EXPECT_EQ(mapping::total_bytes(), size_bytes);
}

TEST_F(admission_test, goes_on_when_what_was_given_up_is_still_shared) {
    hold(evictable::cached_older_checkpoint);
    const state_buffer shared = held_[evictable::cached_older_checkpoint].front();
    hold(evictable::idle_older_checkpoint);
    admission_.set_budget(mapping::total_bytes());
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, all()));
    EXPECT_EQ(given_up_,
              (std::vector<evictable>{evictable::cached_older_checkpoint, evictable::idle_older_checkpoint}));
}

TEST_F(admission_test, gives_up_no_more_than_it_must) {
    for (int i = 0; i < 3; ++i) {
        hold(evictable::cached_prompt);
    }
    admission_.set_budget(mapping::total_bytes());
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, all()));
    EXPECT_EQ(given_up_.size(), 1U);
}

TEST_F(admission_test, never_exceeds_the_budget_while_state_comes_and_goes) {
    admission_.set_budget(300 * MiB);
    std::deque<state_buffer> live;
    const evictor oldest = [&](evictable rank) {
        if (rank != evictable::own_older_checkpoint || live.size() < 2) {
            return false;
        }
        live.pop_front();
        return true;
    };
    for (std::size_t i = 0; i < 60; ++i) {
        state_buffer buffer;
        EXPECT_TRUE(ask(buffer, oldest, (33 + 7 * i % 50) * MiB));
        live.push_back(std::move(buffer));
        EXPECT_LE(mapping::total_bytes(), 300 * MiB);
    }
}

TEST_F(admission_test, applies_a_smaller_budget_to_the_pool_at_once) {
    pool(60 * MiB);
    hold(evictable::cached_prompt);
    admission_.set_budget(50 * MiB);
    EXPECT_EQ(mapping::total_bytes(), size_bytes);
    EXPECT_EQ(admission_.budget_in_effect(), 50 * MiB);
}

TEST_F(admission_test, keeps_the_old_budget_in_effect_until_the_server_has_given_up_the_excess) {
    hold(evictable::cached_prompt);
    hold(evictable::cached_prompt);
    admission_.set_budget(100 * MiB);
    admission_.set_budget(50 * MiB);
    EXPECT_EQ(admission_.budget_in_effect(), 100 * MiB);
    EXPECT_TRUE(admission_.over_budget());
    admission_.enforce(all());
    EXPECT_EQ(admission_.budget_in_effect(), 50 * MiB);
    EXPECT_EQ(given_up_.size(), 1U);
}

TEST_F(admission_test, gives_up_everything_for_a_budget_of_0) {
    hold(evictable::cached_prompt);
    hold(evictable::idle_newest_checkpoint);
    pool(60 * MiB);
    admission_.set_budget(0);
    admission_.enforce(all());
    EXPECT_EQ(mapping::total_bytes(), 0U);
}

TEST_F(admission_test, applies_a_larger_budget_at_once) {
    admission_.set_budget(0);
    admission_.set_budget(size_bytes);
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, nothing_to_give));
}

TEST_F(admission_test, enforces_nothing_while_within_the_budget) {
    hold(evictable::cached_prompt);
    admission_.set_budget(50 * MiB);
    admission_.enforce(all());
    EXPECT_TRUE(given_up_.empty());
}

// Fails the first calls as an allocator without memory does.
class failing_fill {
  public:
    failing_fill(state_buffer & buffer, int failures) : buffer_(buffer), failures_(failures) {}
    void operator()() {
        held_at_call.push_back(buffer_pool::instance().statistics().held_bytes);
        if (failures_-- > 0) {
            throw std::bad_alloc();
        }
        buffer_.resize(size_bytes);
    }
    std::vector<std::size_t> held_at_call;

  private:
    state_buffer & buffer_;
    int failures_;
};

TEST_F(admission_test, trims_the_pool_and_retries_after_a_bad_alloc) {
    pool(60 * MiB);
    hold(evictable::cached_prompt);
    state_buffer buffer;
    failing_fill fill(buffer, 1);
    EXPECT_TRUE(admission_.allocate({size_bytes, 0}, std::ref(fill), all()));
    EXPECT_EQ(fill.held_at_call, (std::vector<std::size_t>{60 * MiB, 0}));
    EXPECT_TRUE(given_up_.empty());
    EXPECT_EQ(admission_.counters().allocation_failures, 1U);
}

TEST_F(admission_test, gives_up_state_trims_what_went_to_the_pool_and_retries_after_another_bad_alloc) {
    hold(evictable::idle_older_checkpoint);
    state_buffer buffer;
    failing_fill fill(buffer, 1);
    EXPECT_TRUE(admission_.allocate({size_bytes, 0}, std::ref(fill), all()));
    EXPECT_EQ(fill.held_at_call, (std::vector<std::size_t>{0, 0}));
    EXPECT_EQ(given_up_, std::vector<evictable>{evictable::idle_older_checkpoint});
}

TEST_F(admission_test, skips_when_there_is_nothing_left_to_give_up_after_a_bad_alloc) {
    hold(evictable::cached_prompt);
    state_buffer buffer;
    failing_fill fill(buffer, 10);
    EXPECT_FALSE(admission_.allocate({size_bytes, 0}, std::ref(fill), all()));
    EXPECT_EQ(fill.held_at_call.size(), 2U);
    EXPECT_EQ(admission_.counters().allocation_failures, 2U);
}

TEST_F(admission_test, lets_other_exceptions_through) {
    EXPECT_THROW(admission_.allocate(
                     {0, 0}, [] { throw std::runtime_error("not memory"); }, nothing_to_give),
                 std::runtime_error);
}

TEST_F(admission_test, prepares_a_buffer_that_the_next_checkpoint_finds_resident) {
    admission_.set_budget(size_bytes);
    EXPECT_TRUE(admission_.prepare(size_bytes));
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, nothing_to_give));
    EXPECT_EQ(mapping::total_bytes(), size_bytes);
}

TEST_F(admission_test, prepares_nothing_that_the_budget_has_no_room_for) {
    hold(evictable::cached_prompt);
    admission_.set_budget(2 * size_bytes - 1);
    EXPECT_FALSE(admission_.prepare(size_bytes));
    EXPECT_EQ(mapping::total_bytes(), size_bytes);
    EXPECT_TRUE(given_up_.empty());
}

TEST_F(admission_test, prepares_nothing_that_the_pool_would_not_keep) {
    buffer_pool::instance().set_cap(size_bytes - 1);
    EXPECT_FALSE(admission_.prepare(size_bytes));
    EXPECT_EQ(mapping::total_bytes(), 0U);
}

TEST_F(admission_test, prepares_nothing_where_no_memory_can_be_had) {
    constexpr std::size_t too_large_bytes = std::size_t{1} << 50;
    buffer_pool::instance().set_cap(too_large_bytes);
    EXPECT_FALSE(admission_.prepare(too_large_bytes));
    EXPECT_EQ(admission_.counters().allocation_failures, 1U);
}

TEST_F(admission_test, prepares_nothing_while_that_is_not_allowed) {
    admission_.allow_preparation(false);
    EXPECT_FALSE(admission_.prepare(size_bytes));
    admission_.allow_preparation(true);
    EXPECT_TRUE(admission_.prepare(size_bytes));
}

TEST_F(admission_test, gives_up_what_is_being_prepared_before_any_state) {
    constexpr std::size_t large_bytes = 600 * MiB;  // takes a while
    hold(evictable::idle_newest_checkpoint);
    admission_.set_budget(size_bytes + large_bytes);
    std::thread preparer = begin_to_prepare(large_bytes);
    state_buffer buffer;
    EXPECT_TRUE(ask(buffer, all()));
    preparer.join();
    EXPECT_TRUE(given_up_.empty());
    EXPECT_LE(mapping::total_bytes(), size_bytes + large_bytes);
}

TEST_F(admission_test, waits_for_the_buffer_that_is_being_prepared) {
    constexpr std::size_t large_bytes = 600 * MiB;  // takes a while
    buffer_pool::instance().set_cap(large_bytes);
    std::thread preparer = begin_to_prepare(large_bytes);
    admission_.await_preparation(large_bytes - 8 * MiB);
    EXPECT_EQ(buffer_pool::instance().statistics().held_bytes, large_bytes);
    preparer.join();
}

TEST_F(admission_test, waits_for_no_buffer_that_would_not_serve) {
    constexpr std::size_t large_bytes = 600 * MiB;
    buffer_pool::instance().set_cap(large_bytes);
    std::thread preparer = begin_to_prepare(large_bytes);
    admission_.await_preparation(large_bytes / 2);
    EXPECT_EQ(buffer_pool::instance().statistics().held_bytes, 0U);
    preparer.join();
}

TEST_F(admission_test, stays_within_the_budget_while_buffers_are_prepared_all_the_time) {
    constexpr std::size_t budget_bytes = 4 * size_bytes;
    admission_.set_budget(budget_bytes);
    std::atomic<bool> done{false};
    std::thread preparer([&] {
        while (!done) {
            admission_.prepare(size_bytes);
        }
    });
    std::deque<state_buffer> live;
    for (int i = 0; i < 60; ++i) {
        state_buffer buffer;
        EXPECT_TRUE(ask(buffer, nothing_to_give));
        EXPECT_LE(mapping::total_bytes(), budget_bytes);
        live.push_back(std::move(buffer));
        if (live.size() == 4) {
            live.clear();
        }
    }
    done = true;
    preparer.join();
}

TEST_F(admission_test, counts_what_it_gave_up) {
    hold(evictable::cached_prompt);
    hold(evictable::idle_older_checkpoint);
    hold(evictable::own_older_checkpoint);
    admission_.set_budget(0);
    admission_.enforce(all());
    EXPECT_EQ(admission_.counters().prompts_evicted, 1U);
    EXPECT_EQ(admission_.counters().checkpoints_evicted, 2U);
}

}  // namespace
}  // namespace llamapool
