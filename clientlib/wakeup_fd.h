/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wakeup_fd.h: one descriptor for event loops, the same for the handle's life.
 *
 * It is an epoll descriptor with the control socket of the moment in it, a timer for the next try
 * to connect, and an event counter for what other threads have left to be taken.  Guarded by the
 * handle's lock.
 */
#ifndef WHARF_CLIENT_WAKEUP_FD_H
#define WHARF_CLIENT_WAKEUP_FD_H

#include <stdint.h>

struct wharf_client_wakeup_fd {
    int epoll_fd; /* -1 until a program asks */
    int event_fd;
    int timer_fd;
    int watched_socket; /* the one in epoll_fd, or -1 */
    int is_signalled;   /* event_fd is readable */
    uint64_t timer_ns;  /* the timer's time; 0: not set */
};

/* Starts without descriptors; deinit closes those that exist. */
void wharf_client_wakeup_fd_init(struct wharf_client_wakeup_fd *wakeup);
void wharf_client_wakeup_fd_deinit(struct wharf_client_wakeup_fd *wakeup);

/* Returns 0 or -errno. */
int wharf_client_wakeup_fd_open(struct wharf_client_wakeup_fd *wakeup);

/* Call before a socket is closed: a forked child's copy would keep it in the set. */
void wharf_client_wakeup_fd_forget(struct wharf_client_wakeup_fd *wakeup, int socket);

/* Puts this socket into the set, sets the timer to at_ns (0: never), and makes the descriptor
 * readable or not until the next call. */
void wharf_client_wakeup_fd_watch(struct wharf_client_wakeup_fd *wakeup, int socket);
void wharf_client_wakeup_fd_set_timer(struct wharf_client_wakeup_fd *wakeup, uint64_t at_ns);
void wharf_client_wakeup_fd_signal(struct wharf_client_wakeup_fd *wakeup, int is_wanted);

#endif
