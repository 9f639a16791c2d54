// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace llamapool {

// Answers GET /metrics on a port of its own, on all addresses, from threads of its own.
class metrics_server {
  public:
    // `page` is called for each scrape, from any of the server's threads.
    // Throws std::runtime_error, naming the port, when it can not be bound. Port 0: any free one.
    metrics_server(std::uint16_t port, std::function<std::string()> page);
    metrics_server(const metrics_server &) = delete;
    metrics_server & operator=(const metrics_server &) = delete;
    metrics_server(metrics_server &&) = delete;
    metrics_server & operator=(metrics_server &&) = delete;
    ~metrics_server();

    std::uint16_t port() const noexcept;

  private:
    struct implementation;
    std::unique_ptr<implementation> implementation_;
};

}  // namespace llamapool
