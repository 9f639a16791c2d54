// SPDX-License-Identifier: Apache-2.0
#include "llamapool/page_kind.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

// How many of the next `parts` are of huge pages, each part costing what its kind costs.
int huge_parts(page_kind_choice & choice, int parts, double huge_cost, double ordinary_cost) {
    int huge = 0;
    for (int part = 0; part < parts; ++part) {
        const page_kind kind = choice.next();
        huge += kind == page_kind::huge ? 1 : 0;
        choice.record(kind, kind == page_kind::huge ? huge_cost : ordinary_cost);
    }
    return huge;
}

TEST(page_kind, is_huge_at_first) {
    page_kind_choice choice;
    EXPECT_EQ(choice.next(), page_kind::huge);
}

TEST(page_kind, is_huge_where_huge_pages_are_the_cheaper) {
    page_kind_choice choice;
    huge_parts(choice, 4, 1, 5);
    EXPECT_GE(huge_parts(choice, 640, 1, 5), 630);
}

TEST(page_kind, is_ordinary_where_huge_pages_are_dearer) {
    page_kind_choice choice;
    huge_parts(choice, 4, 6, 1);
    EXPECT_LE(huge_parts(choice, 640, 6, 1), 10);
}

TEST(page_kind, changes_when_the_chosen_kind_becomes_the_dearer) {
    page_kind_choice choice;
    huge_parts(choice, 64, 6, 1);
    EXPECT_GE(huge_parts(choice, 64, 6, 9), 60);
}

TEST(page_kind, changes_once_a_look_finds_the_other_kind_cheaper) {
    page_kind_choice choice;
    huge_parts(choice, 64, 6, 2);
    huge_parts(choice, 64, 1, 2);
    EXPECT_GE(huge_parts(choice, 64, 1, 2), 62);
}

TEST(page_kind, stays_when_one_part_took_unusually_long) {
    page_kind_choice choice;
    huge_parts(choice, 8, 6, 1);
    huge_parts(choice, 1, 6, 100);
    EXPECT_EQ(choice.next(), page_kind::ordinary);
}

}  // namespace
}  // namespace llamapool
