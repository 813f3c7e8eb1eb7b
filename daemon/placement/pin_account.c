/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/placement/pin_account.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/front.h"
#include "daemon/core/tenant.h"

static void charge_tenant(struct wharf_front *front, struct wharf_gpu_memory *memory)
{
    struct wharf_tenant *tenant = memory->tenant;

    if (tenant->gpu_pins.pinned_nbytes == 0) {
        wharf_list_append(&front->residency.room.tenants, &tenant->gpu_pins.link);
        front->residency.room.n_tenants++;
    }
    tenant->gpu_pins.pinned_nbytes += memory->nbytes;
    if (!memory->is_model && memory->session)
        wharf_list_append(&tenant->gpu_pins.pins, &memory->pin_link);
}

static void discharge_tenant(struct wharf_front *front, struct wharf_gpu_memory *memory)
{
    struct wharf_tenant *tenant = memory->tenant;

    wharf_list_remove(&memory->pin_link);
    tenant->gpu_pins.pinned_nbytes -= memory->nbytes;
    if (tenant->gpu_pins.pinned_nbytes > 0)
        return;
    wharf_list_remove(&tenant->gpu_pins.link);
    front->residency.room.n_tenants--;
}

void wharf_pin_set_leaving(struct wharf_front *front, struct wharf_gpu_memory *memory,
                           bool is_leaving)
{
    if (memory->is_leaving == is_leaving)
        return;
    memory->is_leaving = is_leaving;
    front->residency.room.leaving_nbytes += is_leaving ? memory->nbytes : -memory->nbytes;
    memory->tenant->gpu_pins.leaving_nbytes += is_leaving ? memory->nbytes : -memory->nbytes;
}

void wharf_pin_set_promised(struct wharf_front *front, struct wharf_gpu_memory *memory,
                            bool is_promised)
{
    if (memory->is_promised == is_promised)
        return;
    memory->is_promised = is_promised;
    front->residency.room.promised_nbytes += is_promised ? memory->nbytes : -memory->nbytes;
}

void wharf_pin_count(struct wharf_front *front, struct wharf_gpu_memory *memory)
{
    wharf_pin_set_promised(front, memory, false);
    front->residency.pinned_nbytes += memory->nbytes;
    memory->pinned_ns = memory->pin_used_ns = wharf_now_ns();
    if (memory->tenant)
        charge_tenant(front, memory);
}

void wharf_pin_discount(struct wharf_front *front, struct wharf_gpu_memory *memory)
{
    front->residency.pinned_nbytes -= memory->nbytes;
    front->residency.dead_nbytes -= memory->session || memory->is_spare ? 0 : memory->nbytes;
    wharf_pin_set_leaving(front, memory, false);
    if (memory->tenant)
        discharge_tenant(front, memory);
}

void wharf_pin_give_to_tenant(struct wharf_front *front, struct wharf_gpu_memory *memory)
{
    memory->pin_used_ns = wharf_now_ns();
    if (memory->is_counted)
        charge_tenant(front, memory);
}

void wharf_pin_drop(struct wharf_front *front, struct wharf_gpu_memory *memory)
{
    wharf_list_remove(&memory->pin_link);
    wharf_pin_set_leaving(front, memory, false);
    wharf_pin_set_promised(front, memory, false);
}
