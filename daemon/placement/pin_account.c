/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin_account.c: the sums of pinned memory.
 *
 * Invariant, under the core lock: pinned_nbytes is the sum over all entries with is_counted, and
 * each tenant's pinned_nbytes and leaving_nbytes are the sums over its own.
 */
#include "daemon/placement/pin_account.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/tenant.h"

static void charge_tenant(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    struct wharf_tenant *tenant = memory->tenant;

    if (tenant->gpu_pins.pinned_nbytes == 0) {
        wharf_list_append(&core->residency.room.tenants, &tenant->gpu_pins.link);
        core->residency.room.n_tenants++;
    }
    tenant->gpu_pins.pinned_nbytes += memory->nbytes;
    if (!memory->is_model && memory->session)
        wharf_list_append(&tenant->gpu_pins.pins, &memory->pin_link);
}

static void discharge_tenant(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    struct wharf_tenant *tenant = memory->tenant;

    wharf_list_remove(&memory->pin_link);
    tenant->gpu_pins.pinned_nbytes -= memory->nbytes;
    if (tenant->gpu_pins.pinned_nbytes > 0)
        return;
    wharf_list_remove(&tenant->gpu_pins.link);
    core->residency.room.n_tenants--;
}

void wharf_pin_set_leaving(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           bool is_leaving)
{
    if (memory->is_leaving == is_leaving)
        return;
    memory->is_leaving = is_leaving;
    core->residency.room.leaving_nbytes += is_leaving ? memory->nbytes : -memory->nbytes;
    memory->tenant->gpu_pins.leaving_nbytes += is_leaving ? memory->nbytes : -memory->nbytes;
}

void wharf_pin_set_promised(struct wharf_core *core, struct wharf_gpu_memory *memory,
                            bool is_promised)
{
    if (memory->is_promised == is_promised)
        return;
    memory->is_promised = is_promised;
    core->residency.room.promised_nbytes += is_promised ? memory->nbytes : -memory->nbytes;
}

void wharf_pin_count(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    wharf_pin_set_promised(core, memory, false);
    core->residency.pinned_nbytes += memory->nbytes;
    memory->pinned_ns = memory->pin_used_ns = wharf_now_ns();
    if (memory->tenant)
        charge_tenant(core, memory);
}

void wharf_pin_discount(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    core->residency.pinned_nbytes -= memory->nbytes;
    core->residency.dead_nbytes -= memory->session || memory->is_pooled ? 0 : memory->nbytes;
    wharf_pin_set_leaving(core, memory, false);
    if (memory->tenant)
        discharge_tenant(core, memory);
}

void wharf_pin_give_to_tenant(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    memory->pin_used_ns = wharf_now_ns();
    if (memory->is_counted)
        charge_tenant(core, memory);
}

void wharf_pin_drop(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    wharf_list_remove(&memory->pin_link);
    wharf_pin_set_leaving(core, memory, false);
    wharf_pin_set_promised(core, memory, false);
}
