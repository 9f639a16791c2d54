// SPDX-License-Identifier: Apache-2.0
// The mapping on kernels that refuse huge pages or the population of pages, or have no memory left.
#include "llamapool/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <new>
#include <vector>

namespace {

int refusal = 0;  // errno of every madvise() call

}  // namespace

// Stands where madvise() is called, by the linker's --wrap.
extern "C" int __wrap_madvise(void * /*address*/, std::size_t /*length*/, int /*advice*/) {
    errno = refusal;
    return -1;
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

}  // namespace
}  // namespace llamapool
