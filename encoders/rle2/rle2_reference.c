/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_reference.c: the reference decoder of rle2, one bit at a time.  It follows the text of the
 * ORC specification (Run Length Encoding, version 2) and shares no code with the fast decoder.
 */
#include "encoders/decode_poll.h"
#include "encoders/outcome.h"
#include "encoders/rle2/rle2.h"

/* A walk over the source; `failure` is the first thing that is wrong. */
struct walk {
    const uint8_t *in;
    size_t in_nbytes;
    size_t bit;
    uint32_t failure;
    uint32_t type;
};

/* The values of a run, and how many they are. */
struct values {
    uint64_t v[512];
    unsigned n;
};

static void fail(struct walk *walk, uint32_t reason)
{
    if (!walk->failure)
        walk->failure = reason;
}

static uint64_t next_bits(struct walk *walk, unsigned nbits)
{
    uint64_t number = 0;

    for (; nbits > 0 && !walk->failure; nbits--, walk->bit++) {
        if (walk->bit / 8 == walk->in_nbytes)
            fail(walk, WHARF_REASON_INPUT_TRUNCATED);
        else
            number = 2 * number + (walk->in[walk->bit / 8] >> (7 - walk->bit % 8) & 1);
    }
    return number;
}

static void skip_to_byte(struct walk *walk)
{
    while (walk->bit % 8 != 0)
        walk->bit++;
}

static uint64_t next_varint(struct walk *walk)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < 10; i++) {
        uint64_t goes_on = next_bits(walk, 1);
        uint64_t digit = next_bits(walk, 7);
        if (walk->failure)
            return 0;
        /* The tenth digit has place for the 64th bit. */
        if (i == 9 && digit > 1)
            break;
        number += digit << (7 * i);
        if (!goes_on)
            return number;
    }
    fail(walk, WHARF_REASON_RLE_VARINT);
    return 0;
}

static uint64_t of_zigzag(uint64_t number)
{
    return number % 2 ? ~(number / 2) : number / 2;
}

static uint64_t of_wide(const struct walk *walk, uint64_t number)
{
    return walk->type >= WHARF_RLE_I8 ? of_zigzag(number) : number;
}

static const uint8_t widths[32] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                   17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 40, 48, 56, 64};

static unsigned next_width(struct walk *walk)
{
    return widths[next_bits(walk, 5)];
}

static void short_repeat(struct walk *walk, struct values *values)
{
    unsigned n_bytes = (unsigned)next_bits(walk, 3) + 1;
    values->n = (unsigned)next_bits(walk, 3) + 3;
    uint64_t v = of_wide(walk, next_bits(walk, 8 * n_bytes));

    for (unsigned i = 0; i < values->n; i++)
        values->v[i] = v;
}

static void direct(struct walk *walk, struct values *values)
{
    unsigned width = next_width(walk);

    values->n = (unsigned)next_bits(walk, 9) + 1;
    for (unsigned i = 0; i < values->n; i++)
        values->v[i] = of_wide(walk, next_bits(walk, width));
    skip_to_byte(walk);
}

/* The list of patches, on the offsets. */
static void patch(struct walk *walk, struct values *values, unsigned width, unsigned gap_width,
                  unsigned patch_width, unsigned n_patches)
{
    unsigned entry_width = 0;
    unsigned at = 0;
    int is_bad = 0;

    for (unsigned i = 0; i < 32 && entry_width < gap_width + patch_width; i++)
        entry_width = widths[i];
    for (unsigned i = 0; i < n_patches; i++) {
        next_bits(walk, entry_width - gap_width - patch_width);
        uint64_t gap = next_bits(walk, gap_width);
        uint64_t bits = next_bits(walk, patch_width);
        at += (unsigned)gap;
        if (walk->failure || is_bad)
            continue;
        if (at >= values->n || (i > 0 && gap == 0))
            is_bad = 1;
        else if (width < 64)
            values->v[at] |= bits << width;
    }
    skip_to_byte(walk);
    /* Only if all of the list is there. */
    if (is_bad)
        fail(walk, WHARF_REASON_RLE_PATCHES);
}

