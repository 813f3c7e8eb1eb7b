/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_index_fuzz.c: hostile indexes of a file that is good.
 *
 * The input is an index in any format, or, after a first byte of 0, changes to a true one in
 * wharf's own format, four bytes each: where (3 bytes) and how (exclusive or).  Its checksum is
 * made right again, so that the changes are read.  An index that is read has windows that decode or
 * do not, spans that end well or badly, and can be written and read again; what a span gives by a
 * checksum that is the true one's is the true output.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "encoders/crc32c.h"
#include "encoders/gzip_index/gzip_span.h"
#include "encoders/little_endian.h"
#include "tests/lib/test_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum {
    RAW_NBYTES = 150000,
    SPAN_NBYTES = 20000,
    PACKED_AVAIL = 2 * RAW_NBYTES,
    EDIT_NBYTES = 4,
    MAX_SPANS = 40,
};

static uint8_t *raw;
static uint8_t packed[PACKED_AVAIL];
static size_t packed_nbytes;
static uint8_t *true_index;
static size_t true_nbytes;

static void check(int good)
{
    if (!good)
        abort();
}

/* Behind a flush the next block begins with a byte. */
static void add_point(struct wharf_gzip_index *index, const z_stream *stream, size_t out_offset)
{
    size_t window_nbytes =
        out_offset < WHARF_DEFLATE_WINDOW_NBYTES ? out_offset : WHARF_DEFLATE_WINDOW_NBYTES;
    struct wharf_gzip_point point = {
        .out_offset = out_offset,
        .bit_offset = 8 * stream->total_out,
        .window_nbytes = (uint32_t)window_nbytes,
        .is_member = out_offset == 0,
    };
    size_t nbytes = RAW_NBYTES - out_offset < SPAN_NBYTES ? RAW_NBYTES - out_offset : SPAN_NBYTES;

    point.checksum = (uint32_t)crc32(0, raw + out_offset, (uInt)nbytes);
    check(wharf_gzip_index_add(index, &point, raw + out_offset - window_nbytes, true) == 0);
}

