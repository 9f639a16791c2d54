// SPDX-License-Identifier: Apache-2.0
#include "llamapool/recurrent_memory.h"

#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>

namespace llamapool {
namespace {

std::atomic<bool> wants_huge_pages{false};

}  // namespace

void recurrent_memory::use_huge_pages(bool use) noexcept {
    wants_huge_pages = use;
}

void recurrent_memory::allocated(void * data, std::size_t bytes) noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t lead = (page - reinterpret_cast<std::uintptr_t>(data) % page) % page;
    if (!wants_huge_pages || bytes < lead + page) {
        return;
    }
    // Whole pages only: those at the ends are shared with other data.
    madvise(static_cast<std::uint8_t *>(data) + lead, (bytes - lead) / page * page, MADV_HUGEPAGE);
}

}  // namespace llamapool
