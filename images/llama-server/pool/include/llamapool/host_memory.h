// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

namespace llamapool {

// RAM of the host in bytes; nothing when the query failed.
std::optional<std::size_t> host_memory_bytes();

// The same from what sysconf() said. A failed query says -1 pages, which multiplied out is a huge total; a total above
// 1 PiB is no answer either.
std::optional<std::size_t> host_memory_bytes(long pages, long page_bytes);

// The pool's own cap before anything is known of the model: 1/16 of the smaller of the host's RAM and the cgroup's
// limit, 0 when neither is known.
std::size_t default_pool_cap_bytes(std::optional<std::size_t> host_bytes, std::optional<std::size_t> limit_bytes);

}  // namespace llamapool
