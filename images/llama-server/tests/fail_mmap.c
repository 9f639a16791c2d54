// SPDX-License-Identifier: Apache-2.0
// Preloaded into a server under test: lets anonymous mappings of 4 MiB and more fail with ENOMEM, from the
// FAIL_MMAP_FIRST-th on, FAIL_MMAP_COUNT times. glibc's own allocations do not pass through here, the pool's do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef void * (*mmap_function)(void *, size_t, int, int, int, off_t);

static long number(const char * name) {
    const char * text = getenv(name);
    return text ? atol(text) : 0;
}

void * mmap(void * address, size_t length, int protection, int flags, int file, off_t offset) {
    static atomic_long calls;
    const mmap_function real = (mmap_function) dlsym(RTLD_NEXT, "mmap");
    if ((flags & MAP_ANONYMOUS) && length >= (4u << 20)) {
        const long call = atomic_fetch_add(&calls, 1) + 1;
        const long first = number("FAIL_MMAP_FIRST");
        if (first > 0 && call >= first && call < first + number("FAIL_MMAP_COUNT")) {
            errno = ENOMEM;
            return MAP_FAILED;
        }
    }
    return real(address, length, protection, flags, file, offset);
}
