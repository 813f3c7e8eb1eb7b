/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.h: what a call does that has to wait: it runs a job itself (embedded), or looks at the
 * rings for a moment and then sleeps, or sleeps until the next daemon is there.
 */
#ifndef WHARF_CLIENT_REST_H
#define WHARF_CLIENT_REST_H

#include <stdint.h>

struct wharf;

/*
 * wharf_client_rest: lets time pass, until n_wanted more completions may be there, until
 * deadline_ns, or for a little while.  The lock is let go of meanwhile.  The caller has seen that
 * jobs are in flight and not enough of them finished; afterwards it exchanges and looks again.
 */
void wharf_client_rest(struct wharf *wharf, uint32_t n_wanted, uint64_t deadline_ns);

#endif
