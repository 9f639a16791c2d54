#!/bin/sh
# Builds and runs the pool library's tests.
#
#     test.sh [plain|asan|tsan|tidy|all]      default: plain
#
# asan is AddressSanitizer with UndefinedBehaviorSanitizer, tsan ThreadSanitizer, tidy clang-format and
# clang-tidy over the sources.
# Build directories are build/pool-* of the repository. Needs the Debian packages cmake ninja-build g++ libgtest-dev
# libcpp-httplib-dev nlohmann-json3-dev pkg-config clang-format clang-tidy.
set -eu

cd -- "$(dirname -- "$0")"
jobs=${JOBS:-2}
build=../../../build

configure() { cmake --preset "$1" >/dev/null; }

run_tests() {
    configure "$1"
    cmake --build "$build/pool-$1" --parallel "$jobs"
    ctest --test-dir "$build/pool-$1" --output-on-failure --parallel "$jobs"
}

run_tidy() {
    clang-format --dry-run --Werror src/*.cpp src/*.h include/llamapool/*.h tests/*.cpp tests/*.h
    configure plain
    find src -name '*.cpp' | sort | xargs -P "$jobs" -n 1 clang-tidy --quiet -p "$build/pool-plain"
    echo "clang-format, clang-tidy: clean"
}

case ${1:-plain} in
    plain | asan | tsan) run_tests "${1:-plain}" ;;
    tidy) run_tidy ;;
    all)
        for preset in plain asan tsan; do
            echo "== $preset"
            run_tests "$preset"
        done
        echo "== tidy"
        run_tidy
        ;;
    *)
        echo "test.sh: '$1' is not one of plain, asan, tsan, tidy, all" >&2
        exit 2
        ;;
esac
