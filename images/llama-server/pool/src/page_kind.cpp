// SPDX-License-Identifier: Apache-2.0
#include "llamapool/page_kind.h"

#include <algorithm>

namespace llamapool {

double page_kind_choice::cost(page_kind kind) const noexcept {
    const auto & last = last_[static_cast<std::size_t>(kind)];
    return std::min(last[0], last[1]);
}

page_kind page_kind_choice::next() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool huge_is_cheaper = cost(page_kind::huge) <= cost(page_kind::ordinary);
    const bool look = ++parts_ % parts_between_looks == 0;
    return huge_is_cheaper != look ? page_kind::huge : page_kind::ordinary;
}

void page_kind_choice::record(page_kind kind, double seconds_per_byte) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto & last = last_[static_cast<std::size_t>(kind)];
    last = {seconds_per_byte, last[0]};
}

}  // namespace llamapool
