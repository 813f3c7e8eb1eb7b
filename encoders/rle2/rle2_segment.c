/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_segment.c: finds and writes the smallest kind of run for given values.
 *
 * A plan computes the size of a kind without writing it; the smallest plan is written.  For patched
 * base, all widths below that of the largest offset are tried, from wide to narrow, until a run
 * cannot hold the patches: their number only grows as the width shrinks.
 */
#include "encoders/rle2/rle2_segment.h"

#include <string.h>

#include "encoders/rle_values.h"

static uint64_t number_of(uint64_t v, int is_signed)
{
    return is_signed ? wharf_rle_zigzag(v) : v;
}

/* ---- plans -------------------------------------------------------------------------------- */

static void take_better(struct wharf_rle2_plan *best, const struct wharf_rle2_plan *plan)
{
    if (plan->nbytes < best->nbytes)
        *best = *plan;
}

static void plan_direct(const uint64_t *values, unsigned n, int is_signed,
                        struct wharf_rle2_plan *best)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < n; i++)
        all |= number_of(values[i], is_signed);
    *best = (struct wharf_rle2_plan){.kind = WHARF_RLE2_DIRECT};
    best->width = wharf_rle2_table_nbits(all);
    best->nbytes = 2 + wharf_rle2_packed_nbytes(n, best->width);
}

/* The difference to value i, in the direction of the first one. */
static uint64_t step_to(const uint64_t *values, unsigned i)
{
    uint64_t step = values[i] - values[i - 1];
    return (int64_t)(values[1] - values[0]) < 0 ? 0 - step : step;
}

static void plan_delta(const uint64_t *values, unsigned n, int is_signed,
                       struct wharf_rle2_plan *best)
{
    struct wharf_rle2_plan plan = {.kind = WHARF_RLE2_DELTA};
    uint64_t all = 0;
    uint64_t others = 0;

    if (n < 2)
        return;
    uint64_t first = step_to(values, 1);
    for (unsigned i = 2; i < n; i++) {
        uint64_t step = step_to(values, i);
        all |= step;
        others |= step ^ first;
    }
    plan.nbytes = 2 + wharf_rle_varint_nbytes(number_of(values[0], is_signed)) +
                  wharf_rle_varint_nbytes(wharf_rle_zigzag(values[1] - values[0]));
    if (others) {
        /* The code of a width of 1 says that all differences are the same. */
        plan.width = wharf_rle2_table_nbits(all | 2);
        plan.nbytes += wharf_rle2_packed_nbytes(n - 2, plan.width);
    }
    take_better(best, &plan);
}

/*
 * The entries that a list of patches needs for the offsets of more than plan->width bits.  Fills in
 * n_patches and gap_width; returns whether they are at most 31.
 */
static int count_patches(const uint64_t *values, unsigned n, struct wharf_rle2_plan *plan)
{
    unsigned at = 0;
    unsigned gap_max = 0;

    plan->n_patches = 0;
    for (unsigned i = 0; i < n && plan->n_patches <= WHARF_RLE2_PATCHES_MAX; i++) {
        if ((values[i] - plan->base) >> plan->width == 0)
            continue;
        unsigned gap = i - at;
        for (; gap > 255; gap -= 255, plan->n_patches++)
            gap_max = 255;
        gap_max = gap > gap_max ? gap : gap_max;
        plan->n_patches++;
        at = i;
    }
    plan->gap_width = gap_max ? wharf_rle2_nbits(gap_max) : 1;
    return plan->n_patches <= WHARF_RLE2_PATCHES_MAX;
}

