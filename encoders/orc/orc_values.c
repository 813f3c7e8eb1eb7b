/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_values.c: decodes the values of a stream.
 *
 * A run can continue from one block into the next.  Invariant: the window holds encoded bytes from
 * the beginning of a run on.  run_scan.h finds how many runs are complete in it, and these are
 * decoded.  The rest, an incomplete run, moves to the window's front, and the next blocks are
 * appended.  A run longer than any valid one is given to the decoder as it is, which fails with the
 * reason.
 */
#include "encoders/orc/orc_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/run_scan.h"

enum {
    /* At least one run: a run has at most 512 values. */
    DECODED_VALUES = 8192,
    PIECE_IN_NBYTES = 64 << 10,
    /* With this many bytes, the first run is complete or bad. */
    ENOUGH_NBYTES = WHARF_RUN_SCAN_MOST_NBYTES,
};

static int fail(const struct wharf_orc_values *values, enum wharf_orc_trouble trouble,
                const char *what, uint32_t reason, struct wharf_orc_error *ret_error)
{
    *ret_error = (struct wharf_orc_error){
        .trouble = trouble,
        .what = what,
        .error = trouble == WHARF_ORC_SYSTEM ? -ENOMEM : 0,
        .reason = reason,
        .offset = values->blocks.block_at,
        .stripe = WHARF_ORC_NOWHERE,
        .column = WHARF_ORC_NOWHERE,
    };
    return -1;
}

int wharf_orc_values_open(struct wharf_orc_values *values, const struct wharf_orc_bytes *of,
                          const struct wharf_orc_place *place, uint32_t codec, uint32_t parameter,
                          struct wharf_orc_error *ret_error)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;

    *values = (struct wharf_orc_values){
        .codec = codec,
        .parameter = parameter,
        .unit_nbytes = wharf_codec_unit_nbytes(ops, parameter),
    };
    wharf_orc_blocks_init(&values->blocks, of, place->offset, place->nbytes);
    values->window = malloc(2 * (size_t)ENOUGH_NBYTES + of->block_nbytes);
    values->decoded = malloc((size_t)DECODED_VALUES * values->unit_nbytes);
    if (values->window && values->decoded)
        return 0;
    wharf_orc_values_close(values);
    return fail(values, WHARF_ORC_SYSTEM, "cannot be read", 0, ret_error);
}

void wharf_orc_values_close(struct wharf_orc_values *values)
{
    wharf_orc_blocks_deinit(&values->blocks);
    free(values->window);
    free(values->decoded);
    values->window = NULL;
    values->decoded = NULL;
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* Appends blocks until the window surely holds a whole run, or none are left. */
static int fill_window(struct wharf_orc_values *values, struct wharf_orc_error *ret_error)
{
    size_t left = values->window_end - values->window_at, more;

    if (left >= ENOUGH_NBYTES || !wharf_orc_blocks_have_more(&values->blocks))
        return 0;
    memmove(values->window, values->window + values->window_at, left);
    values->window_at = 0;
    values->window_end = left;
    while (values->window_end < ENOUGH_NBYTES && wharf_orc_blocks_have_more(&values->blocks)) {
        if (wharf_orc_blocks_next(&values->blocks, values->window + values->window_end, &more,
                                  ret_error) < 0)
            return -1;
        values->window_end += more;
    }
    return 0;
}

/* Decodes nbytes of the window, which hold n values in whole runs, or one bad run. */
static int decode(struct wharf_orc_values *values, size_t nbytes, size_t n,
                  struct wharf_orc_error *ret_error)
{
    const struct wharf_codec_setting setting = {.parameter = values->parameter};
    struct wharf_outcome outcome;

    wharf_codec_find(values->codec)
        ->ops->decode(values->window + values->window_at, nbytes, values->decoded,
                      n * values->unit_nbytes, &setting, &outcome);
    if (outcome.result != WHARF_OK || outcome.out_nbytes != n * values->unit_nbytes)
        return fail(values, WHARF_ORC_DAMAGED, "a run does not decode", outcome.reason, ret_error);
    values->window_at += nbytes;
    values->decoded_at = 0;
    values->decoded_end = n;
    return 0;
}

/* Decodes the next runs, after all earlier values were taken.  At the end of the stream,
 * decoded_end is 0. */
static int refill(struct wharf_orc_values *values, struct wharf_orc_error *ret_error)
{
    const struct wharf_run_limits limits = {DECODED_VALUES, PIECE_IN_NBYTES};
    struct wharf_run_place place = {0};

    values->decoded_at = values->decoded_end = 0;
    if (fill_window(values, ret_error) < 0)
        return -1;
    size_t nbytes = values->window_end - values->window_at;
    if (nbytes == 0)
        return 0;
    wharf_run_scan_pass(values->codec, values->window + values->window_at, nbytes, &limits, &place);
    if (place.in_offset == 0)
        return decode(values, nbytes, DECODED_VALUES, ret_error);
    return decode(values, place.in_offset, (size_t)place.n_values, ret_error);
}

int wharf_orc_values_next(struct wharf_orc_values *values, void *to, size_t n,
                          struct wharf_orc_error *ret_error)
{
    uint8_t *at = to;

    while (n > 0) {
        if (values->decoded_at == values->decoded_end && refill(values, ret_error) < 0)
            return -1;
        size_t there = values->decoded_end - values->decoded_at;
        if (there == 0)
            return fail(values, WHARF_ORC_DAMAGED, "it has too few values", 0, ret_error);
        size_t some = there < n ? there : n;
        memcpy(at, values->decoded + values->decoded_at * values->unit_nbytes,
               some * values->unit_nbytes);
        values->decoded_at += some;
        at += some * values->unit_nbytes;
        n -= some;
    }
    return 0;
}

/* Unpacks the bits of a byte, highest first, into bytes of 0 or 1. */
static void put_bits(uint8_t *to, uint8_t bits)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = bits >> (7 - i) & 1;
}

/* Unpacks whole bytes: as many as are decoded and fit in n bits.  Returns the number of bits. */
static size_t next_whole(struct wharf_orc_values *values, uint8_t *to, size_t n)
{
    size_t there = values->decoded_end - values->decoded_at;
    size_t some = n / 8 < there ? n / 8 : there;

    for (size_t i = 0; i < some; i++)
        put_bits(to + 8 * i, values->decoded[values->decoded_at + i]);
    values->decoded_at += some;
    return 8 * some;
}

int wharf_orc_bits_next(struct wharf_orc_values *values, uint8_t *to, size_t n,
                        struct wharf_orc_error *ret_error)
{
    for (size_t i = 0; i < n; i++) {
        if (values->n_bits == 0) {
            i += next_whole(values, to + i, n - i);
            if (i == n)
                break;
            if (wharf_orc_values_next(values, &values->bits, 1, ret_error) < 0)
                return -1;
            values->n_bits = 8;
        }
        to[i] = values->bits >> --values->n_bits & 1;
    }
    return 0;
}
