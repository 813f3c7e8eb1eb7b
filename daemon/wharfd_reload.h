/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharfd_reload.h: reads the configuration again, in a thread, because looking up users can take as
 * long as a directory service likes.
 */
#ifndef WHARF_DAEMON_WHARFD_RELOAD_H
#define WHARF_DAEMON_WHARFD_RELOAD_H

#include <pthread.h>
#include <stdbool.h>

#include "daemon/base/loop.h"
#include "daemon/wharfd_options.h"

struct wharf_reloader;

/* Called on the loop thread.  The callee may take members from `next`. */
typedef void wharf_reloader_fn(struct wharf_reloader *reloader, struct wharf_config *next,
                               const struct wharf_config_report *report);

struct wharf_reloader {
    struct wharf_loop *loop;
    const struct wharf_options_line *options;
    wharf_reloader_fn *on_loaded;
    struct wharf_source source; /* an eventfd: the thread has ended */
    pthread_t thread;
    bool is_busy;
    bool is_wanted_again; /* the file may have changed after the thread read it */
    /* For the thread while it runs. */
    struct wharf_config next;
    struct wharf_config_report report;
};

/* 0 or -errno. */
int wharf_reloader_init(struct wharf_reloader *reloader, struct wharf_loop *loop,
                        const struct wharf_options_line *options, wharf_reloader_fn *on_loaded);

/* Does not wait for a running thread, which ends with the process. */
void wharf_reloader_deinit(struct wharf_reloader *reloader);

/* Starts reading, or reads again after the present reading.  0 or -errno. */
int wharf_reloader_begin(struct wharf_reloader *reloader);

static inline bool wharf_reloader_is_busy(const struct wharf_reloader *reloader)
{
    return reloader->is_busy;
}

#endif
