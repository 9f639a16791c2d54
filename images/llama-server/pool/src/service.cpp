// SPDX-License-Identifier: Apache-2.0
#include "service.h"

#include "log.h"
#include "llamapool/buffer_pool.h"
#include "llamapool/exposition.h"
#include "llamapool/host_memory.h"
#include "llamapool/state_buffer.h"

#include <chrono>

#ifndef LLAMAPOOL_VERSION
#error "the build gives LLAMAPOOL_VERSION and LLAMAPOOL_UPSTREAM"
#endif

namespace llamapool {
namespace {

std::int64_t steady_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<std::uint64_t> known_if(bool known, std::uint64_t value) {
    return known ? std::optional<std::uint64_t>(value) : std::nullopt;
}

void add_pool(exposition & page) {
    const pool_statistics pool = buffer_pool::instance().statistics();
    page.counter("pool_hits_total", "Checkpoint buffers served from resident memory.", pool.hits);
    page.counter("pool_misses_total", "Checkpoint buffers that had to be mapped.", pool.misses);
    page.counter("pool_evictions_total", "Pooled buffers displaced by larger ones, a smaller cap or disuse.",
                 pool.evictions);
    page.counter("pool_declines_total", "Freed buffers that the pool did not keep.", pool.declines);
    page.counter("pool_trims_total", "Trims that released memory.", pool.trims);
    page.gauge("pool_held_bytes", "Mapped bytes held by the pool.", pool.held_bytes);
    page.gauge("pool_held_buffers", "Buffers held by the pool.", pool.held_buffers);
    page.gauge("pool_high_water_bytes", "The most bytes the pool has held; trims do not reset it.",
               pool.high_water_bytes);
    page.gauge("pool_cap_bytes", "The most bytes the pool may hold: the value in effect.", pool.cap_bytes);
}

void add_state(exposition & page) {
    const live_state checkpoints = state_buffer::live(state_kind::checkpoint);
    const live_state drafts = state_buffer::live(state_kind::draft_checkpoint);
    const live_state prompts = state_buffer::live(state_kind::prompt);
    page.gauge("checkpoints_live", "Context checkpoints in memory; shared ones count once.", checkpoints.buffers);
    page.gauge("checkpoints_live_bytes", "Mapped bytes of live checkpoints.", checkpoints.bytes + drafts.bytes);
    page.gauge("prompt_cache_bytes", "Mapped bytes of the cached prompts' own state, without their checkpoints.",
               prompts.bytes);
    page.gauge("state_bytes", "Mapped bytes of sequence state: live checkpoints, cached prompts, pooled buffers.",
               mapping::total_bytes());
}

void add_memory(exposition & page, const memory_figures & memory) {
    const cgroup_usage usage = memory.usage.value_or(cgroup_usage{});
    const bool known = memory.usage.has_value();
    page.gauge("memory_base_bytes",
               "Highest unreclaimable memory minus sequence state of the last ten minutes with the model loaded.",
               memory.base_bytes);
    page.gauge("cgroup_limit_bytes", "Effective memory limit; absent without one.", memory.limit_bytes);
    page.gauge("cgroup_anon_bytes", "Anonymous memory.", known_if(known, usage.anon_bytes));
    page.gauge("cgroup_shmem_bytes", "Shared memory and tmpfs.", known_if(known, usage.shmem_bytes));
    page.gauge("cgroup_file_bytes", "Page cache without shared memory; mmapped weights are here.",
               known_if(known, usage.file_bytes));
    page.gauge("cgroup_unreclaimable_bytes", "Memory that the kernel can not take back.",
               known_if(known, usage.unreclaimable_bytes));
    page.counter("cgroup_oom_kills_total", "Processes of the cgroup killed for memory.", memory.oom_kills);
}

}  // namespace

service::service(settings from, cgroup group, std::optional<std::size_t> host_bytes)
    : settings_(std::move(from)), host_bytes_(host_bytes), memory_(std::move(group)),
      limits_file_(settings_.limits_file) {
    state_buffer::use_plain_allocation(!settings_.pooled);
    refresh();
    if (settings_.metrics_port != 0) {
        metrics_server_ = std::make_unique<metrics_server>(settings_.metrics_port, [this] { return page(); });
    }
    monitor_ = std::thread([this] { watch(); });
}

service::~service() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    stop_requested_.notify_all();
    monitor_.join();
}

