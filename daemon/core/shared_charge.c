/* SPDX-License-Identifier: Apache-2.0 */
/* shared_charge.c: counts who has what is charged. */
#include "daemon/core/shared_charge.h"

#include <stdlib.h>

#include "daemon/core/tenant.h"

int wharf_shared_charge_begin(struct wharf_shared_charge *charge, struct wharf_tenant *tenant,
                              const struct wharf_use *use)
{
    int r = wharf_tenant_charge(tenant, use, NULL);

    if (r < 0)
        return r;
    wharf_tenant_ref(tenant);
    *charge = (struct wharf_shared_charge){.tenant = tenant, .use = *use, .n_holders = 1};
    return 0;
}

struct wharf_shared_charge *wharf_shared_charge_hold(struct wharf_shared_charge *charge)
{
    charge->n_holders++;
    return charge;
}

void wharf_shared_charge_release(struct wharf_shared_charge *charge)
{
    if (!charge || --charge->n_holders > 0)
        return;
    wharf_tenant_give_back(charge->tenant, &charge->use);
    wharf_tenant_unref(charge->tenant);
    free(charge);
}
