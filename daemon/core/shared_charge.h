/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_charge.h: a tenant's charge for what several parts of the daemon have.
 *
 * Each of them lets go of it in its own time; the last one returns the charge.  Guarded by the core
 * lock.
 */
#ifndef WHARF_DAEMON_CORE_SHARED_CHARGE_H
#define WHARF_DAEMON_CORE_SHARED_CHARGE_H

#include <stdint.h>

#include "daemon/core/totals.h"

struct wharf_tenant;

struct wharf_shared_charge {
    struct wharf_tenant *tenant; /* pinned; NULL: nothing is charged yet */
    struct wharf_use use;
    uint32_t n_holders;
};

/* Charges the tenant, for one holder.  0 or -EDQUOT. */
int wharf_shared_charge_begin(struct wharf_shared_charge *charge, struct wharf_tenant *tenant,
                              const struct wharf_use *use);

/* One more has it.  Returns the charge. */
struct wharf_shared_charge *wharf_shared_charge_hold(struct wharf_shared_charge *charge);

/* One of them has let go; after the last one the charge, which malloc made, is freed.  NULL is
 * allowed. */
void wharf_shared_charge_release(struct wharf_shared_charge *charge);

#endif
