#!/bin/sh
# Puts the pool library into a llama.cpp source tree and applies our patches to it.
#
#     apply.sh LLAMA_CPP_SOURCE
#
# Every patch must fit exactly. On a release where one does not, all that do not are named, each with patch's own words
# on the hunk, and the exit code is 1.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
source=${1:?"usage: apply.sh LLAMA_CPP_SOURCE"}

if [ ! -f "$source/tools/server/server-context.cpp" ]; then
    echo "apply.sh: '$source' is not a llama.cpp source tree: it has no tools/server/server-context.cpp" >&2
    exit 2
fi
if [ -e "$source/llamapool" ]; then
    echo "apply.sh: '$source' has the patches already: '$source/llamapool' exists" >&2
    exit 2
fi

failed=0
for patch in "$here"/patches/[0-9]*.patch; do
    if ! patch --strip=1 --fuzz=0 --no-backup-if-mismatch --forward --directory="$source" <"$patch"; then
        echo "apply.sh: $(basename "$patch") does not fit" >&2
        failed=1
    fi
done
[ "$failed" -eq 0 ] || exit 1

mkdir "$source/llamapool"
cp -R "$here"/pool/CMakeLists.txt "$here"/pool/include "$here"/pool/src "$source/llamapool/"
