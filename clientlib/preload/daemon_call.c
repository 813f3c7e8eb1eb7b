/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_call.c: large streams through wharfd, if WHARF_PRELOAD_DAEMON is 1.
 *
 * It is not the default, for a connection is a descriptor and a system call that the program does
 * not expect: one that closes all descriptors, or forbids itself to make sockets, could fail.
 *
 * libwharf is loaded then, from where this library is or the folder above: linked in it would make
 * each process larger.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "clientlib/preload/preload.h"
#include "clientlib/wharf.h"

enum {
    MIN_OUT_NBYTES = 1 << 20,
    /* Less cannot become so much, but for runs of equal bytes. */
    MIN_IN_NBYTES = 4 << 10,
    PATIENCE_MS = 1000,
};

static bool is_wanted;

__attribute__((constructor)) static void begin(void)
{
    const char *value = getauxval(AT_SECURE) ? NULL : getenv("WHARF_PRELOAD_DAEMON");

    is_wanted = value && strcmp(value, "1") == 0;
}

enum { UNTRIED, OPENING, OPEN, FAILED };
static atomic_int state;
static struct wharf *handle;
static int (*decompress)(struct wharf *wharf, const struct wharf_job *job,
                         struct wharf_outcome *ret_outcome);

static void *load(void)
{
    static const char *const places[] = {"", "../"};
    char path[PATH_MAX + 32];
    void *library = NULL;
    Dl_info info;

    if (!dladdr(&state, &info) || !strchr(info.dli_fname, '/'))
        return NULL;
    for (int i = 0; i < 2 && !library; i++) {
        const int nbytes = (int)(strrchr(info.dli_fname, '/') + 1 - info.dli_fname);
        snprintf(path, sizeof(path), "%.*s%slibwharf.so.0", nbytes, info.dli_fname, places[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static bool open_handle(void)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    int (*open)(const struct wharf_options *, struct wharf **);
    void *library = load(), *found[2] = {NULL, NULL};

    if (library) {
        found[0] = dlsym(library, "wharf_open");
        found[1] = dlsym(library, "wharf_decompress");
    }
    if (!found[0] || !found[1])
        return false;
    memcpy(&open, &found[0], sizeof(open));
    memcpy(&decompress, &found[1], sizeof(decompress));
    options.patience_ms = PATIENCE_MS;
    return open(&options, &handle) == 0;
}

/* False: there is no handle, or another thread is opening it.  It is never closed: threads may be
 * in a call when the program ends. */
static bool has_handle(void)
{
    int seen = atomic_load_explicit(&state, memory_order_acquire);

    if (seen == UNTRIED &&
        atomic_compare_exchange_strong_explicit(&state, &seen, OPENING, memory_order_relaxed,
                                                memory_order_relaxed)) {
        seen = open_handle() ? OPEN : FAILED;
        /* Publishes `handle` and `decompress` to the load above. */
        atomic_store_explicit(&state, seen, memory_order_release);
    }
    return seen == OPEN;
}

bool wharf_preload_ask_daemon(const struct wharf_preload_whole *whole,
                              struct wharf_outcome *ret_outcome)
{
    struct wharf_job job = WHARF_JOB_INIT;

    if (!is_wanted || whole->out_avail < MIN_OUT_NBYTES || whole->in_nbytes < MIN_IN_NBYTES ||
        !has_handle())
        return false;
    job.codec = whole->codec;
    job.in = whole->in;
    job.in_nbytes = whole->in_nbytes;
    job.out = whole->out;
    job.out_avail = whole->out_avail;
    return decompress(handle, &job, ret_outcome) == 0;
}
