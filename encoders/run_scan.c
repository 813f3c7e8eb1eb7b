/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_scan.c: how long runs are, by their headers.
 *
 * Numbers of 7 bits a byte end with a byte below 128.  Eight bytes at a time, the tops that are
 * not set are counted by one multiplication, so a group of rle1 is passed in few steps.
 */
#include "encoders/run_scan.h"

#include "encoders/byterle/byterle_format.h"
#include "encoders/rle1/rle1_format.h"
#include "encoders/rle2/rle2_format.h"
#include "encoders/rle_values.h"
#include "encoders/wharf_codec.h"

/* Measures the run at `in`, where a byte is at least: its size, or 0 if it is more than `avail`
 * bytes; *ret_n is how many values it has. */
typedef size_t measure_fn(const uint8_t *in, size_t avail, unsigned *ret_n);

/* ---- numbers of 7 bits a byte -------------------------------------------------------------- */

/* How many numbers end in a word. */
WHARF_RLE_INLINE unsigned count_ends(uint64_t word)
{
    return (unsigned)(((~word & WHARF_RLE_TOPS) >> 7) * 0x0101010101010101u >> 56);
}

/* The place behind the n-th number from `at` on, or 0 if there are not so many. */
WHARF_RLE_INLINE size_t pass_numbers(const uint8_t *in, size_t avail, size_t at, unsigned n)
{
    while (avail >= 8 && at <= avail - 8) {
        unsigned n_here = count_ends(wharf_rle_load_word(in + at));
        if (n_here >= n)
            break;
        n -= n_here;
        at += 8;
    }
    for (; n > 0; at++) {
        if (at == avail)
            return 0;
        n -= in[at] < 0x80;
    }
    return at;
}

/* ---- the codecs' runs ---------------------------------------------------------------------- */

WHARF_RLE_INLINE size_t measure_rle1(const uint8_t *in, size_t avail, unsigned *ret_n)
{
    unsigned control = in[0];

    if (control >= 128) {
        *ret_n = 256 - control;
        return pass_numbers(in, avail, 1, *ret_n);
    }
    *ret_n = control + WHARF_RLE1_RUN_MIN;
    return avail < 2 ? 0 : pass_numbers(in, avail, 2, 1);
}

WHARF_RLE_INLINE size_t measure_byterle(const uint8_t *in, size_t avail, unsigned *ret_n)
{
    unsigned control = in[0];
    size_t nbytes = control < 128 ? 2 : 257 - (size_t)control;

    *ret_n = control < 128 ? control + WHARF_BYTERLE_RUN_MIN : 256 - control;
    return nbytes <= avail ? nbytes : 0;
}

WHARF_RLE_INLINE size_t measure_patched_base(const uint8_t *in, size_t avail, unsigned n)
{
    if (avail < 4)
        return 0;
    unsigned n_patches = in[3] & 31;
    unsigned base_nbytes = (in[2] >> 5) + 1u;
    unsigned entry_nbits = (in[3] >> 5) + 1u + wharf_rle2_width(in[2] & 31);
    /* Entries of over 64 bits are bad ones: the run ends where none are. */
    unsigned entry_width =
        entry_nbits > 64 ? 0 : wharf_rle2_width(wharf_rle2_width_code(entry_nbits));
    return 4 + base_nbytes + wharf_rle2_packed_nbytes(n, wharf_rle2_width(in[0] >> 1 & 31)) +
           wharf_rle2_packed_nbytes(n_patches, entry_width);
}

WHARF_RLE_INLINE size_t measure_delta(const uint8_t *in, size_t avail, unsigned n)
{
    unsigned code = in[0] >> 1 & 31;
    size_t nbytes = pass_numbers(in, avail, 2, 2);

    if (nbytes && code && n > 2)
        nbytes += wharf_rle2_packed_nbytes(n - 2, wharf_rle2_width(code));
    return nbytes;
}

WHARF_RLE_INLINE size_t measure_rle2(const uint8_t *in, size_t avail, unsigned *ret_n)
{
    unsigned kind = in[0] >> 6;
    size_t nbytes;

    if (kind == WHARF_RLE2_SHORT_REPEAT) {
        *ret_n = (in[0] & 7u) + WHARF_RLE2_REPEAT_MIN;
        nbytes = 2 + (in[0] >> 3 & 7u);
    } else {
        *ret_n = 0;
        if (avail < 2)
            return 0;
        unsigned n = ((in[0] & 1u) << 8 | in[1]) + 1;
        *ret_n = n;
        if (kind == WHARF_RLE2_DIRECT)
            nbytes = 2 + wharf_rle2_packed_nbytes(n, wharf_rle2_width(in[0] >> 1 & 31));
        else if (kind == WHARF_RLE2_DELTA)
            nbytes = measure_delta(in, avail, n);
        else
            nbytes = measure_patched_base(in, avail, n);
    }
    return nbytes <= avail ? nbytes : 0;
}

/* ---- streams ------------------------------------------------------------------------------- */

WHARF_RLE_INLINE enum wharf_run_scan_state pass(const uint8_t *in, size_t in_nbytes,
                                                const struct wharf_run_limits *limits,
                                                struct wharf_run_place *place, measure_fn *measure)
{
    size_t first = place->in_offset, at = first;
    uint64_t n_values = 0;
    enum wharf_run_scan_state state = WHARF_RUN_SCAN_END;

    while (at < in_nbytes) {
        unsigned n;
        size_t nbytes = measure(in + at, in_nbytes - at, &n);

        if (nbytes == 0) {
            state = WHARF_RUN_SCAN_BROKEN;
            break;
        }
        if (at > first &&
            (n_values + n > limits->n_values || at - first + nbytes > limits->in_nbytes)) {
            state = WHARF_RUN_SCAN_MORE;
            break;
        }
        at += nbytes;
        n_values += n;
    }
    place->in_offset = at;
    place->n_values += n_values;
    return state;
}

int wharf_run_scan_knows(uint32_t codec)
{
    return codec == WHARF_CODEC_RLE1 || codec == WHARF_CODEC_RLE2 || codec == WHARF_CODEC_BYTERLE;
}

enum wharf_run_scan_state wharf_run_scan_pass(uint32_t codec, const uint8_t *in, size_t in_nbytes,
                                              const struct wharf_run_limits *limits,
                                              struct wharf_run_place *place)
{
    switch (codec) {
    case WHARF_CODEC_RLE1:
        return pass(in, in_nbytes, limits, place, measure_rle1);
    case WHARF_CODEC_BYTERLE:
        return pass(in, in_nbytes, limits, place, measure_byterle);
    default:
        return pass(in, in_nbytes, limits, place, measure_rle2);
    }
}
