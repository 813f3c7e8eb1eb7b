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

#include "encoders/codec.h"
#include "encoders/deflate/inflate_state.h"

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
