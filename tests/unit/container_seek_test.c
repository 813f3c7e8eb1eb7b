/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random access: from any byte on, the output is the same as reading all of it gives, by the index
 * where it is good and by walking where it is not.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_container.h"
#include "tests/lib/test_data.h"

enum { RAW_NBYTES = 1800 };

/* Three members, one of them empty, in chunks of 100, 70 and 7 bytes. */
struct sample {
    struct test_bytes file;
    uint8_t *raw;
    size_t member_offsets[4]; /* the last is the file's size */
};

static void sample_init(struct sample *sample)
{
    static const struct {
        size_t from;
        size_t to;
        struct test_container_options options;
    } members[] = {
        {0, 1500, {.codec = WHARF_CODEC_DEFLATE, .chunk_nbytes = 100, .is_total_known = 1}},
        {1500, 1500, {.codec = WHARF_CODEC_STORED, .chunk_nbytes = 70}},
        {1500, RAW_NBYTES, {.codec = WHARF_CODEC_STORED, .chunk_nbytes = 1}},
    };

    *sample = (struct sample){.raw = test_data_new(test_data_find("text"), 1, RAW_NBYTES)};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        sample->member_offsets[i] = sample->file.nbytes;
        test_container_add(&sample->file, &members[i].options, sample->raw + members[i].from,
                           members[i].to - members[i].from);
    }
    sample->member_offsets[3] = sample->file.nbytes;
}

static void sample_deinit(struct sample *sample)
{
    test_bytes_free(&sample->file);
    free(sample->raw);
}

/* Reads from output byte `from` on; the index is expected to serve, or not to. */
static void expect_from(const struct sample *sample, enum test_container_way way, size_t from,
                        uint32_t index_reason)
{
    struct wharf_container_fault fault;
    struct test_container_read read =
        test_container_read_from(sample->file.data, sample->file.nbytes, way, from, &fault);
    size_t expected = from < RAW_NBYTES ? RAW_NBYTES - from : 0;

    cr_assert_eq(fault.reason, index_reason, "%s", wharf_reason_name(fault.reason));
    cr_assert_eq(read.fault.result, WHARF_OK, "%s", wharf_reason_name(read.fault.reason));
    cr_assert_eq(read.out.nbytes, expected, "from %zu: %zu bytes", from, read.out.nbytes);
    cr_assert(expected == 0 || memcmp(read.out.data, sample->raw + from, expected) == 0);
    test_container_read_free(&read);
}

Test(container_seek, every_byte_is_found)
{
    struct sample sample;

    sample_init(&sample);
    for (size_t from = 0; from < RAW_NBYTES + 3; from++) {
        /* Of the first member only the bytes around chunks' borders. */
        if (from < 1490 && from % 100 > 1 && from % 100 < 99)
            continue;
        expect_from(&sample, TEST_CONTAINER_FILE, from, WHARF_REASON_NONE);
        expect_from(&sample, TEST_CONTAINER_PIPE, from, WHARF_REASON_NONE);
    }
    sample_deinit(&sample);
}

/* Appended or lost bytes take the index away, not the data. */
Test(container_seek, walks_where_the_tail_is_cut)
{
    struct sample sample;
    size_t whole;

    sample_init(&sample);
    whole = sample.file.nbytes;
    for (size_t cut = 1; cut < 900; cut += 7) {
        struct wharf_container_fault fault;
        struct test_container_read read;

        read = test_container_read_from(sample.file.data, whole - cut, TEST_CONTAINER_FILE, 1450,
                                        &fault);
        cr_assert_eq(fault.result, WHARF_BAD_DATA);
        cr_assert_eq(fault.reason, WHARF_REASON_CONTAINER_TRUNCATED);
        cr_assert_eq(read.fault.reason, WHARF_REASON_CONTAINER_TRUNCATED);
        cr_assert(read.out.nbytes > 50, "%zu bytes", read.out.nbytes);
        cr_assert_eq(memcmp(read.out.data, sample.raw + 1450, read.out.nbytes), 0);
        test_container_read_free(&read);
    }
    sample_deinit(&sample);
}

/* A bit of most bytes, from a few places: what is given out is right, and it ends at a fault or is
 * all.  Of the last member, whose 300 chunks are alike, the index and a sample of the chunks. */
