/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream decoded by several threads gives the bytes and the verdict of the serial decoder, on
 * good, damaged, cut and forged sources.
 *
 * Parts are made tiny for most tests, so that a short stream has many and each kind of place comes
 * to lie on a border.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "encoders/deflate/inflate.h"
#include "encoders/inflate_parallel/block_finder.h"
#include "encoders/inflate_parallel/inflate_markers.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_parallel.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_stream.h"

struct source {
    uint8_t *bytes;
    size_t nbytes;
    size_t avail;
};

static const int window_bits[] = {
    [WHARF_INFLATE_RAW] = -15, [WHARF_INFLATE_ZLIB] = 15, [WHARF_INFLATE_GZIP] = 15 + 16};

/* Appends what deflate makes of `raw`, with a flush of a kind behind each flush_nbytes. */
static void pack(struct source *source, enum wharf_inflate_format format, int level, int strategy,
                 const uint8_t *raw, size_t raw_nbytes, size_t flush_nbytes, int flush)
{
    z_stream stream = {0};

    source->avail = source->nbytes + raw_nbytes + raw_nbytes / 4 + 4000;
    if (flush_nbytes)
        source->avail += 64 * (raw_nbytes / flush_nbytes + 1);
    source->bytes = realloc(source->bytes, source->avail);
    cr_assert(source->bytes);
    cr_assert_eq(deflateInit2(&stream, level, Z_DEFLATED, window_bits[format], 8, strategy), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)raw;
    stream.next_out = source->bytes + source->nbytes;
    stream.avail_out = (uInt)(source->avail - source->nbytes);
    for (size_t done = 0; flush_nbytes && done + flush_nbytes < raw_nbytes; done += flush_nbytes) {
        stream.avail_in = (uInt)flush_nbytes;
        cr_assert_eq(deflate(&stream, flush), Z_OK);
    }
    stream.avail_in = (uInt)(raw_nbytes - stream.total_in);
    cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    source->nbytes += stream.total_out;
    deflateEnd(&stream);
}

static struct wharf_parallel_inflate_counts expect_same(enum wharf_inflate_format format,
                                                        const uint8_t *in, size_t in_nbytes,
                                                        const struct test_parallel_setting *setting)
{
    struct test_parallel parallel = test_parallel_decode(format, in, in_nbytes, setting);
    const char *differs = test_parallel_differs(format, in, in_nbytes, &parallel);

    cr_assert_null(differs, "%s differs", differs);
    cr_assert_eq(parallel.error, 0);
    test_parallel_free(&parallel);
    return parallel.counts;
}

static const struct test_parallel_setting tiny_parts[] = {
    {.n_workers = 1, .part_nbytes = 3000, .max_queued = 1, .guesses_first = true},
    {.n_workers = 3, .part_nbytes = 5000},
    {.n_workers = 2, .part_nbytes = 700, .max_piece_nbytes = 300},
};
enum { N_SETTINGS = sizeof(tiny_parts) / sizeof(tiny_parts[0]) };

Test(inflate_parallel, gives_all_bytes_of_every_kind_of_data)
{
    enum { RAW = 150000 };

    for (size_t kind = 0; kind < test_data_n_kinds; kind++) {
        uint8_t *raw = test_data_new(&test_data_kinds[kind], kind, RAW);
        struct source source = {0};
        enum wharf_inflate_format format = (enum wharf_inflate_format)(kind % 3);

        pack(&source, format, (int)(1 + kind % 9), Z_DEFAULT_STRATEGY, raw, RAW, 0, 0);
        expect_same(format, source.bytes, source.nbytes, &tiny_parts[kind % N_SETTINGS]);
        expect_same(format, source.bytes, source.nbytes, &tiny_parts[(kind + 1) % N_SETTINGS]);
        free(source.bytes);
        free(raw);
    }
}

