// SPDX-License-Identifier: Apache-2.0
#include "llamapool/buffer_pool.h"
#include "llamapool/state_buffer.h"

namespace {
llamapool::state_buffer checkpoint;  // constructed before the pool's first use, destroyed after main()
}

int main() {
    llamapool::buffer_pool::instance().set_cap(std::size_t{256} << 20);
    llamapool::state_buffer other;
    other.resize(std::size_t{48} << 20);
    other.shrink_to_fit();
    checkpoint.resize(std::size_t{64} << 20);
    checkpoint.data()[0] = 1;
    return 0;
}
