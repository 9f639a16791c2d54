// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace llamapool {

// One line on standard error, with our name before it.
__attribute__((format(printf, 1, 2))) void log_line(const char * format, ...) noexcept;

}  // namespace llamapool
