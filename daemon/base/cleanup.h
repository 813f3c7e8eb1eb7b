/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup.h: automatic cleanup at the end of a scope, and the error convention.
 *
 *     WHARF_CLEANUP_FD int fd = memfd_create(...);
 *     if (fd < 0)
 *         return -errno;
 *     ...                                  any return closes fd
 *     *ret_fd = wharf_steal_fd(&fd);       but not after this
 *     return 0;
 *
 * System results are int: 0, a positive count, or -errno.  Results of data are enum wharf_result;
 * no function returns both.  A function that fails does not write its ret_ outputs.  Functions
 * named _free and _deinit take NULL and half-built objects.
 */
#ifndef WHARF_DAEMON_BASE_CLEANUP_H
#define WHARF_DAEMON_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void wharf_cleanup_fd(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
}

static inline void wharf_cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

#define WHARF_CLEANUP(function) __attribute__((cleanup(function)))
#define WHARF_CLEANUP_FD WHARF_CLEANUP(wharf_cleanup_fd)
#define WHARF_CLEANUP_FREE WHARF_CLEANUP(wharf_cleanup_free)

/* Moves a descriptor out of its variable, so that the scope's end does not close it. */
static inline int wharf_steal_fd(int *fd)
{
    int stolen = *fd;

    *fd = -1;
    return stolen;
}

/* The same for a pointer; the result has the pointer's type. */
#define WHARF_STEAL(pointer)                                                                       \
    ({                                                                                             \
        __typeof__(pointer) stolen_ = (pointer);                                                   \
        (pointer) = NULL;                                                                          \
        stolen_;                                                                                   \
    })

/* Closes a descriptor; -1 is allowed.  Returns -1, for the variable. */
static inline int wharf_close_fd(int fd)
{
    wharf_cleanup_fd(&fd);
    return -1;
}

#endif