Test(inflate_parallel, goes_over_to_guesses_that_are_right)
{
    enum { RAW = 600000 };
    const struct test_parallel_setting setting = {
        .n_workers = 1, .part_nbytes = 100000, .max_queued = 1, .guesses_first = true};
    uint8_t *raw = test_data_new(test_data_find("text"), 1, RAW);
    struct source source = {0};
    struct wharf_parallel_inflate_counts counts;

    pack(&source, WHARF_INFLATE_GZIP, 6, Z_DEFAULT_STRATEGY, raw, RAW, 0, 0);
    counts = expect_same(WHARF_INFLATE_GZIP, source.bytes, source.nbytes, &setting);
    cr_assert_gt(counts.n_right, 0);
    free(source.bytes);
    free(raw);
}

/* The rest of the output from a point, by a serial decoder that has nothing but the window. */
static void expect_place_true(enum wharf_inflate_format format, const struct source *source,
                              const struct test_parallel *parallel,
                              const struct test_parallel_place *found)
{
    uint64_t before = found->point.member_nbytes;
    size_t at = (size_t)(found->point.bit_offset / 8);
    struct wharf_inflate_place place = {
        .bit = found->point.bit_offset % 8,
        .window_nbytes =
            before < WHARF_DEFLATE_WINDOW_NBYTES ? (size_t)before : WHARF_DEFLATE_WINDOW_NBYTES,
    };
    struct test_stream rest;

    place.window = parallel->out + found->out_offset - place.window_nbytes;
    rest = test_stream_decode(wharf_inflate_stream_resume(format, &place), source->bytes + at,
                              source->nbytes - at, 10000, 1);
    cr_assert_eq(rest.outcome.result, WHARF_OK);
    cr_assert_eq(rest.outcome.in_nbytes, source->nbytes - at);
    cr_assert_eq(rest.out_nbytes, parallel->out_nbytes - found->out_offset);
    cr_assert_eq(memcmp(rest.out, parallel->out + found->out_offset, rest.out_nbytes), 0);
    test_stream_free(&rest);
}

/* Of one member, of several, and of stored blocks; by one thread and by several. */
Test(inflate_parallel, tells_points_where_a_decode_can_begin)
{
    enum { RAW = 500000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 5, RAW);

    for (unsigned shape = 0; shape < 6; shape++) {
        const struct test_parallel_setting setting = {
            .n_workers = 1 + shape % 3, .part_nbytes = 20000, .wants_points = true};
        enum wharf_inflate_format format = (enum wharf_inflate_format)(shape % 3);
        struct source source = {0};
        struct test_parallel parallel;

        for (unsigned i = 0; i < (format == WHARF_INFLATE_GZIP ? 3 : 1); i++)
            pack(&source, format, shape < 3 ? 6 : 0, Z_DEFAULT_STRATEGY, raw, RAW, 20000, Z_BLOCK);
        parallel = test_parallel_decode(format, source.bytes, source.nbytes, &setting);
        cr_assert_null(test_parallel_differs(format, source.bytes, source.nbytes, &parallel));
        cr_assert_gt(parallel.n_places, 3, "shape %u has %u", shape, parallel.n_places);
        for (unsigned i = 0; i < parallel.n_places; i++)
            expect_place_true(format, &source, &parallel, &parallel.places[i]);
        test_parallel_free(&parallel);
        free(source.bytes);
    }
    free(raw);
}

/* Blocks that the search does not find, or finds too many of. */
Test(inflate_parallel, bears_fixed_stored_and_tiny_blocks)
{
    enum { RAW = 120000 };
    static const struct {
        int level;
        int strategy;
        size_t flush_nbytes;
        int flush;
    } shapes[] = {
        {6, Z_FIXED, 0, 0},
        {0, Z_DEFAULT_STRATEGY, 0, 0},
        {6, Z_HUFFMAN_ONLY, 0, 0},
        {6, Z_DEFAULT_STRATEGY, 100, Z_BLOCK},
        {6, Z_FIXED, 50, Z_SYNC_FLUSH},
        {6, Z_DEFAULT_STRATEGY, 3000, Z_FULL_FLUSH},
    };
    uint8_t *raw = test_data_new(test_data_find("text"), 2, RAW);

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct source source = {0};
        pack(&source, WHARF_INFLATE_ZLIB, shapes[i].level, shapes[i].strategy, raw, RAW,
             shapes[i].flush_nbytes, shapes[i].flush);
        for (unsigned k = 0; k < N_SETTINGS; k++)
            expect_same(WHARF_INFLATE_ZLIB, source.bytes, source.nbytes, &tiny_parts[k]);
        free(source.bytes);
    }
    free(raw);
}

