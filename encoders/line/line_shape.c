/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_shape.c: the layout of a stream of lines, and the meaning of a line's code (LINES.md,
 * sections 1 and 2).
 *
 * All offsets follow from the header by arithmetic.  A line is found by its group's entry in the
 * index and the sizes that the codes before it give.
 */
#include "encoders/line/line_shape.h"

#include <string.h>

#include "encoders/line/line.h"
#include "encoders/little_endian.h"

/* ---- the frame ------------------------------------------------------------------------------ */

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Lines of 32 bytes have room for no more than 4 bits each; bdi and palette need no more. */
static uint32_t choose_code_nbits(uint32_t codec, uint32_t line_nbytes)
{
    bool has_few = codec == WHARF_CODEC_BDI || codec == WHARF_CODEC_PALETTE;

    return has_few || line_nbytes == 32 ? 4 : 8;
}

void wharf_line_shape_set(struct wharf_line_shape *shape, uint32_t codec, uint32_t line_nbytes,
                          uint32_t layout, uint32_t type, uint64_t raw_nbytes)
{
    *shape = (struct wharf_line_shape){
        .codec = codec,
        .line_nbytes = line_nbytes,
        .layout = layout,
        .type = type,
        .group_nlines = WHARF_LINE_GROUP_NBYTES / line_nbytes,
        .code_nbits = choose_code_nbits(codec, line_nbytes),
        .codes_at = layout == WHARF_LINE_PACKED ? WHARF_LINE_OFFSET_NBYTES : 0,
        .head_nbytes = codec == WHARF_CODEC_PALETTE ? WHARF_LINE_HEAD_NBYTES : 0,
        .raw_nbytes = raw_nbytes,
        .n_lines = (raw_nbytes + line_nbytes - 1) / line_nbytes,
        .n_groups = (raw_nbytes + WHARF_LINE_GROUP_NBYTES - 1) / WHARF_LINE_GROUP_NBYTES,
    };
    shape->record_nbytes = shape->codes_at + shape->group_nlines * shape->code_nbits / 8;
    shape->heads_at = round_up(WHARF_LINE_HEADER_NBYTES + shape->n_groups * shape->record_nbytes,
                               WHARF_LINE_UNIT_NBYTES);
    shape->data_at = shape->heads_at + shape->n_groups * shape->head_nbytes;
}

/* ---- the header ----------------------------------------------------------------------------- */

static struct wharf_line_failure fails(uint32_t reason, uint64_t bit_offset)
{
    uint32_t result = reason == WHARF_REASON_LINE_VERSION  ? WHARF_UNSUPPORTED
                      : reason == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL
                                                           : WHARF_BAD_DATA;

    return (struct wharf_line_failure){result, reason, bit_offset};
}

static struct wharf_line_failure bad_member(uint32_t at)
{
    return fails(WHARF_REASON_LINE_HEADER, 8 * (uint64_t)at);
}

static uint64_t load_le64(const uint8_t *p)
{
    return wharf_load_le32(p) | (uint64_t)wharf_load_le32(p + 4) << 32;
}

/* Where the record or head begins that is not all there. */
static uint64_t find_cut(const struct wharf_line_shape *shape, uint64_t in_nbytes)
{
    uint64_t index_end = WHARF_LINE_HEADER_NBYTES + shape->n_groups * shape->record_nbytes;

    if (in_nbytes < index_end)
        return in_nbytes - (in_nbytes - WHARF_LINE_HEADER_NBYTES) % shape->record_nbytes;
    if (in_nbytes < shape->heads_at)
        return index_end;
    return in_nbytes - in_nbytes % WHARF_LINE_HEAD_NBYTES;
}

