// SPDX-License-Identifier: Apache-2.0
#include "llamapool/mapping.h"

#include "llamapool/page_kind.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <new>
#include <utility>

#ifndef MADV_POPULATE_WRITE  // Linux 5.14; older libc headers lack the name
#define MADV_POPULATE_WRITE 23
#endif

namespace llamapool {
namespace {

std::atomic<std::size_t> mapped_bytes{0};

std::size_t page_bytes() noexcept {
    static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
    return (bytes + unit - 1) / unit * unit;
}

// `size` bytes of address space aligned to a huge page, so that huge pages can back all of it.
std::uint8_t * map_aligned(std::size_t size) {
    const std::size_t alignment = size < mapping::huge_page_bytes ? page_bytes() : mapping::huge_page_bytes;
    const std::size_t padded = size + alignment - page_bytes();
    void * address = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
        throw std::bad_alloc();
    }
    auto * const start = static_cast<std::uint8_t *>(address);
    const std::size_t lead = (alignment - reinterpret_cast<std::uintptr_t>(start) % alignment) % alignment;
    if (lead > 0) {
        munmap(start, lead);
    }
    if (padded > lead + size) {
        munmap(start + lead + size, padded - lead - size);
    }
    return start + lead;
}

// Makes the pages of [data, data + size) resident. Throws std::bad_alloc when the kernel says there is no memory.
void populate(std::uint8_t * data, std::size_t size) {
    if (madvise(data, size, MADV_POPULATE_WRITE) == 0) {
        return;
    }
    if (errno == ENOMEM) {
        throw std::bad_alloc();
    }
    for (std::size_t offset = 0; offset < size; offset += page_bytes()) {
        static_cast<volatile std::uint8_t *>(data)[offset] = 0;  // a kernel without the call: touch each page
    }
}

}  // namespace

std::size_t mapping::rounded(std::size_t bytes) noexcept {
    return round_up(bytes, bytes < huge_page_bytes ? page_bytes() : huge_page_bytes);
}

std::size_t mapping::total_bytes() noexcept {
    return mapped_bytes.load();
}

mapping mapping::reserved(std::size_t bytes) {
    if (bytes == 0) {
        return {};
    }
    if (bytes > SIZE_MAX / 2) {
        throw std::bad_alloc();
    }
    const std::size_t size = rounded(bytes);
    std::uint8_t * const data = map_aligned(size);
    mapped_bytes += size;
    return {data, size};
}

void mapping::make_resident(std::size_t offset, std::size_t bytes) {
    const std::size_t end = std::min(size_, offset + bytes);
    while (offset < end) {
        const std::size_t part = std::min(part_bytes, end - offset);
        make_part_resident(offset, part);
        offset += part;
    }
}

void mapping::make_part_resident(std::size_t offset, std::size_t bytes) {
    static page_kind_choice choice;
    if (bytes < huge_page_bytes) {
        populate(data_ + offset, bytes);
        return;
    }
    const page_kind kind = choice.next();
    // Only a wish: without huge pages the mapping still works. For the whole mapping, not the part: a mapping with two
    // wishes is two to the kernel, and could not grow.
    madvise(data_, size_, kind == page_kind::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const auto begun = std::chrono::steady_clock::now();
    populate(data_ + offset, bytes);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    choice.record(kind, taken.count() / static_cast<double>(bytes));
}

mapping::mapping(std::size_t bytes) : mapping(reserved(bytes)) {
    make_resident(0, size_);
}

mapping::mapping(mapping && other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

mapping & mapping::operator=(mapping && other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

mapping::~mapping() {
    if (data_ != nullptr) {
        munmap(data_, size_);
        mapped_bytes -= size_;
    }
}

void mapping::grow(std::size_t bytes) {
    const std::size_t size = rounded(bytes);
    if (size <= size_) {
        return;
    }
    if (empty()) {
        *this = mapping(bytes);
        return;
    }
    if (mremap(data_, size_, size, 0) == MAP_FAILED) {
        std::uint8_t * const target = map_aligned(size);
        if (mremap(data_, size_, size, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) {
            munmap(target, size);
            throw std::bad_alloc();
        }
        data_ = target;
    }
    mapped_bytes += size - size_;
    const std::size_t held = std::exchange(size_, size);
    try {
        make_resident(held, size - held);
    } catch (const std::bad_alloc &) {
        size_ = held;
        munmap(data_ + held, size - held);
        mapped_bytes -= size - held;
        throw;
    }
}

}  // namespace llamapool
