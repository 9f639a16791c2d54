// SPDX-License-Identifier: Apache-2.0
#include "service.h"

#include "captured_tree.h"
#include "llamapool/buffer_pool.h"
#include "llamapool/state_buffer.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t host_bytes = 65536 * MiB;

std::size_t no_checkpoints() {
    return 0;
}

// A service in a cgroup of 4 GiB on a host of 64 GiB.
class service_test : public testing::Test {
  protected:
    service_test() {
        tree_.file("proc/self/cgroup", "0::/\n").file("proc/self/mountinfo", "1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n");
        tree_.file("cg/memory.max", std::to_string(4096 * MiB)).file("cg/memory.stat", "anon 1000\nfile 20\nshmem 4\n");
        settings_.metrics_port = 0;
        settings_.limits_file = tree_.root() / "limits.json";
    }
    void TearDown() override {
        buffer_pool::instance().trim();
        buffer_pool::instance().set_cap(0);
    }

    // By pointer: a service can not be moved.
    std::unique_ptr<service> start() {
        return std::make_unique<service>(settings_, cgroup::of_this_process(tree_.root()), host_bytes);
    }
    static bool shows(const service & running, const std::string & line) {
        return running.page().find("\n" + line) != std::string::npos;
    }
    static bool make_checkpoint(service & running, state_buffer & buffer, std::size_t bytes) {
        return running.allocate(
            allocation::checkpoint, bytes, 0, [&] { buffer.resize(bytes); }, [](evictable) { return false; });
    }
    static std::size_t cap_bytes() { return buffer_pool::instance().statistics().cap_bytes; }
    static std::size_t held_bytes() { return buffer_pool::instance().statistics().held_bytes; }
    static bool comes_to_hold(std::size_t bytes) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (held_bytes() != bytes && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return held_bytes() == bytes;
    }

    captured_tree tree_;
    settings settings_;
    const std::uint64_t misses_ = buffer_pool::instance().statistics().misses;
};

TEST_F(service_test, takes_a_sixteenth_of_the_pods_limit_and_not_of_the_hosts_memory) {
    const auto running = start();
    EXPECT_EQ(cap_bytes(), 256 * MiB);
    EXPECT_TRUE(shows(*running, "llamapool_pool_cap_bytes 268435456\n"));
    EXPECT_TRUE(shows(*running, "llamapool_cgroup_limit_bytes 4294967296\n"));
}

TEST_F(service_test, takes_the_cap_of_its_environment) {
    settings_.pool_cap_bytes = 7;
    const auto running = start();
    EXPECT_EQ(cap_bytes(), 7U);
}

TEST_F(service_test, replaces_its_cap_by_the_limits_files_and_shows_the_generation) {
    tree_.file("limits.json", R"({"generation": 7, "poolCapBytes": 5000})");
    const auto running = start();
    EXPECT_EQ(cap_bytes(), 5000U);
    EXPECT_TRUE(shows(*running, "llamapool_limits_generation 7\n"));
}