struct wharf_line_failure wharf_line_shape_read(struct wharf_line_shape *shape, uint32_t codec,
                                                const uint8_t *in, uint64_t in_nbytes,
                                                uint64_t out_avail)
{
    uint8_t h[WHARF_LINE_HEADER_NBYTES];

    if (in_nbytes < sizeof(h))
        return fails(WHARF_REASON_INPUT_TRUNCATED, 0);
    memcpy(h, in, sizeof(h));
    uint32_t shift = h[WHARF_LINE_AT_SHIFT];
    uint32_t n_types = codec == WHARF_CODEC_PALETTE ? WHARF_LINE_N_TYPES : 1;
    uint64_t raw_nbytes = load_le64(h + WHARF_LINE_AT_RAW);
    if (h[0] != WHARF_LINE_VERSION)
        return fails(WHARF_REASON_LINE_VERSION, 0);
    if (h[WHARF_LINE_AT_CODEC] != codec)
        return bad_member(WHARF_LINE_AT_CODEC);
    if (shift < WHARF_LINE_MIN_SHIFT || shift > WHARF_LINE_MAX_SHIFT)
        return bad_member(WHARF_LINE_AT_SHIFT);
    if (h[WHARF_LINE_AT_LAYOUT] >= WHARF_LINE_N_LAYOUTS)
        return bad_member(WHARF_LINE_AT_LAYOUT);
    if (h[WHARF_LINE_AT_TYPE] >= n_types)
        return bad_member(WHARF_LINE_AT_TYPE);
    if (h[WHARF_LINE_AT_RESERVED] | h[WHARF_LINE_AT_RESERVED + 1] | h[WHARF_LINE_AT_RESERVED + 2])
        return bad_member(WHARF_LINE_AT_RESERVED);
    if (raw_nbytes > WHARF_LINE_MAX_RAW_NBYTES)
        return bad_member(WHARF_LINE_AT_RAW);
    if (raw_nbytes > out_avail)
        return fails(WHARF_REASON_OUTPUT_FULL, 8 * WHARF_LINE_AT_RAW);
    wharf_line_shape_set(shape, codec, 1u << shift, h[WHARF_LINE_AT_LAYOUT], h[WHARF_LINE_AT_TYPE],
                         raw_nbytes);
    if (in_nbytes < shape->data_at)
        return fails(WHARF_REASON_INPUT_TRUNCATED, 8 * find_cut(shape, in_nbytes));
    return fails(WHARF_REASON_NONE, 0);
}

void wharf_line_shape_write(const struct wharf_line_shape *shape, uint8_t *out)
{
    memset(out, 0, WHARF_LINE_HEADER_NBYTES);
    out[0] = WHARF_LINE_VERSION;
    out[WHARF_LINE_AT_CODEC] = (uint8_t)shape->codec;
    out[WHARF_LINE_AT_SHIFT] = (uint8_t)__builtin_ctz(shape->line_nbytes);
    out[WHARF_LINE_AT_LAYOUT] = (uint8_t)shape->layout;
    out[WHARF_LINE_AT_TYPE] = (uint8_t)shape->type;
    wharf_store_le32(out + WHARF_LINE_AT_RAW, (uint32_t)shape->raw_nbytes);
    wharf_store_le32(out + WHARF_LINE_AT_RAW + 4, (uint32_t)(shape->raw_nbytes >> 32));
}

/* ---- codes ---------------------------------------------------------------------------------- */

static struct wharf_line_code bdi_code(uint32_t variant, uint32_t line_nbytes)
{
    static const struct {
        uint8_t base;
        uint8_t delta;
    } sizes[WHARF_LINE_BDI_NCODES] = {
        [WHARF_LINE_BDI_8_1] = {8, 1}, [WHARF_LINE_BDI_8_2] = {8, 2}, [WHARF_LINE_BDI_8_4] = {8, 4},
        [WHARF_LINE_BDI_4_1] = {4, 1}, [WHARF_LINE_BDI_4_2] = {4, 2}, [WHARF_LINE_BDI_2_1] = {2, 1},
    };
    uint32_t nbytes = 8;

    if (variant != WHARF_LINE_BDI_REPEAT) {
        uint32_t n = line_nbytes / sizes[variant].base;
        nbytes = (n + 7) / 8 + sizes[variant].base + n * sizes[variant].delta;
    }
    return (struct wharf_line_code){WHARF_LINE_IS_BDI, (uint8_t)variant, 0, (uint8_t)nbytes};
}

static struct wharf_line_code fpc_code(uint32_t n_pairs, uint32_t line_nbytes)
{
    uint32_t nbytes = wharf_line_fpc_head_nbytes(line_nbytes) + 2 * n_pairs;

    return (struct wharf_line_code){WHARF_LINE_IS_FPC, 0, (uint8_t)n_pairs, (uint8_t)nbytes};
}

static struct wharf_line_code cpack_code(uint32_t n_words, uint32_t n_bytes, uint32_t line_nbytes)
{
    uint32_t nbytes = wharf_line_cpack_head_nbytes(line_nbytes) + 4 * n_words + n_bytes;

    return (struct wharf_line_code){WHARF_LINE_IS_CPACK, (uint8_t)n_words, (uint8_t)n_bytes,
                                    (uint8_t)nbytes};
}

/* How many pairs at most make a line of fpc that is smaller than a raw one, and have a code. */
static uint32_t fpc_max_npairs(uint32_t line_nbytes)
{
    uint32_t n = (line_nbytes - 1 - wharf_line_fpc_head_nbytes(line_nbytes)) / 2;

    return line_nbytes == 32 && n > WHARF_LINE_NIBBLE_RAW - 1 ? WHARF_LINE_NIBBLE_RAW - 1 : n;
}

