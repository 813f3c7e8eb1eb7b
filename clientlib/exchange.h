/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h: jobs into the daemon's ring.  Guarded by the handle's lock;
 * nothing here sleeps.
 */
#ifndef WHARF_CLIENT_EXCHANGE_H
#define WHARF_CLIENT_EXCHANGE_H

struct wharf;

/*
 * wharf_client_exchange: all that can be done now: takes the completions that are there, connects
 * if there is no daemon, submits what is queued.  Does nothing on an embedded handle.
 */
void wharf_client_exchange(struct wharf *wharf);

#endif
