// SPDX-License-Identifier: Apache-2.0
#include "llamapool/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cstring>
#include <new>
#include <vector>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

bool is_resident(const mapping & memory) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(memory.size() / page);
    if (mincore(memory.data(), memory.size(), pages.data()) != 0) {
        return false;
    }
    for (const unsigned char flags : pages) {
        if ((flags & 1U) == 0) {
            return false;
        }
    }
    return true;
}

TEST(mapping, rounds_large_sizes_to_huge_pages_and_small_ones_to_pages) {
    EXPECT_EQ(mapping::rounded(156894208), 150 * MiB);  // 149.626 MiB
    EXPECT_EQ(mapping::rounded(2 * MiB), 2 * MiB);
    EXPECT_EQ(mapping::rounded(1), static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

TEST(mapping, is_resident_from_the_start) {
    const mapping memory(40 * MiB);
    EXPECT_TRUE(is_resident(memory));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory faults at each first write
long page_faults() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

TEST(mapping, is_written_without_a_page_fault) {
    const mapping memory(40 * MiB);
    const long before = page_faults();
    for (std::size_t offset = 0; offset < memory.size(); offset += 4096) {
        memory.data()[offset] = 1;
    }
    EXPECT_LE(page_faults() - before, 50);  // 10240 pages; a few faults are the process's own
}
#endif

TEST(mapping, starts_at_a_huge_page) {
    const mapping memory(3 * MiB);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % mapping::huge_page_bytes, 0U);
}

TEST(mapping, counts_what_it_maps_until_it_is_unmapped) {
    const std::size_t before = mapping::total_bytes();
    {
        const mapping memory(39 * MiB);
        EXPECT_EQ(mapping::total_bytes(), before + 40 * MiB);
    }
    EXPECT_EQ(mapping::total_bytes(), before);
}

TEST(mapping, counts_reserved_memory_before_it_is_resident) {
    const std::size_t before = mapping::total_bytes();
    const mapping memory = mapping::reserved(10 * MiB);
    EXPECT_EQ(mapping::total_bytes(), before + 10 * MiB);
    EXPECT_FALSE(is_resident(memory));
}

TEST(mapping, becomes_resident_in_parts) {
    mapping memory = mapping::reserved(10 * MiB);
    memory.make_resident(0, 4 * MiB);
    EXPECT_FALSE(is_resident(memory));
    memory.make_resident(4 * MiB, 8 * MiB);  // more than is left
    EXPECT_TRUE(is_resident(memory));
    memory.make_resident(10 * MiB, 4 * MiB);  // nothing is left
}

TEST(mapping, keeps_its_content_when_it_grows) {
    mapping memory(4 * MiB);
    std::memset(memory.data(), 7, memory.size());
    memory.grow(64 * MiB);
    EXPECT_EQ(memory.size(), 64 * MiB);
    EXPECT_EQ(memory.data()[0], 7);
    EXPECT_EQ(memory.data()[4 * MiB - 1], 7);
}

TEST(mapping, is_resident_and_aligned_after_it_had_to_move_to_grow) {
    mapping memory(4 * MiB);
    const mapping first_neighbour(4 * MiB);
    memory.grow(32 * MiB);
    const mapping second_neighbour(4 * MiB);
    memory.grow(96 * MiB);
    EXPECT_TRUE(is_resident(memory));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % mapping::huge_page_bytes, 0U);
}

TEST(mapping, counts_its_growth) {
    const std::size_t before = mapping::total_bytes();
    mapping memory(4 * MiB);
    memory.grow(10 * MiB);
    EXPECT_EQ(mapping::total_bytes(), before + 10 * MiB);
}

TEST(mapping, does_not_shrink_when_asked_to_grow_to_less) {
    mapping memory(10 * MiB);
    memory.grow(4 * MiB);
    EXPECT_EQ(memory.size(), 10 * MiB);
}

TEST(mapping, throws_bad_alloc_for_what_no_address_space_holds) {
    EXPECT_THROW(mapping(std::size_t{1} << 50), std::bad_alloc);
    EXPECT_THROW(mapping(SIZE_MAX - 1), std::bad_alloc);
}

TEST(mapping, stays_as_it_was_when_it_can_not_grow) {
    mapping memory(4 * MiB);
    memory.data()[5] = 9;
    EXPECT_THROW(memory.grow(std::size_t{1} << 50), std::bad_alloc);
    EXPECT_EQ(memory.size(), 4 * MiB);
    EXPECT_EQ(memory.data()[5], 9);
}

}  // namespace
}  // namespace llamapool
