// SPDX-License-Identifier: Apache-2.0
#include "llamapool/cgroup.h"

#include "captured_tree.h"

#include <gtest/gtest.h>

namespace llamapool {
namespace {

constexpr const char * v1_mount =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:10 - cgroup cgroup rw,memory\n";
constexpr const char * v2_mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

// A process at `path` of a version 2 hierarchy that is mounted whole.
captured_tree & v2(captured_tree & tree, const std::string & path) {
    return tree.file("proc/self/cgroup", "0::" + path + "\n").file("proc/self/mountinfo", v2_mount);
}

captured_tree & v1(captured_tree & tree, const std::string & path) {
    return tree.file("proc/self/cgroup", "8:pids:" + path + "\n4:cpu,memory:" + path + "\n0::/\n")
        .file("proc/self/mountinfo",
              std::string("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n") + v1_mount);
}

std::optional<std::uint64_t> limit_of(const captured_tree & tree) {
    return cgroup::of_this_process(tree.root()).effective_limit_bytes();
}

TEST(cgroup, reads_a_v2_limit_in_a_cgroup_namespace) {
    captured_tree tree;
    v2(tree, "/").file("sys/fs/cgroup/memory.max", "2147483648\n");
    EXPECT_EQ(limit_of(tree), 2147483648U);
}

TEST(cgroup, reads_a_v2_leaf_under_the_hosts_namespace) {
    captured_tree tree;
    v2(tree, "/kubepods.slice/pod1.slice/leaf.scope")
        .file("sys/fs/cgroup/memory.max", "max\n")
        .file("sys/fs/cgroup/kubepods.slice/pod1.slice/leaf.scope/memory.max", "536870912\n");
    EXPECT_EQ(limit_of(tree), 536870912U);
}

TEST(cgroup, takes_the_limit_of_the_pod_when_the_leaf_has_none_and_leaves_siblings_alone) {
    captured_tree tree;
    v2(tree, "/pod.slice/leaf")
        .file("sys/fs/cgroup/pod.slice/memory.max", "12884901888\n")
        .file("sys/fs/cgroup/pod.slice/leaf/memory.max", "max\n")
        .file("sys/fs/cgroup/pod.slice/sibling/memory.max", "3221225472\n");
    EXPECT_EQ(limit_of(tree), 12884901888U);
}

TEST(cgroup, takes_the_smallest_of_nested_limits) {
    captured_tree tree;
    v2(tree, "/a/b")
        .file("sys/fs/cgroup/a/memory.max", "1000000000\n")
        .file("sys/fs/cgroup/a/b/memory.max", "2000000000\n");
    EXPECT_EQ(limit_of(tree), 1000000000U);
}

TEST(cgroup, counts_memory_high_below_the_limit) {
    captured_tree tree;
    v2(tree, "/a")
        .file("sys/fs/cgroup/a/memory.max", "2000000000\n")
        .file("sys/fs/cgroup/a/memory.high", "1500000000\n");
    EXPECT_EQ(limit_of(tree), 1500000000U);
}

TEST(cgroup, reads_a_v1_limit) {
    captured_tree tree;
    v1(tree, "/kubepods/pod1/c1").file("sys/fs/cgroup/memory/kubepods/pod1/c1/memory.limit_in_bytes", "2147483648\n");
    EXPECT_EQ(limit_of(tree), 2147483648U);
}

TEST(cgroup, finds_its_v1_directory_under_a_bind_mount_of_the_hosts_hierarchy) {
    captured_tree tree;
    tree.file("proc/self/cgroup", "4:memory:/kubepods/pod1/c1\n")
        .file("proc/self/mountinfo",
              "700 690 0:32 /kubepods/pod1/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
        .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    EXPECT_EQ(limit_of(tree), 2147483648U);
}

TEST(cgroup, does_not_take_a_directory_for_another_that_starts_with_its_name) {
    captured_tree tree;
    tree.file("proc/self/cgroup", "4:memory:/pod10/c\n")
        .file("proc/self/mountinfo", "700 690 0:32 /pod1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
        .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n")
        .file("sys/fs/cgroup/memory/0/c/memory.limit_in_bytes", "2000\n");
    EXPECT_EQ(limit_of(tree), 1000U);
}

TEST(cgroup, takes_the_mount_point_when_its_path_leads_out_of_the_namespace) {
    captured_tree tree;
    v2(tree, "/../../other").file("sys/fs/cgroup/memory.max", "4096000\n");
    EXPECT_EQ(limit_of(tree), 4096000U);
}

TEST(cgroup, sees_a_hidden_v1_ancestor_through_the_hierarchical_limit) {
    captured_tree tree;
    v1(tree, "/c")
        .file("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n")
        .file("sys/fs/cgroup/memory/c/memory.stat", "cache 1\nhierarchical_memory_limit 4294967296\n");
    EXPECT_EQ(limit_of(tree), 4294967296U);
}

TEST(cgroup, prefers_v1_where_a_v2_tree_has_no_memory_controller) {
    captured_tree tree;
    v1(tree, "/c").file("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1073741824\n");
    EXPECT_EQ(limit_of(tree), 1073741824U);
}

class unlimited : public testing::TestWithParam<const char *> {};

TEST_P(unlimited, is_no_limit_in_v1) {
    captured_tree tree;
    v1(tree, "/c").file("sys/fs/cgroup/memory/c/memory.limit_in_bytes", GetParam());
    EXPECT_EQ(limit_of(tree), std::nullopt);
}

TEST_P(unlimited, is_no_limit_in_v2) {
    captured_tree tree;
    v2(tree, "/c").file("sys/fs/cgroup/c/memory.max", GetParam()).file("sys/fs/cgroup/c/memory.high", GetParam());
    EXPECT_EQ(limit_of(tree), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(spellings, unlimited,
                         testing::Values("max\n", "9223372036854771712\n", "9223372036854710272\n", "0\n", "", "\n",
                                         "18446744073709551615\n", "-1\n", "1e9\n"));

TEST(cgroup, has_no_limit_where_its_files_are_missing) {
    captured_tree tree;
    v2(tree, "/c").file("sys/fs/cgroup/c/cgroup.procs", "1\n");
    EXPECT_EQ(limit_of(tree), std::nullopt);
}

TEST(cgroup, knows_nothing_without_a_hierarchy) {
    const captured_tree tree;
    const cgroup group = cgroup::of_this_process(tree.root());
    EXPECT_EQ(group.effective_limit_bytes(), std::nullopt);
    EXPECT_FALSE(group.usage().has_value());
    EXPECT_EQ(group.oom_kills(), std::nullopt);
}

TEST(cgroup, follows_a_limit_that_is_resized) {
    captured_tree tree;
    v2(tree, "/c").file("sys/fs/cgroup/c/memory.max", "2147483648\n");
    const cgroup group = cgroup::of_this_process(tree.root());
    tree.file("sys/fs/cgroup/c/memory.max", "3221225472\n");
    EXPECT_EQ(group.effective_limit_bytes(), 3221225472U);
}

TEST(cgroup_usage, of_v2_leaves_reclaimable_memory_out_and_counts_nothing_twice) {
    captured_tree tree;
    v2(tree, "/c")
        .file("sys/fs/cgroup/c/memory.stat",
              "anon 1000\nfile 6800\nkernel 90\nkernel_stack 5\npagetables 10\nsock 3\nshmem 800\n"
              "inactive_anon 1700\nactive_anon 0\ninactive_file 5000\nactive_file 900\nunevictable 200\n"
              "slab_reclaimable 60\nslab_unreclaimable 15\n");
    const auto usage = cgroup::of_this_process(tree.root()).usage();
    ASSERT_TRUE(usage.has_value());
    EXPECT_EQ(usage->anon_bytes, 1000U);
    EXPECT_EQ(usage->shmem_bytes, 800U);
    EXPECT_EQ(usage->file_bytes, 6000U);
    // 1,800 of anon and shmem, of which 100 are locked, and 100 of locked file pages; kernel 90 - 60; sockets 3
    EXPECT_EQ(usage->unreclaimable_bytes, 1933U);
}

TEST(cgroup_usage, of_v2_before_linux_5_18_adds_up_the_kernels_parts) {
    captured_tree tree;
    v2(tree, "/c")
        .file("sys/fs/cgroup/c/memory.stat",
              "anon 1000\nfile 0\nkernel_stack 5\npagetables 10\npercpu 2\nsock 3\nshmem 0\n"
              "slab_reclaimable 60\nslab_unreclaimable 15\n");
    EXPECT_EQ(cgroup::of_this_process(tree.root()).usage()->unreclaimable_bytes, 1035U);
}

TEST(cgroup_usage, of_v1_counts_the_hierarchy_and_all_kernel_memory) {
    captured_tree tree;
    v1(tree, "/c")
        .file("sys/fs/cgroup/memory/c/memory.stat",
              "cache 1\nrss 1\ntotal_cache 5000\ntotal_rss 3000\ntotal_shmem 500\ntotal_active_anon 100\n"
              "total_inactive_anon 3400\ntotal_unevictable 0\n")
        .file("sys/fs/cgroup/memory/c/memory.kmem.usage_in_bytes", "70\n");
    const auto usage = cgroup::of_this_process(tree.root()).usage();
    ASSERT_TRUE(usage.has_value());
    EXPECT_EQ(usage->anon_bytes, 3000U);
    EXPECT_EQ(usage->file_bytes, 4500U);
    EXPECT_EQ(usage->unreclaimable_bytes, 3570U);
}

TEST(cgroup_usage, counts_oom_kills_of_v1_and_v2) {
    captured_tree first;
    v1(first, "/c").file("sys/fs/cgroup/memory/c/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    EXPECT_EQ(cgroup::of_this_process(first.root()).oom_kills(), 3U);
    captured_tree second;
    v2(second, "/c").file("sys/fs/cgroup/c/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\n");
    EXPECT_EQ(cgroup::of_this_process(second.root()).oom_kills(), 1U);
}

}  // namespace
}  // namespace llamapool
