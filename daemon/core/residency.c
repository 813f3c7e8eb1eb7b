/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/residency.h"

#include "daemon/base/list.h"

void wharf_residency_init(struct wharf_residency *residency)
{
    *residency = (struct wharf_residency){.last_memory = 0};
    wharf_list_init(&residency->memories);
    wharf_list_init(&residency->unheld);
    wharf_list_init(&residency->arena_pool.list);
    wharf_list_init(&residency->arena_pool.unwanted);
    wharf_list_init(&residency->room.tenants);
}
