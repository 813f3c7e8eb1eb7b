/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_filter.h: the core's side of the process that receives clients' descriptors
 * (fd_filter_protocol.h). Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_FD_FILTER_H
#define WHARF_DAEMON_CONTROL_FD_FILTER_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/control.h"

struct wharf_connection;
struct wharf_fd_filter;
struct wharf_server;

/* A tenant whose descriptors have hung so many filters gets no more through, as long as these are
 * there and for wharf_config_barred_ns after the last one. */
#define WHARF_FD_FILTER_MOST_HUNG 2

/*
 * wharf_fd_filter_new: starts the first process.  wharf_fd_filter_wait waits until it has started:
 * a daemon whose filter cannot, because a library is not found or a limit is in the way, could
 * serve new clients, but none that come with the memory that an earlier daemon left them.  Both
 * return 0 or -errno, having logged why.
 */
int wharf_fd_filter_new(struct wharf_server *server, struct wharf_fd_filter **ret_fd_filter);
int wharf_fd_filter_wait(struct wharf_fd_filter *filter);
void wharf_fd_filter_free(struct wharf_fd_filter *filter);

/*
 * The connection's next packet is a request with a descriptor: it is held until the packet has come
 * back from the filter, and then the request is carried out; or else it is refused.
 */
void wharf_fd_filter_ask(struct wharf_fd_filter *filter, struct wharf_connection *connection);

/* The connection ends: whatever comes back from the filter for it is dropped. */
void wharf_fd_filter_forget(struct wharf_fd_filter *filter, struct wharf_connection *connection);

#endif
