// SPDX-License-Identifier: Apache-2.0
#include "llamapool/memory_watch.h"

#include "captured_tree.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

class memory_watch_test : public testing::Test {
  protected:
    memory_watch_test() : watch_((prepare(), cgroup::of_this_process(tree_.root()))) {}

    // What the cgroup shows from now on.
    void use(std::uint64_t anon_bytes) {
        tree_.file("cg/memory.stat", "anon " + std::to_string(anon_bytes) + "\nfile 0\n");
    }

    std::optional<std::uint64_t> base_at(std::int64_t now_seconds, std::uint64_t anon_bytes,
                                         std::uint64_t state_bytes) {
        use(anon_bytes);
        return watch_.sample(now_seconds, [=] { return state_bytes; }).base_bytes;
    }

  private:
    void prepare() {
        tree_.file("proc/self/cgroup", "0::/\n").file("proc/self/mountinfo", "1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n");
        tree_.file("cg/memory.max", "5000\n").file("cg/memory.events", "oom_kill 2\n");
        use(1000);
    }

    captured_tree tree_;

  protected:
    memory_watch watch_;
};

TEST_F(memory_watch_test, reads_limit_usage_and_kills) {
    const memory_figures figures = watch_.sample(0, [] { return 0; });
    EXPECT_EQ(figures.limit_bytes, 5000U);
    EXPECT_EQ(figures.usage.value().anon_bytes, 1000U);
    EXPECT_EQ(figures.oom_kills, 2U);
}

TEST_F(memory_watch_test, shows_its_last_sample_without_reading) {
    watch_.sample(0, [] { return 0; });
    use(2000);
    EXPECT_EQ(watch_.last().usage.value().anon_bytes, 1000U);
}

TEST_F(memory_watch_test, has_no_base_before_the_model_is_loaded) {
    EXPECT_EQ(base_at(0, 1000, 0), std::nullopt);
}

TEST_F(memory_watch_test, takes_for_base_the_highest_memory_beside_the_state) {
    watch_.set_model_loaded(0);
    EXPECT_EQ(base_at(0, 1000, 0), 1000U);
    EXPECT_EQ(base_at(1, 3000, 1800), 1200U);
    EXPECT_EQ(base_at(2, 1100, 0), 1200U);
}

TEST_F(memory_watch_test, forgets_a_base_after_ten_minutes) {
    watch_.set_model_loaded(0);
    base_at(0, 3000, 0);
    base_at(300, 1000, 0);
    EXPECT_EQ(base_at(599, 1000, 0), 3000U);
    EXPECT_EQ(base_at(600, 1000, 0), 1000U);
}

TEST_F(memory_watch_test, counts_what_the_model_has_not_touched_yet_for_base) {
    watch_.set_model_loaded(500);
    EXPECT_EQ(base_at(0, 1000, 0), 1500U);
    EXPECT_EQ(base_at(1, 1400, 0), 1500U);
    EXPECT_EQ(base_at(2, 1600, 0), 1600U);
    EXPECT_EQ(base_at(700, 1000, 0), 1500U);
}

TEST_F(memory_watch_test, measures_anew_what_a_model_loaded_again_has_not_touched) {
    watch_.set_model_loaded(500);
    base_at(0, 1000, 0);
    watch_.set_model_unloaded();
    watch_.set_model_loaded(200);
    base_at(700, 1000, 0);
    EXPECT_EQ(base_at(1400, 1000, 0), 1200U);
}

TEST_F(memory_watch_test, keeps_the_base_of_the_loaded_model_over_a_sleep) {
    watch_.set_model_loaded(0);
    base_at(0, 1000, 0);
    watch_.set_model_unloaded();
    EXPECT_EQ(base_at(1, 100, 0), 1000U);
    EXPECT_EQ(base_at(5000, 100, 0), 1000U);
    watch_.set_model_loaded(0);
    EXPECT_EQ(base_at(5001, 900, 0), 1000U);
}

TEST_F(memory_watch_test, does_not_go_below_0_when_the_state_is_newer_than_the_counters) {
    watch_.set_model_loaded(0);
    EXPECT_EQ(base_at(0, 1000, 1500), 0U);
}

TEST_F(memory_watch_test, takes_state_that_is_allocated_during_the_sample_for_state) {
    watch_.set_model_loaded(0);
    use(1500);
    int reads = 0;
    const auto growing = [&] { return ++reads == 1 ? 0U : 500U; };
    EXPECT_EQ(watch_.sample(0, growing).base_bytes, 1000U);
}

TEST_F(memory_watch_test, takes_state_that_is_freed_during_the_sample_for_state) {
    watch_.set_model_loaded(0);
    use(1500);
    int reads = 0;
    const auto shrinking = [&] { return ++reads == 1 ? 500U : 0U; };
    EXPECT_EQ(watch_.sample(0, shrinking).base_bytes, 1000U);
}

}  // namespace
}  // namespace llamapool
