/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_parallel_fuzz.c: streams of many parts, with any changes, by several threads.
 *
 * The outcome, the bytes and what was verified must be the serial decoder's.  The input says which
 * of a few streams is taken and how, in three bytes, and then, four bytes each, where a byte of the
 * stream is changed (3 bytes) and how (exclusive or).  The first change of nothing cuts the stream
 * there.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/lib/test_data.h"
#include "tests/lib/test_parallel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { RAW_NBYTES = 60000, AVAIL = 2 * RAW_NBYTES, N_SHAPES = 4, N_FORMATS = 3, EDIT_NBYTES = 4 };

struct stream {
    uint8_t *bytes;
    size_t nbytes;
};

static void check(int good)
{
    if (!good)
        abort();
}

/* Text with blocks of usual size, small ones, fixed ones, and stored ones. */
static const struct {
    const char *kind;
    int level;
    int strategy;
    size_t flush_nbytes;
} shapes[N_SHAPES] = {
    {"text", 6, Z_DEFAULT_STRATEGY, RAW_NBYTES},
    {"text", 9, Z_DEFAULT_STRATEGY, 2000},
    {"text", 6, Z_FIXED, 3000},
    {"random", 1, Z_DEFAULT_STRATEGY, 5000},
};

static struct stream pack(unsigned shape, unsigned format)
{
    static const int window_bits[N_FORMATS] = {-15, 15, 15 + 16};
    const struct test_data_kind *kind = test_data_find(shapes[shape].kind);
    struct stream packed = {malloc(AVAIL), 0};
    uint8_t *raw;
    z_stream stream = {0};

    check(kind && packed.bytes);
    raw = test_data_new(kind, shape, RAW_NBYTES);
    check(deflateInit2(&stream, shapes[shape].level, Z_DEFLATED, window_bits[format], 8,
                       shapes[shape].strategy) == Z_OK);
    stream.next_in = raw;
    stream.next_out = packed.bytes;
    stream.avail_out = AVAIL;
    while (stream.total_in < RAW_NBYTES) {
        size_t left = RAW_NBYTES - stream.total_in;
        stream.avail_in =
            (uInt)(left < shapes[shape].flush_nbytes ? left : shapes[shape].flush_nbytes);
        check(deflate(&stream, Z_BLOCK) == Z_OK);
    }
    check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed.nbytes = stream.total_out;
    deflateEnd(&stream);
    free(raw);
    return packed;
}

/* Made when first asked for. */
static const struct stream *stream_of(unsigned shape, unsigned format)
{
    static struct stream streams[N_SHAPES][N_FORMATS];

    if (!streams[shape][format].bytes)
        streams[shape][format] = pack(shape, format);
    return &streams[shape][format];
}

static size_t edit(uint8_t *bytes, size_t nbytes, const uint8_t *data, size_t data_nbytes)
{
    for (; data_nbytes >= EDIT_NBYTES; data += EDIT_NBYTES, data_nbytes -= EDIT_NBYTES) {
        size_t at = (data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % nbytes;

        if (data[3] == 0)
            return at;
        bytes[at] ^= data[3];
    }
    return nbytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static uint8_t bytes[AVAIL];
    const struct stream *stream;
    struct test_parallel_setting setting = {0};
    struct test_parallel parallel;
    unsigned format;
    size_t n;

    if (nbytes < 3)
        return 0;
    format = data[0] / N_SHAPES % N_FORMATS;
    stream = stream_of(data[0] % N_SHAPES, format);
    memcpy(bytes, stream->bytes, stream->nbytes);
    n = edit(bytes, stream->nbytes, data + 3, nbytes - 3);
    setting.n_workers = 1 + data[1] % 2;
    setting.part_nbytes = 500 + 40 * (size_t)data[2];
    setting.max_queued = data[1] / 2 % 2;
    parallel = test_parallel_decode((enum wharf_inflate_format)format, bytes, n, &setting);
    check(parallel.error == 0);
    check(test_parallel_differs((enum wharf_inflate_format)format, bytes, n, &parallel) == NULL);
    test_parallel_free(&parallel);
    return 0;
}
