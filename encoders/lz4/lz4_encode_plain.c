/* SPDX-License-Identifier: Apache-2.0 */
/* Without liblz4: lz_plain.h says why.  lz4_encode.c is what programs with liblz4 have instead. */
#include <errno.h>
#include <string.h>

#include "encoders/lz4/lz4.h"
#include "encoders/lz4/lz4_format.h"
#include "encoders/lz_plain.h"

const struct wharf_encoder_row wharf_lz4_encoder_rows[] = {
    {.name = "plain", .number = WHARF_ENCODER_PLAIN},
    {.name = NULL},
};

static int lz4_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    return wharf_lz_plain_new(&wharf_lz4_codec, options, ret_encoder);
}

/* A literal length byte for 255 of them, a token, and a first length byte; but as much as liblz4's
 * is said to take, so that one size is enough for both. */
static size_t lz4_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return in_nbytes + in_nbytes / 255 + 16;
}

static void put_length(struct wharf_lz_sink *sink, size_t n)
{
    if (n < WHARF_LZ4_MORE)
        return;
    for (n -= WHARF_LZ4_MORE; n >= 255; n -= 255)
        wharf_lz_put_byte(sink, 255);
    wharf_lz_put_byte(sink, n);
}

static size_t nibble(size_t n)
{
    return n < WHARF_LZ4_MORE ? n : WHARF_LZ4_MORE;
}

static void put_literals(struct wharf_lz_sink *sink, const uint8_t *literals, size_t n,
                         size_t low_nibble)
{
    wharf_lz_put_byte(sink, nibble(n) << 4 | low_nibble);
    put_length(sink, n);
    wharf_lz_put_bytes(sink, literals, n);
}

static int lz4_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                      uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    struct wharf_lz_finder *finder = &encoder->finder;
    struct wharf_lz_sink sink = {.out = out, .avail = out_avail};
    struct wharf_lz_match match;
    bool has_room = in_nbytes > WHARF_LZ4_LAST_MATCH;

    if (in_nbytes > UINT32_MAX)
        return -EILSEQ;
    memset(finder, 0, sizeof(*finder));
    finder->in = in;
    finder->begin_limit = has_room ? in_nbytes - WHARF_LZ4_LAST_MATCH + 1 : 0;
    finder->end_limit = has_room ? in_nbytes - WHARF_LZ4_LAST_LITERALS : 0;
    for (size_t at = 0; wharf_lz_find_match(finder, &match); at = finder->done) {
        size_t length = match.length - WHARF_LZ4_MATCH_MIN;
        put_literals(&sink, in + at, match.n_literals, nibble(length));
        wharf_lz_put_byte(&sink, match.distance & 0xff);
        wharf_lz_put_byte(&sink, match.distance >> 8);
        put_length(&sink, length);
    }
    put_literals(&sink, in ? in + finder->done : NULL, in_nbytes - finder->done, 0);
    if (sink.nbytes > out_avail)
        return -ENOSPC;
    *ret_out_nbytes = sink.nbytes;
    return 0;
}

const struct wharf_encoder_ops wharf_lz4_encoder = {
    .new = lz4_new,
    .bound = lz4_bound,
    .encode = lz4_encode,
    .free = wharf_lz_plain_free,
};
