/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers without damage: what is put is given back, whatever the sizes, the codec and the way
 * of reading, and the bytes are those of encoders/FORMAT.md.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_container.h"
#include "tests/lib/test_data.h"

static const uint32_t codecs[] = {
#define X(ID, name, number, summary) number,
    WHARF_CODEC_LIST(X)
#undef X
};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static void expect_gives_back(const struct test_bytes *file, const uint8_t *raw, size_t raw_nbytes)
{
    for (int way = TEST_CONTAINER_FILE; way <= TEST_CONTAINER_PIPE; way++) {
        struct test_container_read read = test_container_read_all(file->data, file->nbytes, way);

        cr_assert_eq(read.fault.result, WHARF_OK, "%s at byte %zu, chunk %zu",
                     wharf_reason_string(read.fault.reason), (size_t)read.fault.file_offset,
                     (size_t)read.fault.chunk);
        cr_assert_eq(read.out.nbytes, raw_nbytes);
        cr_assert(raw_nbytes == 0 || memcmp(read.out.data, raw, raw_nbytes) == 0);
        test_container_read_free(&read);
    }
}

/* Round trip: sizes around 0, 1 and the chunk, each codec, total known and unknown. */
Test(container, gives_back_what_was_put)
{
    enum { CHUNK = 1000 };
    static const size_t sizes[] = {
        0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1, 7 * CHUNK};

    for (size_t kind = 0; kind < test_data_n_kinds; kind++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint8_t *raw = test_data_new(&test_data_kinds[kind], i, sizes[i]);
            for (size_t codec = 0; codec < 2 * N_CODECS; codec++) {
                struct test_container_options options = {
                    .codec = codecs[codec / 2],
                    .chunk_nbytes = CHUNK,
                    .is_total_known = codec % 2,
                };
                struct test_bytes file = {0};
                test_container_add(&file, &options, raw, sizes[i]);
                cr_assert_eq(file.nbytes % WHARF_CONTAINER_ALIGN, 0);
                expect_gives_back(&file, raw, sizes[i]);
                test_bytes_free(&file);
            }
            free(raw);
        }
    }
}

/* The header says so and a chunk of the largest size fits everywhere. */
Test(container, holds_chunks_of_the_largest_size)
{
    struct test_container_options options = {
        .codec = WHARF_CODEC_DEFLATE,
        .chunk_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES,
    };
    size_t raw_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES + 1;
    uint8_t *raw = test_data_new(test_data_find("runs"), 1, raw_nbytes);
    struct test_bytes file = {0};

    test_container_add(&file, &options, raw, raw_nbytes);
    expect_gives_back(&file, raw, raw_nbytes);
    test_bytes_free(&file);
    free(raw);
}

/* Else a payload could be larger than its chunk, and readers' buffers with it. */
Test(container, stores_a_chunk_that_does_not_shrink)
{
    uint8_t *raw = test_data_new(test_data_find("random"), 3, 5000);
    uint8_t buf[5000];

    for (size_t i = 0; i < N_CODECS; i++) {
        const struct wharf_encoder_ops *ops = wharf_codec_find(codecs[i])->ops->encoder;
        struct wharf_container_packed packed;
        struct wharf_encoder *encoder;

        cr_assert_eq(ops->new (NULL, &encoder), 0);
        for (uint32_t n = 1; n <= 5000; n = 3 * n + 1) {
            cr_assert_eq(wharf_container_pack(codecs[i], 0, encoder, raw, n, buf, &packed), 0);
            cr_assert_eq(packed.codec, WHARF_CODEC_STORED);
            cr_assert_eq(packed.payload_nbytes, n);
            cr_assert_eq(packed.payload, raw);
        }
        ops->free(encoder);
    }
    free(raw);
}

/* The example of FORMAT.md, section 8; its bytes were made by another program. */
static const char example[] = "89 57 48 52 0d 0a 1a 0a 01 00 01 00 04 00 00 00 "
                              "05 00 00 00 00 00 00 00 00 00 00 00 fc 36 4d 74 "
                              "57 43 48 4b 00 00 00 00 04 00 00 00 04 00 00 00 "
                              "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "57 97 85 53 fc 36 4d 74 00 00 00 00 8a 77 65 b0 "
                              "77 68 61 72 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "57 43 48 4b 00 00 00 00 01 00 00 00 01 00 00 00 "
                              "01 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 "
                              "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "e0 2b d3 76 8a 77 65 b0 00 00 00 00 fd 00 47 2a "
                              "66 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "57 49 44 58 01 00 00 00 20 00 00 00 00 00 00 00 "
                              "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "9c 35 94 78 fd 00 47 2a 00 00 00 00 64 e5 31 8f "
                              "20 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "70 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 "
                              "57 45 4e 44 00 00 00 00 00 00 00 00 00 00 00 00 "
                              "02 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 "
                              "c0 00 00 00 00 00 00 00 60 01 00 00 00 00 00 00 "
                              "00 00 00 00 64 e5 31 8f 00 00 00 00 54 14 b9 1d ";

