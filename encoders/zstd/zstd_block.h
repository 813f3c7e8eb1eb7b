/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_block.h: decodes a compressed block step by step as zstd_format.h says, a symbol at a time,
 * with loops in front that do most of it faster, if there are any (zstd_loops.h).
 *
 * Literals with a tree are decoded to the end of the room that the block has, from where sequences
 * take them: as room is kept for all literals that are left, what is written stays behind what is
 * still to be read.  So no memory is needed beside the tables.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_BLOCK_H
#define WHARF_ENCODERS_ZSTD_ZSTD_BLOCK_H

#include "encoders/zstd/zstd_bits.h"
#include "encoders/zstd/zstd_walk_state.h"

/* A stream of literals: the bits, and where the literals go. */
struct wharf_zstd_stream {
    struct wharf_zstd_bits bits;
    uint8_t *out;
    uint8_t *out_end;
};

/* A block's sequences under way. */
struct wharf_zstd_sequences {
    struct wharf_zstd_bits bits;
    uint32_t n;                                    /* how many are left */
    uint32_t literal_length, offset, match_length; /* states */
    bool has_bad_offset;                           /* the next one has, and is right up to there */
    const uint8_t *literals;                       /* the next one */
    const uint8_t *literals_end;
    /* Up to here the literals may be read, whatever stands behind them. */
    const uint8_t *readable_end;
    /* What the block may still have of matches, with room for all literals. */
    size_t room_nbytes;
    enum wharf_reason room_reason; /* what is wrong if it has more */
};

/*
 * Loops that do a part of the work, from the beginning on: as much as they like, and nothing that
 * is not in order.  They stop between two literals, and between two sequences, of which they leave
 * at least the last.
 */
struct wharf_zstd_loops {
    void (*four_streams)(const struct wharf_zstd_tables *tables,
                         struct wharf_zstd_stream streams[4]);
    void (*sequences)(struct wharf_zstd_walk *walk, struct wharf_zstd_sequences *sequences);
};

/*
 * Decodes a compressed block of nbytes (at least one) at walk->at, and leaves that; moves n_out.
 * False: it has failed.
 */
bool wharf_zstd_decode_block(struct wharf_zstd_walk *walk, size_t nbytes);

#endif