Test(container_seek, no_flipped_bit_gives_wrong_output)
{
    static const size_t places[] = {1499, 1700, RAW_NBYTES};
    struct sample sample;

    sample_init(&sample);
    for (size_t byte = 0; byte < sample.file.nbytes;
         byte +=
         byte < sample.member_offsets[2] || byte > sample.member_offsets[3] - 600 ? 1 : 83) {
        uint8_t flip = (uint8_t)(1 << (byte * 5 + byte / 8) % 8);
        sample.file.data[byte] ^= flip;
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            struct wharf_container_fault fault;
            struct test_container_read read = test_container_read_from(
                sample.file.data, sample.file.nbytes, TEST_CONTAINER_FILE, places[i], &fault);
            size_t expected = RAW_NBYTES - places[i];
            cr_assert(read.out.nbytes <= expected);
            cr_assert(read.out.nbytes == 0 ||
                      memcmp(read.out.data, sample.raw + places[i], read.out.nbytes) == 0);
            cr_assert(read.fault.result != WHARF_OK || read.out.nbytes == expected,
                      "byte %zu, from %zu: %zu bytes", byte, places[i], read.out.nbytes);
            test_container_read_free(&read);
        }
        sample.file.data[byte] ^= flip;
    }
    sample_deinit(&sample);
}

/* ---- an index that lies under right checksums ------------------------------------------- */

struct lie {
    struct sample sample;
    uint8_t *member; /* the last one: 300 chunks, two nodes of level 1, the root, the end */
    struct test_container_frames frames;
};

static void lie_init(struct lie *lie)
{
    sample_init(&lie->sample);
    lie->member = lie->sample.file.data + lie->sample.member_offsets[2];
    test_container_list_frames(lie->member, &lie->frames);
}

static struct wharf_container_frame_header *lie_frame(struct lie *lie, size_t from_end)
{
    return test_container_frame(lie->member, lie->frames.offsets[lie->frames.n_frames - from_end]);
}
enum { END = 1, ROOT = 2, LAST_NODE = 3 };

/* Seals the lie: seeking says so, and walks to the place; sequential reading stops at it. */
static void expect_lie_is_noticed(struct lie *lie, size_t from)
{
    struct wharf_container_fault fault;
    struct test_container_read read;

    test_container_reseal(lie->member, &lie->frames);
    read = test_container_read_from(lie->sample.file.data, lie->sample.file.nbytes,
                                    TEST_CONTAINER_FILE, from, &fault);
    cr_assert_eq(fault.reason, WHARF_REASON_CONTAINER_INDEX, "%s", wharf_reason_name(fault.reason));
    cr_assert(read.out.nbytes > 0);
    cr_assert_eq(memcmp(read.out.data, lie->sample.raw + from, read.out.nbytes), 0);
    cr_assert_eq(read.fault.reason, WHARF_REASON_CONTAINER_INDEX);
    test_container_read_free(&read);
    sample_deinit(&lie->sample);
}

static void set_entry(struct wharf_container_frame_header *node, size_t i, uint64_t frame_offset,
                      uint64_t raw_offset)
{
    struct wharf_container_index_entry *entries = (void *)(node + 1);

    entries[i].frame_offset += frame_offset;
    entries[i].raw_offset += raw_offset;
}

#define EXPECT_LIE(from, ...)                                                                      \
    do {                                                                                           \
        struct lie lie;                                                                            \
        lie_init(&lie);                                                                            \
        __VA_ARGS__;                                                                               \
        expect_lie_is_noticed(&lie, (from));                                                       \
    } while (0)

Test(container_seek, lying_entries_are_noticed)
{
    /* Links of the root: to itself, forward, before the header, unaligned, to a chunk. */
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, ROOT), 1, 64 + 44 * 16, 0));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, ROOT), 1, 1 << 20, 0));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, ROOT), 1, (uint64_t)-1 << 40, 0));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, ROOT), 1, 8, 0));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, ROOT), 1, (uint64_t)-80, 0));
    /* Of a node: to the next chunk, with its place as if it were this one's, and the other way. */
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, LAST_NODE), 43, (uint64_t)-80, 0));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, LAST_NODE), 43, 0, 1));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, LAST_NODE), 20, 80, 0));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, LAST_NODE), 20, 0, 1));
    EXPECT_LIE(1799, set_entry(lie_frame(&lie, LAST_NODE), 0, 0, 1));
}

Test(container_seek, lying_nodes_are_noticed)
{
    EXPECT_LIE(1799, lie_frame(&lie, LAST_NODE)->sequence = 0);
    EXPECT_LIE(1799, lie_frame(&lie, LAST_NODE)->raw_offset = 0);
    EXPECT_LIE(1799, lie_frame(&lie, LAST_NODE)->codec_or_level = 2);
    EXPECT_LIE(1799, lie_frame(&lie, ROOT)->codec_or_level = 1);
    EXPECT_LIE(1799, lie_frame(&lie, ROOT)->payload_nbytes = 16);
}

static void set_end(struct lie *lie, uint64_t root_offset, uint64_t member_nbytes)
{
    struct wharf_container_end_parameters end;

    memcpy(&end, lie_frame(lie, END)->parameters, sizeof(end));
    end.root_offset += root_offset;
    end.member_nbytes += member_nbytes;
    memcpy(lie_frame(lie, END)->parameters, &end, sizeof(end));
}

