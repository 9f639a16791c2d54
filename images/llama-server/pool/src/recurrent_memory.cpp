// SPDX-License-Identifier: Apache-2.0
#include "llamapool/recurrent_memory.h"

#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <memory>

namespace llamapool {
namespace {

std::atomic<bool> wants_huge_pages{false};

}  // namespace

void recurrent_memory::use_huge_pages(bool use) noexcept {
    wants_huge_pages = use;
}

void recurrent_memory::allocated(void * data, std::size_t bytes) noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    // Whole pages only: those at the ends are shared with other data.
    if (wants_huge_pages && std::align(page, page, data, bytes) != nullptr) {
        madvise(data, bytes / page * page, MADV_HUGEPAGE);
    }
}

}  // namespace llamapool
