// SPDX-License-Identifier: Apache-2.0
#include "llamapool/server.h"

#include "llamapool/host_memory.h"
#include "llamapool/recurrent_memory.h"
#include "log.h"
#include "service.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>

namespace llamapool {
namespace {

// The running service, for the calls below. The handle of start_service() outlives the server that makes them.
std::atomic<service *> running{nullptr};

template <typename action>
void with_service(action act) noexcept {
    if (service * const current = running.load()) {
        try {
            act(*current);
        } catch (const std::exception & error) {  // out of memory for a string: the server must not die of that
            log_line(error.what());
        }
    }
}

constexpr double seconds(std::int64_t microseconds) {
    return static_cast<double>(microseconds) / 1e6;
}

}  // namespace

service_handle start_service(server_role role, bool makes_checkpoints) {
    try {
        settings chosen = settings::from_environment([](const char * name) {
            return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing writes the environment by now
        });
        if (role != server_role::single) {
            if (chosen.pooled) {
                log_line(
                    "router mode is not supported: each child would take the whole memory of the pod for its own; "
                    "give --model, or set LLAMAPOOL_MODE=off");
                return nullptr;
            }
            chosen.metrics_port = 0;  // the children would all want the same one
        }
        recurrent_memory::use_huge_pages(chosen.pooled && makes_checkpoints);
        service_handle started(new service(std::move(chosen), cgroup::of_this_process(), host_memory_bytes()),
                               [](service * ending) {
                                   running = nullptr;
                                   delete ending;
                               });
        running = started.get();
        return started;
    } catch (const std::exception & error) {
        log_line(error.what());
        return nullptr;
    }
}

void model_loaded(std::size_t slots, std::size_t untouched_bytes,
                  const std::function<std::size_t()> & measure) noexcept {
    with_service([&](service & current) { current.model_loaded(slots, untouched_bytes, measure); });
}

void model_unloaded() noexcept {
    with_service([](service & current) { current.model_unloaded(); });
}

void idle_for(std::int64_t idle_milliseconds) noexcept {
    with_service([=](service & current) { current.idle_for(idle_milliseconds); });
}

void first_token(std::int64_t arrived_us, std::int64_t now_us, std::size_t prompt_tokens) noexcept {
    if (arrived_us > 0) {
        with_service([=](service & current) { current.first_token(seconds(now_us - arrived_us), prompt_tokens); });
    }
}

bool allocate(allocation what, std::size_t bytes, std::size_t draft_bytes, const std::function<void()> & fill,
              const evictor & evict) {
    if (service * const current = running.load()) {
        return current->allocate(what, bytes, draft_bytes, fill, evict);
    }
    fill();
    return true;
}

bool over_budget() noexcept {
    const service * const current = running.load();
    return current != nullptr && current->over_budget();
}

void enforce_budget(const evictor & evict) {
    if (service * const current = running.load()) {
        current->enforce_budget(evict);
    }
}

void aborting(const char * message) noexcept {
    with_service([=](service & current) { current.aborting(message); });
}

}  // namespace llamapool
