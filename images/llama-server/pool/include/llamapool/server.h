// SPDX-License-Identifier: Apache-2.0
#pragma once

// What llama-server's own code calls. Everything here is light to include and, but for the start, never throws.

#include <cstddef>
#include <cstdint>
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
// Returns nothing after having said why on standard error: a bad setting, a port in use, or a router with the pool on
// (its children would inherit the environment, and each take the whole pod for its own).
service_handle start_service(server_role role);

// After the model and its contexts are in memory, and when they are dropped for sleep.
void model_loaded() noexcept;
void model_unloaded() noexcept;

// From the task queue's idle wait, about once a second.
void idle_for(std::int64_t idle_milliseconds) noexcept;

// `arrived_us`: when the request came in, by the clock of `now_us`; 0: not a request of a client.
void first_token(std::int64_t arrived_us, std::int64_t now_us, std::size_t prompt_tokens) noexcept;

// A checkpoint of `bytes` of data was made in `elapsed_us`.
void checkpoint_made(std::size_t bytes, std::int64_t elapsed_us) noexcept;

}  // namespace llamapool