static void make_true(void)
{
    struct wharf_gzip_index index = {.format = WHARF_INFLATE_GZIP, .is_own = true};
    z_stream stream = {0};

    raw = test_data_new(test_data_find("text"), 1, RAW_NBYTES);
    check(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    stream.next_in = raw;
    stream.next_out = packed;
    stream.avail_out = PACKED_AVAIL;
    for (size_t at = 0; at < RAW_NBYTES; at += SPAN_NBYTES) {
        add_point(&index, &stream, at);
        stream.avail_in = RAW_NBYTES - at < SPAN_NBYTES ? RAW_NBYTES - at : SPAN_NBYTES;
        check(deflate(&stream, Z_SYNC_FLUSH) == Z_OK);
    }
    check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    packed_nbytes = stream.total_out;
    deflateEnd(&stream);
    index.in_nbytes = packed_nbytes;
    index.out_nbytes = RAW_NBYTES;
    check(wharf_gzip_index_write(&index, &true_index, &true_nbytes) == 0);
    wharf_gzip_index_deinit(&index);
}

/* ---- spans -------------------------------------------------------------------------------- */

struct sink {
    uint64_t nbytes;
    uint32_t checksum;
    bool is_true; /* as if it began at out_offset */
    uint64_t out_offset;
};

static int64_t read_packed(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    (void)context;
    if (offset >= packed_nbytes)
        return 0;
    if (nbytes > packed_nbytes - offset)
        nbytes = (size_t)(packed_nbytes - offset);
    memcpy(buf, packed + offset, nbytes);
    return (int64_t)nbytes;
}

static int put(void *context, const uint8_t *bytes, size_t nbytes)
{
    struct sink *sink = context;
    uint64_t at = sink->out_offset + sink->nbytes;

    sink->is_true = sink->is_true && at <= RAW_NBYTES && nbytes <= RAW_NBYTES - at &&
                    memcmp(bytes, raw + at, nbytes) == 0;
    sink->checksum = (uint32_t)crc32(sink->checksum, bytes, (uInt)nbytes);
    sink->nbytes += nbytes;
    return 0;
}

static void decode_span(const struct wharf_gzip_index *index, uint32_t span)
{
    struct sink sink = {.is_true = true, .out_offset = index->points[span].out_offset};
    const struct wharf_gzip_span_io io = {read_packed, put, &sink};
    uint64_t want = wharf_gzip_index_span_nbytes(index, span);
    struct wharf_outcome outcome;

    check(wharf_gzip_span_decode(index, span, &io, &outcome) == 0);
    check(sink.nbytes <= want);
    if (outcome.result != WHARF_OK)
        return;
    check(outcome.out_nbytes == sink.nbytes);
    check(want == WHARF_GZIP_INDEX_UNKNOWN || sink.nbytes == want);
    check(!index->is_own || sink.checksum == index->points[span].checksum);
}

/* ---- indexes ------------------------------------------------------------------------------ */

static void try_writing(const struct wharf_gzip_index *index)
{
    struct wharf_gzip_index again;
    uint8_t *bytes;
    size_t nbytes;

    if (wharf_gzip_index_write_gzidx(index, &bytes, &nbytes) == 0)
        free(bytes);
    check(wharf_gzip_index_write_gzi(index, &bytes, &nbytes) == 0);
    free(bytes);
    if (!index->is_own)
        return;
    check(wharf_gzip_index_write(index, &bytes, &nbytes) == 0);
    check(wharf_gzip_index_read(bytes, nbytes, &again) == 0);
    check(again.n_points == index->n_points && again.windows_nbytes == index->windows_nbytes);
    wharf_gzip_index_deinit(&again);
    free(bytes);
}

static void try_index(const uint8_t *bytes, size_t nbytes)
{
    struct wharf_gzip_index index;

    if (wharf_gzip_index_read(bytes, nbytes, &index) < 0)
        return;
    for (uint64_t at = 0; at <= RAW_NBYTES; at += 10001) {
        uint32_t span = wharf_gzip_index_find(&index, at);

        check(span < index.n_points && index.points[span].out_offset <= at);
    }
    if (index.in_nbytes == WHARF_GZIP_INDEX_UNKNOWN)
        index.in_nbytes = packed_nbytes;
    for (uint32_t i = 0; i < index.n_points && i < MAX_SPANS; i++)
        decode_span(&index, i);
    try_writing(&index);
    wharf_gzip_index_deinit(&index);
}

/* A change of nothing leaves the index as it was: that one has to be true. */
static void try_changed(const uint8_t *data, size_t nbytes)
{
    uint8_t *bytes = malloc(true_nbytes);
    size_t body_nbytes = true_nbytes - 4;

    check(bytes != NULL);
    memcpy(bytes, true_index, true_nbytes);
    for (; nbytes >= EDIT_NBYTES; data += EDIT_NBYTES, nbytes -= EDIT_NBYTES)
        bytes[(data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % body_nbytes] ^= data[3];
    wharf_store_le32(bytes + body_nbytes, wharf_crc32c(bytes, body_nbytes));
    try_index(bytes, true_nbytes);
    free(bytes);
}

static void check_true(void)
{
    struct wharf_gzip_index index;

    check(wharf_gzip_index_read(true_index, true_nbytes, &index) == 0);
    for (uint32_t i = 0; i < index.n_points; i++) {
        struct sink sink = {.is_true = true, .out_offset = index.points[i].out_offset};
        const struct wharf_gzip_span_io io = {read_packed, put, &sink};
        struct wharf_outcome outcome;

        check(wharf_gzip_span_decode(&index, i, &io, &outcome) == 0);
        check(outcome.result == WHARF_OK && sink.is_true);
        check(sink.nbytes == wharf_gzip_index_span_nbytes(&index, i));
    }
    wharf_gzip_index_deinit(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (!raw) {
        make_true();
        check_true();
    }
    if (nbytes && data[0] == 0)
        try_changed(data + 1, nbytes - 1);
    else
        try_index(data, nbytes);
    return 0;
}
