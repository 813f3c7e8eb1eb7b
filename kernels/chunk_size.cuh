/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_size.cuh: how large a chunk's output is, by one lane.
 *
 * Some streams say it in their header; of others the lane walks over sequences or runs, and skips
 * what they hold.  Sources are hostile: each byte is loaded once, inside the source, and a walk
 * takes a byte at least in each turn.  A walk checks only what it needs: a size is right if
 * the stream is good.
 */
#ifndef WHARF_KERNELS_CHUNK_SIZE_CUH
#define WHARF_KERNELS_CHUNK_SIZE_CUH

#include "encoders/line/line_format.h"
#include "encoders/lz4/lz4_format.h"
#include "encoders/rans/rans_format.h"
#include "encoders/rle2/rle2_format.h"
#include "encoders/snappy/snappy_format.h"
#include "encoders/wharf_codec.h"
#include "kernels/gather_chunks.cuh"

namespace wharf
{
namespace sizes
{

/* A source from front to back.  Past its end there are zeros, and is_cut says so. */
struct walk {
    const uint8_t *at;
    uint32_t left;
    bool is_cut;

    WHARF_DEVICE_MEMBER uint32_t byte()
    {
        is_cut |= left == 0;
        if (left == 0)
            return 0;
        left--;
        return load_nc(at++);
    }

    WHARF_DEVICE_MEMBER void skip(uint64_t n)
    {
        is_cut |= n > left;
        uint32_t there = n < left ? (uint32_t)n : left;
        at += there;
        left -= there;
    }

    /* n bytes, up to 8, little-endian. */
    WHARF_DEVICE_MEMBER uint64_t number(unsigned n)
    {
        uint64_t v = 0;
        for (unsigned i = 0; i < n; i++)
            v |= (uint64_t)byte() << 8 * i;
        return v;
    }

    /* Leaves a number of 7 bits a byte behind. */
    WHARF_DEVICE_MEMBER void skip_varint()
    {
        while (byte() & 0x80)
            ;
    }
};

/* ---- lz4, snappy ----------------------------------------------------------------------------- */

WHARF_DEVICE uint64_t lz4_length(walk &w, uint32_t low)
{
    uint64_t length = low;
    uint32_t byte = low == WHARF_LZ4_MORE ? 255 : 0;
    while (byte == 255) {
        byte = w.byte();
        length += byte;
    }
    return length;
}

WHARF_DEVICE uint64_t of_lz4(walk &w)
{
    uint64_t total = 0;
    for (;;) {
        uint32_t token = w.byte();
        uint64_t n_literals = lz4_length(w, token >> 4);
        w.skip(n_literals);
        total += n_literals;
        if (w.left == 0)
            return total;
        w.skip(2);
        total += WHARF_LZ4_MATCH_MIN + lz4_length(w, token & 15);
    }
}

WHARF_DEVICE uint64_t of_snappy(walk &w)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < WHARF_SNAPPY_LENGTH_NBYTES_MAX; i++) {
        uint32_t byte = w.byte();
        length |= (uint64_t)(byte & 127) << 7 * i;
        if (byte < 128)
            return length;
    }
    return 0;
}

/* ---- run lengths: in values ------------------------------------------------------------------ */

WHARF_DEVICE uint64_t of_byterle(walk &w)
{
    uint64_t n = 0;
    while (w.left) {
        uint32_t control = w.byte();
        w.skip(control < 128 ? 1 : 256 - control);
        n += control < 128 ? control + 3 : 256 - control;
    }
    return n;
}

WHARF_DEVICE uint64_t of_rle1(walk &w)
{
    uint64_t n = 0;
    while (w.left) {
        uint32_t control = w.byte();
        uint32_t n_varints = control < 128 ? 1 : 256 - control;
        w.skip(control < 128 ? 1 : 0); /* the difference */
        for (uint32_t i = 0; i < n_varints; i++)
            w.skip_varint();
        n += control < 128 ? control + 3 : n_varints;
    }
    return n;
}

/* As wharf_rle2_width and wharf_rle2_width_code, which are the host's. */
WHARF_DEVICE uint32_t rle2_width(uint32_t code)
{
    if (code < 24)
        return code + 1;
    return code < 28 ? 2 * code - 22 : 8 * code - 184;
}

WHARF_DEVICE uint32_t rle2_least_width(uint32_t nbits)
{
    if (nbits <= 24)
        return nbits;
    return nbits <= 32 ? (nbits + 1) / 2 * 2 : (nbits + 7) / 8 * 8;
}

