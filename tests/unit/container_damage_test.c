/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers with damage: whatever is cut off, flipped, swapped or forged, no wrong byte is given
 * out as good, every whole chunk before the damage is, and the fault says what and where.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/container_frame.h"
#include "tests/lib/test_container.h"
#include "tests/lib/test_data.h"

static const enum test_container_way ways[] = {TEST_CONTAINER_FILE, TEST_CONTAINER_PIPE};

/* A small file with several chunks, and its output. */
struct sample {
    struct test_bytes file;
    struct test_container_frames frames;
    uint8_t *raw;
    size_t raw_nbytes;
    uint32_t chunk_nbytes;
};

static void sample_init(struct sample *sample, uint32_t codec, size_t raw_nbytes,
                        uint32_t chunk_nbytes)
{
    struct test_container_options options = {
        .codec = codec,
        .chunk_nbytes = chunk_nbytes,
        .is_total_known = 1,
    };

    *sample = (struct sample){.raw_nbytes = raw_nbytes, .chunk_nbytes = chunk_nbytes};
    sample->raw = test_data_new(test_data_find("numbers"), 1, raw_nbytes);
    test_container_add(&sample->file, &options, sample->raw, raw_nbytes);
    test_container_list_frames(sample->file.data, &sample->frames);
}

static void sample_deinit(struct sample *sample)
{
    test_bytes_free(&sample->file);
    free(sample->raw);
}

/* What was given out is the beginning of the output, in whole chunks. */
static void expect_prefix(const struct sample *sample, const struct test_container_read *read)
{
    size_t expected = read->n_chunks * sample->chunk_nbytes;

    if (expected > sample->raw_nbytes)
        expected = sample->raw_nbytes;
    cr_assert_eq(read->out.nbytes, expected);
    cr_assert(expected == 0 || memcmp(read->out.data, sample->raw, expected) == 0);
}

/* What a forgery changed, for messages. */
static const char *forged_field = "";

static void expect_fault(const uint8_t *in, size_t in_nbytes, uint32_t result, uint32_t reason,
                         uint64_t chunk, uint64_t file_offset)
{
    for (size_t i = 0; i < 2; i++) {
        struct test_container_read read = test_container_read_all(in, in_nbytes, ways[i]);

        cr_assert(read.fault.result == result && read.fault.reason == reason &&
                      read.fault.chunk == chunk && read.fault.file_offset == file_offset,
                  "%s: %s, %s, chunk %zu, byte %zu instead of %s, %s, chunk %zu, byte %zu",
                  forged_field, wharf_result_name(read.fault.result),
                  wharf_reason_name(read.fault.reason), (size_t)read.fault.chunk,
                  (size_t)read.fault.file_offset, wharf_result_name(result),
                  wharf_reason_name(reason), (size_t)chunk, (size_t)file_offset);
        cr_assert_eq(read.n_chunks, chunk);
        test_container_read_free(&read);
    }
}

/* The last frame that begins at or before `at`, or n_frames if there is none. */
static size_t frame_at(const struct test_container_frames *frames, size_t at)
{
    size_t i = frames->n_frames;

    while (i > 0 && frames->offsets[i - 1] > at)
        i--;
    return i > 0 ? i - 1 : frames->n_frames;
}

/* How many whole chunks stand in the first nbytes of the file. */
static size_t count_whole_chunks(const struct sample *sample, size_t nbytes)
{
    size_t n = 0;

    for (size_t i = 0; i + 1 < sample->frames.n_frames; i++)
        if (sample->frames.offsets[i + 1] <= nbytes &&
            test_container_frame(sample->file.data, sample->frames.offsets[i])->marker ==
                WHARF_CONTAINER_MARKER_CHUNK)
            n++;
    return n;
}

/* Every prefix: all whole chunks in it, then CONTAINER_TRUNCATED in the frame that was cut. */
Test(container_damage, every_prefix_gives_its_whole_chunks_and_says_so)
{
    struct sample sample;

    sample_init(&sample, WHARF_CODEC_ZLIB, 1000, 150);
    for (size_t n = 0; n < sample.file.nbytes; n++) {
        size_t n_chunks = count_whole_chunks(&sample, n);
        for (size_t i = 0; i < 2; i++) {
            struct test_container_read read = test_container_read_all(sample.file.data, n, ways[i]);
            size_t frame = frame_at(&sample.frames, n);
            size_t frame_offset = frame < sample.frames.n_frames ? sample.frames.offsets[frame] : 0;

            cr_assert_eq(read.fault.result, WHARF_BAD_DATA);
            cr_assert_eq(read.fault.reason, WHARF_REASON_CONTAINER_TRUNCATED, "%zu bytes: %s", n,
                         wharf_reason_name(read.fault.reason));
            cr_assert_eq(read.n_chunks, n_chunks, "%zu bytes", n);
            cr_assert_eq(read.fault.chunk, n_chunks);
            cr_assert_eq(read.fault.file_offset, frame_offset);
            expect_prefix(&sample, &read);
            test_container_read_free(&read);
        }
    }
    sample_deinit(&sample);
}

