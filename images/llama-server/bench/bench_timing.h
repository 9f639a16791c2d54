// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stopwatch of the benchmark's builds, upstream's and ours alike. No image contains it.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace bench {

// Runs from its construction. record() adds one line, `WHAT BYTES NANOSECONDS`, to the file that LLAMAPOOL_BENCH_TIMES
// names, by a single append: about a microsecond, against the milliseconds that it measures.
class stopwatch {
  public:
    void record(const char * what, std::size_t bytes) const {
        const auto elapsed = std::chrono::steady_clock::now() - started_;
        const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
        std::array<char, 96> line{};
        const int length = std::snprintf(line.data(), line.size(), "%s %zu %lld\n", what, bytes,
                                         static_cast<long long>(nanoseconds));
        if (write(file(), line.data(), static_cast<std::size_t>(length)) != length) {
            std::abort();  // a run with a gap in its record is worth nothing
        }
    }

  private:
    static int file() {
        static const int opened = [] {
            const char * const path = std::getenv("LLAMAPOOL_BENCH_TIMES");
            return path == nullptr ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        }();
        return opened;
    }

    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace bench