/* Deflate within stored blocks between others: all of its blocks are found, and none is one. */
Test(inflate_parallel, drops_forged_beginnings)
{
    enum { RAW = 600000, CODED = 20000, STORED = 9000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 3, RAW);
    struct source inner = {0};
    struct source outer = {0};
    struct wharf_parallel_inflate_counts counts;

    pack(&inner, WHARF_INFLATE_RAW, 6, Z_DEFAULT_STRATEGY, raw, RAW, 500, Z_FULL_FLUSH);
    for (size_t at = 0; at + STORED <= inner.nbytes; at += STORED) {
        pack(&outer, WHARF_INFLATE_GZIP, 6, Z_DEFAULT_STRATEGY, raw + at, CODED, 0, 0);
        pack(&outer, WHARF_INFLATE_GZIP, 0, Z_DEFAULT_STRATEGY, inner.bytes + at, STORED, 0, 0);
    }
    for (unsigned k = 0; k < N_SETTINGS; k++) {
        counts = expect_same(WHARF_INFLATE_GZIP, outer.bytes, outer.nbytes, &tiny_parts[k]);
        cr_assert(k > 0 || counts.n_dropped > 0);
    }
    free(outer.bytes);
    free(inner.bytes);
    free(raw);
}

/* To search them costs more than to copy them: most of their parts nobody guesses in. */
Test(inflate_parallel, guesses_little_in_stored_blocks)
{
    enum { RAW = 900000 };
    uint8_t *raw = test_data_new(test_data_find("random"), 3, RAW);
    struct source source = {0};
    struct wharf_parallel_inflate_counts counts;

    pack(&source, WHARF_INFLATE_GZIP, 0, Z_DEFAULT_STRATEGY, raw, RAW, 0, 0);
    counts = expect_same(WHARF_INFLATE_GZIP, source.bytes, source.nbytes, &tiny_parts[0]);
    cr_assert_lt(counts.n_right + counts.n_dropped, RAW / tiny_parts[0].part_nbytes / 4);
    free(source.bytes);
    free(raw);
}

/* 6 MiB of zeros: a guess stops when it has put out enough, and goes on when it is proven. */
Test(inflate_parallel, decodes_a_thousand_to_one)
{
    enum { RAW = 6 << 20 };
    const struct test_parallel_setting setting = {
        .n_workers = 2, .part_nbytes = 2500, .max_queued = 2, .guesses_first = true};
    uint8_t *raw = calloc(1, RAW);
    struct source source = {0};

    cr_assert(raw);
    pack(&source, WHARF_INFLATE_GZIP, 9, Z_DEFAULT_STRATEGY, raw, RAW, 0, 0);
    expect_same(WHARF_INFLATE_GZIP, source.bytes, source.nbytes, &setting);
    free(source.bytes);
    free(raw);
}

Test(inflate_parallel, decodes_many_members_and_stops_behind_the_last)
{
    enum { RAW = 80000, N = 40 };
    uint8_t *raw = test_data_new(test_data_find("text"), 4, RAW);
    struct source source = {0};

    for (size_t i = 0; i < N; i++)
        pack(&source, WHARF_INFLATE_GZIP, 6, Z_DEFAULT_STRATEGY, raw, i % 5 ? i * 37 : RAW - i, 0,
             0);
    for (unsigned k = 0; k < N_SETTINGS; k++) {
        expect_same(WHARF_INFLATE_GZIP, source.bytes, source.nbytes, &tiny_parts[k]);
        /* A trailer that is wrong, somewhere in the middle. */
        source.bytes[source.nbytes - 5] ^= 1;
        expect_same(WHARF_INFLATE_GZIP, source.bytes, source.nbytes, &tiny_parts[k]);
        source.bytes[source.nbytes - 5] ^= 1;
    }
    /* What follows is no member. */
    memset(source.bytes + source.nbytes, 'x', 2000);
    expect_same(WHARF_INFLATE_GZIP, source.bytes, source.nbytes + 2000, &tiny_parts[1]);
    free(source.bytes);
    free(raw);
}

