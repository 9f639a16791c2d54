// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace llamapool {

// The memory of the states that a model computes on: one a sequence, each as large as a checkpoint. Every layer of
// every batch reads and writes its part of it, and a checkpoint is a copy of it. Upstream allocates it once, with the
// context; what is wished for here is the kind of its pages.
class recurrent_memory {
  public:
    // Before a model is loaded: whether to wish for huge pages, of which it needs 512 times fewer translations of
    // addresses. Not by default.
    static void use_huge_pages(bool use) noexcept;

    // Right after its allocation in host memory, before it is touched. Where the kernel refuses it stays as it was.
    static void allocated(void * data, std::size_t bytes) noexcept;
};

}  // namespace llamapool
