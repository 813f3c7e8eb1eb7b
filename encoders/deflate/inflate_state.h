/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_state.h: where a decoder of Deflate data stands between two units.  Internal to
 * encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_STATE_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/deflate/inflate_tables.h"
#include "proto/wharf_result.h"

enum wharf_inflate_phase {
    WHARF_INFLATE_HEADER, /* the next unit is a block header */
    WHARF_INFLATE_STORED, /* in a stored block with stored_left bytes to come */
    WHARF_INFLATE_CODED,  /* in a fixed or dynamic block; the tables are its own */
    WHARF_INFLATE_DONE,   /* the final block is over; bit_pos is at a byte boundary */
};

struct wharf_inflate {
    /* The source as far as it is there, and the position of the next unit in it.  Between runs a
     * caller may move the source and take whole bytes off its front (lowering bit_pos by eight
     * for each). */
    const uint8_t *in;
    size_t in_nbytes;
    uint64_t bit_pos;
    bool in_more; /* the source may still grow: a guess, and only about what work pays */

    /* The output: matches may refer to out_begin .. out_next; out_next .. out_end is free.
     * Between runs a caller may move it, if all of it or the last 32 KiB stay in front of
     * out_next.  If it is wide, these point to units of 16 bits, and are aligned for that. */
    uint8_t *out_begin;
    uint8_t *out_next;
    uint8_t *out_end;
    bool is_wide;

    enum wharf_inflate_phase phase;
    bool final_block;
    uint32_t stored_left;
    /* Size of the bodies since the last dynamic header: the next will be like it. */
    uint64_t body_nbits;

    const struct wharf_inflate_tables *tables; /* of the block: own_tables, or the fixed ones */
    struct wharf_inflate_tables own_tables;
};

/* Ready for the first block header.  The tables are left uninitialised. */
static inline void wharf_inflate_init(struct wharf_inflate *inflate, const uint8_t *in,
                                      size_t in_nbytes, uint64_t bit_pos, uint8_t *out,
                                      size_t out_avail)
{
    inflate->in = in;
    inflate->in_nbytes = in_nbytes;
    inflate->bit_pos = bit_pos;
    inflate->in_more = false;
    inflate->out_begin = inflate->out_next = out;
    inflate->out_end = out ? out + out_avail : out;
    inflate->is_wide = false;
    inflate->phase = WHARF_INFLATE_HEADER;
    inflate->final_block = false;
    inflate->stored_left = 0;
    inflate->body_nbits = UINT64_MAX / 2; /* no limit */
}

/* Ready for another stream's first block header at bit_pos: its output follows what is there, but
 * its matches do not refer to that. */
static inline void wharf_inflate_restart(struct wharf_inflate *inflate)
{
    inflate->out_begin = inflate->out_next;
    inflate->phase = WHARF_INFLATE_HEADER;
    inflate->final_block = false;
}

#endif
