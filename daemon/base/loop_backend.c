/* SPDX-License-Identifier: Apache-2.0 */
/* loop_backend.c: tokens of sources, and their calls, for both backends. */
#include "daemon/base/loop_backend.h"

#include "daemon/base/fair_queue.h"

uint64_t wharf_loop_token(const struct wharf_loop *loop, const struct wharf_source *source)
{
    return (uint64_t)loop->slots[source->slot].use << 32 | source->slot;
}

struct wharf_source *wharf_loop_source(struct wharf_loop *loop, uint64_t token)
{
    uint32_t slot = (uint32_t)token;

    if (slot == 0 || slot >= loop->n_slots || loop->slots[slot].use != token >> 32)
        return NULL;
    return loop->slots[slot].source;
}

bool wharf_loop_ready(struct wharf_loop *loop, struct wharf_source *source, uint32_t ready)
{
    if (!source->party) {
        source->call(source, ready);
        return true;
    }
    source->ready = ready;
    wharf_fair_queue_add(&loop->turns, source->party, &source->turn_link);
    return false;
}
