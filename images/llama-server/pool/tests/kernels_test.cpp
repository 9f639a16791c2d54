// SPDX-License-Identifier: Apache-2.0
// The mapping on kernels that refuse huge pages or the population of pages, have no memory left, or are slow with one
// kind of page.
#include "llamapool/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <map>
#include <new>
#include <thread>
#include <vector>

namespace {

int refusal = 0;  // errno of every madvise() call; 0: it succeeds, and does nothing

int slow_wish = 0;                        // the wish with which population takes long
int last_wish = 0;                        // MADV_HUGEPAGE or MADV_NOHUGEPAGE
std::map<int, std::size_t> populated_as;  // bytes by the wish they were populated under

}  // namespace

// Stands where madvise() is called, by the linker's --wrap.
extern "C" int __wrap_madvise(void * /*address*/, std::size_t length, int advice) {
    if (refusal != 0) {
        errno = refusal;
        return -1;
    }
    if (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE) {
        last_wish = advice;
    } else {
        populated_as[last_wish] += length;
        std::this_thread::sleep_for(std::chrono::milliseconds(last_wish == slow_wish ? 5 : 0));
    }
    return 0;
}

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

std::size_t resident_pages(const std::uint8_t * data, std::size_t size) {
    std::vector<unsigned char> pages(size / static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    mincore(const_cast<std::uint8_t *>(data), size, pages.data());
    std::size_t resident = 0;
    for (const unsigned char flags : pages) {
        resident += flags & 1U;
    }
    return resident;
}

TEST(old_kernel, has_every_page_touched_where_population_is_refused) {
    refusal = EINVAL;
    const mapping memory(8 * MiB);
    EXPECT_EQ(resident_pages(memory.data(), memory.size()), memory.size() / sysconf(_SC_PAGESIZE));
}

TEST(old_kernel, has_every_added_page_touched_on_growth) {
    refusal = EINVAL;
    mapping memory(8 * MiB);
    memory.grow(24 * MiB);
    EXPECT_EQ(resident_pages(memory.data(), memory.size()), memory.size() / sysconf(_SC_PAGESIZE));
}

TEST(old_kernel, throws_bad_alloc_and_unmaps_where_there_is_no_memory) {
    refusal = ENOMEM;
    EXPECT_THROW(mapping(8 * MiB), std::bad_alloc);
    EXPECT_EQ(mapping::total_bytes(), 0U);
}

TEST(old_kernel, keeps_the_mapping_where_there_is_no_memory_to_grow) {
    refusal = EINVAL;
    mapping memory(8 * MiB);
    refusal = ENOMEM;
    EXPECT_THROW(memory.grow(24 * MiB), std::bad_alloc);
    EXPECT_EQ(memory.size(), 8 * MiB);
    EXPECT_EQ(mapping::total_bytes(), 8 * MiB);
}

// The bytes populated under each wish by mappings of 1 GiB in all, where the kernel is slow with one kind of page.
std::map<int, std::size_t> populated_where_slow(int wish) {
    refusal = 0;
    slow_wish = wish;
    const mapping to_learn(256 * MiB);
    populated_as.clear();
    const mapping first(512 * MiB);
    const mapping second(512 * MiB);
    return populated_as;
}

TEST(slow_huge_pages, are_populated_as_ordinary_ones) {
    EXPECT_GE(populated_where_slow(MADV_HUGEPAGE)[MADV_NOHUGEPAGE], 960 * MiB);
}

TEST(slow_ordinary_pages, are_populated_as_huge_ones) {
    EXPECT_GE(populated_where_slow(MADV_NOHUGEPAGE)[MADV_HUGEPAGE], 960 * MiB);
}

}  // namespace
}  // namespace llamapool
