// SPDX-License-Identifier: Apache-2.0
#include "service.h"

#include "llamapool/buffer_pool.h"
#include "llamapool/exposition.h"
#include "llamapool/state_buffer.h"

#include <algorithm>

#ifndef LLAMAPOOL_VERSION
#error "the build gives LLAMAPOOL_VERSION and LLAMAPOOL_UPSTREAM"
#endif

namespace llamapool {
namespace {

std::optional<std::uint64_t> known_if(bool known, std::uint64_t value) {
    return known ? std::optional<std::uint64_t>(value) : std::nullopt;
}

void add_pool(exposition & page) {
    const pool_statistics pool = buffer_pool::instance().statistics();
    page.counter("llamapool_pool_hits_total", "Checkpoint buffers served from resident memory.", pool.hits);
    page.counter("llamapool_pool_misses_total", "Checkpoint buffers that had to be mapped.", pool.misses);
    page.counter("llamapool_pool_evictions_total", "Pooled buffers displaced by larger ones, a smaller cap or disuse.",
                 pool.evictions);
    page.counter("llamapool_pool_declines_total", "Freed buffers that the pool did not keep.", pool.declines);
    page.counter("llamapool_pool_trims_total", "Trims that released memory.", pool.trims);
    page.gauge("llamapool_pool_held_bytes", "Mapped bytes held by the pool.", pool.held_bytes);
    page.gauge("llamapool_pool_held_buffers", "Buffers held by the pool.", pool.held_buffers);
    page.gauge("llamapool_pool_high_water_bytes", "The most bytes the pool has held; trims do not reset it.",
               pool.high_water_bytes);
    page.gauge("llamapool_pool_cap_bytes", "The most bytes the pool may hold: the value in effect.", pool.cap_bytes);
}

void add_state(exposition & page, const admission & admission) {
    // The state is never over the budget in effect, but the two are read one after the other: of the state, the lower
    // of the figures before and after is the one that was true together with the budget.
    const std::size_t state_before_bytes = mapping::total_bytes();
    const std::optional<std::size_t> budget_bytes = admission.budget_in_effect();
    const std::size_t state_bytes = std::min(state_before_bytes, mapping::total_bytes());
    const live_state checkpoints = state_buffer::live(state_kind::checkpoint);
    const live_state drafts = state_buffer::live(state_kind::draft_checkpoint);
    const live_state prompts = state_buffer::live(state_kind::prompt);
    page.gauge("llamapool_checkpoints_live", "Context checkpoints in memory; shared ones count once.",
               checkpoints.buffers);
    page.gauge("llamapool_checkpoints_live_bytes", "Mapped bytes of live checkpoints.",
               checkpoints.bytes + drafts.bytes);
    page.gauge("llamapool_prompt_cache_bytes",
               "Mapped bytes of the cached prompts' own state, without their checkpoints.", prompts.bytes);
    page.gauge("llamapool_state_bytes",
               "Mapped bytes of sequence state: live checkpoints, cached prompts, pooled buffers.", state_bytes);
    page.gauge("llamapool_state_budget_bytes",
               "The most that state may map: the value in effect; absent without a bound.", budget_bytes);
    const admission_counters counters = admission.counters();
    page.counter("llamapool_checkpoints_evicted_total",
                 "Checkpoints given up for the budget or for a failed allocation.", counters.checkpoints_evicted);
    page.counter("llamapool_prompts_evicted_total",
                 "Cached prompts given up for the budget or for a failed allocation.", counters.prompts_evicted);
    page.counter("llamapool_allocation_failures_total", "Allocations of state for which there was no memory.",
                 counters.allocation_failures);
}

void add_memory(exposition & page, const memory_figures & memory) {
    const cgroup_usage usage = memory.usage.value_or(cgroup_usage{});
    const bool known = memory.usage.has_value();
    page.gauge("llamapool_memory_base_bytes",
               "Highest unreclaimable memory minus sequence state of the last ten minutes with the model loaded.",
               memory.base_bytes);
    page.gauge("llamapool_cgroup_limit_bytes", "Effective memory limit; absent without one.", memory.limit_bytes);
    page.gauge("llamapool_cgroup_anon_bytes", "Anonymous memory.", known_if(known, usage.anon_bytes));
    page.gauge("llamapool_cgroup_shmem_bytes", "Shared memory and tmpfs.", known_if(known, usage.shmem_bytes));
    page.gauge("llamapool_cgroup_file_bytes", "Page cache without shared memory; mmapped weights are here.",
               known_if(known, usage.file_bytes));
    page.gauge("llamapool_cgroup_unreclaimable_bytes", "Memory that the kernel can not take back.",
               known_if(known, usage.unreclaimable_bytes));
    page.counter("llamapool_cgroup_oom_kills_total", "Processes of the cgroup killed for memory.", memory.oom_kills);
}

}  // namespace

std::string service::page() const {
    exposition page;
    const std::int64_t generation = limits_generation_;
    const std::uint64_t checkpoint_bytes = checkpoint_bytes_;
    page.gauge_with_labels(
        "llamapool_build_info", "Version of llamapool and of the llama.cpp release it is built on.",
        std::string("{version=\"" LLAMAPOOL_VERSION "\",upstream=\"" LLAMAPOOL_UPSTREAM "\",mode=\"") +
            (settings_.pooled ? "on" : "off") + "\"}",
        1);
    page.distribution("llamapool_time_to_first_token_seconds",
                      "From the arrival of a request to its first token, queue included.",
                      time_to_first_token_seconds_.read());
    page.distribution("llamapool_prompt_tokens", "Tokens per prompt.", prompt_tokens_.read());
    page.distribution("llamapool_checkpoint_seconds", "Time to make a context checkpoint.", checkpoint_seconds_.read());
    page.gauge("llamapool_checkpoint_bytes", "Data of the latest checkpoint; absent before the first.",
               known_if(checkpoint_bytes > 0, checkpoint_bytes));
    if (settings_.pooled) {  // plain allocation is not counted
        add_state(page, admission_);
    }
    page.counter("llamapool_checkpoints_skipped_total", "Checkpoints not made: they did not fit.",
                 checkpoints_skipped_.load());
    page.counter("llamapool_prompts_skipped_total", "Prompts not saved to the cache: they did not fit.",
                 prompts_skipped_.load());
    add_pool(page);
    add_memory(page, memory_.last());
    page.gauge("llamapool_limits_generation", "Generation of the limits in effect; absent without a limits file.",
               known_if(generation >= 0, static_cast<std::uint64_t>(generation)));
    page.counter("llamapool_limits_errors_total", "Contents of the limits file that were invalid.",
                 limits_errors_.load());
    return page.text();
}

}  // namespace llamapool
