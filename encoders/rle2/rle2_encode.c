/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_encode.c: the encoder of ORC's run length encoding, version 2: cuts the values into runs.
 *
 * ORC's writer makes a separate run wherever a value repeats three times; this encoder does so only
 * where it saves bytes.  It plans windows of 512 values in two ways, as one run and cut at repeats,
 * and takes the smaller one.
 */
#include <errno.h>
#include <string.h>

#include "encoders/rle2/rle2.h"
#include "encoders/rle2/rle2_format.h"
#include "encoders/rle2/rle2_segment.h"
#include "encoders/rle_encoder.h"
#include "encoders/rle_values.h"

const struct wharf_encoder_row wharf_rle2_encoder_rows[] = {
    {.name = "rle2"},
    {.name = NULL},
};

static int rle2_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    return wharf_rle_encoder_new(&wharf_rle2_codec, options, ret_encoder);
}

/* A window is at most as large as one direct run: 2 bytes plus its values' size.  The number of
 * windows is bounded because a shortened one and the next have more than 512 values together. */
static size_t rle2_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    size_t n = in_nbytes / wharf_rle_type_nbytes(encoder->type);

    return in_nbytes + 4 * (n / WHARF_RLE2_RUN_MAX + 1);
}

/* Up to 512 values of the input, and the runs that they are cut into. */
struct window {
    uint64_t values[WHARF_RLE2_RUN_MAX];
    unsigned n;
    int is_signed;
    uint32_t cut_nbytes; /* what the runs of the cut take */
    unsigned n_runs;
    struct run {
        uint16_t first;
        uint16_t n;
        uint8_t is_repeat;
        struct wharf_rle2_plan plan; /* of a run that is not */
    } runs[WHARF_RLE2_RUN_MAX];
};

static void add_segment(struct window *window, unsigned first, unsigned n)
{
    struct run *run = &window->runs[window->n_runs];

    if (n == 0)
        return;
    window->n_runs++;
    *run = (struct run){.first = (uint16_t)first, .n = (uint16_t)n};
    wharf_rle2_plan_segment(window->values + first, n, window->is_signed, &run->plan);
    window->cut_nbytes += run->plan.nbytes;
}

static void add_repeat(struct window *window, unsigned first, unsigned n)
{
    window->runs[window->n_runs++] =
        (struct run){.first = (uint16_t)first, .n = (uint16_t)n, .is_repeat = 1};
    window->cut_nbytes += wharf_rle2_repeat_nbytes(window->values[first], n, window->is_signed);
}

static unsigned measure_repeat(const struct window *window, unsigned i)
{
    unsigned n = 1;

    while (i + n < window->n && window->values[i + n] == window->values[i])
        n++;
    return n;
}

/* The bits of the values that a repeat at i of n would be packed with: those of the segment from
 * `first` on and the eight behind it. */
static unsigned neighbours_nbits(const struct window *window, unsigned first, unsigned i,
                                 unsigned n)
{
    unsigned end = i + n + 8 < window->n ? i + n + 8 : window->n;
    uint64_t all = 0;

    first = i - first > 8 ? i - 8 : first;
    for (; first < end; first++)
        all |= window->is_signed ? wharf_rle_zigzag(window->values[first]) : window->values[first];
    return wharf_rle2_table_nbits(all);
}

/* Whether a run of its own saves something: beside it, there is a header for what is behind it. */
static int repeat_pays(const struct window *window, unsigned first, unsigned i, unsigned n)
{
    if (n < WHARF_RLE2_REPEAT_MIN)
        return 0;
    unsigned nbits = 8 * wharf_rle2_repeat_nbytes(window->values[i], n, window->is_signed);
    unsigned split_nbits = first < i && i + n < window->n ? 16 : 0;
    return nbits + split_nbits <= n * neighbours_nbits(window, first, i, n);
}

static void cut(struct window *window)
{
    unsigned first = 0;
    unsigned n;

    window->n_runs = 0;
    window->cut_nbytes = 0;
    for (unsigned i = 0; i < window->n; i += n) {
        n = measure_repeat(window, i);
        if (!repeat_pays(window, first, i, n))
            continue;
        add_segment(window, first, i - first);
        add_repeat(window, i, n);
        first = i + n;
    }
    add_segment(window, first, window->n - first);
}

struct output {
    uint8_t *next;
    uint8_t *end;
};

static int put_segment(struct output *output, const struct window *window, unsigned first,
                       unsigned n, const struct wharf_rle2_plan *plan)
{
    if ((size_t)(output->end - output->next) < plan->nbytes)
        return -ENOSPC;
    wharf_rle2_write_segment(plan, window->values + first, n, window->is_signed, output->next);
    output->next += plan->nbytes;
    return 0;
}

static int put_repeat(struct output *output, const struct window *window, unsigned first,
                      unsigned n)
{
    uint64_t value = window->values[first];

    if ((size_t)(output->end - output->next) <
        wharf_rle2_repeat_nbytes(value, n, window->is_signed))
        return -ENOSPC;
    output->next += wharf_rle2_write_repeat(value, n, window->is_signed, output->next);
    return 0;
}

static int put_runs(struct output *output, const struct window *window)
{
    int rc = 0;

    for (unsigned i = 0; i < window->n_runs && rc == 0; i++) {
        const struct run *run = &window->runs[i];
        rc = run->is_repeat ? put_repeat(output, window, run->first, run->n)
                            : put_segment(output, window, run->first, run->n, &run->plan);
    }
    return rc;
}

/* Leaves a repeat at the window's end to the next window, unless it fills this one. */
static void shorten(struct window *window)
{
    const struct run *last = &window->runs[window->n_runs - 1];

    if (window->n_runs > 1 && last->is_repeat) {
        window->n -= last->n;
        window->n_runs--;
        window->cut_nbytes -=
            wharf_rle2_repeat_nbytes(window->values[last->first], last->n, window->is_signed);
    }
}

static int put_window(struct output *output, struct window *window)
{
    struct wharf_rle2_plan plan;

    cut(window);
    if (window->n == WHARF_RLE2_RUN_MAX)
        shorten(window);
    wharf_rle2_plan_segment(window->values, window->n, window->is_signed, &plan);
    if (plan.nbytes <= window->cut_nbytes)
        return put_segment(output, window, 0, window->n, &plan);
    return put_runs(output, window);
}

static int rle2_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    unsigned nbytes = wharf_rle_type_nbytes(encoder->type);
    struct output output = {out, out_avail ? out + out_avail : out};
    size_t n_values = in_nbytes / nbytes;
    struct window window = {.is_signed = wharf_rle_type_is_signed(encoder->type)};
    int rc = 0;

    if (in_nbytes % nbytes)
        return -EILSEQ;
    for (size_t i = 0; i < n_values && rc == 0; i += window.n) {
        window.n =
            n_values - i < WHARF_RLE2_RUN_MAX ? (unsigned)(n_values - i) : WHARF_RLE2_RUN_MAX;
        for (unsigned k = 0; k < window.n; k++)
            window.values[k] = wharf_rle_load(in + (i + k) * nbytes, nbytes, window.is_signed);
        rc = put_window(&output, &window);
    }
    if (rc == 0)
        *ret_out_nbytes = (size_t)(output.next - out);
    return rc;
}

const struct wharf_encoder_ops wharf_rle2_encoder = {
    .new = rle2_new,
    .bound = rle2_bound,
    .encode = rle2_encode,
    .free = wharf_rle_encoder_free,
};