static void patched_base(struct walk *walk, struct values *values)
{
    unsigned width = next_width(walk);
    values->n = (unsigned)next_bits(walk, 9) + 1;
    unsigned base_nbits = 8 * ((unsigned)next_bits(walk, 3) + 1);
    unsigned patch_width = next_width(walk);
    unsigned gap_width = (unsigned)next_bits(walk, 3) + 1;
    unsigned n_patches = (unsigned)next_bits(walk, 5);
    uint64_t is_negative = next_bits(walk, 1);
    uint64_t base = next_bits(walk, base_nbits - 1);

    if (n_patches == 0 || gap_width + patch_width > 64)
        fail(walk, WHARF_REASON_RLE_PATCHES);
    for (unsigned i = 0; i < values->n; i++)
        values->v[i] = next_bits(walk, width);
    skip_to_byte(walk);
    if (!walk->failure)
        patch(walk, values, width, gap_width, patch_width, n_patches);
    for (unsigned i = 0; i < values->n; i++)
        values->v[i] += is_negative ? 0 - base : base;
}

static void delta(struct walk *walk, struct values *values)
{
    uint64_t code = next_bits(walk, 5);
    values->n = (unsigned)next_bits(walk, 9) + 1;
    values->v[0] = of_wide(walk, next_varint(walk));
    uint64_t first = of_zigzag(next_varint(walk));

    for (unsigned i = 1; i < values->n; i++) {
        uint64_t step = first;
        if (i > 1 && code != 0) {
            step = next_bits(walk, widths[code]);
            if ((int64_t)first < 0)
                step = 0 - step;
        }
        values->v[i] = values->v[i - 1] + step;
    }
    skip_to_byte(walk);
}

static void next_run(struct walk *walk, struct values *values)
{
    static void (*const kinds[4])(struct walk *, struct values *) = {short_repeat, direct,
                                                                     patched_base, delta};
    kinds[next_bits(walk, 2)](walk, values);
}

static int is_of_type(uint64_t value, uint32_t type)
{
    unsigned nbits = 8u << type % 4;

    if (nbits == 64)
        return 1;
    if (type < WHARF_RLE_I8)
        return value >> nbits == 0;
    return (int64_t)value >= -((int64_t)1 << (nbits - 1)) && (int64_t)value < (int64_t)1
                                                                                  << (nbits - 1);
}

/* Stores the values after what is there already.  Returns how many bytes there are then. */
static size_t store(struct walk *walk, const struct values *values, uint8_t *out, size_t out_avail,
                    size_t out_nbytes)
{
    size_t value_nbytes = (size_t)1 << walk->type % 4;

    if (values->n > (out_avail - out_nbytes) / value_nbytes)
        fail(walk, WHARF_REASON_OUTPUT_FULL);
    for (unsigned i = 0; i < values->n && !walk->failure; i++) {
        if (!is_of_type(values->v[i], walk->type))
            fail(walk, WHARF_REASON_RLE_VALUE);
        for (size_t k = 0; k < value_nbytes; k++)
            out[out_nbytes++] = (uint8_t)(values->v[i] >> (8 * k));
    }
    return out_nbytes;
}

void wharf_rle2_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome)
{
    struct walk walk = {in, in_nbytes, 0, WHARF_REASON_NONE, setting ? setting->parameter : 0};
    struct values values;
    size_t out_nbytes = 0;

    while (walk.bit / 8 < in_nbytes) {
        size_t run = walk.bit;
        uint32_t stopped = wharf_decode_poll(setting);
        if (stopped) {
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
            return;
        }
        next_run(&walk, &values);
        if (!walk.failure)
            out_nbytes = store(&walk, &values, out, out_avail, out_nbytes);
        if (walk.failure) {
            uint32_t result =
                walk.failure == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL : WHARF_BAD_DATA;
            wharf_outcome_fail(ret_outcome, result, walk.failure, run);
            return;
        }
    }
    wharf_outcome_ok(ret_outcome, in_nbytes, out_nbytes);
}
