/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.h: the chunks of a piece, for engines: where each chunk lies, and its outcome.
 *
 * These functions need no lock: while an engine has a piece, no other thread changes what they
 * read.
 */
#ifndef WHARF_DAEMON_CORE_PIECE_H
#define WHARF_DAEMON_CORE_PIECE_H

#include "daemon/core/file_io.h"
#include "daemon/core/job.h"
#include "encoders/decode_job.h"

/* One chunk.  Its ranges and regions were copied and checked when the job was taken. */
struct wharf_piece_chunk {
    const struct wharf_region *source;
    const struct wharf_region *destination;
    uint64_t src_offset;
    uint64_t dst_offset;
    bool is_more;                /* of a batch, and not its first one */
    struct wharf_decode_job job; /* the engine sets `in` and `out` */
};

/* The members in which the chunks of a piece differ. */
struct wharf_piece_span {
    const struct wharf_region *source;
    const struct wharf_region *destination;
    uint64_t src_offset, dst_offset;
    uint64_t in_nbytes, out_avail;
    uint32_t checksum;
};

/* The span of chunk number `at`, below n_chunks.  It is inlined because it runs for millions of
 * chunks a second, and separate members are cheaper than a struct in memory. */
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

/* The addresses of its source and destination in the daemon. */
const uint8_t *wharf_piece_chunk_source(const struct wharf_piece_chunk *chunk);
uint8_t *wharf_piece_chunk_destination(const struct wharf_piece_chunk *chunk);

/*
 * Records the outcome of a chunk; called in the order of the chunks.  Counts it, stores the
 * client's result, and updates the piece's outcome.  engine: enum wharf_engine; AUTO if no engine
 * ran it.
 */
void wharf_piece_take_outcome(struct wharf_piece *piece, uint32_t at, uint32_t engine,
                              const struct wharf_outcome *outcome);

/* The result by which an engine reports a chunk whose file is lost. */
#define WHARF_PIECE_LOST UINT32_MAX

/* The outcome of a chunk whose operation on a file failed, or read too little.  stopped: of its
 * job. */
struct wharf_outcome wharf_piece_file_outcome(const struct wharf_file_end *end, bool is_write,
                                              uint32_t stopped);

#endif
