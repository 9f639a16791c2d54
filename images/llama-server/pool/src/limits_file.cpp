// SPDX-License-Identifier: Apache-2.0
#include "llamapool/limits_file.h"

#include "log.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace llamapool {
namespace {

using json = nlohmann::json;

std::optional<std::uint64_t> whole_number(const json & object, const char * field) {
    const auto found = object.find(field);
    if (found == object.end() || found->is_null()) {
        return std::nullopt;
    }
    if (!found->is_number_unsigned()) {
        throw invalid_limits(std::string(field) + " is " + found->dump() + ", want a whole number from 0, or null");
    }
    return found->get<std::uint64_t>();
}

std::optional<std::string> read_whole(const std::filesystem::path & path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
        return std::nullopt;
    }
    return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace

limits parse_limits(const std::string & text) {
    const json document = json::parse(text, nullptr, /* allow_exceptions */ false);
    if (!document.is_object()) {
        throw invalid_limits("the content is not a JSON object");
    }
    limits result;
    result.generation = whole_number(document, "generation");
    if (!result.generation) {
        throw invalid_limits("generation is missing, want a whole number from 0");
    }
    result.pool_cap_bytes = whole_number(document, "poolCapBytes");
    result.state_budget_bytes = whole_number(document, "stateBudgetBytes");
    return result;
}

std::optional<limits> limits_file::poll() {
    const std::optional<std::string> content = path_.empty() ? std::nullopt : read_whole(path_);
    if (content == seen_) {
        return std::nullopt;
    }
    seen_ = content;
    if (content == applied_) {
        return std::nullopt;  // back from an invalid one
    }
    if (!content) {
        applied_.reset();
        return limits{};
    }
    try {
        const limits parsed = parse_limits(*content);
        applied_ = content;
        return parsed;
    } catch (const invalid_limits & error) {
        ++errors_;
        log_line(path_.string() + " is invalid, the last good limits stay: " + error.what());
        return std::nullopt;
    }
}

}  // namespace llamapool