/* Cuts before, at and behind each border of two blocks. */
Test(inflate_parallel, verifies_truncation_at_block_borders)
{
    enum { RAW = 120000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 5, RAW);
    uint8_t *out = malloc(RAW);
    struct wharf_inflate *inflate = malloc(sizeof(*inflate));
    struct source source = {0};
    unsigned n = 0;

    cr_assert(out && inflate);
    pack(&source, WHARF_INFLATE_RAW, 6, Z_DEFAULT_STRATEGY, raw, RAW, 8000, Z_BLOCK);
    wharf_inflate_init(inflate, source.bytes, source.nbytes, 0, out, RAW);
    while (inflate->phase != WHARF_INFLATE_DONE) {
        cr_assert_eq(wharf_inflate_run_until(inflate, inflate->bit_pos + 1), WHARF_REASON_NONE);
        for (size_t i = 0; i < 3; i++) {
            size_t nbytes = (size_t)(inflate->bit_pos / 8) + i;
            if (nbytes && nbytes <= source.nbytes)
                expect_same(WHARF_INFLATE_RAW, source.bytes, nbytes - 1,
                            &tiny_parts[n++ % N_SETTINGS]);
        }
    }
    cr_assert_gt(n, 30);
    free(source.bytes);
    free(inflate);
    free(out);
    free(raw);
}

Test(inflate_parallel, verifies_damage_as_the_serial_decoder_does)
{
    enum { RAW = 80000, ROUNDS = 60 };
    struct test_random random = {11};
    uint8_t *raw = test_data_new(test_data_find("text"), 6, RAW);

    for (unsigned f = 0; f < 3; f++) {
        enum wharf_inflate_format format = (enum wharf_inflate_format)f;
        struct source source = {0};
        pack(&source, format, 6, Z_DEFAULT_STRATEGY, raw, RAW, 5000, Z_BLOCK);
        for (unsigned round = 0; round < ROUNDS / 3; round++) {
            size_t at = test_random_below(&random, source.nbytes);
            uint8_t bit = (uint8_t)(1 << test_random_below(&random, 8));
            source.bytes[at] ^= bit;
            expect_same(format, source.bytes, source.nbytes, &tiny_parts[round % N_SETTINGS]);
            source.bytes[at] ^= bit;
        }
        free(source.bytes);
    }
    free(raw);
}

/* Behind the members of a stream that began a moment ago there is no window to refer to. */
Test(inflate_parallel, refuses_matches_before_the_members_beginning)
{
    enum { RAW = 200000, CUT = 60000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 7, RAW);
    struct source whole = {0};
    struct wharf_inflate *inflate = malloc(sizeof(*inflate));
    uint8_t *out = malloc(RAW);

    cr_assert(inflate && out);
    pack(&whole, WHARF_INFLATE_RAW, 6, Z_DEFAULT_STRATEGY, raw, RAW, 4000, Z_SYNC_FLUSH);
    wharf_inflate_init(inflate, whole.bytes, whole.nbytes, 0, out, RAW);
    /* Sync flushes end at bytes: from any on, it is a stream that refers to what is not there. */
    while (inflate->out_next - out < CUT || inflate->bit_pos % 8)
        cr_assert_eq(wharf_inflate_run_until(inflate, inflate->bit_pos + 1), WHARF_REASON_NONE);
    for (unsigned k = 0; k < N_SETTINGS; k++)
        expect_same(WHARF_INFLATE_RAW, whole.bytes + inflate->bit_pos / 8,
                    whole.nbytes - (size_t)(inflate->bit_pos / 8), &tiny_parts[k]);
    free(out);
    free(inflate);
    free(whole.bytes);
    free(raw);
}

