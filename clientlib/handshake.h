/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handshake.h: from a new connection to a session that takes jobs: Hello, the queue, the regions
 * and models that the last session had.  What the daemon says is looked at here.  Guarded by the
 * handle's lock.
 */
#ifndef WHARF_CLIENT_HANDSHAKE_H
#define WHARF_CLIENT_HANDSHAKE_H

#include "proto/control.h"

struct wharf;
struct wharf_client_model;
struct wharf_client_region;

/* wharf_client_handshake_begin: sends Hello.  The link is DOWN and has a socket. */
void wharf_client_handshake_begin(struct wharf *wharf);

/*
 * wharf_client_handshake_take: handles the reply to the last request.  Its descriptors are in the
 * link's receiver; the caller closes those that are still there afterwards.
 */
void wharf_client_handshake_take(struct wharf *wharf, const Wharf__Reply *reply);

/* wharf_client_send_model: a model's request.  As wharf_client_link_send; -EOPNOTSUPP: the daemon
 * is too old for models. */
int wharf_client_send_model(struct wharf *wharf, const struct wharf_client_model *model);

/* wharf_client_send_register: asks for a region.  Returns as wharf_client_link_send does. */
int wharf_client_send_register(struct wharf *wharf, const struct wharf_client_region *region);

#endif
