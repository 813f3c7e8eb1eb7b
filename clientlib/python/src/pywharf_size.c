/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/python/src/pywharf_size.h"

#include "encoders/wharf_codec.h"

/* What data that says nothing is given at first. */
#define GUESS_RATIO 4u
#define GUESS_NBYTES 4096u
/* Deflate makes at most 1032 bytes of one: a stated size over that is a lie, or is worth growing
 * to. */
#define BELIEVED_RATIO 1032u
#define BELIEVED_NBYTES ((uint64_t)1 << 20)

#define ZSTD_MAGIC 0xFD2FB528u

static uint64_t read_le(const uint8_t *in, unsigned nbytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < nbytes; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

static uint64_t read_be(const uint8_t *in, unsigned nbytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < nbytes; i++)
        value = value << 8 | in[i];
    return value;
}

/* RFC 8878, 3.1.1: magic, descriptor, window descriptor, dictionary ID, content size.  Returns 0 if
 * there is none. */
static uint64_t zstd_size(const uint8_t *in, size_t in_nbytes)
{
    static const unsigned id_nbytes[] = {0, 1, 2, 4}, size_nbytes[] = {0, 2, 4, 8};

    if (in_nbytes < 5 || read_le(in, 4) != ZSTD_MAGIC)
        return 0;
    unsigned descriptor = in[4], is_single = descriptor >> 5 & 1;
    unsigned nbytes = size_nbytes[descriptor >> 6];
    size_t at = 5 + !is_single + id_nbytes[descriptor & 3];
    if (nbytes == 0 && is_single)
        nbytes = 1;
    if (nbytes == 0 || in_nbytes < at + nbytes)
        return 0;
    return read_le(in + at, nbytes) + (nbytes == 2 ? 256 : 0);
}

/* A variable-length integer before the data. */
static uint64_t snappy_size(const uint8_t *in, size_t in_nbytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < 5 && i < in_nbytes; i++) {
        value |= (uint64_t)(in[i] & 127) << (7 * i);
        if (in[i] < 128)
            return value;
    }
    return 0;
}

static uint64_t blosc_size(uint32_t parameter, const uint8_t *in, size_t in_nbytes)
{
    if (in_nbytes < 16)
        return 0;
    return parameter < WHARF_BLOSC_BITSHUFFLE_LZ4 ? read_le(in + 4, 4) : read_be(in, 8);
}

static uint64_t size_in(uint32_t codec, uint32_t parameter, const uint8_t *in, size_t in_nbytes)
{
    switch (codec) {
    case WHARF_CODEC_STORED:
        return in_nbytes;
    case WHARF_CODEC_GZIP:
        return in_nbytes < 18 ? 0 : read_le(in + in_nbytes - 4, 4);
    case WHARF_CODEC_ZSTD:
        return zstd_size(in, in_nbytes);
    case WHARF_CODEC_SNAPPY:
        return snappy_size(in, in_nbytes);
    case WHARF_CODEC_BLOSC:
        return blosc_size(parameter, in, in_nbytes);
    default:
        return 0;
    }
}

size_t pywharf_stated_size(uint32_t codec, uint32_t parameter, const void *in, size_t in_nbytes)
{
    uint64_t stated = size_in(codec, parameter, in, in_nbytes);
    uint64_t guess = (uint64_t)GUESS_RATIO * in_nbytes + GUESS_NBYTES;
    uint64_t most = (uint64_t)BELIEVED_RATIO * in_nbytes + BELIEVED_NBYTES;

    if (stated == 0)
        return (size_t)guess;
    return (size_t)(stated < most ? stated : most);
}
