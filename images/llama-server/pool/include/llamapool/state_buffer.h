// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llamapool/mapping.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace llamapool {

// What a buffer of sequence state holds. The pool is for checkpoints: their size is nearly constant per model, while a
// cached prompt grows with its KV cells. A short one still fits a checkpoint's buffer: it takes one that is held, and
// gives it back; otherwise it is mapped and unmapped.
enum class state_kind : std::uint8_t { checkpoint, draft_checkpoint, prompt };

// Live buffers of one kind. Mapped bytes, rounding included; a shared buffer counts once.
struct live_state {
    std::size_t buffers = 0;
    std::size_t bytes = 0;
};

// Bytes of sequence state, shared by its copies and never changed once it is filled: a copy costs a reference.
//
// It stands where upstream has a std::vector<uint8_t>, with the calls that upstream uses. The differences: resize()
// does not keep the content, and writing through data() is for the owner that has just resized. Not thread-safe for
// one object; distinct objects that share memory may live in different threads.
class state_buffer {
  public:
    // Chooses upstream's own allocation (LLAMAPOOL_MODE=off): a plain vector, copied, zeroed, neither pooled nor
    // counted. To be called before the first buffer is filled.
    static void use_plain_allocation(bool plain) noexcept;

    // Copies a part of a sequence's state into a buffer: streamed, or as upstream does under plain allocation.
    static void copy(void * to, const void * from, std::size_t bytes) noexcept;

    static live_state live(state_kind kind) noexcept;

    explicit state_buffer(state_kind kind = state_kind::checkpoint) noexcept : kind_(kind) {}
    state_buffer(const state_buffer &) = default;
    state_buffer & operator=(const state_buffer &) = default;
    state_buffer(state_buffer && other) noexcept;
    state_buffer & operator=(state_buffer && other) noexcept;
    ~state_buffer() = default;

    std::size_t size() const noexcept { return block_ ? size_ : plain_.size(); }
    bool empty() const noexcept { return size() == 0; }
    // Bytes that resize() can give without new memory.
    std::size_t capacity() const noexcept;

    // Resident memory for `bytes`, content unspecified, owned by this object alone. Throws std::bad_alloc and is then
    // empty.
    void resize(std::size_t bytes);

    // Like a vector's: memory owned by this object alone is kept for the next resize().
    void clear() noexcept;
    // Gives up the memory of an empty buffer.
    void shrink_to_fit() noexcept;

    std::uint8_t * data() noexcept;
    const std::uint8_t * data() const noexcept;

  private:
    struct block;

    std::shared_ptr<block> block_;
    std::size_t size_ = 0;             // of the data in block_
    std::vector<std::uint8_t> plain_;  // used instead of block_ under plain allocation
    state_kind kind_;
};

}  // namespace llamapool