static void expect_no_flip_goes_by(struct sample *sample, int may_be_harmless)
{
    for (size_t bit = 0; bit < 8 * sample->file.nbytes; bit++) {
        sample->file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        for (size_t i = 0; i < 2; i++) {
            struct test_container_read read =
                test_container_read_all(sample->file.data, sample->file.nbytes, ways[i]);
            expect_prefix(sample, &read);
            if (read.fault.result == WHARF_OK)
                cr_assert(may_be_harmless && read.out.nbytes == sample->raw_nbytes,
                          "bit %zu was not noticed", bit);
            test_container_read_free(&read);
        }
        sample->file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* Every bit of a file of stored chunks means something. */
Test(container_damage, every_flipped_bit_of_stored_chunks_is_noticed)
{
    struct sample sample;

    sample_init(&sample, WHARF_CODEC_STORED, 200, 50);
    expect_no_flip_goes_by(&sample, 0);
    sample_deinit(&sample);
}

/* Compressed streams have bits that mean nothing (padding, a gzip header's time): flipping one may
 * go unnoticed, but only if the output is right. */
Test(container_damage, no_flipped_bit_gives_wrong_output)
{
    static const uint32_t codecs[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};

    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        struct sample sample;
        sample_init(&sample, codecs[i], 600, 250);
        expect_no_flip_goes_by(&sample, 1);
        sample_deinit(&sample);
    }
}

/* A copy of the file without, with twice, or with two chunks of the same size swapped. */
static struct test_bytes rearrange(const struct sample *sample, const int *order, size_t n_order)
{
    const size_t *offsets = sample->frames.offsets;
    struct test_bytes file = {0};

    test_bytes_add(&file, sample->file.data, offsets[0]);
    for (size_t i = 0; i < n_order; i++)
        test_bytes_add(&file, sample->file.data + offsets[order[i]],
                       offsets[order[i] + 1] - offsets[order[i]]);
    test_bytes_add(&file, sample->file.data + offsets[4], sample->file.nbytes - offsets[4]);
    return file;
}

/* Chunks of the same sizes, each whole and right by itself, but not in their order. */
Test(container_damage, chunks_out_of_place_are_noticed)
{
    static const struct {
        int order[5];
        size_t n_order;
        uint64_t first_bad;
    } cases[] = {
        {{1, 0, 2, 3}, 4, 0},                                                /* swapped */
        {{0, 2, 1, 3}, 4, 1},    {{0, 1, 3, 2}, 4, 2},    {{1, 2, 3}, 3, 0}, /* removed */
        {{0, 1, 3}, 3, 2},       {{0, 0, 1, 2, 3}, 5, 1},                    /* there twice */
        {{0, 1, 2, 3, 3}, 5, 4}, {{0, 1, 1, 3}, 4, 2}, /* in another's place */
    };
    struct sample sample;

    sample_init(&sample, WHARF_CODEC_STORED, 64, 16);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_bytes file = rearrange(&sample, cases[i].order, cases[i].n_order);
        expect_fault(file.data, file.nbytes, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_CHUNK,
                     cases[i].first_bad, 32 + 80 * cases[i].first_bad);
        test_bytes_free(&file);
    }
    sample_deinit(&sample);
}

/* The last chunk removed: the index is the first frame that does not fit. */
Test(container_damage, missing_last_chunk_is_noticed_in_the_index)
{
    static const int order[] = {0, 1, 2};
    struct sample sample;
    struct test_bytes file;

    sample_init(&sample, WHARF_CODEC_STORED, 64, 16);
    file = rearrange(&sample, order, 3);
    expect_fault(file.data, file.nbytes, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_INDEX, 3,
                 32 + 80 * 3);
    test_bytes_free(&file);
    sample_deinit(&sample);
}

