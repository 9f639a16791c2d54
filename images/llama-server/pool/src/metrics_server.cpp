// SPDX-License-Identifier: Apache-2.0
#include "llamapool/metrics_server.h"

#include "llamapool/exposition.h"

#include <httplib.h>
#include <sys/socket.h>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace llamapool {
namespace {

// Binds `port` of all addresses, of both families where the host has IPv6. Returns the port, or -1.
int bind_all_addresses(httplib::Server & server, std::uint16_t port) {
    for (const char * const address : {"::", "0.0.0.0"}) {
        const int bound = port == 0 ? server.bind_to_any_port(address) : server.bind_to_port(address, port) ? port : -1;
        if (bound > 0) {
            return bound;
        }
    }
    return -1;
}

}  // namespace

struct metrics_server::implementation {
    httplib::Server server;
    std::atomic<bool> ended{false};
    std::thread listener;
    std::uint16_t port = 0;
};

metrics_server::metrics_server(std::uint16_t port, std::function<std::string()> page)
    : implementation_(std::make_unique<implementation>()) {
    httplib::Server & server = implementation_->server;
    server.new_task_queue = [] { return new httplib::ThreadPool(4); };
    server.set_keep_alive_timeout(1);  // an idle scraper's connection holds a thread
    server.set_read_timeout(5, 0);
    server.set_socket_options([](socket_t socket) {  // the default also shares the port with whoever has it
        const int yes = 1;
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server.Get("/metrics", [page = std::move(page)](const httplib::Request &, httplib::Response & response) {
        response.set_content(page(), exposition::content_type);
    });
    const int bound = bind_all_addresses(server, port);
    if (bound < 0) {
        throw std::runtime_error("can not listen on LLAMAPOOL_METRICS_PORT " + std::to_string(port) +
                                 ": choose a free port, or 0 for none");
    }
    implementation_->port = static_cast<std::uint16_t>(bound);
    std::atomic<bool> & ended = implementation_->ended;
    implementation_->listener = std::thread([&server, &ended] {
        server.listen_after_bind();
        ended = true;
    });
    while (!server.is_running() && !ended) {  // stop() before this point would be lost
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

metrics_server::~metrics_server() {
    implementation_->server.stop();
    implementation_->listener.join();
}

std::uint16_t metrics_server::port() const noexcept {
    return implementation_->port;
}

}  // namespace llamapool
