/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_encode.c: encodes line after line, each with the code whose content is smallest; of equal
 * ones, the lowest code.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/line/line.h"
#include "encoders/line/line_bits.h"
#include "encoders/line/line_compress.h"
#include "encoders/line/line_shape.h"
#include "encoders/little_endian.h"

enum { MAX_NPAIRS = WHARF_LINE_MAX_NBYTES / 2, MAX_NLOW_BYTES = WHARF_LINE_MAX_NBYTES / 4 };

struct writer {
    struct wharf_line_shape shape;
    struct wharf_line_code codes[256];
    struct wharf_line_palette palette; /* of this group */
    /* The code whose content is smallest for what a scheme finds; the raw code if there is none. */
    uint8_t of_bdi[WHARF_LINE_BDI_NCODES];                                 /* by variant */
    uint8_t of_fpc[MAX_NPAIRS + 1];                                        /* by n_pairs */
    uint8_t of_cpack[WHARF_LINE_CPACK_MAX_NWORDS + 1][MAX_NLOW_BYTES + 1]; /* by words, bytes */
    uint8_t of_palette[WHARF_LINE_MAX_NBYTES + 1];                         /* by escapes */
    uint8_t *out;
    size_t out_avail;
    size_t at; /* where the next line's content goes */
};

/* What a line would be in each scheme that the codec has. */
struct findings {
    struct wharf_line_bdi bdi;
    struct wharf_line_fpc fpc;
    struct wharf_line_cpack cpack;
    uint32_t n_escapes;
};

static uint32_t raw_code(const struct writer *w)
{
    return (1u << w->shape.code_nbits) - 1;
}

/* A code for all that need no more than it gives, up to the last code that gave less. */
static void offer(struct writer *w, uint8_t *of, uint32_t n_given, uint32_t code)
{
    uint32_t n = n_given + 1;

    while (n-- > 0 && w->codes[of[n]].nbytes >= w->codes[code].nbytes)
        of[n] = (uint8_t)code;
}

static void fill_tables(struct writer *w, uint32_t width)
{
    wharf_line_codes_fill(&w->shape, width, w->codes);
    memset(w->of_bdi, (int)raw_code(w), sizeof(w->of_bdi));
    memset(w->of_fpc, (int)raw_code(w), sizeof(w->of_fpc));
    memset(w->of_cpack, (int)raw_code(w), sizeof(w->of_cpack));
    memset(w->of_palette, (int)raw_code(w), sizeof(w->of_palette));
    for (uint32_t i = raw_code(w); i-- > 1;) {
        const struct wharf_line_code *code = &w->codes[i];
        if (code->scheme == WHARF_LINE_IS_BDI)
            w->of_bdi[code->variant] = (uint8_t)i;
        else if (code->scheme == WHARF_LINE_IS_FPC)
            offer(w, w->of_fpc, code->n_given, i);
        else if (code->scheme == WHARF_LINE_IS_CPACK)
            for (uint32_t n = 0; n <= code->variant; n++)
                offer(w, w->of_cpack[n], code->n_given, i);
        else if (code->scheme == WHARF_LINE_IS_PALETTE)
            offer(w, w->of_palette, code->n_given, i);
    }
}

static bool has_scheme(const struct writer *w, uint32_t codec)
{
    return w->shape.codec == codec ||
           (w->shape.codec == WHARF_CODEC_BEST && codec != WHARF_CODEC_PALETTE);
}

static void find_all(const struct writer *w, const uint8_t *line, struct findings *f)
{
    uint32_t line_nbytes = w->shape.line_nbytes;

    if (has_scheme(w, WHARF_CODEC_BDI))
        f->bdi = wharf_line_find_bdi(line, line_nbytes);
    if (has_scheme(w, WHARF_CODEC_FPC))
        f->fpc = wharf_line_find_fpc(line, line_nbytes);
    if (has_scheme(w, WHARF_CODEC_CPACK))
        f->cpack = wharf_line_find_cpack(line, line_nbytes);
    if (has_scheme(w, WHARF_CODEC_PALETTE))
        f->n_escapes = wharf_line_count_escapes(&w->palette, line, line_nbytes);
}

static bool is_all_zero(const uint8_t *line, uint32_t nbytes)
{
    return line[0] == 0 && memcmp(line, line + 1, nbytes - 1) == 0;
}

static uint32_t choose_code(const struct writer *w, const uint8_t *line, struct findings *f)
{
    uint32_t offers[4];
    uint32_t best = raw_code(w);

    if (is_all_zero(line, w->shape.line_nbytes))
        return WHARF_LINE_CODE_ZEROS;
    memset(f, 0, sizeof(*f));
    find_all(w, line, f);
    offers[0] = has_scheme(w, WHARF_CODEC_BDI) ? w->of_bdi[f->bdi.variant] : best;
    offers[1] = has_scheme(w, WHARF_CODEC_FPC) ? w->of_fpc[f->fpc.n_pairs] : best;
    offers[2] = f->cpack.is_good ? w->of_cpack[f->cpack.n_words][f->cpack.n_bytes] : best;
    offers[3] = has_scheme(w, WHARF_CODEC_PALETTE) ? w->of_palette[f->n_escapes] : best;
    for (unsigned i = 0; i < 4; i++)
        if (w->codes[offers[i]].nbytes < w->codes[best].nbytes ||
            (w->codes[offers[i]].nbytes == w->codes[best].nbytes && offers[i] < best))
            best = offers[i];
    return best;
}

