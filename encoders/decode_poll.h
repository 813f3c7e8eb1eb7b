/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_poll.h: decodes that can be stopped, and that let others have the thread in between.
 *
 * A decoder that has much to do asks now and then whether it should go on: before more than
 * WHARF_POLL_IN_NBYTES of source or WHARF_POLL_OUT_NBYTES of output lie between two questions.
 * Building tables for hostile headers, the slowest thing that a decoder does, takes up to 100 ns
 * for a byte of source, and output comes at 1 GB/s or less where it comes slowly: so questions are
 * at most some 2 ms apart.  Asking costs a call, which is little beside the work in between.
 */
#ifndef WHARF_ENCODERS_DECODE_POLL_H
#define WHARF_ENCODERS_DECODE_POLL_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/checksum.h"
#include "encoders/codec.h"

#define WHARF_POLL_IN_NBYTES (16 * 1024)
#define WHARF_POLL_OUT_NBYTES (256 * 1024)

/* What does nothing but go through memory is done in pieces of this size. */
#define WHARF_POLL_COPY_NBYTES (1024 * 1024)

/*
 * Whether to go on: WHARF_OK, or the result that the decode is to end with at once, with reason
 * NONE and bit offset 0.  `setting` is the decoder's own, and may be NULL.
 */
static inline uint32_t wharf_decode_poll(const struct wharf_codec_setting *setting)
{
    return setting && setting->poll ? setting->poll->ask(setting->poll) : WHARF_OK;
}

/* The checksum of a long output goes on with *checksum; returns what wharf_decode_poll does. */
static inline uint32_t wharf_poll_checksum(const struct wharf_codec_setting *setting,
                                           uint32_t (*add)(uint32_t, const void *, size_t),
                                           const uint8_t *data, size_t nbytes, uint32_t *checksum)
{
    uint32_t result = WHARF_OK;

    while (nbytes > WHARF_POLL_COPY_NBYTES && result == WHARF_OK) {
        *checksum = add(*checksum, data, WHARF_POLL_COPY_NBYTES);
        data += WHARF_POLL_COPY_NBYTES;
        nbytes -= WHARF_POLL_COPY_NBYTES;
        result = wharf_decode_poll(setting);
    }
    *checksum = add(*checksum, data, nbytes);
    return result;
}

#endif
