// SPDX-License-Identifier: Apache-2.0
#include "llamapool/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>  // SSE2, which every x86-64 processor has
#endif

namespace llamapool {

#if defined(__x86_64__)

void streaming_copy(void * to, const void * from, std::size_t bytes) noexcept {
    constexpr std::size_t line = 64;
    constexpr std::size_t fewest = 16 * line;  // less is not worth the fence
    constexpr std::size_t ahead = 16 * line;   // what the processor prefetches by itself comes too late for the reads
    auto * out = static_cast<std::uint8_t *>(to);
    const auto * in = static_cast<const std::uint8_t *>(from);
    if (bytes < fewest) {
        std::memcpy(to, from, bytes);
        return;
    }
    const std::size_t to_boundary = (line - reinterpret_cast<std::uintptr_t>(out) % line) % line;
    std::memcpy(out, in, to_boundary);
    out += to_boundary;
    in += to_boundary;
    bytes -= to_boundary;
    for (; bytes >= line; out += line, in += line, bytes -= line) {
        _mm_prefetch(reinterpret_cast<const char *>(in + std::min(ahead, bytes - line)), _MM_HINT_NTA);
        const auto * read = reinterpret_cast<const __m128i *>(in);
        auto * written = reinterpret_cast<__m128i *>(out);
        const __m128i first = _mm_loadu_si128(read);
        const __m128i second = _mm_loadu_si128(read + 1);
        const __m128i third = _mm_loadu_si128(read + 2);
        const __m128i fourth = _mm_loadu_si128(read + 3);
        _mm_stream_si128(written, first);
        _mm_stream_si128(written + 1, second);
        _mm_stream_si128(written + 2, third);
        _mm_stream_si128(written + 3, fourth);
    }
    _mm_sfence();  // streamed stores are not ordered by a lock that is released after them
    std::memcpy(out, in, bytes);
}

#else

void streaming_copy(void * to, const void * from, std::size_t bytes) noexcept {
    std::memcpy(to, from, bytes);
}

#endif

}  // namespace llamapool
