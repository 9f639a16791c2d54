// SPDX-License-Identifier: Apache-2.0
#pragma once

// What llama-server's own code calls. Without a running service every call does only what upstream would.

#include "llamapool/admission.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace llamapool {

enum class server_role : std::uint8_t {
    single,  // serves one model
    router,  // starts one child per model
    child,   // of a router
};

class service;

// Keeps the service running; its threads have ended when the last holder lets go.
using service_handle = std::shared_ptr<service>;

// Reads the environment and the cgroup, sets the pool's cap and starts the monitor and the metrics port.
// `makes_checkpoints`: false where requests may make none, so that nothing is there to pool.
// Returns nothing after having said why on standard error: a bad setting, a port in use, or a router with the pool on
// (its children would inherit the environment, and each take the whole pod for its own).
service_handle start_service(server_role role, bool makes_checkpoints);

// After the model and its contexts are in memory, and when they are dropped for sleep. `untouched_bytes` are allocated
// and become resident with the first requests: they count as base from the beginning. `measure` gives the bytes of one
// checkpoint, 0 where none will be made; it is asked only if there is a pool, which then holds one buffer a slot before
// the first request comes, as far as cap and budget allow.
void model_loaded(std::size_t slots, std::size_t untouched_bytes,
                  const std::function<std::size_t()> & measure) noexcept;
void model_unloaded() noexcept;

// From the task queue's idle wait, about once a second.
void idle_for(std::int64_t idle_milliseconds) noexcept;

// `arrived_us`: when the request came in, by the clock of `now_us`; 0: not a request of a client.
void first_token(std::int64_t arrived_us, std::int64_t now_us, std::size_t prompt_tokens) noexcept;

enum class allocation : std::uint8_t { checkpoint, speculative_checkpoint, cached_prompt };

// Makes room within the budget for `bytes` and, beside it, `draft_bytes` of data, then calls `fill`, again after a
// std::bad_alloc for which memory was given up. False: it does not fit, nothing was allocated, and that was counted.
bool allocate(allocation what, std::size_t bytes, std::size_t draft_bytes, const std::function<void()> & fill,
              const evictor & evict);

// State is over a budget that has become smaller, and enforce_budget() is due. Costs two atomic reads.
bool over_budget() noexcept;
void enforce_budget(const evictor & evict);

// For ggml's abort callback: says the message and keeps in the black box whether a device ran out of memory.
void aborting(const char * message) noexcept;

}  // namespace llamapool