Test(container_seek, lying_end_frames_are_noticed)
{
    EXPECT_LIE(1799, set_end(&lie, 16, 0));
    EXPECT_LIE(1799, set_end(&lie, (uint64_t)-1 << 63, 0));
    EXPECT_LIE(1799, set_end(&lie, 0, 1));
    EXPECT_LIE(1799, set_end(&lie, 0, 1 << 20));
    EXPECT_LIE(1799, set_end(&lie, 0, (uint64_t)1 << 62));
    EXPECT_LIE(1799, lie_frame(&lie, END)->sequence = 1 << 20);
    EXPECT_LIE(1799, lie_frame(&lie, END)->sequence = 0);
    EXPECT_LIE(1799, lie_frame(&lie, END)->sequence = UINT64_MAX);
    EXPECT_LIE(1799, lie_frame(&lie, END)->raw_offset = 299);
    EXPECT_LIE(1799, lie_frame(&lie, END)->raw_offset = UINT64_MAX);
    EXPECT_LIE(1799, lie_frame(&lie, END)->raw_offset = (uint64_t)301 << 24);
}

/* The root of a member with one chunk is the chunk. */
Test(container_seek, lying_root_of_a_single_chunk_is_noticed)
{
    struct test_container_options options = {.codec = WHARF_CODEC_STORED, .chunk_nbytes = 16};
    static const uint64_t roots[] = {0, 16, 31, 33, 48, 112, 176, UINT64_MAX, (uint64_t)1 << 63};

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        struct test_bytes file = {0};
        struct test_container_frames frames;
        struct wharf_container_fault fault;
        struct test_container_read read;

        test_container_add(&file, &options, (const uint8_t *)"sixteen letters.", 16);
        test_container_list_frames(file.data, &frames);
        memcpy(test_container_frame(file.data, frames.offsets[1])->parameters, &roots[i], 8);
        test_container_reseal(file.data, &frames);
        read = test_container_read_from(file.data, file.nbytes, TEST_CONTAINER_FILE, 3, &fault);
        cr_assert_eq(fault.reason, WHARF_REASON_CONTAINER_INDEX, "root %zu", i);
        cr_assert_eq(read.out.nbytes, 13);
        cr_assert_eq(read.fault.reason, WHARF_REASON_CONTAINER_INDEX);
        test_container_read_free(&read);
        test_bytes_free(&file);
    }
}

/* ---- cost ------------------------------------------------------------------------------- */

struct counted {
    struct wharf_container_memory memory;
    unsigned n_reads;
    unsigned fails_at; /* this read fails; 0: none */
};

static int64_t read_counted(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    struct counted *counted = context;
    struct wharf_container_source source = wharf_container_source_memory(&counted->memory);

    if (++counted->n_reads == counted->fails_at)
        return -EIO;
    return source.read_at(source.context, offset, buf, nbytes);
}

/* 70000 chunks: end frame and file header, three nodes, the chunk's header. */
Test(container_seek, takes_few_reads)
{
    struct test_container_options options = {.codec = WHARF_CODEC_STORED, .chunk_nbytes = 1};
    uint8_t *raw = test_data_new(test_data_find("zeros"), 1, 70000);
    struct test_bytes file = {0};
    struct wharf_container_reader reader;
    struct wharf_container_item item;

    test_container_add(&file, &options, raw, 70000);
    for (uint64_t from = 0; from < 70000; from += 6999) {
        struct counted counted = {.memory = {file.data, file.nbytes}};
        struct wharf_container_source source = {read_counted, &counted, file.nbytes};

        wharf_container_reader_init(&reader, &source);
        cr_assert_eq(wharf_container_seek(&reader, from, NULL), 0);
        cr_assert_eq(wharf_container_next(&reader, &item), 0);
        cr_assert_eq(item.kind, WHARF_CONTAINER_CHUNK);
        cr_assert_eq(item.chunk.number, from);
        cr_assert_eq(item.chunk.out_offset, from);
        cr_assert_leq(counted.n_reads, 9);
    }
    test_bytes_free(&file);
    free(raw);
}