/* With plan->width, base, base_nbytes, n_patches and gap_width given. */
static void plan_patches(unsigned n, unsigned offset_nbits, struct wharf_rle2_plan *plan,
                         struct wharf_rle2_plan *best)
{
    plan->patch_width = wharf_rle2_width(wharf_rle2_width_code(offset_nbits - plan->width));
    plan->nbytes = 4 + plan->base_nbytes + wharf_rle2_packed_nbytes(n, plan->width);
    if (plan->nbytes >= best->nbytes || plan->gap_width + plan->patch_width > 64)
        return;
    unsigned entry_width =
        wharf_rle2_width(wharf_rle2_width_code(plan->gap_width + plan->patch_width));
    plan->nbytes += wharf_rle2_packed_nbytes(plan->n_patches, entry_width);
    take_better(best, plan);
}

/* The least value, and how many bits the offsets from it have at most. */
static uint64_t find_base(const uint64_t *values, unsigned n, unsigned *ret_offset_nbits)
{
    uint64_t base = values[0];
    uint64_t all = 0;

    for (unsigned i = 1; i < n; i++)
        if ((int64_t)values[i] < (int64_t)base)
            base = values[i];
    for (unsigned i = 0; i < n; i++)
        all |= values[i] - base;
    *ret_offset_nbits = wharf_rle2_nbits(all);
    return base;
}

static void plan_patched_base(const uint64_t *values, unsigned n, struct wharf_rle2_plan *best)
{
    struct wharf_rle2_plan plan = {.kind = WHARF_RLE2_PATCHED_BASE};
    unsigned offset_nbits;

    plan.base = find_base(values, n, &offset_nbits);
    uint64_t size = (int64_t)plan.base < 0 ? 0 - plan.base : plan.base;
    /* Old readers hold 56 bits of a base. */
    if (size >> 55)
        return;
    plan.base_nbytes = wharf_rle2_nbits(size) / 8 + 1;
    for (unsigned code = wharf_rle2_width_code(offset_nbits); code-- > 0;) {
        plan.width = wharf_rle2_width(code);
        /* What is over grows as the width shrinks. */
        if (!count_patches(values, n, &plan))
            return;
        plan_patches(n, offset_nbits, &plan, best);
    }
}

void wharf_rle2_plan_segment(const uint64_t *values, unsigned n, int is_signed,
                             struct wharf_rle2_plan *ret_plan)
{
    plan_direct(values, n, is_signed, ret_plan);
    plan_delta(values, n, is_signed, ret_plan);
    plan_patched_base(values, n, ret_plan);
}

/* ---- bytes -------------------------------------------------------------------------------- */

static uint8_t *put_bytes(uint8_t *out, uint64_t u, unsigned nbytes)
{
    for (unsigned i = nbytes; i-- > 0;)
        *out++ = (uint8_t)(u >> (8 * i));
    return out;
}

/* Packed numbers on their way: the lower n bits of `bits` are not yet out. */
struct packer {
    uint8_t *out;
    unsigned __int128 bits;
    unsigned n;
};

static void pack(struct packer *packer, uint64_t u, unsigned width)
{
    packer->bits = packer->bits << width | u;
    for (packer->n += width; packer->n >= 8; packer->n -= 8)
        *packer->out++ = (uint8_t)(packer->bits >> (packer->n - 8));
}

static uint8_t *end_packing(struct packer *packer)
{
    if (packer->n > 0)
        *packer->out++ = (uint8_t)(packer->bits << (8 - packer->n));
    return packer->out;
}

static uint8_t *put_header(uint8_t *out, enum wharf_rle2_kind kind, unsigned code, unsigned n)
{
    return put_bytes(out, (uint64_t)kind << 14 | code << 9 | (n - 1), 2);
}

static void write_direct(const struct wharf_rle2_plan *plan, const uint64_t *values, unsigned n,
                         int is_signed, uint8_t *out)
{
    struct packer packer = {.out =
                                put_header(out, plan->kind, wharf_rle2_width_code(plan->width), n)};

    for (unsigned i = 0; i < n; i++)
        pack(&packer, number_of(values[i], is_signed), plan->width);
    end_packing(&packer);
}