static struct wharf_line_code *put_bdi(struct wharf_line_code *next, uint32_t line_nbytes)
{
    for (uint32_t variant = 1; variant < WHARF_LINE_BDI_NCODES; variant++)
        *next++ = bdi_code(variant, line_nbytes);
    return next;
}

static struct wharf_line_code *put_fpc(struct wharf_line_code *next, uint32_t line_nbytes)
{
    uint32_t most = fpc_max_npairs(line_nbytes);

    for (uint32_t n_pairs = 1; n_pairs <= most; n_pairs++)
        *next++ = fpc_code(n_pairs, line_nbytes);
    return next;
}

/* Low bytes are counted by fours where a code has only 4 bits. */
static void put_cpack(struct wharf_line_code *next, uint32_t line_nbytes)
{
    uint32_t step = line_nbytes == 32 ? 4 : 1;

    for (uint32_t n_words = 0; n_words <= WHARF_LINE_CPACK_MAX_NWORDS; n_words++)
        for (uint32_t n = n_words == 0 ? step : 0; n <= line_nbytes / 4; n += step)
            *next++ = cpack_code(n_words, n, line_nbytes);
}

/* In 4 bits not all sizes have a code of their own. */
static void put_best_of_32(struct wharf_line_code *next)
{
    static const uint8_t npairs[] = {2, 5, 8, 10};

    for (size_t i = 0; i < sizeof(npairs); i++)
        *next++ = fpc_code(npairs[i], 32);
    *next++ = cpack_code(1, 8, 32);
    *next++ = cpack_code(2, 8, 32);
    *next++ = cpack_code(3, 8, 32);
}

static void put_palette(struct wharf_line_code *next, const struct wharf_line_shape *shape,
                        uint32_t width)
{
    uint32_t before = wharf_line_palette_nbytes(shape->type, width, shape->line_nbytes);

    for (uint32_t n = 0; n + 2 <= WHARF_LINE_NIBBLE_RAW && before + n < shape->line_nbytes; n++)
        *next++ = (struct wharf_line_code){WHARF_LINE_IS_PALETTE, (uint8_t)width, (uint8_t)n,
                                           (uint8_t)(before + n)};
}

void wharf_line_codes_fill(const struct wharf_line_shape *shape, uint32_t width,
                           struct wharf_line_code *codes)
{
    uint32_t n = 1u << shape->code_nbits;
    uint32_t line_nbytes = shape->line_nbytes;

    memset(codes, 0, n * sizeof(*codes));
    codes[WHARF_LINE_CODE_ZEROS].scheme = WHARF_LINE_IS_ZEROS;
    codes[n - 1] = (struct wharf_line_code){WHARF_LINE_IS_RAW, 0, 0, (uint8_t)line_nbytes};
    switch (shape->codec) {
    case WHARF_CODEC_BDI:
        put_bdi(codes + 1, line_nbytes);
        break;
    case WHARF_CODEC_FPC:
        put_fpc(codes + 1, line_nbytes);
        break;
    case WHARF_CODEC_CPACK:
        put_cpack(codes + 1, line_nbytes);
        break;
    case WHARF_CODEC_BEST:
        codes = put_bdi(codes + 1, line_nbytes);
        if (line_nbytes == 32)
            put_best_of_32(codes);
        else
            put_cpack(put_fpc(codes, line_nbytes), line_nbytes);
        break;
    default:
        put_palette(codes + 1, shape, width);
    }
}

/* ---- types of palette ----------------------------------------------------------------------- */

uint32_t wharf_line_field_nbits(uint32_t type)
{
    static const uint8_t nbits[WHARF_LINE_N_TYPES] = {
        [WHARF_LINE_BF16] = 8,
        [WHARF_LINE_F16] = 3,
        [WHARF_LINE_E4M3] = 4,
        [WHARF_LINE_E5M2] = 3,
    };

    return nbits[type];
}

/* Exponents of 4 bits gain nothing by codes of as many. */
bool wharf_line_is_width(uint32_t type, uint32_t width)
{
    return width == 3 || (width == 4 && type != WHARF_LINE_E4M3);
}

uint32_t wharf_line_palette_nbytes(uint32_t type, uint32_t width, uint32_t line_nbytes)
{
    uint32_t n = wharf_line_n_values(type, line_nbytes);
    uint32_t low_nbytes = type == WHARF_LINE_F16 ? n : 0;

    return low_nbytes + n * (wharf_line_field_nbits(type) + width) / 8;
}
