// SPDX-License-Identifier: Apache-2.0
#include "llamapool/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

namespace llamapool {
namespace {

namespace fs = std::filesystem;
using key_values = std::map<std::string, std::uint64_t>;

// A number alone, as the kernel writes it; `max`, an empty and an unreadable file are nothing.
std::optional<std::uint64_t> read_number(const fs::path & file) {
    std::ifstream stream(file);
    std::string text;
    std::uint64_t value = 0;
    if (!(stream >> text)) {
        return std::nullopt;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

key_values read_key_values(const fs::path & file) {
    key_values result;
    std::ifstream stream(file);
    std::string key;
    std::uint64_t value = 0;
    while (stream >> key >> value) {
        result[key] = value;
    }
    return result;
}

std::uint64_t value_of(const key_values & values, const std::string & key) {
    const auto found = values.find(key);
    return found == values.end() ? 0 : found->second;
}

bool has_item(std::string_view list, std::string_view item) {
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        if (list.substr(0, comma) == item) {
            return true;
        }
        list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    }
    return false;
}

struct mount {
    std::string root;  // the part of the hierarchy that is mounted
    fs::path point;
};

// One line: "id parent major:minor root point options [optional ...] - type source super_options".
std::optional<mount> find_mount(const fs::path & root, bool v1) {
    std::ifstream stream(root / "proc/self/mountinfo");
    for (std::string line; std::getline(stream, line);) {
        const std::size_t separator = line.find(" - ");
        if (separator == std::string::npos) {
            continue;
        }
        std::istringstream head(line.substr(0, separator));
        std::istringstream tail(line.substr(separator + 3));
        std::string id, parent, device, mounted_root, point, type, source, options;
        head >> id >> parent >> device >> mounted_root >> point;
        tail >> type >> source >> options;
        if (v1 ? type == "cgroup" && has_item(options, "memory") : type == "cgroup2") {
            return mount{mounted_root, root / fs::path(point).relative_path()};
        }
    }
    return std::nullopt;
}

// The cgroup path of this process in the hierarchy. One line: "id:controllers:path".
std::optional<std::string> find_path(const fs::path & root, bool v1) {
    std::ifstream stream(root / "proc/self/cgroup");
    for (std::string line; std::getline(stream, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (v1 ? has_item(controllers, "memory") : line.compare(0, first, "0") == 0 && controllers.empty()) {
            return line.substr(second + 1);
        }
    }
    return std::nullopt;
}

// The directories from the process's own cgroup up to the mount point. Under a bind mount the path in /proc starts
// with the mounted part; without a match (a foreign namespace) the mount point itself is the process's cgroup.
std::vector<fs::path> find_levels(const mount & mounted, std::string path) {
    const std::size_t prefix = mounted.root.size();
    if (mounted.root != "/" && path.compare(0, prefix, mounted.root) == 0 &&
        (path.size() == prefix || path[prefix] == '/')) {
        path.erase(0, prefix);
    }
    const fs::path relative = fs::path(path).relative_path();
    std::error_code error;
    fs::path directory = mounted.point / relative;
    const bool escapes = std::find(relative.begin(), relative.end(), "..") != relative.end();
    if (escapes || !fs::is_directory(directory, error)) {
        return {mounted.point};
    }
    if (!directory.has_filename()) {
        directory = directory.parent_path();
    }
    std::vector<fs::path> levels{directory};
    while (directory != mounted.point && directory.has_relative_path()) {
        directory = directory.parent_path();
        levels.push_back(directory);
    }
    return levels;
}

}  // namespace

cgroup cgroup::of_this_process(const fs::path & root) {
    cgroup result;
    // On a hybrid host a version 2 tree exists without a memory controller: version 1 comes first.
    for (const bool v1 : {true, false}) {
        const auto mounted = find_mount(root, v1);
        const auto path = find_path(root, v1);
        if (mounted && path) {
            result.version_ = v1 ? version::v1 : version::v2;
            result.levels_ = find_levels(*mounted, *path);
            break;
        }
    }
    return result;
}

std::optional<std::uint64_t> cgroup::effective_limit_bytes() const {
    // The kernel writes "no limit" as the largest whole number of pages, which depends on the page size.
    constexpr std::uint64_t unlimited_from = std::uint64_t{1} << 60;
    std::optional<std::uint64_t> smallest;
    const auto consider = [&](std::optional<std::uint64_t> limit) {
        if (limit && *limit > 0 && *limit < unlimited_from) {
            smallest = smallest ? std::min(*smallest, *limit) : *limit;
        }
    };
    for (const fs::path & level : levels_) {
        if (version_ == version::v1) {
            consider(read_number(level / "memory.limit_in_bytes"));
            consider(value_of(read_key_values(level / "memory.stat"), "hierarchical_memory_limit"));
        } else {
            consider(read_number(level / "memory.max"));
            consider(read_number(level / "memory.high"));
        }
    }
    return smallest;
}

std::optional<cgroup_usage> cgroup::usage() const {
    if (levels_.empty()) {
        return std::nullopt;
    }
    const fs::path & own = levels_.front();
    const key_values stat = read_key_values(own / "memory.stat");
    if (stat.empty()) {
        return std::nullopt;
    }
    const bool v1 = version_ == version::v1;
    const std::string prefix = v1 ? "total_" : "";
    const auto figure = [&](const char * key) { return value_of(stat, prefix + key); };

    cgroup_usage usage;
    usage.anon_bytes = figure(v1 ? "rss" : "anon");
    usage.shmem_bytes = figure("shmem");
    const std::uint64_t cache_bytes = figure(v1 ? "cache" : "file");
    usage.file_bytes = cache_bytes - std::min(cache_bytes, usage.shmem_bytes);

    // Locked file pages are on the unevictable list together with locked anon and shmem ones. The three lists hold
    // every page of anon, shmem and locked files once; they lag a little behind the counters, hence the maximum.
    const std::uint64_t listed_bytes = figure("active_anon") + figure("inactive_anon") + figure("unevictable");
    // Version 1 does not say how much of the kernel's memory is reclaimable: all of it counts.
    std::uint64_t kernel_bytes = 0;
    if (v1) {
        kernel_bytes = read_number(own / "memory.kmem.usage_in_bytes").value_or(0);
    } else if (stat.count("kernel") > 0) {
        kernel_bytes = figure("kernel") - std::min(figure("kernel"), figure("slab_reclaimable")) + figure("sock");
    } else {  // before Linux 5.18
        kernel_bytes = figure("slab_unreclaimable") + figure("kernel_stack") + figure("pagetables") + figure("percpu") +
                       figure("sock");
    }
    usage.unreclaimable_bytes = std::max(usage.anon_bytes + usage.shmem_bytes, listed_bytes) + kernel_bytes;
    return usage;
}

std::optional<std::uint64_t> cgroup::oom_kills() const {
    if (levels_.empty()) {
        return std::nullopt;
    }
    const key_values events =
        read_key_values(levels_.front() / (version_ == version::v1 ? "memory.oom_control" : "memory.events"));
    const auto found = events.find("oom_kill");
    return found == events.end() ? std::nullopt : std::optional<std::uint64_t>(found->second);
}

}  // namespace llamapool
