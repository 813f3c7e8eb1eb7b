/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pin_account.h: what GPUs have pinned, of all memory and of each tenant's.
 *
 * gpu_room.h makes room by it.  Under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PIN_ACCOUNT_H
#define WHARF_DAEMON_PLACEMENT_PIN_ACCOUNT_H

#include <stdbool.h>

#include "daemon/core/residency.h"

struct wharf_core;

/* What is counted in the budget from now on, or is not any more: for wharf_gpu_memory_set. */
void wharf_pin_count(struct wharf_core *core, struct wharf_gpu_memory *memory);
void wharf_pin_discount(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* A pooled arena has become its tenant's. */
void wharf_pin_give_to_tenant(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* The client has given it up: it goes by itself, and waits for nothing. */
void wharf_pin_drop(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* It makes room for other memory, or stays. */
void wharf_pin_set_leaving(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           bool is_leaving);

/* Room is kept for it; or what room it was promised is anybody's. */
void wharf_pin_set_promised(struct wharf_core *core, struct wharf_gpu_memory *memory,
                            bool is_promised);

#endif