static void put_content(const struct writer *w, const struct wharf_line_code *code,
                        const struct findings *f, const uint8_t *line, uint8_t *out)
{
    uint32_t line_nbytes = w->shape.line_nbytes;

    switch (code->scheme) {
    case WHARF_LINE_IS_RAW:
        memcpy(out, line, line_nbytes);
        break;
    case WHARF_LINE_IS_BDI:
        wharf_line_put_bdi(&f->bdi, line, line_nbytes, out);
        break;
    case WHARF_LINE_IS_FPC:
        wharf_line_put_fpc(&f->fpc, line, line_nbytes, out);
        break;
    case WHARF_LINE_IS_CPACK:
        wharf_line_put_cpack(&f->cpack, code->variant, line, line_nbytes, out);
        break;
    case WHARF_LINE_IS_PALETTE:
        wharf_line_put_palette(&w->palette, line, line_nbytes, out);
        break;
    default:
        break;
    }
}

/* Returns the code, or -ENOSPC. */
static int put_line(struct writer *w, const uint8_t *line)
{
    bool has_slots = w->shape.layout == WHARF_LINE_SLOTS;
    struct findings f;
    uint32_t number = choose_code(w, line, &f);
    const struct wharf_line_code *code = &w->codes[number];
    uint32_t extent = has_slots ? w->shape.line_nbytes : code->nbytes;

    if (extent > w->out_avail - w->at)
        return -ENOSPC;
    memset(w->out + w->at, 0, extent);
    put_content(w, code, &f, line, w->out + w->at);
    w->at += extent;
    return (int)number;
}

static int fill_unit(struct writer *w)
{
    size_t n = -w->at % WHARF_LINE_UNIT_NBYTES;

    if (n > w->out_avail - w->at)
        return -ENOSPC;
    memset(w->out + w->at, 0, n);
    w->at += n;
    return 0;
}

/* The lines of a group, whose last one may be short. */
static int put_lines(struct writer *w, uint8_t *codes, const uint8_t *in, uint32_t nbytes)
{
    uint32_t line_nbytes = w->shape.line_nbytes;
    uint8_t last[WHARF_LINE_MAX_NBYTES] = {0};

    for (uint32_t i = 0; i * line_nbytes < nbytes; i++) {
        uint32_t left = nbytes - i * line_nbytes;
        const uint8_t *line = in + (size_t)i * line_nbytes;
        if (left < line_nbytes)
            line = memcpy(last, line, left);
        int code = put_line(w, line);
        if (code < 0)
            return code;
        wharf_line_put_field(codes, i, w->shape.code_nbits, (uint32_t)code);
    }
    return fill_unit(w);
}

static void put_palette_head(struct writer *w, uint64_t group, const uint8_t *in, uint32_t nbytes)
{
    uint32_t line_nbytes = w->shape.line_nbytes;
    uint8_t whole[WHARF_LINE_GROUP_NBYTES];
    uint32_t whole_nbytes = (nbytes + line_nbytes - 1) / line_nbytes * line_nbytes;

    memcpy(whole, in, nbytes);
    memset(whole + nbytes, 0, whole_nbytes - nbytes);
    wharf_line_make_palette(&w->palette, w->shape.type, line_nbytes, whole, whole_nbytes);
    fill_tables(w, w->palette.width);
    memcpy(w->out + w->shape.heads_at + group * WHARF_LINE_HEAD_NBYTES, w->palette.exponents,
           WHARF_LINE_HEAD_NBYTES);
}

static int put_group(struct writer *w, uint64_t group, const uint8_t *in, uint32_t nbytes)
{
    uint8_t *record = w->out + WHARF_LINE_HEADER_NBYTES + group * (uint64_t)w->shape.record_nbytes;

    if (w->shape.layout == WHARF_LINE_PACKED)
        wharf_store_le32(record, (uint32_t)((w->at - w->shape.data_at) / WHARF_LINE_UNIT_NBYTES));
    if (w->shape.codec == WHARF_CODEC_PALETTE)
        put_palette_head(w, group, in, nbytes);
    return put_lines(w, record + w->shape.codes_at, in, nbytes);
}

static void set_shape(const struct wharf_line_choice *choice, size_t in_nbytes,
                      struct wharf_line_shape *shape)
{
    wharf_line_shape_set(shape, choice->codec, choice->line_nbytes, choice->layout, choice->type,
                         in_nbytes);
}

/* Raw lines are the largest, and what a last one has too much. */
size_t wharf_line_bound(const struct wharf_line_choice *choice, size_t in_nbytes)
{
    struct wharf_line_shape shape;

    set_shape(choice, in_nbytes, &shape);
    return (size_t)(shape.data_at + shape.n_lines * shape.line_nbytes);
}

int wharf_line_encode(const struct wharf_line_choice *choice, const uint8_t *in, size_t in_nbytes,
                      uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    struct writer w = {.out = out, .out_avail = out_avail};

    if (in_nbytes > WHARF_LINE_MAX_RAW_NBYTES)
        return -EILSEQ;
    set_shape(choice, in_nbytes, &w.shape);
    if (w.shape.data_at > out_avail)
        return -ENOSPC;
    w.at = (size_t)w.shape.data_at;
    memset(out, 0, w.at);
    wharf_line_shape_write(&w.shape, out);
    fill_tables(&w, 3);
    for (uint64_t group = 0; group < w.shape.n_groups; group++) {
        uint64_t done = group * WHARF_LINE_GROUP_NBYTES;
        uint64_t left = in_nbytes - done;
        int rc =
            put_group(&w, group, in + done,
                      (uint32_t)(left < WHARF_LINE_GROUP_NBYTES ? left : WHARF_LINE_GROUP_NBYTES));
        if (rc < 0)
            return rc;
    }
    *ret_out_nbytes = w.at;
    return 0;
}
