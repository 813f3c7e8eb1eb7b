/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_compress.c: finds and writes the smallest form of a line in bdi, fpc and cpack (LINES.md,
 * sections 3 to 5).
 *
 * Each scheme has a `find` function, which computes a line's size, and a `put` function, which
 * writes the line.  The codec `best` calls all three find functions and one put function.
 */
#include "encoders/line/line_compress.h"

#include <string.h>

#include "encoders/line/line_bits.h"

/* ---- bdi ------------------------------------------------------------------------------------ */

/* In the order of their numbers. */
static const struct bdi_try {
    uint8_t variant;
    uint8_t base_nbytes;
    uint8_t delta_nbytes;
} bdi_tries[] = {
    {WHARF_LINE_BDI_8_1, 8, 1}, {WHARF_LINE_BDI_8_2, 8, 2}, {WHARF_LINE_BDI_8_4, 8, 4},
    {WHARF_LINE_BDI_4_1, 4, 1}, {WHARF_LINE_BDI_4_2, 4, 2}, {WHARF_LINE_BDI_2_1, 2, 1},
};
enum { N_BDI_TRIES = sizeof(bdi_tries) / sizeof(bdi_tries[0]) };

static bool is_repeat(const uint8_t *line, uint32_t line_nbytes)
{
    return memcmp(line, line + 8, line_nbytes - 8) == 0;
}

/* Whether all values are within a delta of zero or of the base.  The base is the first value that
 * is not near zero, or 0 if there is none. */
static inline bool find_base(const uint8_t *line, uint32_t line_nbytes, uint32_t base_nbytes,
                             uint32_t delta_nbytes, uint64_t *ret_base)
{
    bool has_base = false;
    uint64_t base = 0;

    for (uint32_t at = 0; at < line_nbytes; at += base_nbytes) {
        uint64_t value = wharf_line_load(line + at, base_nbytes);
        if (wharf_line_fits(wharf_line_signed(value, base_nbytes), 8 * delta_nbytes))
            continue;
        if (!has_base)
            base = value;
        has_base = true;
        if (!wharf_line_fits(wharf_line_signed(value - base, base_nbytes), 8 * delta_nbytes))
            return false;
    }
    *ret_base = base;
    return true;
}

static uint32_t bdi_nbytes(const struct bdi_try *t, uint32_t line_nbytes)
{
    uint32_t n = line_nbytes / t->base_nbytes;

    return (n + 7) / 8 + t->base_nbytes + n * t->delta_nbytes;
}

static bool find_base_of(const struct bdi_try *t, const uint8_t *line, uint32_t line_nbytes,
                         uint64_t *ret_base)
{
    switch (t->variant) { /* with constants, which is much quicker */
    case WHARF_LINE_BDI_8_1:
        return find_base(line, line_nbytes, 8, 1, ret_base);
    case WHARF_LINE_BDI_8_2:
        return find_base(line, line_nbytes, 8, 2, ret_base);
    case WHARF_LINE_BDI_8_4:
        return find_base(line, line_nbytes, 8, 4, ret_base);
    case WHARF_LINE_BDI_4_1:
        return find_base(line, line_nbytes, 4, 1, ret_base);
    case WHARF_LINE_BDI_4_2:
        return find_base(line, line_nbytes, 4, 2, ret_base);
    default:
        return find_base(line, line_nbytes, 2, 1, ret_base);
    }
}

struct wharf_line_bdi wharf_line_find_bdi(const uint8_t *line, uint32_t line_nbytes)
{
    struct wharf_line_bdi best = {0};
    uint32_t best_nbytes = line_nbytes;

    if (is_repeat(line, line_nbytes))
        return (struct wharf_line_bdi){WHARF_LINE_BDI_REPEAT, wharf_line_load(line, 8)};
    for (uint32_t i = 0; i < N_BDI_TRIES; i++) {
        uint32_t nbytes = bdi_nbytes(&bdi_tries[i], line_nbytes);
        uint64_t base;
        if (nbytes < best_nbytes && find_base_of(&bdi_tries[i], line, line_nbytes, &base)) {
            best = (struct wharf_line_bdi){bdi_tries[i].variant, base};
            best_nbytes = nbytes;
        }
    }
    return best;
}

