/* SPDX-License-Identifier: Apache-2.0 */
/* rans_write.c: the fields of a body, each as narrow as its largest value allows. */
#include "encoders/rans/rans_write.h"

#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/rans/rans_bits.h"

/* The lengths that items 4, 6 and 8 give: as small as the largest value allows. */
struct widths {
    uint32_t cut;
    uint32_t group;
    uint64_t total_nbits; /* of items 1 to 8 */
};

/* At least 1: a length field cannot say 0. */
static uint32_t width_of(uint64_t value)
{
    uint32_t width = 1;

    while (value >> width)
        width++;
    return width;
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static int64_t ceil_div(uint64_t a, uint64_t b)
{
    return (int64_t)((a + b - 1) / b);
}

/* What items 5 and 7 hold of split s. */
static int64_t cut_difference(const struct wharf_rans_plan *plan, uint32_t s)
{
    return plan->marks[s - 1].first_word -
           (plan->n_splits - s) * ceil_div(plan->n_words, plan->n_splits);
}

static int64_t group_difference(const struct wharf_rans_plan *plan, uint32_t s)
{
    int64_t n_groups = ceil_div(plan->n_symbols, WHARF_RANS_N_LANES);

    return plan->marks[s - 1].first_group - s * ceil_div((uint64_t)n_groups, plan->n_splits);
}

static uint32_t start_width(const struct wharf_rans_mark *mark)
{
    uint32_t any = 0;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        any |= mark->start_offset[lane];
    return width_of(any);
}

static struct widths measure(const struct wharf_rans_plan *plan)
{
    struct widths widths = {.cut = 1, .group = 1};
    uint64_t n = plan->n_splits - 1;

    widths.total_nbits =
        8 * WHARF_RANS_STATES_NBYTES + 4 + width_of(plan->n_splits) + 5 + width_of(plan->n_symbols);
    if (n == 0)
        return widths;
    for (uint32_t s = 1; s <= n; s++) {
        uint32_t cut = width_of(magnitude(cut_difference(plan, s)));
        uint32_t group = width_of(magnitude(group_difference(plan, s)));

        widths.cut = cut > widths.cut ? cut : widths.cut;
        widths.group = group > widths.group ? group : widths.group;
        widths.total_nbits += 4 + WHARF_RANS_N_LANES * start_width(&plan->marks[s - 1]);
    }
    widths.total_nbits += 5 + 5 + n * (1 + widths.cut + 1 + widths.group);
    return widths;
}

/* Item 9 steps over at least one bit. */
static size_t words_before_states(uint64_t n_bits)
{
    return (size_t)(n_bits / WHARF_RANS_WORD_NBITS + 1);
}

size_t wharf_rans_fields_nbytes(const struct wharf_rans_plan *plan)
{
    return WHARF_RANS_WORD_NBYTES * words_before_states(measure(plan).total_nbits) +
           (size_t)WHARF_RANS_SPLIT_STATES_NBYTES * (plan->n_splits - 1);
}

/* A field behind its length. */
static void put_with_length(struct wharf_rans_bit_writer *writer, uint32_t length_nbits,
                            uint32_t value)
{
    wharf_rans_put_bits(writer, width_of(value) - 1, length_nbits);
    wharf_rans_put_bits(writer, value, width_of(value));
}

/* Items 4 to 8. */
static void put_marks(struct wharf_rans_bit_writer *writer, const struct wharf_rans_plan *plan,
                      const struct widths *widths)
{
    wharf_rans_put_bits(writer, widths->cut - 1, 5);
    for (uint32_t s = 1; s < plan->n_splits; s++)
        wharf_rans_put_signed(writer, cut_difference(plan, s), widths->cut);
    wharf_rans_put_bits(writer, widths->group - 1, 5);
    for (uint32_t s = 1; s < plan->n_splits; s++)
        wharf_rans_put_signed(writer, group_difference(plan, s), widths->group);
    for (uint32_t s = 1; s < plan->n_splits; s++) {
        const struct wharf_rans_mark *mark = &plan->marks[s - 1];
        uint32_t width = start_width(mark);

        wharf_rans_put_bits(writer, width - 1, 4);
        for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
            wharf_rans_put_bits(writer, mark->start_offset[lane], width);
    }
}

void wharf_rans_write_fields(const struct wharf_rans_plan *plan, uint8_t *out)
{
    struct widths widths = measure(plan);
    struct wharf_rans_bit_writer writer = {.out = out};
    uint8_t *states = out + WHARF_RANS_WORD_NBYTES * words_before_states(widths.total_nbits);

    memset(out, 0, (size_t)(states - out));
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        wharf_rans_put_bits(&writer, plan->final_state[lane], 32);
    put_with_length(&writer, 4, plan->n_splits);
    put_with_length(&writer, 5, plan->n_symbols);
    if (plan->n_splits > 1)
        put_marks(&writer, plan, &widths);
    for (uint32_t s = 1; s < plan->n_splits; s++)
        for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++, states += 2)
            wharf_store_le16(states, plan->marks[s - 1].state[lane]);
}

void wharf_rans_write_header(const struct wharf_rans_shape *shape, uint32_t model_nbytes,
                             uint32_t indexes_nbytes, uint8_t *out)
{
    out[0] = WHARF_RANS_VERSION;
    out[1] = (uint8_t)shape->n_bits;
    out[2] = (uint8_t)shape->symbol_nbytes;
    out[3] = 0;
    wharf_store_le16(out + 4, shape->n_distributions - 1);
    wharf_store_le16(out + 6, shape->alphabet - 1);
    wharf_store_le32(out + 8, model_nbytes);
    wharf_store_le32(out + 12, indexes_nbytes);
}
