// SPDX-License-Identifier: Apache-2.0
#include "llamapool/host_memory.h"

#include <unistd.h>
#include <algorithm>
#include <cstdint>

namespace llamapool {

std::optional<std::size_t> host_memory_bytes(long pages, long page_bytes) {
    constexpr std::uint64_t implausible_bytes = std::uint64_t{1} << 50;
    if (pages <= 0 || page_bytes <= 0) {
        return std::nullopt;
    }
    const auto total_pages = static_cast<std::uint64_t>(pages);
    if (total_pages > implausible_bytes / static_cast<std::uint64_t>(page_bytes)) {
        return std::nullopt;
    }
    return total_pages * static_cast<std::uint64_t>(page_bytes);
}

std::optional<std::size_t> host_memory_bytes() {
    return host_memory_bytes(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE));
}

std::size_t default_pool_cap_bytes(std::optional<std::size_t> host_bytes, std::optional<std::size_t> limit_bytes) {
    if (host_bytes && limit_bytes) {
        return std::min(*host_bytes, *limit_bytes) / 16;
    }
    return host_bytes.value_or(limit_bytes.value_or(0)) / 16;
}

}  // namespace llamapool
