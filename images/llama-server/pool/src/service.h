// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llamapool/admission.h"
#include "llamapool/black_box.h"
#include "llamapool/cgroup.h"
#include "llamapool/histogram.h"
#include "llamapool/limits_file.h"
#include "llamapool/memory_watch.h"
#include "llamapool/metrics_server.h"
#include "llamapool/server.h"
#include "llamapool/settings.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace llamapool {

// Where everything of one server process comes together: it applies limits, follows the cgroup and shows the figures.
class service {
  public:
    // `group` is the cgroup to follow, `host_bytes` the host's RAM where known. Throws std::runtime_error.
    service(settings from, cgroup group, std::optional<std::size_t> host_bytes);
    service(const service &) = delete;
    service & operator=(const service &) = delete;
    service(service &&) = delete;
    service & operator=(service &&) = delete;
    ~service();

    // One round of the monitor: new limits and the cgroup's figures are applied. The monitor does this every second.
    void refresh();

    // The metrics page. Waits for no file, no queue and no slot.
    std::string page() const;

    void model_loaded(std::size_t slots, std::size_t untouched_bytes, const std::function<std::size_t()> & measure);
    void model_unloaded();
    void idle_for(std::int64_t idle_milliseconds);
    void first_token(double seconds, std::size_t prompt_tokens);
    bool allocate(allocation what, std::size_t bytes, std::size_t draft_bytes, const std::function<void()> & fill,
                  const evictor & evict);
    bool over_budget() const noexcept { return admission_.over_budget(); }
    void enforce_budget(const evictor & evict) { admission_.enforce(evict); }
    void aborting(const std::string & message);

    std::uint16_t metrics_port() const noexcept { return metrics_server_ ? metrics_server_->port() : 0; }

  private:
    void watch();
    void keep_buffers_ready();
    void follow_memory();
    bool is_large(std::size_t bytes) noexcept;
    accounting account() const;

    const settings settings_;
    const std::optional<std::size_t> host_bytes_;
    memory_watch memory_;
    admission admission_;
    black_box black_box_;

    std::mutex refreshing_;  // of the two that follow
    limits_file limits_file_;
    limits limits_;

    histogram time_to_first_token_seconds_ = histogram::of_seconds();
    histogram checkpoint_seconds_ = histogram::of_seconds();
    histogram prompt_tokens_{1, 2, 1 << 20};
    std::atomic<std::uint64_t> checkpoint_bytes_{0};         // data of the latest; 0: none made yet
    std::atomic<std::uint64_t> checkpoint_mapped_bytes_{0};  // the same, as mapped
    std::atomic<std::size_t> pooled_bytes_{0};               // of it, what is in the buffer that is pooled
    std::atomic<std::size_t> spare_buffers_{0};              // to keep ready; 0: those it has are enough
    std::atomic<std::size_t> unmeasured_bytes_{0};           // allocated since memory was measured
    std::atomic<std::uint64_t> checkpoints_skipped_{0};
    std::atomic<std::uint64_t> prompts_skipped_{0};
    std::atomic<std::uint64_t> asked_bytes_{0};
    std::atomic<std::size_t> slots_{0};
    std::atomic<server_phase> phase_{server_phase::loading};
    std::atomic<bool> device_oom_{false};
    std::atomic<std::int64_t> limits_generation_{-1};  // -1: no file applied
    std::atomic<std::uint64_t> limits_errors_{0};

    std::mutex mutex_;
    std::condition_variable stop_requested_;
    std::condition_variable buffer_used_;
    bool stopping_ = false;
    bool buffer_was_used_ = false;
    std::unique_ptr<metrics_server> metrics_server_;
    std::thread monitor_;
    std::thread preparer_;
};

}  // namespace llamapool
