/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_reap.h: frees sessions' memory and returns its charge.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_SERVER_REAP_H
#define WHARF_DAEMON_CONTROL_SERVER_REAP_H

struct wharf_segment;
struct wharf_server;
struct wharf_session;
struct wharf_tenant;
struct wharf_use;

/* Frees an unused session. */
void wharf_server_reap_session(struct wharf_server *server, struct wharf_session *session);
void wharf_server_reap_segment(struct wharf_server *server, const struct wharf_segment *segment,
                               struct wharf_tenant *tenant, const struct wharf_use *use);

/* Returns the charges of freed memory to tenants. */
void wharf_server_take_reaped(struct wharf_server *server);

#endif
