/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin_account.h: the account of pinned memory, in total and for each tenant.
 *
 * gpu_room.h evicts by it.  Under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PIN_ACCOUNT_H
#define WHARF_DAEMON_PLACEMENT_PIN_ACCOUNT_H

#include <stdbool.h>

#include "daemon/core/residency.h"

struct wharf_core;

/* For wharf_gpu_memory_set: memory starts to count in the budget; stops. */
void wharf_pin_count(struct wharf_core *core, struct wharf_gpu_memory *memory);
void wharf_pin_discount(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* A pooled arena gets a session: counts it for its tenant. */
void wharf_pin_give_to_tenant(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* The client has given it up: it is neither a victim nor waiting for room any more. */
void wharf_pin_drop(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* It becomes a victim, or stays after all. */
void wharf_pin_set_leaving(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           bool is_leaving);

/* Room is reserved for it; or the reservation ends. */
void wharf_pin_set_promised(struct wharf_core *core, struct wharf_gpu_memory *memory,
                            bool is_promised);

#endif
