/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.h: the core that all CPU decoders of Deflate data share, one-shot and streaming.
 * Internal to encoders/.
 *
 * The core decodes units (block headers, literals, matches, ends of blocks, pieces of stored
 * data) from a source that may still grow into an output that may be moved.  It stops only
 * between units: whatever it says, `bit_pos` is the first bit of the next unit, and when the
 * reason was INPUT_TRUNCATED or OUTPUT_FULL the caller may give it more source or more room and
 * run it again.  A one-shot decode is a single run.
 *
 * A decoder that does not know the window writes units of 16 bits in place of bytes: a literal is
 * its value, and whoever begins puts WHARF_DEFLATE_WINDOW_NBYTES units of his own in front, which
 * matches then copy like any other.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/codec.h"
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

/*
 * Decodes until the stream's end or the first unit that is bad, cut off or does not fit.
 * Returns an enum wharf_reason: NONE when the phase is DONE, else why not.  An error other than
 * INPUT_TRUNCATED and OUTPUT_FULL is for good: another run would say it again.
 */
uint32_t wharf_inflate_run(struct wharf_inflate *inflate);

/* The same, but returns NONE before the first block header at stop_bit or behind it as well. */
uint32_t wharf_inflate_run_until(struct wharf_inflate *inflate, uint64_t stop_bit);

/*
 * The run of a one-shot decode, which asks in between whether to go on.  Returns WHARF_OK with
 * wharf_inflate_run's reason, or the result to end with and reason NONE.
 */
uint32_t wharf_inflate_run_polled(struct wharf_inflate *inflate,
                                  const struct wharf_codec_setting *setting, uint32_t *ret_reason);

/* The result that belongs to a reason of a run. */
static inline uint32_t wharf_inflate_result(uint32_t reason)
{
    if (reason == WHARF_REASON_NONE)
        return WHARF_OK;
    return reason == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL : WHARF_BAD_DATA;
}

#endif
