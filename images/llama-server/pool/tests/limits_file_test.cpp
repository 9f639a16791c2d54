// SPDX-License-Identifier: Apache-2.0
#include "llamapool/limits_file.h"

#include "captured_tree.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

std::string error_of(const std::string & text) {
    try {
        parse_limits(text);
    } catch (const invalid_limits & error) {
        return error.what();
    }
    return "";
}

TEST(limits, are_read_from_the_operators_file) {
    const limits read =
        parse_limits(R"({"generation": 7, "decision": "d1", "poolCapBytes": 268435456, "stateBudgetBytes": 1})");
    EXPECT_EQ(read.generation, 7U);
    EXPECT_EQ(read.pool_cap_bytes, 268435456U);
    EXPECT_EQ(read.state_budget_bytes, 1U);
}

TEST(limits, are_the_servers_own_where_null_or_absent) {
    const limits read = parse_limits(R"({"generation": 0, "stateBudgetBytes": null})");
    EXPECT_EQ(read.pool_cap_bytes, std::nullopt);
    EXPECT_EQ(read.state_budget_bytes, std::nullopt);
}

TEST(limits, leave_unknown_fields_to_newer_versions) {
    EXPECT_EQ(parse_limits(R"({"generation": 1, "later": {}})").generation, 1U);
}

TEST(limits, name_the_wrong_field_its_value_and_what_would_be_right) {
    EXPECT_EQ(error_of(R"({"generation": 1, "poolCapBytes": -1})"),
              "poolCapBytes is -1, want a whole number from 0, or null");
    EXPECT_EQ(error_of(R"({"generation": 1, "stateBudgetBytes": "1Gi"})"),
              "stateBudgetBytes is \"1Gi\", want a whole number from 0, or null");
    EXPECT_EQ(error_of(R"({"generation": 1.5})"), "generation is 1.5, want a whole number from 0, or null");
    EXPECT_EQ(error_of(R"({"poolCapBytes": 1})"), "generation is missing, want a whole number from 0");
}

TEST(limits, must_be_a_json_object) {
    for (const char * text : {"", "{", "[]", "7", "{\"generation\": 1"}) {
        EXPECT_EQ(error_of(text), "the content is not a JSON object") << text;
    }
}

class limits_file_test : public testing::Test {
  protected:
    void write(const std::string & content) { tree_.file("limits.json", content); }
    void remove() { std::filesystem::remove(tree_.root() / "limits.json"); }
    limits_file file() const { return limits_file(tree_.root() / "limits.json"); }

  private:
    captured_tree tree_;
};

TEST_F(limits_file_test, changes_nothing_while_it_is_missing) {
    limits_file limits = file();
    EXPECT_FALSE(limits.poll().has_value());
    EXPECT_EQ(limits.errors(), 0U);
}

TEST_F(limits_file_test, is_applied_once) {
    write(R"({"generation": 1, "poolCapBytes": 5})");
    limits_file limits = file();
    const auto first = limits.poll();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->pool_cap_bytes, 5U);
    EXPECT_FALSE(limits.poll().has_value());
}

TEST_F(limits_file_test, is_applied_again_with_another_generation_also_a_lower_one) {
    write(R"({"generation": 9, "poolCapBytes": 5})");
    limits_file limits = file();
    limits.poll();
    write(R"({"generation": 1, "poolCapBytes": 5})");
    EXPECT_EQ(limits.poll().value().generation, 1U);
}

TEST_F(limits_file_test, is_applied_again_with_another_content_of_the_same_generation) {
    write(R"({"generation": 1, "poolCapBytes": 5})");
    limits_file limits = file();
    limits.poll();
    write(R"({"generation": 1, "poolCapBytes": 6})");
    EXPECT_EQ(limits.poll().value().pool_cap_bytes, 6U);
}

TEST_F(limits_file_test, keeps_the_last_good_limits_and_counts_an_invalid_content_once) {
    write(R"({"generation": 1, "poolCapBytes": 5})");
    limits_file limits = file();
    limits.poll();
    write("{");
    testing::internal::CaptureStderr();
    EXPECT_FALSE(limits.poll().has_value());
    EXPECT_FALSE(limits.poll().has_value());
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(limits.errors(), 1U);
    EXPECT_NE(said.find("is invalid, the last good limits stay"), std::string::npos);
    EXPECT_EQ(said.find("is invalid"), said.rfind("is invalid"));
}

TEST_F(limits_file_test, applies_nothing_when_the_good_content_comes_back) {
    write(R"({"generation": 1})");
    limits_file limits = file();
    limits.poll();
    write("{");
    limits.poll();
    write(R"({"generation": 1})");
    EXPECT_FALSE(limits.poll().has_value());
}

TEST_F(limits_file_test, goes_back_to_the_start_values_when_it_is_removed) {
    write(R"({"generation": 1, "poolCapBytes": 5})");
    limits_file limits = file();
    limits.poll();
    remove();
    const auto start = limits.poll();
    ASSERT_TRUE(start.has_value());
    EXPECT_EQ(start->generation, std::nullopt);
    EXPECT_EQ(start->pool_cap_bytes, std::nullopt);
}

TEST_F(limits_file_test, is_applied_when_it_appears) {
    limits_file limits = file();
    limits.poll();
    write(R"({"generation": 3})");
    EXPECT_EQ(limits.poll().value().generation, 3U);
}

}  // namespace
}  // namespace llamapool
