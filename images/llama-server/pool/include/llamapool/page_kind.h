// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace llamapool {

enum class page_kind : std::uint8_t { huge, ordinary };

// Which kind of page the next part of memory is populated with: the one that has been the cheaper to populate lately.
//
// Huge pages are, where the machine has them at hand. A virtual machine that reports free memory to its host gives away
// blocks of a huge page and more: those are slow to get back, while loose ordinary pages stay, for as long as there are
// any. A part that took unusually long once, because the thread did not run, changes nothing: the better of a kind's
// last two parts is what counts. Thread-safe.
class page_kind_choice {
  public:
    // One part in so many is of the dearer kind, to notice when it no longer is.
    static constexpr std::uint64_t parts_between_looks = 64;

    page_kind next() noexcept;

    void record(page_kind kind, double seconds_per_byte) noexcept;

  private:
    double cost(page_kind kind) const noexcept;

    std::mutex mutex_;
    std::array<std::array<double, 2>, 2> last_{};  // [kind]: seconds per byte of the last two parts; 0 is unknown
    std::uint64_t parts_ = 0;
};

}  // namespace llamapool