Test(inflate_parallel, gives_what_came_before_a_read_error)
{
    enum { RAW = 200000 };
    struct test_parallel_setting setting = tiny_parts[1];
    uint8_t *raw = test_data_new(test_data_find("text"), 8, RAW);
    struct source source = {0};

    setting.read_error = -EIO;
    pack(&source, WHARF_INFLATE_GZIP, 6, Z_DEFAULT_STRATEGY, raw, RAW, 0, 0);
    struct test_parallel parallel =
        test_parallel_decode(WHARF_INFLATE_GZIP, source.bytes, source.nbytes / 2, &setting);
    cr_assert_eq(parallel.error, -EIO);
    cr_assert_gt(parallel.out_nbytes, RAW / 4);
    cr_assert(memcmp(parallel.out, raw, parallel.out_nbytes) == 0);
    cr_assert_eq(parallel.verified, 0);
    test_parallel_free(&parallel);
    free(source.bytes);
    free(raw);
}

Test(inflate_parallel, ends_on_sources_of_a_few_bytes)
{
    static const uint8_t bytes[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3,
                                    3,    0,    0, 0, 0, 0, 0, 0, 0, 0};

    for (size_t nbytes = 0; nbytes <= sizeof(bytes); nbytes++)
        for (unsigned f = 0; f < 3; f++)
            expect_same((enum wharf_inflate_format)f, bytes, nbytes, &tiny_parts[nbytes % 3]);
}

/* ---- the parts ---------------------------------------------------------------------------- */

Test(inflate_parallel, finds_every_dynamic_and_stored_block)
{
    enum { RAW = 200000 };
    uint8_t *raw = test_data_new(test_data_find("text"), 9, RAW);
    uint8_t *out = malloc(RAW);
    struct wharf_inflate *inflate = malloc(sizeof(*inflate));
    struct wharf_inflate *scratch = malloc(sizeof(*scratch));
    struct source source = {0};
    struct wharf_block_start start;

    cr_assert(out && inflate && scratch);
    pack(&source, WHARF_INFLATE_RAW, 6, Z_DEFAULT_STRATEGY, raw, RAW, 5000, Z_SYNC_FLUSH);
    wharf_inflate_init(inflate, source.bytes, source.nbytes, 0, out, RAW);
    for (;;) {
        uint64_t at = inflate->bit_pos;
        unsigned type = (unsigned)(wharf_peek_bits(source.bytes, source.nbytes, at) & 7);
        cr_assert_eq(wharf_inflate_run_until(inflate, at + 1), WHARF_REASON_NONE);
        if (inflate->phase == WHARF_INFLATE_DONE)
            break;
        if (type == 2 || at + 400 > 8 * source.nbytes)
            continue; /* fixed, or too near to the end */
        cr_assert(
            wharf_block_find(scratch, source.bytes, source.nbytes, at, 8 * source.nbytes, &start));
        cr_assert(start.first <= at && at <= start.last);
    }
    free(source.bytes);
    free(scratch);
    free(inflate);
    free(out);
    free(raw);
}

Test(inflate_parallel, replaces_markers_in_place)
{
    static uint16_t units[1000];
    static uint8_t want[1000];
    static struct wharf_marker_bytes bytes;
    struct test_random random = {3};

    wharf_marker_bytes_init(&bytes);
    for (size_t i = 0; i < sizeof(bytes.window); i++)
        bytes.window[i] = (uint8_t)test_random_below(&random, 256);
    for (size_t n = 0; n <= 1000; n += 37) {
        for (size_t i = 0; i < n; i++) {
            bool is_marker = i / 100 % 2 && test_random_below(&random, 3) == 0;
            unsigned which = (unsigned)test_random_below(&random, WHARF_DEFLATE_WINDOW_NBYTES);
            units[i] = (uint16_t)(is_marker ? WHARF_MARKER_FIRST + which : which & 0xff);
            want[i] = is_marker ? bytes.window[which] : (uint8_t)which;
        }
        wharf_markers_replace(units, n, &bytes, (uint8_t *)units);
        cr_assert(memcmp(units, want, n) == 0);
    }
    cr_assert_not(wharf_markers_any(units, 0));
    memset(units, 0, sizeof(units));
    cr_assert_not(wharf_markers_any(units, 999));
    units[0] = WHARF_MARKER_FIRST;
    cr_assert(wharf_markers_any(units, 999));
    cr_assert_not(wharf_markers_any(units + 1, 999));
}
