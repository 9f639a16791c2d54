// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

// The rules of the memory plan, as pure functions. All in bytes.
namespace llamapool {

using bytes_if_known = std::optional<std::size_t>;

// What stays free below the limit: 5 % of it, at least 256 MiB.
std::size_t headroom_bytes(std::size_t limit_bytes);

// The server's own budget for sequence state: limit - base - headroom, never below 0. Nothing without a limit, and
// nothing before the base is measured.
bytes_if_known own_state_budget_bytes(bytes_if_known limit_bytes, bytes_if_known base_bytes);

// The smallest of those that are known: a ceiling can only lower the budget.
bytes_if_known smallest_known(bytes_if_known first, bytes_if_known second);

// What the pool's own cap is derived from.
struct pool_cap_facts {
    bytes_if_known host_bytes;
    bytes_if_known limit_bytes;
    bytes_if_known checkpoint_bytes;  // mapped; nothing before the first
    std::size_t slots = 0;
};

// The pool's own cap: 1/16 of the smaller of host RAM and limit (0 when neither is known). Within a limit, once the
// size of a checkpoint is known, at least one buffer a slot, since 1/16 of a small limit holds none, in whole buffers.
std::size_t own_pool_cap_bytes(const pool_cap_facts & facts);

}  // namespace llamapool
