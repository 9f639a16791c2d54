// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace llamapool {

// Files as a kernel shows them, under a temporary root that is removed with the object.
class captured_tree {
  public:
    captured_tree() {
        std::string path = (std::filesystem::temp_directory_path() / "llamapool-XXXXXX").string();
        root_ = mkdtemp(path.data());
    }
    captured_tree(const captured_tree &) = delete;
    captured_tree & operator=(const captured_tree &) = delete;
    captured_tree(captured_tree &&) = delete;
    captured_tree & operator=(captured_tree &&) = delete;
    ~captured_tree() { std::filesystem::remove_all(root_); }

    captured_tree & file(const std::string & path, const std::string & content) {
        const std::filesystem::path full = root_ / path;
        std::filesystem::create_directories(full.parent_path());
        std::ofstream(full) << content;
        return *this;
    }

    const std::filesystem::path & root() const { return root_; }

  private:
    std::filesystem::path root_;
};

}  // namespace llamapool
