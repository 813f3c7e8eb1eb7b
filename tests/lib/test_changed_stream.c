/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test_changed_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/lib/test_data.h"

enum { EDIT_NBYTES = 4 };

struct stream {
    uint8_t *bytes;
    size_t nbytes;
};

static void check(int good)
{
    if (!good)
        abort();
}

/* Text with blocks of usual size, small ones, fixed ones, and stored ones: of so many thirtieths of
 * all. */
static const struct {
    const char *kind;
    int level;
    int strategy;
    size_t flush_30ths;
} shapes[TEST_STREAM_SHAPES] = {
    {"text", 6, Z_DEFAULT_STRATEGY, 30},
    {"text", 9, Z_DEFAULT_STRATEGY, 1},
    {"text", 6, Z_FIXED, 2},
    {"random", 1, Z_DEFAULT_STRATEGY, 3},
};

static struct stream pack(unsigned shape, unsigned format, size_t raw_nbytes)
{
    static const int window_bits[TEST_STREAM_FORMATS] = {-15, 15, 15 + 16};
    const struct test_data_kind *kind = test_data_find(shapes[shape].kind);
    struct stream packed = {malloc(2 * raw_nbytes), 0};
    size_t flush_nbytes = raw_nbytes * shapes[shape].flush_30ths / 30;
    /* The least memory where there is little to pack, so that blocks are short. */
    int memory = raw_nbytes < 20000 ? 1 : 8;
    z_stream stream = {0};
    uint8_t *raw;

    check(kind && packed.bytes);
    raw = test_data_new(kind, shape, raw_nbytes);
    check(deflateInit2(&stream, shapes[shape].level, Z_DEFLATED, window_bits[format], memory,
                       shapes[shape].strategy) == Z_OK);
    stream.next_in = raw;
    stream.next_out = packed.bytes;
    stream.avail_out = (uInt)(2 * raw_nbytes);
    while (stream.total_in < raw_nbytes) {
        size_t left = raw_nbytes - stream.total_in;
        stream.avail_in = (uInt)(left < flush_nbytes ? left : flush_nbytes);
        check(deflate(&stream, Z_BLOCK) == Z_OK);
    }
    check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed.nbytes = stream.total_out;
    deflateEnd(&stream);
    free(raw);
    return packed;
}

/* Made when first asked for. */
static const struct stream *stream_of(unsigned shape, unsigned format, size_t raw_nbytes)
{
    static struct stream streams[TEST_STREAM_SHAPES][TEST_STREAM_FORMATS];

    if (!streams[shape][format].bytes)
        streams[shape][format] = pack(shape, format, raw_nbytes);
    return &streams[shape][format];
}

size_t test_changed_stream(unsigned shape, unsigned format, size_t raw_nbytes, const uint8_t *data,
                           size_t data_nbytes, uint8_t *buf)
{
    const struct stream *stream = stream_of(shape, format, raw_nbytes);

    memcpy(buf, stream->bytes, stream->nbytes);
    for (; data_nbytes >= EDIT_NBYTES; data += EDIT_NBYTES, data_nbytes -= EDIT_NBYTES) {
        size_t at = (data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % stream->nbytes;

        if (data[3] == 0)
            return at;
        buf[at] ^= data[3];
    }
    return stream->nbytes;
}