/* A run behind its first byte; its values. */
WHARF_DEVICE uint32_t skip_rle2_run(walk &w, uint32_t head)
{
    uint32_t kind = head >> 6;
    if (kind == WHARF_RLE2_SHORT_REPEAT) {
        w.skip((head >> 3 & 7) + 1);
        return (head & 7) + WHARF_RLE2_REPEAT_MIN;
    }
    uint32_t code = head >> 1 & 31, width = rle2_width(code);
    uint32_t n = ((head & 1) << 8 | w.byte()) + 1;
    uint32_t n_packed = n, n_patches = 0, patch_width = 0;
    if (kind == WHARF_RLE2_PATCHED_BASE) {
        uint32_t third = w.byte(), fourth = w.byte();
        w.skip((third >> 5) + 1); /* the base */
        n_patches = fourth & 31;
        patch_width = rle2_least_width((fourth >> 5) + 1 + rle2_width(third & 31));
    } else if (kind == WHARF_RLE2_DELTA) {
        w.skip_varint();
        w.skip_varint();
        /* A length of 1 has the second difference's place, but no further ones. */
        n_packed = code == 0 || n < 2 ? 0 : n - 2;
    }
    w.skip((n_packed * width + 7) / 8);
    w.skip((n_patches * patch_width + 7) / 8);
    return n;
}

WHARF_DEVICE uint64_t of_rle2(walk &w)
{
    uint64_t n = 0;
    while (w.left)
        n += skip_rle2_run(w, w.byte());
    return n;
}

/* ---- headers --------------------------------------------------------------------------------- */

WHARF_DEVICE uint64_t of_lines(walk &w)
{
    uint32_t version = w.byte();
    w.skip(WHARF_LINE_AT_RAW - 1);
    uint64_t nbytes = w.number(8);
    return version == WHARF_LINE_VERSION ? nbytes : 0;
}

/* Words of 16 bits, most significant bit first. */
struct rans_fields {
    uint32_t word, n_left;

    WHARF_DEVICE_MEMBER uint64_t read(walk &w, uint32_t nbits)
    {
        uint64_t v = 0;
        for (; nbits > 0; nbits--) {
            if (n_left == 0) {
                word = (uint32_t)w.number(2);
                n_left = 16;
            }
            v = v << 1 | (word >> --n_left & 1);
        }
        return v;
    }
};

WHARF_DEVICE uint64_t of_rans(walk &w)
{
    uint32_t version = w.byte();
    w.skip(1);
    uint32_t symbol_nbytes = w.byte();
    w.skip(5);
    uint64_t n_skipped = w.number(4);
    n_skipped += w.number(4);
    w.skip(n_skipped + WHARF_RANS_STATES_NBYTES); /* the model, indexes, states */
    if (version != WHARF_RANS_VERSION)
        return 0;
    rans_fields fields = {0, 0};
    fields.read(w, (uint32_t)fields.read(w, 4) + 1); /* splits */
    uint64_t n_symbols = fields.read(w, (uint32_t)fields.read(w, 5) + 1);
    return n_symbols * symbol_nbytes;
}

/* Of a chunk's header, or of bitshuffle's, which is big-endian. */
WHARF_DEVICE uint64_t of_blosc(walk &w, uint32_t parameter)
{
    uint64_t nbytes = 0;
    if (parameter == 0) {
        w.skip(4);
        return w.number(4);
    }
    for (unsigned i = 0; i < 8; i++)
        nbytes = nbytes << 8 | w.byte();
    return nbytes;
}

/* Of a codec that has a walk: wharf_cuda_has_sizes. */
WHARF_DEVICE uint64_t of_stream(walk &w, uint32_t codec, uint32_t parameter)
{
    switch (codec) {
    case WHARF_CODEC_STORED:
        return w.left;
    case WHARF_CODEC_RLE1:
        return of_rle1(w) << (parameter & 3);
    case WHARF_CODEC_RLE2:
        return of_rle2(w) << (parameter & 3);
    case WHARF_CODEC_BYTERLE:
        return of_byterle(w);
    case WHARF_CODEC_BOOLRLE:
        return 8 * of_byterle(w);
    case WHARF_CODEC_RANS:
        return of_rans(w);
    case WHARF_CODEC_LZ4:
        return of_lz4(w);
    case WHARF_CODEC_SNAPPY:
        return of_snappy(w);
    case WHARF_CODEC_BLOSC:
        return of_blosc(w, parameter);
    default:
        return of_lines(w);
    }
}

} // namespace sizes

/* One lane.  Of chunk i; 0 also for one that cannot be good, or is too large. */
WHARF_DEVICE uint64_t size_of_output(const wharf_device_arrays &arrays, uint32_t i)
{
    const uint8_t *in = arrays.in[i];
    uint64_t in_nbytes = arrays.in_nbytes[i];
    if (in_nbytes > WHARF_DEVICE_CHUNK_MAX_NBYTES ||
        flaw_of_range(in, in_nbytes) != WHARF_REASON_NONE)
        return 0;
    sizes::walk w = {in, (uint32_t)in_nbytes, false};
    uint64_t nbytes = sizes::of_stream(w, arrays.codec, arrays.parameter);
    return w.is_cut || nbytes > WHARF_DEVICE_CHUNK_MAX_NBYTES ? 0 : nbytes;
}

} // namespace wharf

#endif
