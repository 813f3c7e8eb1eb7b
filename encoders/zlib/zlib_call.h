/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_call.h: the state of one call of zlib_steps.h: its input, read through the bit buffer, and
 * its output.  Internal to encoders/zlib.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_CALL_H
#define WHARF_ENCODERS_ZLIB_ZLIB_CALL_H

#include "encoders/zlib/zlib_state.h"

/* What follows a state: the next one, or the end of the call. */
enum wharf_zstep { WHARF_ZSTEP_ON, WHARF_ZSTEP_LEAVE, WHARF_ZSTEP_NEED_DICT };

struct wharf_zlib_call {
    struct wharf_zlib_steps *steps;
    struct wharf_zlib_io *io;
    int flush;
    const uint8_t *begin; /* start of this call's input */
    const uint8_t *in;
    size_t in_left;
    size_t out_left;  /* the caller's room after all output, flushed or not */
    size_t out_first; /* out_left at the start of the call */
    size_t out_mark;  /* out_left when the trailer was reached */
    uint8_t *out;     /* where output that is not flushed yet goes */
};

/* Copies decoded output to the caller, and updates the checksum. */
void wharf_zlib_call_flush(struct wharf_zlib_call *call);

/* Makes room in the buffer for the longest match at least. */
void wharf_zlib_call_make_room(struct wharf_zlib_call *call);

static inline enum wharf_zstep wharf_zlib_call_bad(struct wharf_zlib_call *call, const char *msg)
{
    call->io->msg = msg;
    call->steps->mode = WHARF_ZMODE_BAD;
    return WHARF_ZSTEP_ON;
}

/* Fills the buffer to at least n bits, with no byte more than needed.  False: the input ends. */
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

/* Takes the lowest n bits, which must be in the buffer. */
static inline unsigned wharf_zlib_call_take(struct wharf_zlib_call *call, unsigned n)
{
    unsigned value = (unsigned)(call->steps->hold & (((uint64_t)1 << n) - 1));

    wharf_zlib_call_drop(call, n);
    return value;
}

#endif
