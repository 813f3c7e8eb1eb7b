/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_call.h: a call of zlib_steps.h on its way: its input through the bit buffer, and its output.
 * Internal to encoders/zlib.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_CALL_H
#define WHARF_ENCODERS_ZLIB_ZLIB_CALL_H

#include "encoders/zlib/zlib_state.h"

/* How a state ends: the next one goes on, or the call is over. */
enum wharf_zstep { WHARF_ZSTEP_ON, WHARF_ZSTEP_LEAVE, WHARF_ZSTEP_NEED_DICT };

struct wharf_zlib_call {
    struct wharf_zlib_steps *steps;
    struct wharf_zlib_io *io;
    int flush;
    const uint8_t *begin; /* of this call's input */
    const uint8_t *in;
    size_t in_left;
    size_t out_left;  /* what the caller has room for behind all output, flushed or not */
    size_t out_first; /* out_left at the beginning */
    size_t out_mark;  /* and where the trailer was reached */
    uint8_t *out;     /* where the output that is not flushed yet goes */
};

/* Hands out what has been decoded, and brings the checksum up to date. */
void wharf_zlib_call_flush(struct wharf_zlib_call *call);

/* At least a longest match's room in the buffer. */
void wharf_zlib_call_make_room(struct wharf_zlib_call *call);

static inline enum wharf_zstep wharf_zlib_call_bad(struct wharf_zlib_call *call, const char *msg)
{
    call->io->msg = msg;
    call->steps->mode = WHARF_ZMODE_BAD;
    return WHARF_ZSTEP_ON;
}

/* At least n bits in the buffer, taking no byte more than that needs; false: the input ends. */
static inline bool wharf_zlib_call_need(struct wharf_zlib_call *call, unsigned n)
{
    struct wharf_zlib_steps *steps = call->steps;

    while (steps->bits < n) {
        if (call->in_left == 0)
            return false;
        call->in_left--;
        steps->hold += (uint64_t)*call->in++ << steps->bits;
        steps->bits += 8;
    }
    return true;
}

static inline void wharf_zlib_call_drop(struct wharf_zlib_call *call, unsigned n)
{
    call->steps->hold >>= n;
    call->steps->bits -= n;
}

static inline void wharf_zlib_call_clear(struct wharf_zlib_call *call)
{
    call->steps->hold = 0;
    call->steps->bits = 0;
}

/* The n lowest bits, which are there, and drops them. */
static inline unsigned wharf_zlib_call_take(struct wharf_zlib_call *call, unsigned n)
{
    unsigned value = (unsigned)(call->steps->hold & (((uint64_t)1 << n) - 1));

    wharf_zlib_call_drop(call, n);
    return value;
}

#endif
