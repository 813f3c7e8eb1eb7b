/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_encode.c: the encoder of ORC's run length encoding, version 1.
 *
 * Like ORC's writer, it makes a run wherever three consecutive values differ by the same small
 * amount.  Exception: if the run, plus the header of the literals that it splits, would be larger
 * than its values as literals, they stay literals.
 */
#include <errno.h>

#include "encoders/rle1/rle1.h"
#include "encoders/rle1/rle1_format.h"
#include "encoders/rle_encoder.h"
#include "encoders/rle_values.h"

const struct wharf_encoder_row wharf_rle1_encoder_rows[] = {
    {.name = "rle1"},
    {.name = NULL},
};

static int rle1_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    return wharf_rle_encoder_new(&wharf_rle1_codec, options, ret_encoder);
}

/* The size of all values as literals, since no run makes the output larger.  A varint takes an
 * eighth more bits than its value, rounded up. */
static size_t rle1_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    unsigned nbytes = wharf_rle_type_nbytes(encoder->type);
    size_t n = in_nbytes / nbytes;

    return n * (nbytes + 1 + nbytes / 8) + n / WHARF_RLE1_LITERALS_MAX + 1;
}

struct output {
    uint8_t *next;
    uint8_t *end;
};

/* The values as they stand in the stream. */
struct input {
    const uint8_t *in;
    size_t n;
    unsigned nbytes;
    int is_signed;
};

static uint64_t value_at(const struct input *input, size_t i)
{
    return wharf_rle_load(input->in + i * input->nbytes, input->nbytes, input->is_signed);
}

static uint64_t number_at(const struct input *input, size_t i)
{
    uint64_t v = value_at(input, i);
    return input->is_signed ? wharf_rle_zigzag(v) : v;
}

/* The number of values from i on with a constant difference of one byte, up to a run's maximum. */
static size_t measure_run(const struct input *input, size_t i, uint64_t *ret_delta)
{
    size_t n_max = input->n - i < WHARF_RLE1_RUN_MAX ? input->n - i : WHARF_RLE1_RUN_MAX;
    size_t n = 1;

    if (n_max < WHARF_RLE1_RUN_MIN)
        return n;
    uint64_t delta = value_at(input, i + 1) - value_at(input, i);
    if (delta + 128 > 255)
        return n;
    while (n < n_max && value_at(input, i + n) - value_at(input, i + n - 1) == delta)
        n++;
    *ret_delta = delta;
    return n;
}

/* A run's gain over n literals, which grows with n: the loop is over three values, mostly. */
static int run_pays(const struct input *input, size_t i, size_t n, size_t n_pending)
{
    size_t run_nbytes = 2 + wharf_rle_varint_nbytes(number_at(input, i)) + (n_pending > 0);
    size_t literal_nbytes = 0;

    if (n < WHARF_RLE1_RUN_MIN)
        return 0;
    for (size_t k = 0; k < n && literal_nbytes < run_nbytes; k++)
        literal_nbytes += wharf_rle_varint_nbytes(number_at(input, i + k));
    return literal_nbytes >= run_nbytes;
}

static int put_run(struct output *output, const struct input *input, size_t i, size_t n,
                   uint64_t delta)
{
    uint64_t number = number_at(input, i);

    if ((size_t)(output->end - output->next) < 2 + wharf_rle_varint_nbytes(number))
        return -ENOSPC;
    *output->next++ = (uint8_t)(n - WHARF_RLE1_RUN_MIN);
    *output->next++ = (uint8_t)delta;
    output->next += wharf_rle_put_varint(output->next, number);
    return 0;
}

/* n literals, up to a group's most, that end before i. */
static int put_literals(struct output *output, const struct input *input, size_t i, size_t n)
{
    if (n == 0)
        return 0;
    if (output->next == output->end)
        return -ENOSPC;
    *output->next++ = (uint8_t)(256 - n);
    for (size_t k = i - n; k < i; k++) {
        uint64_t number = number_at(input, k);
        if ((size_t)(output->end - output->next) < wharf_rle_varint_nbytes(number))
            return -ENOSPC;
        output->next += wharf_rle_put_varint(output->next, number);
    }
    return 0;
}

static int encode_values(struct output *output, const struct input *input)
{
    size_t n_pending = 0;
    size_t i = 0;
    int rc = 0;

    while (i < input->n && rc == 0) {
        uint64_t delta = 0;
        size_t n = measure_run(input, i, &delta);
        if (run_pays(input, i, n, n_pending)) {
            rc = put_literals(output, input, i, n_pending);
            if (rc == 0)
                rc = put_run(output, input, i, n, delta);
            n_pending = 0;
            i += n;
            continue;
        }
        i++;
        n_pending++;
        if (n_pending == WHARF_RLE1_LITERALS_MAX) {
            rc = put_literals(output, input, i, n_pending);
            n_pending = 0;
        }
    }
    return rc < 0 ? rc : put_literals(output, input, i, n_pending);
}

static int rle1_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    unsigned nbytes = wharf_rle_type_nbytes(encoder->type);
    struct input input = {in, in_nbytes / nbytes, nbytes, wharf_rle_type_is_signed(encoder->type)};
    struct output output = {out, out_avail ? out + out_avail : out};
    int rc;

    if (in_nbytes % nbytes)
        return -EILSEQ;
    rc = encode_values(&output, &input);
    if (rc == 0)
        *ret_out_nbytes = (size_t)(output.next - out);
    return rc;
}

const struct wharf_encoder_ops wharf_rle1_encoder = {
    .new = rle1_new,
    .bound = rle1_bound,
    .encode = rle1_encode,
    .free = wharf_rle_encoder_free,
};
