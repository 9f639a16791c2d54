// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <array>
#include <cstdarg>
#include <cstdio>

namespace llamapool {

void log_line(const char * format, ...) noexcept {
    std::array<char, 1024> text{};
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text.data(), text.size(), format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "llamapool: %s\n", text.data());  // one call, so that lines of two threads do not mix
}

}  // namespace llamapool
