// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace llamapool {

enum class server_phase : std::uint8_t { loading, ready, sleeping };

// The server's accounting at one moment. Absent values are written as null.
struct accounting {
    std::int64_t at_seconds = 0;  // Unix time
    server_phase phase = server_phase::loading;
    std::optional<std::uint64_t> limit_bytes;
    std::optional<std::uint64_t> unreclaimable_bytes;
    std::optional<std::uint64_t> base_bytes;
    std::uint64_t state_bytes = 0;
    std::optional<std::uint64_t> budget_bytes;
    std::uint64_t pool_held_bytes = 0;
    std::uint64_t cap_bytes = 0;
    std::optional<std::uint64_t> generation;
    std::optional<std::uint64_t> oom_kills;
    std::uint64_t asked_bytes = 0;  // being allocated right now
    bool device_oom = false;
};

// Keeps the latest accounting in the container's termination log, where it survives a SIGKILL and appears in the
// pod's status. One JSON object, padded with blanks to a fixed length and rewritten in place. Thread-safe.
class black_box {
  public:
    static constexpr std::size_t length_bytes = 512;

    // An empty path: nothing is kept. Throws std::runtime_error, naming the variable, when the file can not be opened.
    explicit black_box(const std::string & path);
    black_box(const black_box &) = delete;
    black_box & operator=(const black_box &) = delete;
    black_box(black_box &&) = delete;
    black_box & operator=(black_box &&) = delete;
    ~black_box();

    void write(const accounting & now);

  private:
    std::mutex mutex_;
    int file_ = -1;
};

}  // namespace llamapool