static void write_delta(const struct wharf_rle2_plan *plan, const uint64_t *values, unsigned n,
                        int is_signed, uint8_t *out)
{
    unsigned code = plan->width ? wharf_rle2_width_code(plan->width) : 0;

    out = put_header(out, plan->kind, code, n);
    out += wharf_rle_put_varint(out, number_of(values[0], is_signed));
    out += wharf_rle_put_varint(out, wharf_rle_zigzag(values[1] - values[0]));
    if (code == 0)
        return;
    struct packer packer = {.out = out};
    for (unsigned i = 2; i < n; i++)
        pack(&packer, step_to(values, i), plan->width);
    end_packing(&packer);
}

static void write_patches(const struct wharf_rle2_plan *plan, const uint64_t *values, unsigned n,
                          uint8_t *out)
{
    unsigned entry_width =
        wharf_rle2_width(wharf_rle2_width_code(plan->gap_width + plan->patch_width));
    struct packer packer = {.out = out};
    unsigned at = 0;

    for (unsigned i = 0; i < n; i++) {
        uint64_t bits = (values[i] - plan->base) >> plan->width;
        uint64_t gap = i - at;
        if (bits == 0)
            continue;
        for (; gap > 255; gap -= 255)
            pack(&packer, (uint64_t)255 << plan->patch_width, entry_width);
        pack(&packer, gap << plan->patch_width | bits, entry_width);
        at = i;
    }
    end_packing(&packer);
}

static void write_patched_base(const struct wharf_rle2_plan *plan, const uint64_t *values,
                               unsigned n, uint8_t *out)
{
    int is_negative = (int64_t)plan->base < 0;
    uint64_t sign = (uint64_t)is_negative << (8 * plan->base_nbytes - 1);

    out = put_header(out, plan->kind, wharf_rle2_width_code(plan->width), n);
    *out++ = (uint8_t)((plan->base_nbytes - 1) << 5 | wharf_rle2_width_code(plan->patch_width));
    *out++ = (uint8_t)((plan->gap_width - 1) << 5 | plan->n_patches);
    out = put_bytes(out, sign | (is_negative ? 0 - plan->base : plan->base), plan->base_nbytes);
    struct packer packer = {.out = out};
    for (unsigned i = 0; i < n; i++)
        pack(&packer, (values[i] - plan->base) & (((uint64_t)1 << plan->width) - 1), plan->width);
    write_patches(plan, values, n, end_packing(&packer));
}

void wharf_rle2_write_segment(const struct wharf_rle2_plan *plan, const uint64_t *values,
                              unsigned n, int is_signed, uint8_t *out)
{
    if (plan->kind == WHARF_RLE2_DIRECT)
        write_direct(plan, values, n, is_signed, out);
    else if (plan->kind == WHARF_RLE2_DELTA)
        write_delta(plan, values, n, is_signed, out);
    else
        write_patched_base(plan, values, n, out);
}

/* ---- repeats ------------------------------------------------------------------------------ */

static unsigned number_nbytes(uint64_t u)
{
    return u ? (wharf_rle2_nbits(u) + 7) / 8 : 1;
}

unsigned wharf_rle2_repeat_nbytes(uint64_t value, unsigned n, int is_signed)
{
    uint64_t u = number_of(value, is_signed);

    return n <= WHARF_RLE2_REPEAT_MAX ? 1 + number_nbytes(u) : 3 + wharf_rle_varint_nbytes(u);
}

unsigned wharf_rle2_write_repeat(uint64_t value, unsigned n, int is_signed, uint8_t *out)
{
    uint64_t u = number_of(value, is_signed);
    unsigned nbytes = number_nbytes(u);
    uint8_t *begin = out;

    if (n <= WHARF_RLE2_REPEAT_MAX) {
        *out++ = (uint8_t)((nbytes - 1) << 3 | (n - WHARF_RLE2_REPEAT_MIN));
        return (unsigned)(put_bytes(out, u, nbytes) - begin);
    }
    out = put_header(out, WHARF_RLE2_DELTA, 0, n);
    out += wharf_rle_put_varint(out, u);
    *out++ = 0;
    return (unsigned)(out - begin);
}
