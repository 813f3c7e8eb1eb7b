/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/batch_close.h"

#include <stdlib.h>

#include "daemon/core/batch.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"

void wharf_batch_close(struct wharf_batch *batch, struct wharf_session *session)
{
    if (!batch)
        return;
    for (uint32_t word = 0; word < batch->n_region_words; word++)
        for (uint64_t bits = batch->regions[word]; bits; bits &= bits - 1)
            session->regions[word * 64 + (uint32_t)__builtin_ctzll(bits)].n_users--;
    wharf_tenant_give_back(session->tenant,
                           &(struct wharf_use){.memory_nbytes = batch->memory_nbytes});
    free(batch);
}