TEST_F(service_test, applies_changed_limits_within_two_seconds_without_being_asked) {
    const auto running = start();
    tree_.file("limits.json", R"({"generation": 1, "poolCapBytes": 0})");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (cap_bytes() != 0 && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(cap_bytes(), 0U);
}

TEST_F(service_test, goes_back_to_its_own_cap_when_the_limits_file_is_gone) {
    tree_.file("limits.json", R"({"generation": 7, "poolCapBytes": 5000})");
    const auto running = start();
    std::filesystem::remove(tree_.root() / "limits.json");
    running->refresh();
    EXPECT_EQ(cap_bytes(), 256 * MiB);
    EXPECT_FALSE(shows(*running, "llamapool_limits_generation"));
}

TEST_F(service_test, counts_an_invalid_limits_file_and_keeps_the_last_good_cap) {
    tree_.file("limits.json", R"({"generation": 7, "poolCapBytes": 5000})");
    const auto running = start();
    tree_.file("limits.json", R"({"generation": 8, "poolCapBytes": -5})");
    running->refresh();
    EXPECT_EQ(cap_bytes(), 5000U);
    EXPECT_TRUE(shows(*running, "llamapool_limits_errors_total 1\n"));
    EXPECT_TRUE(shows(*running, "llamapool_limits_generation 7\n"));
}

TEST_F(service_test, follows_its_cgroup_when_that_is_resized) {
    const auto running = start();
    tree_.file("cg/memory.max", std::to_string(8192 * MiB));
    running->refresh();
    EXPECT_EQ(cap_bytes(), 512 * MiB);
}

TEST_F(service_test, keeps_nothing_when_it_is_off) {
    settings_.pooled = false;
    settings_.pool_cap_bytes = 1000 * MiB;
    const auto running = start();
    EXPECT_EQ(cap_bytes(), 0U);
    EXPECT_TRUE(shows(
        *running, "llamapool_build_info{version=\"" LLAMAPOOL_TEST_VERSION "\",upstream=\"none\",mode=\"off\"} 1\n"));
    EXPECT_FALSE(shows(*running, "llamapool_state_bytes"));
    state_buffer::use_plain_allocation(false);
}

TEST_F(service_test, shows_no_checkpoint_size_before_the_first_checkpoint) {
    const auto running = start();
    EXPECT_FALSE(shows(*running, "llamapool_checkpoint_bytes"));
    state_buffer buffer;
    make_checkpoint(*running, buffer, 156894208);
    EXPECT_TRUE(shows(*running, "llamapool_checkpoint_bytes 156894208\n"));
    EXPECT_TRUE(shows(*running, "llamapool_checkpoint_seconds_count 1\n"));
}

TEST_F(service_test, shows_no_base_before_the_model_is_loaded) {
    const auto running = start();
    EXPECT_FALSE(shows(*running, "llamapool_memory_base_bytes"));
    running->model_loaded(4, 0, no_checkpoints);
    EXPECT_TRUE(shows(*running, "llamapool_memory_base_bytes 1004\n"));
}

TEST_F(service_test, shows_live_checkpoints_and_all_state) {
    const auto running = start();
    state_buffer first;
    first.resize(64 * MiB);
    state_buffer second;
    second.resize(40 * MiB);
    const state_buffer shared = first;
    second.clear();
    second.shrink_to_fit();
    EXPECT_TRUE(shows(*running, "llamapool_checkpoints_live 1\n"));
    EXPECT_TRUE(shows(*running, "llamapool_checkpoints_live_bytes 67108864\n"));
    EXPECT_TRUE(shows(*running, "llamapool_pool_held_bytes 41943040\n"));
    EXPECT_TRUE(shows(*running, "llamapool_state_bytes 109051904\n"));
}

TEST_F(service_test, trims_when_idle_for_long_enough_and_not_before) {
    const auto running = start();
    { state_buffer{}.resize(64 * MiB); }
    running->idle_for(59999);
    EXPECT_EQ(buffer_pool::instance().statistics().held_bytes, 64 * MiB);
    running->idle_for(60000);
    EXPECT_EQ(buffer_pool::instance().statistics().held_bytes, 0U);
}

TEST_F(service_test, never_trims_for_idleness_where_it_may_be_idle_for_0_seconds) {
    settings_.idle_trim_seconds = 0;
    const auto running = start();
    { state_buffer{}.resize(64 * MiB); }
    running->idle_for(3600000);
    EXPECT_EQ(held_bytes(), 64 * MiB);
}

TEST_F(service_test, holds_one_buffer_a_slot_before_the_first_request) {
    const auto running = start();
    running->model_loaded(3, 0, [] { return 150 * MiB; });
    EXPECT_EQ(held_bytes(), 450 * MiB);
    EXPECT_FALSE(shows(*running, "llamapool_checkpoint_bytes"));
}

TEST_F(service_test, holds_no_more_before_the_first_request_than_its_budget_has_room_for) {
    settings_.state_budget_bytes = 350 * MiB;
    const auto running = start();
    running->model_loaded(3, 0, [] { return 150 * MiB; });
    EXPECT_EQ(held_bytes(), 300 * MiB);
}

TEST_F(service_test, does_not_measure_a_checkpoint_when_it_is_off) {
    settings_.pooled = false;
    const auto running = start();
    bool measured = false;
    running->model_loaded(3, 0, [&] { return static_cast<std::size_t>(measured = true); });
    EXPECT_FALSE(measured);
    state_buffer::use_plain_allocation(false);
}

TEST_F(service_test, makes_another_buffer_ready_after_each_checkpoint) {
    settings_.pool_cap_bytes = 400 * MiB;
    const auto running = start();
    std::deque<state_buffer> live(3);
    for (state_buffer & buffer : live) {
        make_checkpoint(*running, buffer, 64 * MiB);
        EXPECT_TRUE(comes_to_hold(64 * MiB));
    }
    EXPECT_EQ(buffer_pool::instance().statistics().misses, misses_ + 1);
}

TEST_F(service_test, makes_no_other_buffer_ready_while_those_it_has_are_enough) {
    settings_.pool_cap_bytes = 1000 * MiB;
    const auto running = start();
    running->model_loaded(2, 0, [] { return 64 * MiB; });
    std::deque<state_buffer> slots(2);
    for (int round = 0; round < 3; ++round) {
        for (state_buffer & buffer : slots) {
            buffer = state_buffer();
            make_checkpoint(*running, buffer, 64 * MiB);
        }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(mapping::total_bytes(), 128 * MiB);
}

TEST_F(service_test, makes_a_buffer_ready_for_each_slot_and_the_next_prompt_once_it_has_saved_one) {
    settings_.pool_cap_bytes = 1000 * MiB;
    const auto running = start();
    running->model_loaded(3, 0, [] { return 64 * MiB; });
    std::deque<state_buffer> live(3);
    for (state_buffer & buffer : live) {
        make_checkpoint(*running, buffer, 64 * MiB);
    }
    state_buffer saved(state_kind::prompt);
    running->allocate(
        allocation::cached_prompt, 64 * MiB, 0, [&] { saved.resize(64 * MiB); }, [](evictable) { return false; });
    EXPECT_TRUE(comes_to_hold(256 * MiB));
}

TEST_F(service_test, keeps_no_buffer_ready_once_it_sleeps) {
    settings_.pool_cap_bytes = 1000 * MiB;
    const auto running = start();
    {
        state_buffer buffer;
        make_checkpoint(*running, buffer, 500 * MiB);
    }
    running->model_unloaded();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(mapping::total_bytes(), 0U);
}

TEST_F(service_test, trims_when_the_model_is_unloaded_for_sleep) {
    const auto running = start();
    { state_buffer{}.resize(64 * MiB); }
    running->model_unloaded();
    EXPECT_EQ(buffer_pool::instance().statistics().held_bytes, 0U);
}

TEST_F(service_test, shows_a_first_token_in_both_histograms) {
    const auto running = start();
    running->first_token(0.25, 100);
    EXPECT_TRUE(shows(*running, "llamapool_time_to_first_token_seconds_sum 0.25\n"));
    EXPECT_TRUE(shows(*running, "llamapool_prompt_tokens_bucket{le=\"128\"} 1\n"));
    EXPECT_TRUE(shows(*running, "llamapool_prompt_tokens_bucket{le=\"64\"} 0\n"));
}

TEST_F(service_test, leaves_the_limit_out_where_there_is_none) {
    tree_.file("cg/memory.max", "max\n");
    const auto running = start();
    EXPECT_FALSE(shows(*running, "llamapool_cgroup_limit_bytes"));
    EXPECT_EQ(cap_bytes(), host_bytes / 16);
}

TEST_F(service_test, serves_its_page_on_the_metrics_port) {
    {
        const metrics_server probe(0, [] { return std::string(); });
        settings_.metrics_port = probe.port();  // a port that is free once the probe is gone
    }
    const auto running = start();
    const auto answer = httplib::Client("127.0.0.1", running->metrics_port()).Get("/metrics");
    ASSERT_TRUE(answer);
    EXPECT_NE(answer->body.find("llamapool_build_info{"), std::string::npos);
}

TEST_F(service_test, takes_its_budget_from_limit_base_and_headroom_once_the_model_is_loaded) {
    tree_.file("cg/memory.stat", "anon " + std::to_string(1000 * MiB) + "\nfile 0\n");
    const auto running = start();
    EXPECT_FALSE(shows(*running, "llamapool_state_budget_bytes"));
    running->model_loaded(4, 0, no_checkpoints);
    EXPECT_TRUE(shows(*running, "llamapool_state_budget_bytes " + std::to_string(2840 * MiB) + "\n"));
}

TEST_F(service_test, takes_the_limits_file_for_a_ceiling_only) {
    tree_.file("limits.json", R"({"generation": 1, "stateBudgetBytes": 1000})");
    const auto running = start();
    running->model_loaded(4, 0, no_checkpoints);
    EXPECT_TRUE(shows(*running, "llamapool_state_budget_bytes 1000\n"));
    tree_.file("limits.json", R"({"generation": 2, "stateBudgetBytes": 999999999999})");
    running->refresh();
    EXPECT_TRUE(
        shows(*running, "llamapool_state_budget_bytes " + std::to_string(4096 * MiB - 256 * MiB - 1004) + "\n"));
}

TEST_F(service_test, takes_the_environments_ceiling_where_there_is_no_limit) {
    tree_.file("cg/memory.max", "max\n");
    settings_.state_budget_bytes = 5000;
    const auto running = start();
    EXPECT_TRUE(shows(*running, "llamapool_state_budget_bytes 5000\n"));
}

TEST_F(service_test, has_no_budget_where_no_limit_exists_and_none_is_set) {
    tree_.file("cg/memory.max", "max\n");
    const auto running = start();
    running->model_loaded(4, 0, no_checkpoints);
    EXPECT_FALSE(shows(*running, "llamapool_state_budget_bytes"));
}

TEST_F(service_test, bounds_the_pools_cap_by_the_budget) {
    settings_.state_budget_bytes = 100 * MiB;
    settings_.pool_cap_bytes = 200 * MiB;
    const auto running = start();
    EXPECT_EQ(cap_bytes(), 100 * MiB);
}

TEST_F(service_test, keeps_one_buffer_a_slot_once_it_has_seen_a_checkpoint) {
    const auto running = start();
    running->model_loaded(4, 0, no_checkpoints);
    state_buffer buffer;
    make_checkpoint(*running, buffer, 150 * MiB);
    running->refresh();
    EXPECT_EQ(cap_bytes(), 600 * MiB);
}

TEST_F(service_test, skips_and_counts_a_checkpoint_over_the_budget) {
    settings_.state_budget_bytes = 100 * MiB;
    const auto running = start();
    state_buffer buffer;
    EXPECT_FALSE(make_checkpoint(*running, buffer, 150 * MiB));
    EXPECT_TRUE(shows(*running, "llamapool_checkpoints_skipped_total 1\n"));
    EXPECT_TRUE(shows(*running, "llamapool_checkpoint_seconds_count 0\n"));
    EXPECT_FALSE(shows(*running, "llamapool_checkpoint_bytes"));
}

TEST_F(service_test, takes_memory_that_grew_outside_the_budget_from_the_next_checkpoint) {
    const auto running = start();
    running->model_loaded(4, 0, no_checkpoints);
    tree_.file("cg/memory.stat", "anon " + std::to_string(3800 * MiB) + "\nfile 0\n");
    state_buffer buffer;
    EXPECT_FALSE(make_checkpoint(*running, buffer, 150 * MiB));
}

TEST_F(service_test, skips_and_counts_a_prompt_over_the_budget) {
    settings_.state_budget_bytes = 10 * MiB;
    const auto running = start();
    EXPECT_FALSE(running->allocate(
        allocation::cached_prompt, 20 * MiB, 0, [] {}, [](evictable) { return false; }));
    EXPECT_TRUE(shows(*running, "llamapool_prompts_skipped_total 1\n"));
}

TEST_F(service_test, keeps_its_accounting_in_the_termination_log) {
    settings_.termination_log = tree_.root() / "termination-log";
    const auto running = start();
    running->model_loaded(4, 0, no_checkpoints);
    state_buffer buffer;
    std::string during;
    running->allocate(
        allocation::checkpoint, 64 * MiB, 0,
        [&] {
            std::ifstream stream(settings_.termination_log);
            during.assign(std::istreambuf_iterator<char>(stream), {});
            buffer.resize(64 * MiB);
        },
        [](evictable) { return false; });
    const auto record = nlohmann::json::parse(during);
    EXPECT_EQ(record["phase"], "ready");
    EXPECT_EQ(record["asked_bytes"], 64 * MiB);
    EXPECT_EQ(record["limit_bytes"], 4096 * MiB);
    EXPECT_EQ(record["base_bytes"], 1004);
}

TEST_F(service_test, keeps_a_devices_lack_of_memory_in_the_termination_log) {
    settings_.termination_log = tree_.root() / "termination-log";
    const auto running = start();
    running->aborting("ggml-cuda.cu:1: CUDA error: out of memory");
    std::ifstream stream(settings_.termination_log);
    EXPECT_EQ(nlohmann::json::parse(stream)["device_oom"], true);
}

class start_service_test : public testing::Test {
  protected:
    void SetUp() override { setenv("LLAMAPOOL_METRICS_PORT", "0", 1); }
    void TearDown() override {
        unsetenv("LLAMAPOOL_METRICS_PORT");
        unsetenv("LLAMAPOOL_MODE");
        state_buffer::use_plain_allocation(false);
        buffer_pool::instance().set_cap(0);
    }
    static std::string said_by(server_role role, bool expect_start) {
        testing::internal::CaptureStderr();
        const service_handle handle = start_service(role, true);
        EXPECT_EQ(handle != nullptr, expect_start);
        return testing::internal::GetCapturedStderr();
    }
};

TEST_F(start_service_test, starts_from_the_environment) {
    said_by(server_role::single, true);
}

TEST_F(start_service_test, says_what_is_wrong_with_the_environment) {
    setenv("LLAMAPOOL_MODE", "maybe", 1);
    EXPECT_NE(said_by(server_role::single, false).find("LLAMAPOOL_MODE is 'maybe'"), std::string::npos);
}

TEST_F(start_service_test, refuses_router_mode) {
    EXPECT_NE(said_by(server_role::router, false).find("router mode is not supported"), std::string::npos);
    EXPECT_NE(said_by(server_role::child, false).find("router mode is not supported"), std::string::npos);
}

TEST_F(start_service_test, lets_a_router_run_when_it_is_off) {
    setenv("LLAMAPOOL_MODE", "off", 1);
    said_by(server_role::router, true);
}

TEST_F(start_service_test, ignores_calls_while_no_service_runs) {
    model_loaded(1, 0, [] { return std::size_t{0}; });
    first_token(1, 2, 3);
    idle_for(1);
    model_unloaded();
    EXPECT_FALSE(over_budget());
}

TEST_F(start_service_test, allocates_as_upstream_would_while_no_service_runs) {
    bool filled = false;
    EXPECT_TRUE(allocate(
        allocation::checkpoint, 1, 0, [&] { filled = true; }, [](evictable) { return false; }));
    EXPECT_TRUE(filled);
}

}  // namespace
}  // namespace llamapool