Test(container, bytes_are_those_of_the_format)
{
    struct test_container_options options = {
        .codec = WHARF_CODEC_STORED,
        .chunk_nbytes = 4,
        .is_total_known = 1,
    };
    struct test_bytes file = {0};

    test_container_add(&file, &options, (const uint8_t *)"wharf", 5);
    cr_assert_eq(file.nbytes, (sizeof(example) - 1) / 3);
    for (size_t i = 0; i < file.nbytes; i++)
        cr_assert_eq(file.data[i], strtoul(example + 3 * i, NULL, 16), "byte %zu", i);
    test_bytes_free(&file);
}

/* Three levels of index, and every size around a node's. */
Test(container, index_grows_with_the_number_of_chunks)
{
    static const size_t sizes[] = {255, 256, 257, 511, 512, 513, 65535, 65536, 65537};
    struct test_container_options options = {.codec = WHARF_CODEC_STORED, .chunk_nbytes = 1};
    uint8_t *raw = test_data_new(test_data_find("random"), 9, 66000);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct wharf_container_fault fault;
        struct test_bytes file = {0};

        test_container_add(&file, &options, raw, sizes[i]);
        expect_gives_back(&file, raw, sizes[i]);
        for (size_t at = 0; at < sizes[i]; at = at * 4 + 3) {
            size_t from = sizes[i] - 1 - at;
            struct test_container_read read =
                test_container_read_from(file.data, file.nbytes, TEST_CONTAINER_FILE, from, &fault);
            cr_assert_eq(fault.result, WHARF_OK);
            cr_assert_eq(read.fault.result, WHARF_OK);
            cr_assert_eq(read.n_chunks, sizes[i] - from);
            cr_assert_eq(memcmp(read.out.data, raw + from, sizes[i] - from), 0);
            test_container_read_free(&read);
        }
        test_bytes_free(&file);
    }
    free(raw);
}

/* `cat a b > c`, members of different kinds and empty ones among them. */
Test(container, joined_containers_are_a_container)
{
    static const size_t sizes[] = {0, 3000, 1, 0, 0, 999, 300};
    uint8_t *raw = test_data_new(test_data_find("text"), 5, 4300);
    struct test_bytes file = {0};
    size_t at = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct test_container_options options = {
            .codec = codecs[i % N_CODECS],
            .chunk_nbytes = 100 + 10 * (uint32_t)i,
            .is_total_known = i % 2,
        };
        test_container_add(&file, &options, raw + at, sizes[i]);
        at += sizes[i];
    }
    expect_gives_back(&file, raw, at);
    test_bytes_free(&file);
    free(raw);
}

static int fail_to_write(void *context, const struct iovec *parts, int n_parts)
{
    int *n_left = context;

    (void)parts;
    (void)n_parts;
    return (*n_left)-- > 0 ? 0 : -ENOSPC;
}

/* File header, two chunks, index node, end frame: each can fail and each says so. */
Test(container, writer_gives_the_sinks_error)
{
    struct wharf_container_writer *writer = malloc(sizeof(*writer));
    struct wharf_container_packed packed;

    cr_assert_eq(
        wharf_container_pack(WHARF_CODEC_STORED, 0, NULL, (const uint8_t *)"x", 1, NULL, &packed),
        0);
    for (int n_writes = 0; n_writes <= 5; n_writes++) {
        int n_left = n_writes;
        struct wharf_container_sink sink = {fail_to_write, &n_left};
        int rc = wharf_container_writer_init(writer, &sink, 1, 2);

        for (int i = 0; i < 2 && rc == 0; i++)
            rc = wharf_container_put(writer, &packed);
        if (rc == 0)
            rc = wharf_container_finish(writer);
        cr_assert_eq(rc, n_writes < 5 ? -ENOSPC : 0, "after %d writes", n_writes);
    }
    free(writer);
}

