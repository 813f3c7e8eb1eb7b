/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharfd_reload.h: the configuration is read again, in a thread of its own: users are looked up,
 * which can take as long as a directory service likes, and clients are served meanwhile.
 */
#ifndef WHARF_DAEMON_WHARFD_RELOAD_H
#define WHARF_DAEMON_WHARFD_RELOAD_H

#include <pthread.h>
#include <stdbool.h>

#include "daemon/base/loop.h"
#include "daemon/wharfd_options.h"

struct wharf_reloader;

/* On the loop thread.  What is taken from `next` is the callee's. */
typedef void wharf_reloader_fn(struct wharf_reloader *reloader, struct wharf_config *next,
                               const struct wharf_config_report *report);

struct wharf_reloader {
    struct wharf_loop *loop;
    const struct wharf_options_line *options;
    wharf_reloader_fn *on_loaded;
    struct wharf_source source; /* an eventfd: the thread has ended */
    pthread_t thread;
    bool is_busy;
    bool is_wanted_again; /* the file may have changed behind the thread */
    /* The thread's while it runs. */
    struct wharf_config next;
    struct wharf_config_report report;
};

/* 0 or -errno. */
int wharf_reloader_init(struct wharf_reloader *reloader, struct wharf_loop *loop,
                        const struct wharf_options_line *options, wharf_reloader_fn *on_loaded);

/* A thread that has not ended is left to the end of the process. */
void wharf_reloader_deinit(struct wharf_reloader *reloader);

/* Reads, or reads again when the present reading is over.  0 or -errno. */
int wharf_reloader_begin(struct wharf_reloader *reloader);

static inline bool wharf_reloader_is_busy(const struct wharf_reloader *reloader)
{
    return reloader->is_busy;
}

#endif
