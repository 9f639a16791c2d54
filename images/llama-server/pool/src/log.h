// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace llamapool {

// One line on standard error, with our name before it.
void log_line(const std::string & text);

}  // namespace llamapool
