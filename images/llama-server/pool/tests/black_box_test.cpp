// SPDX-License-Identifier: Apache-2.0
#include "llamapool/black_box.h"

#include "captured_tree.h"

#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace llamapool {
namespace {

class black_box_test : public testing::Test {
  protected:
    std::string path() const { return tree_.root() / "termination-log"; }
    std::string content() const {
        std::ifstream stream(path());
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    captured_tree tree_;
};

TEST_F(black_box_test, writes_one_json_object_of_fixed_length) {
    black_box box(path());
    accounting now;
    now.at_seconds = 1764637936;
    now.phase = server_phase::ready;
    now.limit_bytes = 2147483648;
    now.asked_bytes = 157286400;
    box.write(now);
    EXPECT_EQ(content().size(), black_box::length_bytes);
    const auto record = nlohmann::json::parse(content());
    EXPECT_EQ(record["v"], 1);
    EXPECT_EQ(record["at"], 1764637936);
    EXPECT_EQ(record["phase"], "ready");
    EXPECT_EQ(record["limit_bytes"], 2147483648);
    EXPECT_EQ(record["asked_bytes"], 157286400);
    EXPECT_EQ(record["device_oom"], false);
}

TEST_F(black_box_test, writes_null_for_what_is_not_known) {
    black_box(path()).write({});
    const auto record = nlohmann::json::parse(content());
    for (const char * key :
         {"limit_bytes", "unreclaimable_bytes", "base_bytes", "budget_bytes", "generation", "oom_kills"}) {
        EXPECT_TRUE(record.at(key).is_null()) << key;
    }
}

TEST_F(black_box_test, rewrites_in_place) {
    black_box box(path());
    accounting now;
    now.state_bytes = 1234567890123;
    box.write(now);
    now.state_bytes = 5;
    box.write(now);
    EXPECT_EQ(content().size(), black_box::length_bytes);
    EXPECT_EQ(nlohmann::json::parse(content())["state_bytes"], 5);
}

TEST_F(black_box_test, has_room_for_the_largest_values) {
    accounting now;
    now.at_seconds = INT64_MIN;
    now.phase = server_phase::sleeping;
    now.limit_bytes = now.unreclaimable_bytes = now.base_bytes = now.budget_bytes = UINT64_MAX;
    now.generation = now.oom_kills = UINT64_MAX;
    now.state_bytes = now.pool_held_bytes = now.cap_bytes = now.asked_bytes = UINT64_MAX;
    black_box(path()).write(now);
    EXPECT_EQ(nlohmann::json::parse(content())["asked_bytes"], UINT64_MAX);
}

TEST_F(black_box_test, keeps_nothing_without_a_path) {
    black_box("").write({});
}

TEST_F(black_box_test, names_the_variable_of_a_path_it_can_not_write) {
    const std::string missing = tree_.root() / "missing" / "log";
    try {
        const black_box box(missing);
        FAIL() << "opened " << missing;
    } catch (const std::runtime_error & error) {
        EXPECT_NE(std::string(error.what()).find("LLAMAPOOL_TERMINATION_LOG is '" + missing + "'"), std::string::npos);
    }
}

}  // namespace
}  // namespace llamapool