/* What the format does not allow is not written. */
Test(container, writer_refuses_what_readers_would)
{
    struct test_bytes file = {0};
    struct wharf_container_sink sink = test_container_sink(&file);
    struct wharf_container_writer *writer = malloc(sizeof(*writer));
    struct wharf_container_packed packed;
    const uint8_t *raw = (const uint8_t *)"abcd";

    cr_assert_eq(wharf_container_writer_init(writer, &sink, 0, 0), -EINVAL);
    cr_assert_eq(
        wharf_container_writer_init(writer, &sink, WHARF_CONTAINER_CHUNK_MAX_NBYTES + 1, 0),
        -EINVAL);
    cr_assert_eq(wharf_container_writer_init(writer, &sink, 4, WHARF_CONTAINER_OFFSET_MAX + 1),
                 -EINVAL);
    cr_assert_eq(file.nbytes, 0);
    cr_assert_eq(wharf_container_pack(WHARF_CODEC_STORED, 0, NULL, raw, 0, NULL, &packed), -EINVAL);
    cr_assert_eq(wharf_container_pack(999, 0, NULL, raw, 4, NULL, &packed), -EINVAL);
    cr_assert_eq(wharf_container_pack(WHARF_CODEC_STORED, 0, NULL, raw, 4, NULL, &packed), 0);
    cr_assert_eq(wharf_container_writer_init(writer, &sink, 3, 5), 0);
    cr_assert_eq(wharf_container_put(writer, &packed), -EINVAL, "larger than announced");
    cr_assert_eq(wharf_container_writer_init(writer, &sink, 4, 5), 0);
    cr_assert_eq(wharf_container_put(writer, &packed), 0);
    cr_assert_eq(wharf_container_put(writer, &packed), -EFBIG, "more than announced");
    cr_assert_eq(wharf_container_finish(writer), -EINVAL, "less than announced");
    test_bytes_free(&file);
    free(writer);
}

/* ---- threads ---------------------------------------------------------------------------- */

enum { N_THREADS = 4, THREADED_CHUNK = 500, N_THREADED_CHUNKS = 40 };

struct threaded {
    const struct wharf_container_source *source;
    const struct wharf_container_chunk *chunks;
    const uint8_t *raw;
    unsigned first;
    unsigned n_good;
};

/* Every fourth chunk. */
static void *decode_chunks(void *context)
{
    struct threaded *threaded = context;

    for (unsigned i = threaded->first; i < N_THREADED_CHUNKS; i += N_THREADS) {
        const struct wharf_container_chunk *chunk = &threaded->chunks[i];
        uint8_t payload[THREADED_CHUNK + WHARF_CONTAINER_ALIGN];
        uint8_t out[THREADED_CHUNK];
        struct wharf_container_fault fault;

        if (wharf_container_read_payload(threaded->source, chunk, payload, &fault) < 0 ||
            fault.result != WHARF_OK)
            continue;
        wharf_container_decode(chunk, 0, payload, out, &fault);
        if (fault.result == WHARF_OK &&
            memcmp(out, threaded->raw + chunk->out_offset, chunk->raw_nbytes) == 0)
            threaded->n_good++;
    }
    return NULL;
}

/* One thread reads headers; payloads and decoding are any thread's. */
Test(container, chunks_are_read_and_decoded_by_any_thread)
{
    struct test_container_options options = {
        .codec = WHARF_CODEC_GZIP,
        .chunk_nbytes = THREADED_CHUNK,
    };
    static struct wharf_container_chunk chunks[N_THREADED_CHUNKS];
    uint8_t *raw = test_data_new(test_data_find("text"), 2, THREADED_CHUNK * N_THREADED_CHUNKS);
    struct test_bytes file = {0};
    struct wharf_container_memory memory;
    struct wharf_container_source source;
    struct wharf_container_reader reader;
    struct threaded threaded[N_THREADS];
    pthread_t threads[N_THREADS];
    unsigned n_good = 0;

    test_container_add(&file, &options, raw, THREADED_CHUNK * N_THREADED_CHUNKS);
    memory = (struct wharf_container_memory){file.data, file.nbytes};
    source = wharf_container_source_memory(&memory);
    wharf_container_reader_init(&reader, &source);
    for (unsigned i = 0; i < N_THREADED_CHUNKS; i++) {
        struct wharf_container_item item;
        cr_assert_eq(wharf_container_next(&reader, &item), 0);
        cr_assert_eq(item.kind, WHARF_CONTAINER_CHUNK);
        chunks[i] = item.chunk;
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        threaded[i] = (struct threaded){&source, chunks, raw, i, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, decode_chunks, &threaded[i]), 0);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        n_good += threaded[i].n_good;
    }
    cr_assert_eq(n_good, N_THREADED_CHUNKS);
    test_bytes_free(&file);
    free(raw);
}

/* So that packing the same file twice gives the same container. */
Test(container, same_chunks_give_the_same_bytes)
{
    struct test_container_options options = {.codec = WHARF_CODEC_GZIP, .chunk_nbytes = 512};
    uint8_t *raw = test_data_new(test_data_find("text"), 5, 10000);
    struct test_bytes files[2] = {{0}, {0}};

    for (int i = 0; i < 2; i++)
        test_container_add(&files[i], &options, raw, 10000);
    cr_assert_eq(files[0].nbytes, files[1].nbytes);
    cr_assert_eq(memcmp(files[0].data, files[1].data, files[0].nbytes), 0);
    for (int i = 0; i < 2; i++)
        test_bytes_free(&files[i]);
    free(raw);
}
