/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_fuzz.c: any bytes as gzip, zlib or Deflate, whichever they look like, by every CPU
 * decoder.
 *
 * All of them must say what the reference engine says, which asks zlib: the same result, reason,
 * bit offset and sizes, and for good data the same bytes.  Once with ample room for the output, and
 * once with a room that depends on the input, and so ends at any place.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "encoders/codec.h"
#include "encoders/deflate/inflate_litlen.h"
#include "encoders/deflate/inflate_loop.h"
#include "encoders/deflate/inflate_stream.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Ample bounds the time that one input takes: 64 KiB of it can ask for 64 MiB. */
enum { AMPLE_NBYTES = 1 << 16, SCARCE_NBYTES = 700, MAX_PIECE_NBYTES = 300 };

enum { RAW, ZLIB, GZIP };

static const struct format {
    uint32_t codec;
    enum wharf_inflate_format stream;
} formats[] = {
    [RAW] = {WHARF_CODEC_DEFLATE, WHARF_INFLATE_RAW},
    [ZLIB] = {WHARF_CODEC_ZLIB, WHARF_INFLATE_ZLIB},
    [GZIP] = {WHARF_CODEC_GZIP, WHARF_INFLATE_GZIP},
};

struct decoded {
    struct wharf_outcome outcome;
    uint8_t *out;
};

static void check(int good)
{
    if (!good)
        abort();
}

/* Memory of exactly the size that the decoder is told, so that a sanitizer sees any byte beyond. */
static struct decoded decode(wharf_decode_fn *decoder, const uint8_t *data, size_t nbytes,
                             size_t out_avail)
{
    struct decoded decoded = {.out = malloc(out_avail ? out_avail : 1)};
    check(decoded.out != NULL);
    memset(&decoded.outcome, 0xff, sizeof(decoded.outcome));
    decoder(data, nbytes, decoded.out, out_avail, NULL, &decoded.outcome);
    return decoded;
}

static void check_same(const struct decoded *want, const struct decoded *got)
{
    check(test_outcome_same(&got->outcome, &want->outcome));
    check(memcmp(got->out, want->out, want->outcome.out_nbytes) == 0);
}

/* The stream has room for everything, and on failure counts what it handed out. */
static void check_stream(const struct format *format, const uint8_t *data, size_t nbytes,
                         const struct decoded *want)
{
    if (want->outcome.result == WHARF_OUTPUT_TOO_SMALL)
        return;
    struct test_stream stream = test_stream_decode(wharf_inflate_stream_new(format->stream), data,
                                                   nbytes, MAX_PIECE_NBYTES, nbytes + 1);
    check(stream.outcome.result == want->outcome.result);
    check(stream.outcome.reason == want->outcome.reason);
    check(stream.outcome.bit_offset == want->outcome.bit_offset);
    if (want->outcome.result == WHARF_OK) {
        check(stream.out_nbytes == want->outcome.out_nbytes);
        check(stream.outcome.in_nbytes == want->outcome.in_nbytes);
        check(stream.out_nbytes == 0 || memcmp(stream.out, want->out, stream.out_nbytes) == 0);
        check(stream.verified == stream.out_nbytes);
    }
    test_stream_free(&stream);
}

static void check_format(const struct format *format, const uint8_t *data, size_t nbytes,
                         size_t out_avail)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(format->codec)->ops;
    struct decoded want = decode(ops->decode_reference, data, nbytes, out_avail);
    /* zlib takes memory; the outcome would not be the data's. */
    check(want.outcome.result != WHARF_NO_MEMORY);
    /* Left to itself the inflater fills its tables for short inputs in the plainest way. */
    static const unsigned plans[] = {WHARF_LITLEN_AUTO, WHARF_LITLEN_PAIRS, WHARF_LITLEN_MATCHES,
                                     WHARF_LITLEN_PAIRS | WHARF_LITLEN_MATCHES};
    static const char *const loops[] = {NULL, "plain"};
    for (size_t i = 0; i < 2 * sizeof(plans) / sizeof(plans[0]); i++) {
        wharf_inflate_litlen_force(plans[i / 2]);
        check(wharf_inflate_loop_force(loops[i % 2]) == 0);
        struct decoded got = decode(ops->decode, data, nbytes, out_avail);
        check_same(&want, &got);
        free(got.out);
    }
    wharf_inflate_litlen_force(WHARF_LITLEN_AUTO);
    check(wharf_inflate_loop_force(NULL) == 0);
    check_stream(format, data, nbytes, &want);
    free(want.out);
}

/* By one byte, so that most damaged headers still reach the checks of the format. */
static const struct format *likely_format(const uint8_t *data, size_t nbytes)
{
    if (nbytes > 0 && data[0] == 0x1f)
        return &formats[GZIP];
    /* Method 8 and any window; as raw Deflate, the beginning of a stored block. */
    return nbytes > 0 && (data[0] & 0x0f) == 8 ? &formats[ZLIB] : &formats[RAW];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    size_t scarce_nbytes = crc32(0, data, (uInt)nbytes) % SCARCE_NBYTES;
    const struct format *format = likely_format(data, nbytes);
    check_format(format, data, nbytes, AMPLE_NBYTES);
    check_format(format, data, nbytes, scarce_nbytes);
    return 0;
}
