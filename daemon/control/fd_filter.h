/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_filter.h: the core's side of the process that receives clients' descriptors
 * (fd_filter_protocol.h).  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_FD_FILTER_H
#define WHARF_DAEMON_CONTROL_FD_FILTER_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/control.h"

struct wharf_connection;
struct wharf_fd_filter;
struct wharf_server;

/* A tenant whose descriptors hang this many filters may send no more descriptors while they hang,
 * and for wharf_config_barred_ns after the last hang. */
#define WHARF_FD_FILTER_MOST_HUNG 2

/*
 * wharf_fd_filter_new starts the first process; wharf_fd_filter_wait waits for it.  Without a
 * filter, for example because of a missing library or a limit, the daemon could serve new clients,
 * but none that bring memory from an earlier daemon.  Both return 0 or -errno, having logged the
 * reason.
 */
int wharf_fd_filter_new(struct wharf_server *server, struct wharf_fd_filter **ret_fd_filter);
int wharf_fd_filter_wait(struct wharf_fd_filter *filter);
void wharf_fd_filter_free(struct wharf_fd_filter *filter);

/*
 * The connection's next packet has a descriptor: holds the connection until the packet comes back
 * from the filter; then carries out the request, or refuses it.
 */
void wharf_fd_filter_ask(struct wharf_fd_filter *filter, struct wharf_connection *connection);

/* The connection ends: drops what the filter returns for it. */
void wharf_fd_filter_forget(struct wharf_fd_filter *filter, struct wharf_connection *connection);

#endif
