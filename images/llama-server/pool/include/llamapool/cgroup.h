// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace llamapool {

// What the process's memory cgroup uses, in bytes. The parts do not overlap.
struct cgroup_usage {
    std::uint64_t anon_bytes = 0;
    std::uint64_t shmem_bytes = 0;  // tmpfs, memory-backed emptyDir
    std::uint64_t file_bytes = 0;   // page cache without shmem: mmapped weights are here and can be reclaimed
    // What the kernel can not take back: anon + shmem + locked pages + kernel memory without reclaimable slabs.
    std::uint64_t unreclaimable_bytes = 0;
};

// The memory cgroup of this process and its ancestors as far as they can be seen, version 1 or 2.
class cgroup {
  public:
    // Finds it through /proc/self/cgroup and /proc/self/mountinfo, all paths under `root` (a captured tree in tests).
    // Works with and without a cgroup namespace. Where nothing is found every query answers nothing.
    static cgroup of_this_process(const std::filesystem::path & root = "/");

    // The smallest limit of the cgroup and its visible ancestors; nothing when there is none.
    // `max`, 0, empty, unreadable and the kernel's huge numbers all mean "no limit here"; memory.high counts.
    std::optional<std::uint64_t> effective_limit_bytes() const;

    // Nothing when the figures can not be read.
    std::optional<cgroup_usage> usage() const;

    // How often the kernel has killed a process of this cgroup for memory; nothing when it can not be read.
    std::optional<std::uint64_t> oom_kills() const;

  private:
    enum class version : std::uint8_t { none, v1, v2 };

    version version_ = version::none;
    std::vector<std::filesystem::path> levels_;  // the process's own directory first, then its ancestors
};

}  // namespace llamapool
