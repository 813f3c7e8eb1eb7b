/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dispatch/chain_parts.h"

#include "daemon/base/touch.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/admit.h"

/* Where a table begins. */
static const uint8_t *table_at(const struct wharf_region *region, uint64_t offset)
{
    return (const uint8_t *)region->segment.address + offset;
}

static bool is_reserved_zero(const struct wharf_chain *chain)
{
    bool has_order = chain->n_order != 0;

    return !chain->reserved_0 && !chain->reserved_1 && !chain->reserved_2 && !chain->reserved_3 &&
           (has_order || (chain->order_offset == 0 && chain->order_region == 0));
}

uint32_t wharf_chain_find(struct wharf_session *session, struct wharf_chain_parts *parts,
                          struct wharf_region *ret_regions[WHARF_CHAIN_N_TABLES])
{
    const struct wharf_chain *chain = &parts->chain;
    const uint64_t most = session->max_batch_chunks;
    uint32_t reason = WHARF_REASON_NONE;

    ret_regions[2] = NULL;
    if (!is_reserved_zero(chain))
        return WHARF_REASON_REQUEST_RESERVED;
    if (chain->n_parts == 0 || chain->n_parts > most || chain->n_order > most)
        return WHARF_REASON_REQUEST_BATCH;
    reason = wharf_table_check(session, chain->parts_region, chain->parts_offset,
                               chain->n_parts * sizeof(struct wharf_chunk), &ret_regions[0]);
    if (!reason)
        reason =
            wharf_table_check(session, chain->results_region, chain->results_offset,
                              chain->n_parts * sizeof(struct wharf_chunk_result), &ret_regions[1]);
    if (!reason && chain->n_order)
        reason = wharf_table_check(session, chain->order_region, chain->order_offset,
                                   chain->n_order * sizeof(uint32_t), &ret_regions[2]);
    if (reason)
        return reason;
    parts->parts = table_at(ret_regions[0], chain->parts_offset);
    parts->results = table_at(ret_regions[1], chain->results_offset);
    parts->order = ret_regions[2] ? table_at(ret_regions[2], chain->order_offset) : NULL;
    parts->n_left = most;
    return WHARF_REASON_NONE;
}

/* What is known of one part. */
struct part {
    struct wharf_chunk chunk;
    struct wharf_chunk_result result;
};

/* False: the memory is not there.  A number that no part has leaves *ret_is_known unset. */
static bool read_part(const struct wharf_chain_parts *parts, uint64_t at, struct part *ret,
                      bool *ret_is_known)
{
    uint32_t number = (uint32_t)at;

    if (parts->order &&
        !wharf_touch_copy(&number, parts->order + at * sizeof(number), sizeof(number)))
        return false;
    *ret_is_known = number < parts->chain.n_parts;
    return !*ret_is_known ||
           (wharf_touch_copy(&ret->chunk, parts->parts + number * sizeof(ret->chunk),
                             sizeof(ret->chunk)) &&
            wharf_touch_copy(&ret->result, parts->results + number * sizeof(ret->result),
                             sizeof(ret->result)));
}

/* Joins the part number k of `n` to the source.  Returns NONE, or why it cannot be. */
static uint32_t add_part(struct wharf_chunk *source, uint64_t *nbytes, const struct part *part,
                         uint32_t k, uint32_t n)
{
    const struct wharf_chunk *place = &part->chunk;

    if (k == 0) {
        source->src_region = place->dst_region;
        source->src_offset = place->dst_offset;
    }
    /* Parts before this one are as long as their places. */
    if (place->dst_region != source->src_region ||
        place->dst_offset != source->src_offset + *nbytes)
        return WHARF_REASON_CHAIN_PLACE;
    if (part->result.result != WHARF_OK)
        return WHARF_REASON_CHAIN_PART;
    if (part->result.out_nbytes > place->dst_nbytes)
        return WHARF_REASON_CHAIN_PLACE;
    *nbytes += part->result.out_nbytes;
    return part->result.out_nbytes < place->dst_nbytes && k + 1 < n ? WHARF_REASON_CHAIN_GAP
                                                                    : WHARF_REASON_NONE;
}

static bool fail(struct wharf_outcome *ret_outcome, uint32_t result, uint32_t reason, uint32_t k)
{
    *ret_outcome = (struct wharf_outcome){.result = result, .reason = reason, .bit_offset = k};
    return false;
}

static bool fail_part(struct wharf_outcome *ret_outcome, const struct part *part, uint32_t reason,
                      uint32_t k)
{
    uint32_t result = reason == WHARF_REASON_CHAIN_PART  ? part->result.result
                      : reason == WHARF_REASON_CHAIN_GAP ? (uint32_t)WHARF_OUTPUT_SHORT
                                                         : (uint32_t)WHARF_BAD_REQUEST;

    /* The client's memory may hold any number. */
    return fail(ret_outcome, result <= WHARF_FILE_ERROR ? result : (uint32_t)WHARF_CANCELLED,
                reason, k);
}

bool wharf_chain_join(struct wharf_chain_parts *parts, struct wharf_chunk *chunk,
                      struct wharf_outcome *ret_outcome)
{
    const uint64_t n_all = parts->order ? parts->chain.n_order : parts->chain.n_parts;
    const uint64_t first = chunk->src_offset;
    const uint32_t n = chunk->src_nbytes;
    uint64_t nbytes = 0;

    if (chunk->src_region != 0)
        return fail(ret_outcome, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RESERVED, 0);
    if (n == 0 || first > n_all || n > n_all - first || n > parts->n_left)
        return fail(ret_outcome, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_BATCH, 0);
    parts->n_left -= n;
    for (uint32_t k = 0; k < n; k++) {
        struct part part;
        bool is_known;
        if (!read_part(parts, first + k, &part, &is_known))
            return fail(ret_outcome, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
        uint32_t reason =
            is_known ? add_part(chunk, &nbytes, &part, k, n) : (uint32_t)WHARF_REASON_CHAIN_PLACE;
        if (reason)
            return fail_part(ret_outcome, &part, reason, k);
    }
    if (nbytes > UINT32_MAX)
        return fail(ret_outcome, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
    chunk->src_nbytes = (uint32_t)nbytes;
    return true;
}
