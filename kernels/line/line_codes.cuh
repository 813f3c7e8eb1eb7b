/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_codes.cuh: the shape of a stream of lines (encoders/line/LINES.md) on the device, and what
 * its codes mean.
 */
#ifndef WHARF_KERNELS_LINE_LINE_CODES_CUH
#define WHARF_KERNELS_LINE_LINE_CODES_CUH

#include "encoders/line/line_format.h"
#include "encoders/wharf_codec.h"
#include "kernels/decoder.cuh"

namespace wharf
{

/* Which schemes the lines of a codec may have. */
WHARF_CONSTEXPR bool line_has_bdi(uint32_t codec)
{
    return codec == WHARF_CODEC_BDI || codec == WHARF_CODEC_BEST;
}

WHARF_CONSTEXPR bool line_has_fpc(uint32_t codec)
{
    return codec == WHARF_CODEC_FPC || codec == WHARF_CODEC_BEST;
}

WHARF_CONSTEXPR bool line_has_cpack(uint32_t codec)
{
    return codec == WHARF_CODEC_CPACK || codec == WHARF_CODEC_BEST;
}

/* Whether codes never have more than 4 bits. */
WHARF_CONSTEXPR bool line_has_nibbles(uint32_t codec)
{
    return codec == WHARF_CODEC_BDI || codec == WHARF_CODEC_PALETTE;
}

/* Where everything stands.  The same in all lanes. */
struct line_shape {
    uint32_t shift; /* 2 to the power of it is a line's size */
    uint32_t layout;
    uint32_t type;
    uint32_t code_nbits;
    uint32_t codes_at; /* in a record */
    uint32_t record_nbytes;
    uint32_t raw_nbytes;
    uint32_t n_lines;
    uint32_t n_groups;
    uint32_t heads_at;
    uint32_t data_at;

    WHARF_DEVICE_MEMBER uint32_t line_nbytes() const { return 1u << shift; }
    WHARF_DEVICE_MEMBER uint32_t group_nlines() const { return WHARF_LINE_GROUP_NBYTES >> shift; }

    /* One lane.  All that follows from the header; raw_nbytes is at most MAX_CHUNK_NBYTES. */
    WHARF_DEVICE_MEMBER void set(uint32_t codec, uint32_t its_shift, uint32_t its_layout,
                                 uint32_t its_type, uint32_t its_raw_nbytes)
    {
        shift = its_shift;
        layout = its_layout;
        type = its_type;
        raw_nbytes = its_raw_nbytes;
        code_nbits = line_has_nibbles(codec) || shift == WHARF_LINE_MIN_SHIFT ? 4 : 8;
        codes_at = layout == WHARF_LINE_PACKED ? WHARF_LINE_OFFSET_NBYTES : 0;
        record_nbytes = codes_at + group_nlines() * code_nbits / 8;
        n_lines = (raw_nbytes + line_nbytes() - 1) >> shift;
        n_groups = (raw_nbytes + WHARF_LINE_GROUP_NBYTES - 1) / WHARF_LINE_GROUP_NBYTES;
        heads_at = (WHARF_LINE_HEADER_NBYTES + n_groups * record_nbytes + 15) & ~15u;
        data_at = heads_at + (codec == WHARF_CODEC_PALETTE ? n_groups * WHARF_LINE_HEAD_NBYTES : 0);
    }

    /* One lane.  Where the record or head begins that a source of so many bytes cuts off. */
    WHARF_DEVICE_MEMBER uint32_t find_cut(uint32_t in_nbytes) const
    {
        uint32_t index_end = WHARF_LINE_HEADER_NBYTES + n_groups * record_nbytes;
        if (in_nbytes < index_end)
            return in_nbytes - (in_nbytes - WHARF_LINE_HEADER_NBYTES) % record_nbytes;
        return in_nbytes < heads_at ? index_end : in_nbytes & ~15u;
    }
};

/* A code's meaning in a word: bytes of content, scheme, variant, what is given (struct
 * wharf_line_code of encoders/line/line_shape.h).  Scheme 0 is no code. */
struct line_code {
    uint32_t word;