void service::watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_requested_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; })) {
        lock.unlock();
        refresh();
        lock.lock();
    }
}

void service::refresh() {
    const std::lock_guard<std::mutex> lock(refreshing_);
    const memory_figures memory = memory_.sample(steady_seconds(), mapping::total_bytes());
    if (const auto changed = limits_file_.poll()) {
        limits_ = *changed;
    }
    limits_errors_ = limits_file_.errors();

    std::size_t cap_bytes = 0;
    if (settings_.pooled) {
        const std::size_t own_bytes =
            settings_.pool_cap_bytes.value_or(default_pool_cap_bytes(host_bytes_, memory.limit_bytes));
        cap_bytes = limits_.pool_cap_bytes.value_or(own_bytes);
    }
    buffer_pool & pool = buffer_pool::instance();
    if (pool.statistics().cap_bytes != cap_bytes) {
        pool.set_cap(cap_bytes);
        log_line("the pool's cap is " + std::to_string(cap_bytes) + " bytes now");
    }
    // Last: whoever reads the generation finds its values in effect.
    limits_generation_ = limits_.generation ? static_cast<std::int64_t>(*limits_.generation) : -1;
}

std::string service::page() const {
    exposition page;
    const std::int64_t generation = limits_generation_;
    const std::uint64_t checkpoint_bytes = checkpoint_bytes_;
    page.gauge_with_labels("build_info", "Version of llamapool and of the llama.cpp release it is built on.",
                           std::string("{version=\"" LLAMAPOOL_VERSION "\",upstream=\"" LLAMAPOOL_UPSTREAM "\",mode=\"") +
                               (settings_.pooled ? "on" : "off") + "\"}",
                           1);
    page.distribution("time_to_first_token_seconds", "From the arrival of a request to its first token, queue included.",
                      time_to_first_token_seconds_.read());
    page.distribution("prompt_tokens", "Tokens per prompt.", prompt_tokens_.read());
    page.distribution("checkpoint_seconds", "Time to make a context checkpoint.", checkpoint_seconds_.read());
    page.gauge("checkpoint_bytes", "Data of the latest checkpoint; absent before the first.",
               known_if(checkpoint_bytes > 0, checkpoint_bytes));
    if (settings_.pooled) {  // plain allocation is not counted
        add_state(page);
    }
    add_pool(page);
    add_memory(page, memory_.last());
    page.gauge("limits_generation", "Generation of the limits in effect; absent without a limits file.",
               known_if(generation >= 0, static_cast<std::uint64_t>(generation)));
    page.counter("limits_errors_total", "Contents of the limits file that were invalid.", limits_errors_.load());
    return page.text();
}

void service::model_loaded() {
    memory_.set_model_loaded(true);
    refresh();
}

void service::model_unloaded() {
    memory_.set_model_loaded(false);
    buffer_pool::instance().trim();
}

void service::idle_for(std::int64_t idle_milliseconds) {
    if (idle_milliseconds >= static_cast<std::int64_t>(settings_.idle_trim_seconds) * 1000) {
        buffer_pool::instance().trim();
    }
}

void service::first_token(double seconds, std::size_t prompt_tokens) {
    time_to_first_token_seconds_.observe(seconds);
    prompt_tokens_.observe(static_cast<double>(prompt_tokens));
}

void service::checkpoint_made(std::size_t bytes, double seconds) {
    checkpoint_bytes_ = bytes;
    checkpoint_seconds_.observe(seconds);
}

}  // namespace llamapool