void wharf_line_put_bdi(const struct wharf_line_bdi *bdi, const uint8_t *line, uint32_t line_nbytes,
                        uint8_t *out)
{
    if (bdi->variant == WHARF_LINE_BDI_REPEAT) {
        wharf_line_store(out, 8, bdi->base);
        return;
    }
    const struct bdi_try *t = &bdi_tries[bdi->variant - WHARF_LINE_BDI_8_1];
    uint32_t b = t->base_nbytes, d = t->delta_nbytes, n = line_nbytes / b;
    uint32_t mask_nbytes = (n + 7) / 8;
    uint8_t *deltas = out + mask_nbytes + b;

    memset(out, 0, mask_nbytes);
    wharf_line_store(out + mask_nbytes, b, bdi->base);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t value = wharf_line_load(line + (size_t)i * b, b);
        bool is_near_zero = wharf_line_fits(wharf_line_signed(value, b), 8 * d);
        out[i / 8] |= (uint8_t)(is_near_zero << i % 8);
        wharf_line_store(deltas + (size_t)i * d, d, is_near_zero ? value : value - bdi->base);
    }
}

/* ---- fpc ------------------------------------------------------------------------------------ */

/* From the smallest to the largest, of equals that with the lowest number first. */
static const uint8_t fpc_tries[] = {
    WHARF_LINE_FPC_ZEROS,     WHARF_LINE_FPC_SIGNED_4,  WHARF_LINE_FPC_SIGNED_8,
    WHARF_LINE_FPC_REPEATED,  WHARF_LINE_FPC_SIGNED_16, WHARF_LINE_FPC_HIGH_HALF,
    WHARF_LINE_FPC_TWO_BYTES,
};

static bool has_pattern(uint32_t word, uint32_t pattern)
{
    int32_t number = (int32_t)word;

    switch (pattern) {
    case WHARF_LINE_FPC_ZEROS:
        return word == 0;
    case WHARF_LINE_FPC_SIGNED_4:
        return wharf_line_fits(number, 4);
    case WHARF_LINE_FPC_SIGNED_8:
        return wharf_line_fits(number, 8);
    case WHARF_LINE_FPC_SIGNED_16:
        return wharf_line_fits(number, 16);
    case WHARF_LINE_FPC_HIGH_HALF:
        return (word & 0xffff) == 0;
    case WHARF_LINE_FPC_TWO_BYTES:
        return wharf_line_fits((int16_t)word, 8) && wharf_line_fits(number >> 16, 8);
    default: /* REPEATED */
        return word == (word & 0xff) * 0x01010101u;
    }
}

static uint8_t find_pattern(const uint8_t *segment)
{
    for (uint32_t i = 0; i < sizeof(fpc_tries); i++) {
        bool have_all = true;
        for (uint32_t k = 0; k < WHARF_LINE_FPC_SEGMENT_NBYTES && have_all; k += 4)
            have_all = has_pattern((uint32_t)wharf_line_load(segment + k, 4), fpc_tries[i]);
        if (have_all)
            return fpc_tries[i];
    }
    return WHARF_LINE_FPC_RAW;
}

struct wharf_line_fpc wharf_line_find_fpc(const uint8_t *line, uint32_t line_nbytes)
{
    struct wharf_line_fpc fpc = {0};

    for (uint32_t at = 0; at < line_nbytes; at += WHARF_LINE_FPC_SEGMENT_NBYTES) {
        uint8_t pattern = find_pattern(line + at);
        fpc.patterns[at / WHARF_LINE_FPC_SEGMENT_NBYTES] = pattern;
        fpc.n_pairs += wharf_line_fpc_npairs(pattern);
    }
    return fpc;
}