/* Same place, same size, own checksums right, but out of another file: the chain breaks. */
Test(container_damage, chunk_of_another_file_is_noticed)
{
    struct test_container_options options = {.codec = WHARF_CODEC_STORED, .chunk_nbytes = 16};
    struct test_bytes files[2] = {{0}, {0}};
    uint8_t *raw = test_data_new(test_data_find("random"), 1, 96);

    test_container_add(&files[0], &options, raw, 48);
    test_container_add(&files[1], &options, raw + 48, 48);
    memcpy(files[0].data + 32 + 80, files[1].data + 32 + 80, 80);
    expect_fault(files[0].data, files[0].nbytes, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_CHUNK, 1,
                 32 + 80);
    for (int i = 0; i < 2; i++)
        test_bytes_free(&files[i]);
    free(raw);
}

/* Damage to a second member's magic must not make it vanish. */
Test(container_damage, what_follows_the_end_is_a_member_or_an_error)
{
    struct sample sample;
    size_t whole;

    sample_init(&sample, WHARF_CODEC_STORED, 48, 16);
    whole = sample.file.nbytes;
    test_bytes_add(&sample.file, sample.file.data, 32);
    expect_fault(sample.file.data, whole + 32, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_TRUNCATED, 3,
                 whole + 32);
    expect_fault(sample.file.data, whole + 7, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_TRUNCATED, 3,
                 whole);
    sample.file.data[whole] ^= 1;
    expect_fault(sample.file.data, whole + 32, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_MAGIC, 3,
                 whole);
    expect_fault(sample.file.data, whole + 1, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_MAGIC, 3,
                 whole);
    sample_deinit(&sample);
}

/* ---- forged: wrong fields under right checksums ----------------------------------------- */

struct forgery {
    struct sample sample;
    struct wharf_container_file_header *file;
    struct wharf_container_frame_header *chunk; /* the second chunk */
    struct wharf_container_frame_header *node;
    struct wharf_container_frame_header *end;
};

/* Four stored chunks of 16 bytes, a node and an end frame. */
static void forgery_init(struct forgery *forgery, uint32_t codec, uint32_t chunk_nbytes)
{
    struct sample *sample = &forgery->sample;
    uint8_t *data;

    sample_init(sample, codec, 4 * chunk_nbytes, chunk_nbytes);
    data = sample->file.data;
    forgery->file = (struct wharf_container_file_header *)data;
    forgery->chunk = test_container_frame(data, sample->frames.offsets[1]);
    forgery->node = test_container_frame(data, sample->frames.offsets[4]);
    forgery->end = test_container_frame(data, sample->frames.offsets[5]);
}

/* Reseals the forgery, expects the fault, and frees it. */
static void expect_forgery_fault(struct forgery *forgery, uint32_t result, uint32_t reason,
                                 uint64_t chunk, size_t frame)
{
    struct sample *sample = &forgery->sample;
    size_t file_offset = frame < 6 ? sample->frames.offsets[frame] : 0;

    test_container_reseal(sample->file.data, &sample->frames);
    expect_fault(sample->file.data, sample->file.nbytes, result, reason, chunk, file_offset);
    sample_deinit(sample);
}
enum { FILE_HEADER = 6, SECOND_CHUNK = 1, NODE = 4, END = 5 };

#define EXPECT_FORGERY(field, value, result, reason, n_chunks, frame)                              \
    do {                                                                                           \
        struct forgery forged;                                                                     \
        forgery_init(&forged, WHARF_CODEC_STORED, 16);                                             \
        forged_field = #field " = " #value;                                                        \
        forged.field = (value);                                                                    \
        expect_forgery_fault(&forged, (result), WHARF_REASON_CONTAINER_##reason, (n_chunks),       \
                             (frame));                                                             \
    } while (0)

