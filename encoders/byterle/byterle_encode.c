/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of three and more, as ORC's writer has them, but one of three stays among literals where it
 * would split a group of them: two bytes for the run and one for the second group save nothing.
 */
#include <errno.h>
#include <string.h>

#include "encoders/byterle/byterle.h"
#include "encoders/byterle/byterle_format.h"
#include "encoders/rle_encoder.h"

const struct wharf_encoder_row wharf_byterle_encoder_rows[] = {
    {.name = "byterle"},
    {.name = NULL},
};

static int byterle_new(const struct wharf_encoder_options *options,
                       struct wharf_encoder **ret_encoder)
{
    return wharf_rle_encoder_new(&wharf_byterle_codec, options, ret_encoder);
}

size_t wharf_byterle_bound_bytes(size_t in_nbytes)
{
    return in_nbytes + in_nbytes / WHARF_BYTERLE_LITERALS_MAX + 1;
}

static size_t byterle_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return wharf_byterle_bound_bytes(in_nbytes);
}

/* Bytes at `in` that are the same, up to a run's most. */
static size_t measure_run(const uint8_t *in, size_t in_nbytes)
{
    size_t n_max = in_nbytes < WHARF_BYTERLE_RUN_MAX ? in_nbytes : WHARF_BYTERLE_RUN_MAX;
    size_t n = 1;

    while (n < n_max && in[n] == in[0])
        n++;
    return n;
}

struct output {
    uint8_t *next;
    uint8_t *end;
};

static int put_group(struct output *output, uint8_t control, const uint8_t *bytes, size_t nbytes)
{
    if ((size_t)(output->end - output->next) < 1 + nbytes)
        return -ENOSPC;
    *output->next++ = control;
    memcpy(output->next, bytes, nbytes);
    output->next += nbytes;
    return 0;
}

/* nbytes literals, up to a group's most, that end before `end`. */
static int put_literals(struct output *output, const uint8_t *end, size_t nbytes)
{
    return nbytes ? put_group(output, (uint8_t)(256 - nbytes), end - nbytes, nbytes) : 0;
}

int wharf_byterle_encode_bytes(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                               size_t *ret_out_nbytes)
{
    struct output output = {out, out_avail ? out + out_avail : out};
    size_t n_pending = 0;
    size_t at = 0;
    int rc = 0;

    while (at < in_nbytes && rc == 0) {
        size_t n = measure_run(in + at, in_nbytes - at);
        if (n >= WHARF_BYTERLE_RUN_MIN + (size_t)(n_pending > 0)) {
            rc = put_literals(&output, in + at, n_pending);
            if (rc == 0)
                rc = put_group(&output, (uint8_t)(n - WHARF_BYTERLE_RUN_MIN), in + at, 1);
            n_pending = 0;
            at += n;
            continue;
        }
        at++;
        n_pending++;
        if (n_pending == WHARF_BYTERLE_LITERALS_MAX) {
            rc = put_literals(&output, in + at, n_pending);
            n_pending = 0;
        }
    }
    if (rc == 0 && n_pending)
        rc = put_literals(&output, in + at, n_pending);
    if (rc == 0)
        *ret_out_nbytes = (size_t)(output.next - out);
    return rc;
}

static int byterle_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                          uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    (void)encoder;
    return wharf_byterle_encode_bytes(in, in_nbytes, out, out_avail, ret_out_nbytes);
}

const struct wharf_encoder_ops wharf_byterle_encoder = {
    .new = byterle_new,
    .bound = byterle_bound,
    .encode = byterle_encode,
    .free = wharf_rle_encoder_free,
};
