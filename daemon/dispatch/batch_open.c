/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_open.c: copies and checks the chunk table of a batch.
 *
 * The table is copied without the core lock, since the client's memory can block, and checked under
 * it, a few entries at a time.  Each region that the table names is pinned once for the whole
 * batch.
 */
#include "daemon/dispatch/batch_open.h"

#include "daemon/core/batch_close.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"

#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/touch.h"
#include "daemon/core/core.h"
#include "daemon/dispatch/admit.h"
#include "daemon/dispatch/chain_parts.h"
#include "proto/ring_ops.h"

/* Entries that are checked under one hold of the core lock, at about 50 ns each. */
#define ENTRIES_AT_ONCE 128

static void refuse(struct wharf_piece *piece, uint32_t result, uint32_t reason, uint32_t index)
{
    piece->outcome = (struct wharf_outcome){.result = result, .reason = reason};
    piece->bad_chunk = index;
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t memory_nbytes(uint32_t n_chunks, uint32_t n_region_words)
{
    return sizeof(struct wharf_batch) + n_chunks * sizeof(struct wharf_batch_entry) +
           n_region_words * sizeof(uint64_t);
}

static int charge(struct wharf_core *core, struct wharf_session *session, uint64_t nbytes)
{
    struct wharf_use use = {.memory_nbytes = nbytes};

    return wharf_core_charge(core, session->tenant, &use, NULL);
}

static void give_back(struct wharf_session *session, uint64_t nbytes)
{
    struct wharf_use use = {.memory_nbytes = nbytes};

    wharf_tenant_give_back(session->tenant, &use);
}

static struct wharf_batch *batch_new(struct wharf_core *core, struct wharf_piece *piece)
{
    struct wharf_session *session = piece->job->session;
    uint32_t n_chunks = wharf_job_n_chunks(piece->job);
    uint32_t n_words = (session->n_regions + 63) / 64;
    uint64_t nbytes = memory_nbytes(n_chunks, n_words);

    if (charge(core, session, nbytes) < 0) {
        refuse(piece, WHARF_QUOTA, WHARF_REASON_NONE, 0);
        return NULL;
    }
    struct wharf_batch *batch = calloc(1, nbytes);
    if (!batch) {
        wharf_core_enter(core);
        give_back(session, nbytes);
        wharf_core_leave(core);
        refuse(piece, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
        return NULL;
    }
    batch->n_chunks = batch->first_bad = n_chunks;
    batch->memory_nbytes = nbytes;
    batch->regions = (uint64_t *)(void *)&batch->entries[n_chunks];
    batch->n_region_words = n_words;
    return batch;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void use_region(struct wharf_batch *batch, struct wharf_session *session,
                       struct wharf_region *region)
{
    uint32_t index = (uint32_t)(region - session->regions);
    uint64_t bit = (uint64_t)1 << index % 64;

    if (batch->regions[index / 64] & bit)
        return;
    batch->regions[index / 64] |= bit;
    region->n_users++;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Checks n copied entries, from `first` on, and enters them.  Under the core lock.  Returns whether
 * all are good. */
static bool take_entries(struct wharf_batch *batch, struct wharf_piece *piece,
                         const struct wharf_chunk *chunks, uint32_t first, uint32_t n)
{
    struct wharf_session *session = piece->job->session;

    for (uint32_t i = 0; i < n; i++) {
        struct wharf_batch_entry *entry = &batch->entries[first + i];
        entry->chunk = chunks[i];
        uint32_t reason =
            wharf_chunk_check(session, &entry->chunk, wharf_job_compresses(piece->job),
                              &entry->source, &entry->destination);
        if (reason) {
            refuse(piece, WHARF_BAD_REQUEST, reason, first + i);
            return false;
        }
        batch->total_nbytes += (uint64_t)entry->chunk.src_nbytes + entry->chunk.dst_nbytes;
        batch->max_chunk_nbytes = larger(batch->max_chunk_nbytes, entry->chunk.src_nbytes);
        batch->max_chunk_nbytes = larger(batch->max_chunk_nbytes, entry->chunk.dst_nbytes);
        batch->has_device |= wharf_regions_need_gpu(entry->source, entry->destination);
        batch->has_file_source |= entry->source->is_file;
        batch->has_file_output |= entry->destination->is_file;
        /* One engine runs all chunks of a slice, and only the CPU writes or compresses files. */
        if (batch->has_device && (batch->has_file_output ||
                                  (batch->has_file_source && wharf_job_compresses(piece->job)))) {
            refuse(piece, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION, first + i);
            return false;
        }
        use_region(batch, session, entry->source);
        use_region(batch, session, entry->destination);
    }
    return true;
}

/* Of a chain: finds its parts, and keeps the regions that tell of them. */
static bool take_parts(struct wharf_core *core, struct wharf_batch *batch,
                       struct wharf_piece *piece, const uint8_t *table,
                       struct wharf_chain_parts *ret_parts)
{
    struct wharf_session *session = piece->job->session;
    struct wharf_region *regions[WHARF_CHAIN_N_TABLES];

    if (!wharf_touch_copy(&ret_parts->chain, table, sizeof(ret_parts->chain))) {
        refuse(piece, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
        return false;
    }
    wharf_core_enter(core);
    uint32_t reason = wharf_chain_find(session, ret_parts, regions);
    for (unsigned i = 0; !reason && i < WHARF_CHAIN_N_TABLES; i++)
        if (regions[i])
            use_region(batch, session, regions[i]);
    wharf_core_leave(core);
    if (reason)
        refuse(piece, WHARF_BAD_REQUEST, reason, 0);
    return !reason;
}

/* Replaces sources that are parts by the memory where these are. */
static bool join_parts(struct wharf_chain_parts *parts, struct wharf_piece *piece,
                       struct wharf_chunk *chunks, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!wharf_chain_join(parts, &chunks[i], &piece->outcome)) {
            piece->bad_chunk = first + i;
            return false;
        }
    return true;
}

static bool take_table(struct wharf_core *core, struct wharf_batch *batch,
                       struct wharf_piece *piece)
{
    const struct wharf_job *job = piece->job;
    const uint8_t *table =
        (const uint8_t *)job->source->segment.address + job->submission.src_offset;
    struct wharf_chunk chunks[ENTRIES_AT_ONCE];
    struct wharf_chain_parts parts;

    if (job->is_chain && !take_parts(core, batch, piece, table, &parts))
        return false;
    table += wharf_chain_nbytes(job->is_chain);

    for (uint32_t first = 0; first < batch->n_chunks; first += ENTRIES_AT_ONCE) {
        uint32_t left = batch->n_chunks - first;
        uint32_t n = left < ENTRIES_AT_ONCE ? left : ENTRIES_AT_ONCE;
        if (!wharf_touch_copy(chunks, table + first * sizeof(chunks[0]), n * sizeof(chunks[0]))) {
            refuse(piece, WHARF_NO_MEMORY, WHARF_REASON_NONE, first);
            return false;
        }
        if (job->is_chain && !join_parts(&parts, piece, chunks, first, n))
            return false;
        wharf_core_enter(core);
        bool good = take_entries(batch, piece, chunks, first, n);
        wharf_core_leave(core);
        if (!good)
            return false;
    }
    return true;
}

void wharf_batch_open(struct wharf_core *core, struct wharf_piece *piece)
{
    piece->begun_ns = wharf_now_ns();
    struct wharf_batch *batch = batch_new(core, piece);
    if (batch && !take_table(core, batch, piece)) {
        wharf_core_enter(core);
        wharf_batch_close(batch, piece->job->session);
        wharf_core_leave(core);
        batch = NULL;
    }
    piece->batch = batch;
    piece->ended_ns = wharf_now_ns();
}
