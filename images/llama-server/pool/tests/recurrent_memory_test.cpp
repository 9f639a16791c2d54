// SPDX-License-Identifier: Apache-2.0
#include "llamapool/recurrent_memory.h"

#include "llamapool/server.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace llamapool {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t page = 4096;

// Whether the kernel holds a wish for huge pages for this address: "hg" among the VmFlags of /proc/self/smaps.
bool wished_for(const std::uint8_t * address) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    std::ifstream smaps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(smaps, line);) {
        std::istringstream words(line);
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        char dash = 0;
        if (words >> std::hex >> begin >> dash >> end && dash == '-') {
            inside = begin <= wanted && wanted < end;
        } else if (inside && line.rfind("VmFlags:", 0) == 0) {
            return (line + ' ').find(" hg ") != std::string::npos;
        }
    }
    return false;
}

class recurrent_memory_test : public testing::Test {
  protected:
    void SetUp() override {
        void * const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
        data_ = static_cast<std::uint8_t *>(mapped);
        // A neighbour of the same kind may have the wish, and be one area with this memory to the kernel.
        madvise(data_, size_, MADV_NOHUGEPAGE);
    }
    void TearDown() override {
        munmap(data_, size_);
        recurrent_memory::use_huge_pages(false);
        unsetenv("LLAMAPOOL_METRICS_PORT");
        unsetenv("LLAMAPOOL_MODE");
    }

    // Whether memory allocated while a server of this kind runs is wished to lie in huge pages.
    bool wished_for_by_a_server(const char * mode, bool makes_checkpoints) {
        setenv("LLAMAPOOL_METRICS_PORT", "0", 1);
        setenv("LLAMAPOOL_MODE", mode, 1);
        const service_handle running = start_service(server_role::single, makes_checkpoints);
        EXPECT_NE(running, nullptr);
        recurrent_memory::allocated(data_, size_);
        return wished_for(data_);
    }

    const std::size_t size_ = 8 * MiB;
    std::uint8_t * data_ = nullptr;
};

TEST_F(recurrent_memory_test, is_left_alone_unless_huge_pages_are_to_be_used) {
    recurrent_memory::allocated(data_, size_);
    EXPECT_FALSE(wished_for(data_));
}

TEST_F(recurrent_memory_test, has_huge_pages_wished_for_in_its_whole_pages_only) {
    recurrent_memory::use_huge_pages(true);
    recurrent_memory::allocated(data_ + 64, size_ - page);
    EXPECT_FALSE(wished_for(data_));
    EXPECT_TRUE(wished_for(data_ + page));
    EXPECT_TRUE(wished_for(data_ + size_ - page - 1));
    EXPECT_FALSE(wished_for(data_ + size_ - page));
}

TEST_F(recurrent_memory_test, may_be_empty_or_smaller_than_a_page) {
    recurrent_memory::use_huge_pages(true);
    recurrent_memory::allocated(nullptr, 0);
    recurrent_memory::allocated(data_ + 64, page);
    EXPECT_FALSE(wished_for(data_));
}

TEST_F(recurrent_memory_test, is_for_huge_pages_where_a_server_makes_checkpoints) {
    EXPECT_TRUE(wished_for_by_a_server("on", true));
}

TEST_F(recurrent_memory_test, is_upstreams_where_nothing_is_to_be_pooled) {
    EXPECT_FALSE(wished_for_by_a_server("on", false));
}

TEST_F(recurrent_memory_test, is_upstreams_where_the_mode_is_off) {
    EXPECT_FALSE(wished_for_by_a_server("off", true));
}

}  // namespace
}  // namespace llamapool
