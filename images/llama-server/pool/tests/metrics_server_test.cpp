// SPDX-License-Identifier: Apache-2.0
#include "llamapool/metrics_server.h"

#include "llamapool/exposition.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <stdexcept>

namespace llamapool {
namespace {

TEST(metrics_server, answers_a_scrape_with_the_page) {
    const metrics_server server(0, [] { return std::string("llamapool_up 1\n"); });
    httplib::Client client("127.0.0.1", server.port());
    const auto answer = client.Get("/metrics");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "llamapool_up 1\n");
    EXPECT_EQ(answer->get_header_value("Content-Type"), exposition::content_type);
}

TEST(metrics_server, asks_for_a_new_page_at_each_scrape) {
    int scrapes = 0;
    const metrics_server server(0, [&] { return std::to_string(++scrapes); });
    httplib::Client client("127.0.0.1", server.port());
    client.Get("/metrics");
    EXPECT_EQ(client.Get("/metrics")->body, "2");
}

TEST(metrics_server, knows_no_other_path) {
    const metrics_server server(0, [] { return std::string(); });
    EXPECT_EQ(httplib::Client("127.0.0.1", server.port()).Get("/")->status, 404);
}

TEST(metrics_server, names_a_port_that_is_in_use) {
    const metrics_server first(0, [] { return std::string(); });
    try {
        const metrics_server second(first.port(), [] { return std::string(); });
        FAIL() << "two servers on one port";
    } catch (const std::runtime_error & error) {
        EXPECT_NE(std::string(error.what()).find("LLAMAPOOL_METRICS_PORT " + std::to_string(first.port())),
                  std::string::npos);
    }
}

TEST(metrics_server, gives_its_port_back) {
    std::uint16_t port = 0;
    {
        const metrics_server server(0, [] { return std::string(); });
        port = server.port();
    }
    const metrics_server again(port, [] { return std::string("again"); });
    EXPECT_EQ(httplib::Client("127.0.0.1", port).Get("/metrics")->body, "again");
}

}  // namespace
}  // namespace llamapool
