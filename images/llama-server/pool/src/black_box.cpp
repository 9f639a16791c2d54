// SPDX-License-Identifier: Apache-2.0
#include "llamapool/black_box.h"

#include "log.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace llamapool {
namespace {

using json = nlohmann::ordered_json;

json or_null(const std::optional<std::uint64_t> & value) {
    return value ? json(*value) : json(nullptr);
}

const char * name_of(server_phase phase) {
    switch (phase) {
        case server_phase::loading: return "loading";
        case server_phase::ready: return "ready";
        case server_phase::sleeping: return "sleeping";
    }
    return "";
}

}  // namespace

black_box::black_box(const std::string & path) {
    if (path.empty()) {
        return;
    }
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) {
        throw std::runtime_error("LLAMAPOOL_TERMINATION_LOG is '" + path +
                                 "', want a file that can be written: " + std::system_category().message(errno));
    }
}

black_box::~black_box() {
    if (file_ >= 0) {
        close(file_);
    }
}

void black_box::write(const accounting & now) {
    if (file_ < 0) {
        return;
    }
    const json record = {{"v", 1},
                         {"at", now.at_seconds},
                         {"phase", name_of(now.phase)},
                         {"limit_bytes", or_null(now.limit_bytes)},
                         {"unreclaimable_bytes", or_null(now.unreclaimable_bytes)},
                         {"base_bytes", or_null(now.base_bytes)},
                         {"state_bytes", now.state_bytes},
                         {"budget_bytes", or_null(now.budget_bytes)},
                         {"pool_held_bytes", now.pool_held_bytes},
                         {"cap_bytes", now.cap_bytes},
                         {"generation", or_null(now.generation)},
                         {"oom_kills", or_null(now.oom_kills)},
                         {"asked_bytes", now.asked_bytes},
                         {"device_oom", now.device_oom}};
    std::string text = record.dump();
    text.resize(length_bytes, ' ');
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        log_line("can not write the termination log: " + std::system_category().message(errno));
        close(file_);
        file_ = -1;  // said once; the server goes on without it
    }
}

}  // namespace llamapool
