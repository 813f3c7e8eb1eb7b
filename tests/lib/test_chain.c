/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test_chain.h"

/* What is wrong with a part that has to begin at `begin`, or is the first one; or NONE. */
static uint32_t flaw_of(const struct wharf_cuda_chain *chain, size_t part, bool is_first,
                        bool is_last, uintptr_t begin)
{
    if (part >= chain->n_parts || (!is_first && (uintptr_t)chain->parts[part] != begin))
        return WHARF_REASON_CHAIN_PLACE;
    const struct wharf_outcome *outcome = &chain->part_outcomes[part];
    size_t avail = chain->parts_avail[part];
    if (outcome->result != WHARF_OK)
        return WHARF_REASON_CHAIN_PART;
    if (outcome->out_nbytes > avail || (!chain->parts[part] && avail > 0))
        return WHARF_REASON_CHAIN_PLACE;
    return outcome->out_nbytes < avail && !is_last ? WHARF_REASON_CHAIN_GAP : WHARF_REASON_NONE;
}

static uint32_t result_of(const struct wharf_cuda_chain *chain, size_t part, uint32_t reason)
{
    if (reason == WHARF_REASON_CHAIN_PART)
        return chain->part_outcomes[part].result;
    return reason == WHARF_REASON_CHAIN_GAP ? WHARF_OUTPUT_SHORT : WHARF_BAD_REQUEST;
}

bool test_chain_source(const struct wharf_cuda_chain *chain, size_t chunk, const void **ret_in,
                       size_t *ret_nbytes, struct wharf_outcome *ret_outcome)
{
    size_t from = chain->offsets[chunk], to = chain->offsets[chunk + 1];
    uintptr_t end = 0;

    *ret_in = NULL;
    *ret_nbytes = 0;
    *ret_outcome =
        (struct wharf_outcome){.result = WHARF_BAD_REQUEST, .reason = WHARF_REASON_REQUEST_BATCH};
    if (from > to || to > chain->n_parts)
        return false;
    for (size_t at = from; at < to; at++) {
        size_t part = chain->order ? chain->order[at] : at;
        uint32_t reason = flaw_of(chain, part, at == from, at + 1 == to, end);
        if (reason != WHARF_REASON_NONE) {
            *ret_outcome = (struct wharf_outcome){.result = result_of(chain, part, reason),
                                                  .reason = reason,
                                                  .bit_offset = at - from};
            return false;
        }
        *ret_in = at == from ? chain->parts[part] : *ret_in;
        *ret_nbytes += chain->part_outcomes[part].out_nbytes;
        end = (uintptr_t)chain->parts[part] + chain->parts_avail[part];
    }
    return true;
}
