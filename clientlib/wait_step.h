/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_step.h: one step of waiting.  An embedded handle runs a job; any other polls the rings for a
 * moment and then sleeps, or sleeps until the next daemon is there.
 */
#ifndef WHARF_CLIENT_WAIT_STEP_H
#define WHARF_CLIENT_WAIT_STEP_H

#include <stdint.h>

struct wharf;

/*
 * wharf_client_wait_step: waits until n_wanted more completions may be there, until deadline_ns, or
 * for a little while.  It releases the lock meanwhile.  The caller has seen that jobs are in flight
 * and too few of them have finished; after the step it pumps and checks again.
 */
void wharf_client_wait_step(struct wharf *wharf, uint32_t n_wanted, uint64_t deadline_ns);

#endif
