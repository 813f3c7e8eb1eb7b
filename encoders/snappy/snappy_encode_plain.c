/* SPDX-License-Identifier: Apache-2.0 */
/* snappy_encode_plain.c: an encoder without libsnappy (lz_plain.h says why).  Programs that link
 * libsnappy have snappy_encode.c instead. */
#include <errno.h>
#include <string.h>

#include "encoders/lz_plain.h"
#include "encoders/snappy/snappy.h"
#include "encoders/snappy/snappy_format.h"

enum { MATCH_NBYTES_MAX = 64 };

const struct wharf_encoder_row wharf_snappy_encoder_rows[] = {
    {.name = "plain", .number = WHARF_ENCODER_PLAIN},
    {.name = NULL},
};

static int new_encoder(const struct wharf_encoder_options *options,
                       struct wharf_encoder **ret_encoder)
{
    return wharf_lz_plain_new(&wharf_snappy_codec, options, ret_encoder);
}

/*
 * The worst case, apart from length and last tags, is a match of 4 bytes after 61 literals: the
 * literals take two bytes of tag and the match three, so 65 bytes grow to 66.  The bound is that of
 * libsnappy all the same, so that one size is enough for both encoders.
 */
static size_t bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return in_nbytes + in_nbytes / 6 + 32;
}

static void put_number(struct wharf_lz_sink *sink, size_t n, unsigned n_bytes)
{
    for (unsigned k = 0; k < n_bytes; k++)
        wharf_lz_put_byte(sink, n >> 8 * k & 0xff);
}

static void put_length(struct wharf_lz_sink *sink, size_t n)
{
    for (; n >= 128; n >>= 7)
        wharf_lz_put_byte(sink, (n & 127) | 128);
    wharf_lz_put_byte(sink, n);
}

static void put_literals(struct wharf_lz_sink *sink, const uint8_t *literals, size_t n)
{
    unsigned n_bytes = 0;

    if (n == 0)
        return;
    while (n - 1 >= WHARF_SNAPPY_MORE && (n - 1) >> 8 * n_bytes)
        n_bytes++;
    wharf_lz_put_byte(sink, (n_bytes ? WHARF_SNAPPY_MORE - 1 + n_bytes : n - 1) << 2 |
                                WHARF_SNAPPY_LITERALS);
    put_number(sink, n - 1, n_bytes);
    wharf_lz_put_bytes(sink, literals, n);
}

static void put_match(struct wharf_lz_sink *sink, size_t length, size_t distance)
{
    while (length > 0) {
        size_t n = length < MATCH_NBYTES_MAX ? length : MATCH_NBYTES_MAX;
        wharf_lz_put_byte(sink, (n - 1) << 2 | WHARF_SNAPPY_MATCH);
        put_number(sink, distance, 2);
        length -= n;
    }
}

static int encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                  size_t out_avail, size_t *ret_out_nbytes)
{
    struct wharf_lz_finder *finder = &encoder->finder;
    struct wharf_lz_sink sink = {.out = out, .avail = out_avail};
    struct wharf_lz_match match;

    if (in_nbytes > UINT32_MAX)
        return -EILSEQ;
    memset(finder, 0, sizeof(*finder));
    finder->in = in;
    finder->begin_limit =
        in_nbytes > WHARF_LZ_PLAIN_MATCH_MIN ? in_nbytes - WHARF_LZ_PLAIN_MATCH_MIN + 1 : 0;
    finder->end_limit = in_nbytes;
    put_length(&sink, in_nbytes);
    for (size_t at = 0; wharf_lz_find_match(finder, &match); at = finder->done) {
        put_literals(&sink, in + at, match.n_literals);
        put_match(&sink, match.length, match.distance);
    }
    put_literals(&sink, in ? in + finder->done : NULL, in_nbytes - finder->done);
    if (sink.nbytes > out_avail)
        return -ENOSPC;
    *ret_out_nbytes = sink.nbytes;
    return 0;
}

const struct wharf_encoder_ops wharf_snappy_encoder = {
    .new = new_encoder,
    .bound = bound,
    .encode = encode,
    .free = wharf_lz_plain_free,
};
