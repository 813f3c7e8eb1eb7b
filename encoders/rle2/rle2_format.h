/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_format.h: integers in runs, "Run Length Encoding version 2" of the ORC specification v1.
 *
 *   stream  = run, run, ...      up to the last byte of the source; none is good
 *
 * The two top bits of a run's first byte say which of four kinds it is.  Numbers of several bytes
 * are big-endian; bits are taken from a byte's top, and packed numbers follow each other without
 * gaps and end with zeros or anything up to a byte's end.  "Wide" numbers are in zigzag form (0,
 * -1, 1, -2, ... as 0, 1, 2, 3, ...) for signed types and themselves for unsigned ones.
 *
 *   0  short repeat   byte 0: 00 www ccc: one wide number of w + 1 bytes, c + 3 times
 *   1  direct         bytes 0, 1: 01 wwwww l llllllll; l + 1 wide numbers, packed, of width(w) bits
 *   2  patched base   bytes 0 to 3: 10 wwwww l llllllll bbb ppppp ggg nnnnn; a base of b + 1 bytes,
 *                     whose first bit is its sign and the others its size; l + 1 offsets, packed,
 *                     of width(w) bits; n patches, packed, of the least width of the table that
 *                     holds g + 1 + width(p) bits
 *   3  delta          bytes 0, 1: 11 wwwww l llllllll; the first value, a wide varint; the
 *                     difference to the second, a zigzag varint; l - 1 further differences,
 *                     packed, of width(w) bits, 0 for w = 0: then all are the first one.  They
 *                     are added if the first difference is not negative, else subtracted.  l + 1
 *                     values in all.
 *
 *   width   w 0 to 23: w + 1 bits;  24 to 31: 26, 28, 30, 32, 40, 48, 56, 64 bits
 *
 * A patch is a gap (the upper bits; g + 1 of them, those above are not looked at) and the bits of
 * an offset above its lower width(w) (the lower width(p) bits).  The first gap counts from the
 * first value, the others from the last value that was patched; gaps over 255 are made up of
 * patches with a gap of 255 that have no bits.  Bits above the 64th are lost.  A patched value is
 * base + offset.
 *
 * Varints are those of encoders/rle1/rle1_format.h.  Values are computed modulo 2^64
 * (encoders/rle_values.h) and must be of the job's type.
 *
 * PARAMETER.  The type of the values, enum wharf_rle_type.
 *
 * The stream is all of the source, and where it ends a run must end; the destination
 * has room for out_avail / size of the type values, rounded down.  What is wrong with a run stands
 * at its first byte, in this order:
 *
 *   1. bytes of its header and base that are missing [INPUT_TRUNCATED], a varint of more than 64
 *      bits [RLE_VARINT], whichever comes first in the source
 *   2. no patches in a run of patched base, or patches of more than 64 bits together [RLE_PATCHES]
 *   3. packed bytes that are missing [INPUT_TRUNCATED]
 *   4. a patch behind the run's last value, or a gap of 0 that is not the first [RLE_PATCHES]
 *   5. more values than there is room left for [OUTPUT_TOO_SMALL, OUTPUT_FULL]
 *   6. a value that is not of the type [RLE_VALUE]
 *
 * A source with fewer values than there is room for is good, unless the job has
 * WHARF_JOB_EXACT_OUTPUT [OUTPUT_SHORT].
 */
#ifndef WHARF_ENCODERS_RLE2_RLE2_FORMAT_H
#define WHARF_ENCODERS_RLE2_RLE2_FORMAT_H

#include <stdint.h>

enum wharf_rle2_kind {
    WHARF_RLE2_SHORT_REPEAT = 0,
    WHARF_RLE2_DIRECT = 1,
    WHARF_RLE2_PATCHED_BASE = 2,
    WHARF_RLE2_DELTA = 3,
};

enum {
    WHARF_RLE2_REPEAT_MIN = 3,
    WHARF_RLE2_REPEAT_MAX = 10,
    WHARF_RLE2_RUN_MAX = 512,
    WHARF_RLE2_PATCHES_MAX = 31,

    /* A delta run of 512 values of 8 bytes takes 4 bytes. */
    WHARF_RLE2_MAX_RATIO = 1024,
    WHARF_RLE2_MAX_CONSTANT = 0,
};

/* The bits of width code `code`, 0 to 31. */
static inline unsigned wharf_rle2_width(unsigned code)
{
    if (code < 24)
        return code + 1;
    return code < 28 ? 2 * code - 22 : 8 * code - 184;
}

/* The code of the least width of the table that holds nbits bits, 0 to 64. */
static inline unsigned wharf_rle2_width_code(unsigned nbits)
{
    if (nbits <= 24)
        return nbits ? nbits - 1 : 0;
    return nbits <= 32 ? (nbits + 23) / 2 : (nbits + 191) / 8;
}

/* The bytes that n numbers of nbits bits take. */
static inline uint32_t wharf_rle2_packed_nbytes(uint32_t n, uint32_t nbits)
{
    return (n * nbits + 7) / 8;
}

#endif
