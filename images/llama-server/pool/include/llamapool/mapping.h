// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace llamapool {

// An owned, private, anonymous memory mapping whose pages are resident from the start.
//
// Copying device memory into pages that are not resident yet was measured about 140 times slower than into resident
// ones, so the pages are populated here, on a miss, and stay resident while the mapping lives. Sizes of one huge page
// and more are aligned and rounded to huge pages, smaller ones to ordinary pages.
class mapping {
  public:
    static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

    // Memory is made resident in parts of this size, each of the kind of page that has been the cheaper lately.
    static constexpr std::size_t part_bytes = std::size_t{8} << 20;

    // The bytes that a request for `bytes` really maps: rounded up to whole (huge) pages.
    static std::size_t rounded(std::size_t bytes) noexcept;

    // All bytes mapped by this class in the process right now. A page is counted before it is resident and until it is
    // unmapped: a reader who subtracts this from the memory in use never finds resident pages uncounted.
    static std::size_t total_bytes() noexcept;

    mapping() noexcept = default;

    // Throws std::bad_alloc when the memory can not be had.
    explicit mapping(std::size_t bytes);

    // Address space alone, counted like the rest: a promise to make its pages resident, a part at a time, before use.
    // Throws std::bad_alloc.
    static mapping reserved(std::size_t bytes);

    // Makes the pages of [offset, offset + bytes) resident; what lies beyond the end is left out. Throws
    // std::bad_alloc.
    void make_resident(std::size_t offset, std::size_t bytes);

    mapping(mapping && other) noexcept;
    mapping & operator=(mapping && other) noexcept;
    mapping(const mapping &) = delete;
    mapping & operator=(const mapping &) = delete;
    ~mapping();

    // Grows in place or by moving page tables (never by copying) and makes the added pages resident.
    // Does nothing when the mapping is large enough. Throws std::bad_alloc and then stays as it was.
    void grow(std::size_t bytes);

    std::uint8_t * data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

  private:
    mapping(std::uint8_t * data, std::size_t size) noexcept : data_(data), size_(size) {}

    void make_part_resident(std::size_t offset, std::size_t bytes);

    std::uint8_t * data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace llamapool
