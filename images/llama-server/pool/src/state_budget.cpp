// SPDX-License-Identifier: Apache-2.0
#include "llamapool/state_budget.h"

#include "llamapool/host_memory.h"

#include <algorithm>

namespace llamapool {

std::size_t headroom_bytes(std::size_t limit_bytes) {
    constexpr std::size_t least_bytes = std::size_t{256} << 20;
    return std::max(least_bytes, limit_bytes / 20);
}

bytes_if_known own_state_budget_bytes(bytes_if_known limit_bytes, bytes_if_known base_bytes) {
    if (!limit_bytes || !base_bytes) {
        return std::nullopt;
    }
    return *limit_bytes - std::min(*limit_bytes, *base_bytes + headroom_bytes(*limit_bytes));
}

bytes_if_known smallest_known(bytes_if_known first, bytes_if_known second) {
    return first && second ? std::min(*first, *second) : first ? first : second;
}

std::size_t own_pool_cap_bytes(const pool_cap_facts & facts) {
    const std::size_t share_bytes = default_pool_cap_bytes(facts.host_bytes, facts.limit_bytes);
    if (!facts.limit_bytes || !facts.checkpoint_bytes) {
        return share_bytes;
    }
    const std::size_t wanted_bytes = std::max(share_bytes, facts.slots * *facts.checkpoint_bytes);
    return wanted_bytes - wanted_bytes % *facts.checkpoint_bytes;
}

}  // namespace llamapool