    WHARF_DEVICE_MEMBER uint32_t nbytes() const { return word & 255; }
    WHARF_DEVICE_MEMBER uint32_t scheme() const { return word >> 8 & 255; }
    WHARF_DEVICE_MEMBER uint32_t variant() const { return word >> 16 & 255; }
    WHARF_DEVICE_MEMBER uint32_t given() const { return word >> 24; }
};

WHARF_DEVICE line_code make_line_code(uint32_t scheme, uint32_t variant, uint32_t given,
                                      uint32_t nbytes)
{
    return {nbytes | scheme << 8 | variant << 16 | given << 24};
}

constexpr line_code LINE_NO_CODE = {0};

/* What of a bdi variant's values: the powers of two of base and delta in bytes, by nibbles. */
constexpr uint32_t LINE_BDI_BASE_SHIFTS = 0x12233330u;
constexpr uint32_t LINE_BDI_DELTA_SHIFTS = 0x01021000u;

WHARF_DEVICE line_code bdi_line_code(uint32_t variant, uint32_t shift)
{
    uint32_t b = LINE_BDI_BASE_SHIFTS >> 4 * variant & 15;
    uint32_t d = LINE_BDI_DELTA_SHIFTS >> 4 * variant & 15;
    uint32_t n = 1u << shift >> b;
    uint32_t nbytes = (n + 7) / 8 + (1u << b) + (n << d);
    return make_line_code(WHARF_LINE_IS_BDI, variant, 0,
                          variant == WHARF_LINE_BDI_REPEAT ? 8 : nbytes);
}

/* Bytes in front of an fpc line's segments: 1, 2 or 3. */
WHARF_DEVICE uint32_t line_fpc_head_nbytes(uint32_t shift)
{
    return shift - 4;
}

WHARF_DEVICE line_code fpc_line_code(uint32_t n_pairs, uint32_t shift)
{
    uint32_t nbytes = line_fpc_head_nbytes(shift) + 2 * n_pairs;
    return nbytes < 1u << shift ? make_line_code(WHARF_LINE_IS_FPC, 0, n_pairs, nbytes)
                                : LINE_NO_CODE;
}

WHARF_DEVICE line_code cpack_line_code(uint32_t code, uint32_t shift)
{
    uint32_t step = shift == WHARF_LINE_MIN_SHIFT ? 4 : 1;
    uint32_t radix = (1u << shift) / 4 / step + 1;
    uint32_t n_words = code / radix, n_bytes = code % radix * step;
    return n_words <= WHARF_LINE_CPACK_MAX_NWORDS
               ? make_line_code(WHARF_LINE_IS_CPACK, n_words, n_bytes,
                                (1u << shift) / 8 + 4 * n_words + n_bytes)
               : LINE_NO_CODE;
}

WHARF_DEVICE line_code best_line_code(uint32_t code, uint32_t shift)
{
    if (code < WHARF_LINE_BDI_NCODES)
        return bdi_line_code(code, shift);
    if (shift == WHARF_LINE_MIN_SHIFT)
        return code < 12 ? fpc_line_code(0xa852u >> 4 * (code - 8) & 15, shift)
                         : cpack_line_code(3 * (code - 11) + 2, shift);
    uint32_t n_fpc = shift == WHARF_LINE_MAX_SHIFT ? 62 : 30;
    return code - 7 <= n_fpc ? fpc_line_code(code - 7, shift)
                             : cpack_line_code(code - 7 - n_fpc, shift);
}

/* Bits of a value beside exponent and low byte. */
WHARF_DEVICE uint32_t line_field_nbits(uint32_t type)
{
    return 0x3438u >> 4 * type & 15;
}

/* Values of 16 bytes, by lanes: as many as their size lets. */
WHARF_DEVICE uint32_t line_n_values(uint32_t type, uint32_t nbytes)
{
    return type <= WHARF_LINE_F16 ? nbytes / 2 : nbytes;
}

WHARF_DEVICE line_code palette_line_code(uint32_t code, uint32_t shift, uint32_t type,
                                         uint32_t width)
{
    uint32_t n = line_n_values(type, 1u << shift);
    uint32_t nbytes =
        (type == WHARF_LINE_F16 ? n : 0) + n * (line_field_nbits(type) + width) / 8 + code - 1;
    return nbytes < 1u << shift ? make_line_code(WHARF_LINE_IS_PALETTE, width, code - 1, nbytes)
                                : LINE_NO_CODE;
}

/* One lane.  The meaning of a code of `code_nbits` bits; `width` is the palette's. */
template <uint32_t CODEC>
WHARF_DEVICE line_code explain_line_code(const line_shape &shape, uint32_t width, uint32_t code)
{
    if (code == WHARF_LINE_CODE_ZEROS)
        return make_line_code(WHARF_LINE_IS_ZEROS, 0, 0, 0);
    if (code == (1u << shape.code_nbits) - 1)
        return make_line_code(WHARF_LINE_IS_RAW, 0, 0, shape.line_nbytes());
    if (CODEC == WHARF_CODEC_BDI)
        return code < WHARF_LINE_BDI_NCODES ? bdi_line_code(code, shape.shift) : LINE_NO_CODE;
    if (CODEC == WHARF_CODEC_FPC)
        return fpc_line_code(code, shape.shift);
    if (CODEC == WHARF_CODEC_CPACK)
        return cpack_line_code(code, shape.shift);
    if (CODEC == WHARF_CODEC_BEST)
        return best_line_code(code, shape.shift);
    return palette_line_code(code, shape.shift, shape.type, width);
}

} // namespace wharf

#endif
