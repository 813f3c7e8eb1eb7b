/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.h: moves jobs into the daemon's ring and takes completions.  Guarded by the handle's lock;
 * nothing here sleeps.
 */
#ifndef WHARF_CLIENT_PUMP_H
#define WHARF_CLIENT_PUMP_H

struct wharf;

/*
 * wharf_client_pump: takes the completions that are there, connects if there is no daemon, and
 * submits queued jobs, as far as that works without sleeping.  Does nothing on an embedded handle.
 */
void wharf_client_pump(struct wharf *wharf);

#endif
