/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.h: the chunks of a piece, for engines: what each is, and what became of it.
 *
 * Without the core lock: while an engine has a piece nobody changes what these look at.
 */
#ifndef WHARF_DAEMON_CORE_PIECE_H
#define WHARF_DAEMON_CORE_PIECE_H

#include "daemon/core/job.h"
#include "encoders/decode_job.h"

/* One chunk.  Ranges and regions were checked when the job was taken, on the copies that these
 * are. */
struct wharf_piece_chunk {
    const struct wharf_region *source;
    const struct wharf_region *destination;
    uint64_t src_offset;
    uint64_t dst_offset;
    struct wharf_decode_job job; /* `in` and `out` are left to whoever runs it */
};

/* In what the chunks of a piece differ. */
struct wharf_piece_span {
    const struct wharf_region *source;
    const struct wharf_region *destination;
    uint64_t src_offset, dst_offset;
    uint64_t in_nbytes, out_avail;
    uint32_t checksum;
};

/* Of the chunk of number `at` of the piece's n_chunks.  In the caller, since it is asked for each
 * of millions of chunks a second, and one member after the other is cheaper than all of them by way
 * of memory. */
static inline struct wharf_piece_span wharf_piece_span_at(const struct wharf_piece *piece,
                                                          uint32_t at)
{
    const struct wharf_job *job = piece->job;

    if (piece->kind == WHARF_PIECE_SLICE) {
        const struct wharf_batch_entry *entry = &job->batch->entries[piece->first_chunk + at];
        const struct wharf_chunk *chunk = &entry->chunk;
        return (struct wharf_piece_span){
            entry->source,     entry->destination, chunk->src_offset, chunk->dst_offset,
            chunk->src_nbytes, chunk->dst_nbytes,  chunk->checksum,
        };
    }
    return (struct wharf_piece_span){
        job->source,
        job->destination,
        job->submission.src_offset,
        job->submission.dst_offset,
        job->submission.src_nbytes,
        job->submission.dst_nbytes,
        job->submission.checksum,
    };
}

/* The same chunk, ready to be decoded. */
struct wharf_piece_chunk wharf_piece_chunk_at(const struct wharf_piece *piece, uint32_t at);

/* Where the daemon has its source and its destination. */
const uint8_t *wharf_piece_chunk_source(const struct wharf_piece_chunk *chunk);
uint8_t *wharf_piece_chunk_destination(const struct wharf_piece_chunk *chunk);

/*
 * Takes in what became of a chunk, in the order of the chunks: counts it, stores the client's
 * result of it, and makes the piece's outcome of it.  engine: enum wharf_engine; AUTO if nothing
 * was run.
 */
void wharf_piece_take_outcome(struct wharf_piece *piece, uint32_t at, uint32_t engine,
                              const struct wharf_outcome *outcome);

/* The result, in an outcome between an engine and a piece, of a chunk whose file is lost. */
#define WHARF_PIECE_LOST UINT32_MAX

#endif