Test(container_damage, file_header_out_of_its_limits_is_refused)
{
    EXPECT_FORGERY(file->version, 2, WHARF_UNSUPPORTED, VERSION, 0, FILE_HEADER);
    EXPECT_FORGERY(file->flags, 3, WHARF_UNSUPPORTED, VERSION, 0, FILE_HEADER);
    EXPECT_FORGERY(file->reserved, 1, WHARF_UNSUPPORTED, VERSION, 0, FILE_HEADER);
    EXPECT_FORGERY(file->chunk_max_nbytes, 0, WHARF_BAD_DATA, HEADER, 0, FILE_HEADER);
    EXPECT_FORGERY(file->chunk_max_nbytes, (16 << 20) + 1, WHARF_BAD_DATA, HEADER, 0, FILE_HEADER);
    EXPECT_FORGERY(file->total_nbytes, UINT64_MAX, WHARF_BAD_DATA, HEADER, 0, FILE_HEADER);
    EXPECT_FORGERY(file->flags, 0, WHARF_BAD_DATA, HEADER, 0, FILE_HEADER);
    EXPECT_FORGERY(file->total_nbytes, 65, WHARF_BAD_DATA, HEADER, 4, FILE_HEADER);
    EXPECT_FORGERY(file->total_nbytes, 20, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
}

Test(container_damage, chunk_out_of_its_limits_is_refused)
{
    EXPECT_FORGERY(file->chunk_max_nbytes, 15, WHARF_BAD_DATA, CHUNK, 0, 0);
    EXPECT_FORGERY(chunk->raw_nbytes, 0, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->raw_nbytes, 15, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->payload_nbytes, 0, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->payload_nbytes, 15, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->payload_nbytes, UINT32_MAX, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->sequence, 2, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->raw_offset, UINT64_MAX, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->raw_offset, 15, WHARF_BAD_DATA, CHUNK, 1, SECOND_CHUNK);
    /* A payload as large as its output can only be stored. */
    EXPECT_FORGERY(chunk->codec_or_level, WHARF_CODEC_DEFLATE, WHARF_BAD_DATA, CHUNK, 1,
                   SECOND_CHUNK);
    EXPECT_FORGERY(chunk->codec_or_level, 65535, WHARF_UNSUPPORTED, CODEC, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->parameters[0], 1, WHARF_UNSUPPORTED, CODEC, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->parameters[1], 1, WHARF_UNSUPPORTED, CODEC, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->parameters[2], 1, WHARF_UNSUPPORTED, CODEC, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->parameters[15], 1, WHARF_UNSUPPORTED, CODEC, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->flags, 1, WHARF_UNSUPPORTED, VERSION, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->reserved, 1, WHARF_UNSUPPORTED, VERSION, 1, SECOND_CHUNK);
    EXPECT_FORGERY(chunk->marker, 0, WHARF_UNSUPPORTED, VERSION, 1, SECOND_CHUNK);
}

/* The index of a lying file is noticed by whoever reads it all. */
Test(container_damage, index_that_differs_from_the_chunks_is_refused)
{
    EXPECT_FORGERY(node->codec_or_level, 2, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(node->codec_or_level, 0, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(node->codec_or_level, 8, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(node->sequence, 1, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(node->raw_offset, 1, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(node->raw_nbytes, 1, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(node->parameters[0], 1, WHARF_BAD_DATA, INDEX, 4, NODE);
    /* The first byte of the first entry: it stands right behind the header. */
    EXPECT_FORGERY(node[1].marker, 112, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(end->codec_or_level, 1, WHARF_BAD_DATA, INDEX, 4, END);
    EXPECT_FORGERY(end->payload_nbytes, 16, WHARF_BAD_DATA, INDEX, 4, END);
    EXPECT_FORGERY(end->raw_nbytes, 1, WHARF_BAD_DATA, INDEX, 4, END);
    EXPECT_FORGERY(end->content_crc, 1, WHARF_BAD_DATA, INDEX, 4, END);
    EXPECT_FORGERY(end->sequence, 3, WHARF_BAD_DATA, INDEX, 4, END);
    EXPECT_FORGERY(end->raw_offset, 65, WHARF_BAD_DATA, INDEX, 4, END);
    EXPECT_FORGERY(end->parameters[0], 32, WHARF_BAD_DATA, INDEX, 4, END);
    EXPECT_FORGERY(end->parameters[8], 0, WHARF_BAD_DATA, INDEX, 4, END);
    /* An end, or a node, where a chunk or the node should be. */
    EXPECT_FORGERY(node->marker, WHARF_CONTAINER_MARKER_END, WHARF_BAD_DATA, INDEX, 4, NODE);
    EXPECT_FORGERY(chunk->marker, WHARF_CONTAINER_MARKER_INDEX, WHARF_BAD_DATA, INDEX, 1,
                   SECOND_CHUNK);
}

/* 200 zero bytes are 13 bytes of Deflate, which can give 13416 but not 16 MiB. */
Test(container_damage, bomb_is_refused_before_memory_is_taken)
{
    struct sample sample;
    struct wharf_container_file_header *file;
    struct wharf_container_frame_header *chunk;
    uint8_t zeros[200] = {0};
    struct test_container_options options = {.codec = WHARF_CODEC_DEFLATE, .chunk_nbytes = 200};

    sample = (struct sample){.raw_nbytes = 0};
    test_container_add(&sample.file, &options, zeros, sizeof(zeros));
    test_container_list_frames(sample.file.data, &sample.frames);
    file = (struct wharf_container_file_header *)sample.file.data;
    chunk = test_container_frame(sample.file.data, 32);
    file->chunk_max_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES;
    chunk->raw_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES;
    test_container_reseal(sample.file.data, &sample.frames);
    expect_fault(sample.file.data, sample.file.nbytes, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_LIMIT,
                 0, 32);
    /* One byte more than possible, and no more than possible: then the stream itself tells. */
    chunk->raw_nbytes = chunk->payload_nbytes * 1032 + 1;
    test_container_reseal(sample.file.data, &sample.frames);
    expect_fault(sample.file.data, sample.file.nbytes, WHARF_BAD_DATA, WHARF_REASON_CONTAINER_LIMIT,
                 0, 32);
    chunk->raw_nbytes--;
    test_container_reseal(sample.file.data, &sample.frames);
    expect_fault(sample.file.data, sample.file.nbytes, WHARF_OUTPUT_SHORT,
                 WHARF_REASON_OUTPUT_MISSING, 0, 96);
    sample_deinit(&sample);
}

/* In a file of known size the payload has to be there before memory is taken for it. */
Test(container_damage, large_chunk_in_a_small_file_is_refused_by_its_header)
{
    struct wharf_container_memory memory;
    struct wharf_container_source source;
    struct wharf_container_reader reader;
    struct wharf_container_item item;
    struct forgery forged;

    forgery_init(&forged, WHARF_CODEC_STORED, 16);
    forged.file->chunk_max_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES;
    forged.file->flags = 0;
    forged.file->total_nbytes = 0;
    forged.chunk->payload_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES;
    forged.chunk->raw_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES;
    test_container_reseal(forged.sample.file.data, &forged.sample.frames);
    memory = (struct wharf_container_memory){forged.sample.file.data, forged.sample.file.nbytes};
    source = wharf_container_source_memory(&memory);
    wharf_container_reader_init(&reader, &source);
    cr_assert_eq(wharf_container_next(&reader, &item), 0);
    cr_assert_eq(item.kind, WHARF_CONTAINER_CHUNK);
    cr_assert_eq(wharf_container_next(&reader, &item), 0);
    cr_assert_eq(item.kind, WHARF_CONTAINER_FAULT);
    cr_assert_eq(item.fault.reason, WHARF_REASON_CONTAINER_TRUNCATED);
    /* It stays what it is. */
    cr_assert_eq(wharf_container_next(&reader, &item), 0);
    cr_assert_eq(item.kind, WHARF_CONTAINER_FAULT);
    sample_deinit(&forged.sample);
}

/* Each of these changes the payload or what the header says of it; the fault is the payload's. */
Test(container_damage, payload_that_is_not_what_its_header_says_is_refused)
{
    struct forgery forged;
    size_t payload;

    forgery_init(&forged, WHARF_CODEC_DEFLATE, 200);
    payload = forged.sample.frames.offsets[1] + 64;
    forged.chunk->content_crc ^= 1;
    test_container_reseal(forged.sample.file.data, &forged.sample.frames);
    expect_fault(forged.sample.file.data, forged.sample.file.nbytes, WHARF_BAD_CHECKSUM,
                 WHARF_REASON_JOB_CHECKSUM, 1, payload);
    forged.chunk->content_crc ^= 1;
    cr_assert_neq(forged.chunk->payload_nbytes % 16, 0, "the test needs padding");
    forged.chunk->payload_nbytes++;
    test_container_reseal(forged.sample.file.data, &forged.sample.frames);
    expect_fault(forged.sample.file.data, forged.sample.file.nbytes, WHARF_BAD_DATA,
                 WHARF_REASON_INPUT_LEFT, 1, payload);
    forged.chunk->payload_nbytes--;
    forged.sample.file.data[payload + forged.chunk->payload_nbytes] = 1;
    test_container_reseal(forged.sample.file.data, &forged.sample.frames);
    expect_fault(forged.sample.file.data, forged.sample.file.nbytes, WHARF_BAD_DATA,
                 WHARF_REASON_CONTAINER_CHUNK, 1, payload);
    forged.sample.file.data[payload + forged.chunk->payload_nbytes] = 0;
    /* It was OUTPUT_TOO_SMALL once, as if the reader could do something about it. */
    forged.chunk->raw_nbytes--;
    test_container_reseal(forged.sample.file.data, &forged.sample.frames);
    expect_fault(forged.sample.file.data, forged.sample.file.nbytes, WHARF_BAD_DATA,
                 WHARF_REASON_OUTPUT_FULL, 1, payload);
    sample_deinit(&forged.sample);
}
