// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace llamapool {

// std::memcpy with stores that go past the caches (non-temporal), where the processor is known to have them.
//
// Sequence state is written once and read much later, if ever. An ordinary store first reads the line that it
// overwrites, a third of the traffic, and puts it in the place of what the next batch needs. The C library streams too,
// but only from a size near that of the last-level cache on, and state is copied one tensor at a time.
//
// Other threads see the copy as they would see std::memcpy's.
void streaming_copy(void * to, const void * from, std::size_t bytes) noexcept;

}  // namespace llamapool