/* An error of the source is the caller's, at whatever read it comes. */
Test(container_seek, gives_the_sources_error)
{
    struct sample sample;
    unsigned n_reads = 1;

    sample_init(&sample);
    for (unsigned fails_at = 1; fails_at <= n_reads; fails_at++) {
        struct counted counted = {
            .memory = {sample.file.data, sample.file.nbytes},
            .fails_at = fails_at,
        };
        struct wharf_container_source source = {read_counted, &counted, sample.file.nbytes};
        struct wharf_container_reader reader;
        struct wharf_container_item item = {.kind = WHARF_CONTAINER_CHUNK};
        int rc;

        wharf_container_reader_init(&reader, &source);
        rc = wharf_container_seek(&reader, 1000, NULL);
        while (rc == 0 && item.kind == WHARF_CONTAINER_CHUNK)
            rc = wharf_container_next(&reader, &item);
        cr_assert_eq(rc, -EIO);
        if (fails_at == 1) {
            counted = (struct counted){.memory = counted.memory};
            wharf_container_reader_init(&reader, &source);
            cr_assert_eq(wharf_container_seek(&reader, 1000, NULL), 0);
            do
                cr_assert_eq(wharf_container_next(&reader, &item), 0);
            while (item.kind == WHARF_CONTAINER_CHUNK);
            n_reads = counted.n_reads;
            cr_assert_gt(n_reads, 300);
        }
    }
    sample_deinit(&sample);
}

struct changing {
    struct wharf_container_memory before;
    struct wharf_container_memory after;
    unsigned n_reads_before;
};

static int64_t read_changing(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    struct changing *changing = context;
    struct wharf_container_source source = wharf_container_source_memory(
        changing->n_reads_before > 0 ? &changing->before : &changing->after);

    if (changing->n_reads_before > 0)
        changing->n_reads_before--;
    return source.read_at(source.context, offset, buf, nbytes);
}

/* Seeks and reads while the file changes; every chunk that is given out is good by itself. */
static void read_while_it_changes(const struct sample *sample, const uint8_t *after,
                                  size_t after_nbytes, unsigned n_reads)
{
    struct changing changing = {
        {sample->file.data, sample->file.nbytes}, {after, after_nbytes}, n_reads};
    struct wharf_container_source source = {read_changing, &changing, sample->file.nbytes};
    struct wharf_container_reader reader;
    struct wharf_container_item item = {.kind = WHARF_CONTAINER_CHUNK};

    wharf_container_reader_init(&reader, &source);
    cr_assert_eq(wharf_container_seek(&reader, 200, NULL), 0);
    for (unsigned i = 0; item.kind == WHARF_CONTAINER_CHUNK; i++) {
        uint8_t payload[112];
        uint8_t out[100];
        struct wharf_container_fault fault;

        cr_assert_lt(i, 1000);
        cr_assert_eq(wharf_container_next(&reader, &item), 0);
        if (item.kind != WHARF_CONTAINER_CHUNK)
            break;
        cr_assert(item.chunk.raw_nbytes <= sizeof(out));
        cr_assert(item.chunk.payload_avail <= sizeof(payload));
        cr_assert_eq(wharf_container_read_payload(&source, &item.chunk, payload, &fault), 0);
        if (fault.result == WHARF_OK)
            wharf_container_decode(&item.chunk, 0, payload, out, &fault);
    }
}

/* At every read: the file shrinks, or becomes another of the same size: its members in another
 * order.  Sums of what one pass saw are not taken from what the other sees. */
Test(container_seek, file_may_change_while_it_is_read)
{
    struct sample sample;
    struct test_bytes other = {0};

    sample_init(&sample);
    for (size_t i = 3; i > 0; i--)
        test_bytes_add(&other, sample.file.data + sample.member_offsets[i - 1],
                       sample.member_offsets[i] - sample.member_offsets[i - 1]);
    cr_assert_eq(other.nbytes, sample.file.nbytes);
    for (unsigned n_reads = 0; n_reads < 60; n_reads++) {
        read_while_it_changes(&sample, sample.file.data, 100, n_reads);
        read_while_it_changes(&sample, other.data, other.nbytes, n_reads);
    }
    test_bytes_free(&other);
    sample_deinit(&sample);
}

Test(container_seek, totals_are_those_of_all_members)
{
    struct sample sample;
    struct wharf_container_memory memory;
    struct wharf_container_source source;
    struct wharf_container_totals totals;
    struct wharf_container_fault fault;

    sample_init(&sample);
    memory = (struct wharf_container_memory){sample.file.data, sample.file.nbytes};
    source = wharf_container_source_memory(&memory);
    cr_assert_eq(wharf_container_read_totals(&source, &totals, &fault), 0);
    cr_assert_eq(fault.result, WHARF_OK);
    cr_assert_eq(totals.n_members, 3);
    cr_assert_eq(totals.n_chunks, 15 + 300);
    cr_assert_eq(totals.raw_nbytes, RAW_NBYTES);
    memory.in_nbytes = --source.nbytes;
    cr_assert_eq(wharf_container_read_totals(&source, &totals, &fault), 0);
    cr_assert_eq(fault.reason, WHARF_REASON_CONTAINER_TRUNCATED);
    cr_assert_eq(totals.raw_nbytes, 0);
    source.nbytes = WHARF_CONTAINER_SIZE_UNKNOWN;
    cr_assert_eq(wharf_container_read_totals(&source, &totals, &fault), -ESPIPE);
    sample_deinit(&sample);
}
