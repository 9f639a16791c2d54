// SPDX-License-Identifier: Apache-2.0
#include "llamapool/state_buffer.h"

#include "llamapool/buffer_pool.h"
#include "llamapool/streaming_copy.h"

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace llamapool {
namespace {

struct live_counters {
    std::atomic<std::size_t> buffers{0};
    std::atomic<std::size_t> bytes{0};
};

live_counters & counters_of(state_kind kind) noexcept {
    static std::array<live_counters, 3> counters;  // trivially destructible: usable from late destructors
    return counters[static_cast<std::size_t>(kind)];
}

std::atomic<bool> plain_allocation{false};

bool is_pooled(state_kind kind, std::size_t bytes) noexcept {
    return kind != state_kind::prompt && bytes >= buffer_pool::floor_bytes;
}

// A cached prompt takes what the pool has at hand, and its size is no demand on the pool: else it is mapped.
mapping held_or_mapped(std::size_t bytes, bool & from_pool) {
    mapping held = buffer_pool::instance().take_held(bytes);
    from_pool = !held.empty();
    return from_pool ? std::move(held) : mapping(bytes);
}

}  // namespace

struct state_buffer::block {
    block(state_kind of_kind, std::size_t bytes)
        : kind(of_kind), pooled(is_pooled(of_kind, bytes)),
          memory(pooled ? buffer_pool::instance().take(bytes) : held_or_mapped(bytes, pooled)) {
        counters_of(kind).buffers += 1;
        counters_of(kind).bytes += memory.size();
    }
    block(const block &) = delete;
    block & operator=(const block &) = delete;
    block(block &&) = delete;
    block & operator=(block &&) = delete;
    ~block() {
        counters_of(kind).buffers -= 1;
        counters_of(kind).bytes -= memory.size();
        if (pooled) {
            buffer_pool::instance().put(std::move(memory));
        }
    }

    state_kind kind;
    bool pooled;  // goes to the pool: back to where it came from, or a checkpoint's
    mapping memory;
};

void state_buffer::use_plain_allocation(bool plain) noexcept {
    plain_allocation = plain;
}

void state_buffer::copy(void * to, const void * from, std::size_t bytes) noexcept {
    if (plain_allocation) {
        std::memcpy(to, from, bytes);
    } else {
        streaming_copy(to, from, bytes);
    }
}

live_state state_buffer::live(state_kind kind) noexcept {
    return {counters_of(kind).buffers, counters_of(kind).bytes};
}

state_buffer::state_buffer(state_buffer && other) noexcept
    : block_(std::move(other.block_)), size_(std::exchange(other.size_, 0)), plain_(std::move(other.plain_)),
      kind_(other.kind_) {}

state_buffer & state_buffer::operator=(state_buffer && other) noexcept {
    if (this != &other) {
        block_ = std::move(other.block_);
        size_ = std::exchange(other.size_, 0);
        plain_ = std::move(other.plain_);
        kind_ = other.kind_;
    }
    return *this;
}

void state_buffer::resize(std::size_t bytes) {
    if (plain_allocation) {
        plain_.resize(bytes);
        return;
    }
    if (bytes == 0) {
        clear();
        return;
    }
    size_ = 0;
    if (block_.use_count() == 1 && block_->memory.size() >= bytes) {
        if (block_->pooled) {
            buffer_pool::instance().count_reuse();
        }
    } else {
        block_.reset();  // before the new one: the pool may grow it, and the peak holds only one of the two
        block_ = std::make_shared<block>(kind_, bytes);
    }
    size_ = bytes;
}

void state_buffer::clear() noexcept {
    plain_.clear();
    size_ = 0;
    if (block_.use_count() > 1) {
        block_.reset();
    }
}

void state_buffer::shrink_to_fit() noexcept {
    if (plain_allocation) {
        plain_.shrink_to_fit();
    } else if (size_ == 0) {
        block_.reset();
    }
}

std::size_t state_buffer::capacity() const noexcept {
    if (!block_) {
        return plain_.capacity();
    }
    return block_.use_count() == 1 ? block_->memory.size() : 0;
}

std::uint8_t * state_buffer::data() noexcept {
    return block_ ? block_->memory.data() : plain_.data();
}

const std::uint8_t * state_buffer::data() const noexcept {
    return block_ ? block_->memory.data() : plain_.data();
}

}  // namespace llamapool
