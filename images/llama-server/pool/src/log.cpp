// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <iostream>

namespace llamapool {

void log_line(const std::string & text) {
    std::cerr << "llamapool: " + text + "\n";  // one piece, so that lines of two threads do not mix
}

}  // namespace llamapool
