#!/usr/bin/env bash
# Installs what the Makefile's targets need: Debian packages that are absent, and .venv from the locked
# requirements. Idempotent; takes no time once done.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
    python3-venv git ca-certificates patch
    # the pool library, its tests and their linters
    g++ cmake ninja-build ccache pkg-config libgtest-dev libcpp-httplib-dev nlohmann-json3-dev clang-format clang-tidy
    # the allocators that bench-pool preloads
    libjemalloc2 libtcmalloc-minimal4
)
missing=()
for package in "${packages[@]}"; do
    dpkg-query --show --showformat='${Status}\n' "$package" 2>/dev/null | grep -q 'install ok installed' \
        || missing+=("$package")
done
if ((${#missing[@]})); then
    if ((EUID)); then
        echo "setup: missing Debian packages: ${missing[*]}; install them or run as root" >&2
        exit 1
    fi
    echo "setup: installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The stamp holds what .venv was made from: it is made anew when either changes.
wanted=$(cat requirements/dev.txt pyproject.toml | sha256sum)
if [[ ! -x .venv/bin/python || "$(cat .venv/made-from 2>/dev/null)" != "$wanted" ]]; then
    echo "setup: installing the locked Python packages into .venv"
    [[ -x .venv/bin/python ]] || "${PYTHON:-python3}" -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    echo "$wanted" >.venv/made-from
fi
