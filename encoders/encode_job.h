/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_job.h: one job that compresses, on the CPU: its arguments, the encoder, and the outcome.
 *
 * The embedded engine and the daemon share it, so both refuse the same jobs for the same reasons.
 * Which encoders there are is the program's: the daemon is linked with the libraries of lz4, snappy
 * and zstd, libwharf is not and has plain encoders in their place.
 */
#ifndef WHARF_ENCODERS_ENCODE_JOB_H
#define WHARF_ENCODERS_ENCODE_JOB_H

#include "encoders/codec.h"
#include "encoders/line/line.h"

/* How a chunk is to be compressed. */
struct wharf_encode_choice {
    uint32_t codec;
    uint32_t parameter; /* one of the codec's own */
    uint32_t encoder;   /* its number; 0 is the codec's default */
    uint32_t level;     /* of the encoder, from 1 on; 0 is its default */
};

/* Why there is no such encoder, codec, parameter, encoder and level looked at in this order; or
 * NONE. */
uint32_t wharf_encode_flaw(const struct wharf_encode_choice *choice);

/* For a good choice: whether it encodes lines, and how.  Then wharf_line_encode gives the
 * stream. */
bool wharf_encode_lines(const struct wharf_encode_choice *choice,
                        struct wharf_line_choice *ret_lines);

/*
 * What a stream of in_nbytes can take at most, by this encoder or, where only a daemon has it, by
 * that.  0 and *ret_nbytes, -EINVAL (no such codec or parameter, or a size that cannot be) or
 * -ENOMEM.
 */
int wharf_encode_bound(const struct wharf_encode_choice *choice, size_t in_nbytes,
                       size_t *ret_nbytes);

/* Makes the encoder.  Returns WHARF_OK with *ret_encoder, which is for wharf_encode_free, or
 * another result, with *ret_outcome filled. */
uint32_t wharf_encode_begin(const struct wharf_encode_choice *choice,
                            struct wharf_encoder **ret_encoder, struct wharf_outcome *ret_outcome);
void wharf_encode_free(const struct wharf_encode_choice *choice, struct wharf_encoder *encoder);

/* The source and the destination of one chunk.  Nobody changes the source meanwhile: encoders look
 * at it twice. */
struct wharf_encode_chunk {
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_avail;
};

/* Compresses one chunk.  Fills *ret_outcome always; the output is undefined unless it is OK. */
void wharf_encode_chunk(const struct wharf_encode_choice *choice, struct wharf_encoder *encoder,
                        const struct wharf_encode_chunk *chunk, struct wharf_outcome *ret_outcome);

/* The most memory that an encoder takes for a source of this size, beside the chunk itself: what a
 * daemon charges for it. */
static inline size_t wharf_encode_memory_nbytes(size_t in_nbytes)
{
    /* libzstd's highest level, whose tables grow with the source; libdeflate's highest level and
     * rans have the largest ones that do not. */
    return ((size_t)16 << 20) + 32 * in_nbytes;
}

#endif