/* Four words; writes what the pattern takes. */
static void put_segment(const uint8_t *segment, uint32_t pattern, uint8_t *out)
{
    memset(out, 0, (size_t)2 * wharf_line_fpc_npairs(pattern));
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t word = (uint32_t)wharf_line_load(segment + (size_t)4 * i, 4);
        switch (pattern) {
        case WHARF_LINE_FPC_ZEROS:
            break;
        case WHARF_LINE_FPC_SIGNED_4:
            wharf_line_put_field(out, i, 4, word & 15);
            break;
        case WHARF_LINE_FPC_SIGNED_8:
        case WHARF_LINE_FPC_REPEATED:
            out[i] = (uint8_t)word;
            break;
        case WHARF_LINE_FPC_SIGNED_16:
            wharf_line_store(out + (size_t)2 * i, 2, word);
            break;
        case WHARF_LINE_FPC_HIGH_HALF:
            wharf_line_store(out + (size_t)2 * i, 2, word >> 16);
            break;
        case WHARF_LINE_FPC_TWO_BYTES:
            out[2 * i] = (uint8_t)word;
            out[2 * i + 1] = (uint8_t)(word >> 16);
            break;
        default:
            wharf_line_store(out + (size_t)4 * i, 4, word);
        }
    }
}

void wharf_line_put_fpc(const struct wharf_line_fpc *fpc, const uint8_t *line, uint32_t line_nbytes,
                        uint8_t *out)
{
    uint32_t n = line_nbytes / WHARF_LINE_FPC_SEGMENT_NBYTES;
    uint8_t *segment = out + wharf_line_fpc_head_nbytes(line_nbytes);

    memset(out, 0, wharf_line_fpc_head_nbytes(line_nbytes));
    for (uint32_t i = 0; i < n; i++) {
        wharf_line_put_field(out, i, 3, fpc->patterns[i]);
        put_segment(line + (size_t)i * WHARF_LINE_FPC_SEGMENT_NBYTES, fpc->patterns[i], segment);
        segment += (size_t)2 * wharf_line_fpc_npairs(fpc->patterns[i]);
    }
}

/* ---- cpack ---------------------------------------------------------------------------------- */

/* The source that equals a word except for its low byte: 0 for zero, or a dictionary word's number
 * from 1 on; one more than the last number if there is none.  At most one source fits. */
static uint32_t find_source(const struct wharf_line_cpack *cpack, uint32_t word)
{
    uint32_t source = 0;

    if (word >> 8 == 0)
        return 0;
    do
        source++;
    while (source <= cpack->n_words && cpack->words[source - 1] >> 8 != word >> 8);
    return source;
}

struct wharf_line_cpack wharf_line_find_cpack(const uint8_t *line, uint32_t line_nbytes)
{
    struct wharf_line_cpack cpack = {.is_good = true};

    for (uint32_t i = 0; i < line_nbytes / 4; i++) {
        uint32_t word = (uint32_t)wharf_line_load(line + (size_t)4 * i, 4);
        uint32_t source = find_source(&cpack, word);
        if (source > WHARF_LINE_CPACK_MAX_NWORDS) {
            cpack.is_good = false;
            break;
        }
        if (source > cpack.n_words)
            cpack.words[cpack.n_words++] = word;
        bool has_byte = word != (source == 0 ? 0 : cpack.words[source - 1]);
        cpack.nibbles[i] = (uint8_t)(source | (has_byte ? WHARF_LINE_CPACK_HAS_BYTE : 0));
        cpack.n_bytes += has_byte;
    }
    return cpack;
}

void wharf_line_put_cpack(const struct wharf_line_cpack *cpack, uint32_t n_words,
                          const uint8_t *line, uint32_t line_nbytes, uint8_t *out)
{
    uint32_t head_nbytes = wharf_line_cpack_head_nbytes(line_nbytes);
    uint8_t *bytes = out + head_nbytes + (size_t)4 * n_words;

    memset(out, 0, head_nbytes);
    for (uint32_t i = 0; i < n_words; i++)
        wharf_line_store(out + head_nbytes + (size_t)4 * i, 4, cpack->words[i]);
    for (uint32_t i = 0; i < line_nbytes / 4; i++) {
        wharf_line_put_field(out, i, 4, cpack->nibbles[i]);
        if (cpack->nibbles[i] & WHARF_LINE_CPACK_HAS_BYTE)
            *bytes++ = line[4 * i];
    }
}
