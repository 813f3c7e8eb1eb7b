/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_chain_simt_test: batches whose sources are outputs of other batches, over the SIMT layer in
 * a GPU's place: bytes and outcomes are those that the CPU engine gives for one step after the
 * other, and a source with a bad part, a gap or a part out of place ends with the part's number.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cuda/wharf_cuda.h"
#include "encoders/codec.h"
#include "encoders/decode_job.h"
#include "encoders/rle_values.h"
#include "tests/gpu/cuda_batch_simt.h"
#include "tests/lib/test_chain.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_random.h"

enum { MAX_PARTS = 160, MAX_CHUNKS = 8, N_PLAIN = 4000 };

/* Parts, decoded by the CPU engine or made up, and the chunks of which they are the sources. */
struct fixture {
    struct wharf_cuda *cuda;
    struct wharf_cuda_chain chain;
    struct wharf_cuda_batch batch;
    void *parts[MAX_PARTS];
    size_t parts_avail[MAX_PARTS];
    struct wharf_outcome part_outcomes[MAX_PARTS];
    uint32_t order[MAX_PARTS];
    uint32_t offsets[MAX_CHUNKS + 1];
    void *out[MAX_CHUNKS];
    size_t out_avail[MAX_CHUNKS];
    struct wharf_outcome outcomes[MAX_CHUNKS];
};

static void begin(struct fixture *f, uint32_t codec, uint32_t parameter)
{
    *f = (struct fixture){.chain = WHARF_CUDA_CHAIN_INIT, .batch = WHARF_CUDA_BATCH_INIT};
    cr_assert_eq(wharf_cuda_open(&f->cuda), 0, "%s", wharf_cuda_error_message());
    f->chain.parts = f->parts;
    f->chain.parts_avail = f->parts_avail;
    f->chain.part_outcomes = f->part_outcomes;
    f->chain.offsets = f->offsets;
    f->batch.codec = codec;
    f->batch.parameter = parameter;
    f->batch.out = f->out;
    f->batch.out_avail = f->out_avail;
    f->batch.outcomes = f->outcomes;
}

static void end(struct fixture *f)
{
    for (size_t i = 0; i < f->batch.n_chunks; i++)
        free(f->out[i]);
    free(f->batch.scratch);
    wharf_cuda_close(f->cuda);
}

static uint32_t add_part(struct fixture *f, void *place, size_t avail, uint32_t result,
                         size_t out_nbytes)
{
    size_t i = f->chain.n_parts++;

    cr_assert_lt(i, MAX_PARTS);
    f->parts[i] = place;
    f->parts_avail[i] = avail;
    f->part_outcomes[i] = (struct wharf_outcome){.result = result, .out_nbytes = out_nbytes};
    f->order[i] = (uint32_t)i;
    return (uint32_t)i;
}

/* A chunk of the parts since the last one. */
static void add_chunk(struct fixture *f, size_t out_avail)
{
    size_t i = f->batch.n_chunks++;

    cr_assert_lt(i, MAX_CHUNKS);
    f->offsets[i + 1] = (uint32_t)f->chain.n_parts;
    f->out[i] = malloc(out_avail + 1);
    f->out_avail[i] = out_avail;
    memset(f->out[i], 0xa5, out_avail + 1);
}

static void decode(struct fixture *f)
{
    free(f->batch.scratch);
    cr_assert_eq(wharf_cuda_chain_scratch(f->cuda, &f->batch, &f->batch.scratch_nbytes), 0);
    cr_assert_eq(f->batch.scratch_nbytes % WHARF_CUDA_SCRATCH_ALIGN, 0);
    cr_assert_eq(
        posix_memalign(&f->batch.scratch, WHARF_CUDA_SCRATCH_ALIGN, f->batch.scratch_nbytes), 0);
    memset(f->batch.scratch, 0x5a, f->batch.scratch_nbytes);
    memset(f->outcomes, 0xa5, sizeof(f->outcomes));
    cr_assert_eq(wharf_cuda_decode_chain(f->cuda, &f->chain, &f->batch, NULL), 0, "%s",
                 wharf_cuda_error_message());
}

static void expect_chunk(const struct fixture *f, size_t i)
{
    uint8_t *want_out = malloc(f->out_avail[i] + 1);
    struct wharf_decode_job job = {.codec = f->batch.codec,
                                   .setting = {.parameter = f->batch.parameter},
                                   .flags = f->batch.flags,
                                   .out = want_out,
                                   .out_avail = f->out_avail[i]};
    struct wharf_outcome want;
    const void *in;
    bool has_source = test_chain_source(&f->chain, i, &in, &job.in_nbytes, &want);

    job.in = in;
    if (has_source)
        wharf_decode_job_run(&job, 0, &want);
    cr_assert(test_outcome_same(&want, &f->outcomes[i]), "codec %u, chunk %zu: %s, not %s",
              f->batch.codec, i, test_outcome_text(&f->outcomes[i]).text,
              test_outcome_text(&want).text);
    if (want.result == WHARF_OK)
        cr_assert_eq(memcmp(want_out, f->out[i], want.out_nbytes), 0, "codec %u, chunk %zu",
                     f->batch.codec, i);
    /* Nobody decodes what is not there. */
    for (size_t at = has_source ? f->out_avail[i] : 0; at <= f->out_avail[i]; at++)
        cr_assert_eq(((uint8_t *)f->out[i])[at], 0xa5);
    free(want_out);
}

static void expect_all(const struct fixture *f)
{
    for (size_t i = 0; i < f->batch.n_chunks; i++)
        expect_chunk(f, i);
}

static void expect(const struct fixture *f, size_t chunk, uint32_t result, uint32_t reason,
                   uint64_t number)
{
    const struct wharf_outcome want = {.result = result, .reason = reason, .bit_offset = number};
    cr_expect(test_outcome_same(&want, &f->outcomes[chunk]), "chunk %zu: %s, not %s", chunk,
              test_outcome_text(&f->outcomes[chunk]).text, test_outcome_text(&want).text);
}

/* ---- two steps ------------------------------------------------------------------------------- */

/* A stream that was cut into blocks, each of them compressed by itself. */
struct blocks {
    const void *in[MAX_PARTS];
    size_t in_nbytes[MAX_PARTS];
    uint8_t *sources[MAX_PARTS];
    struct test_guard place; /* where they are decoded to */
};

static void add_blocks(struct fixture *f, struct blocks *b, const uint8_t *stream, size_t nbytes,
                       size_t block_nbytes, uint32_t codec)
{
    b->place = test_guard_new(nbytes, TEST_GUARD_END);
    for (size_t at = 0; at < nbytes; at += block_nbytes) {
        size_t n = nbytes - at < block_nbytes ? nbytes - at : block_nbytes;
        uint32_t i = add_part(f, b->place.data + at, n, WHARF_INTERNAL, 0);
        b->sources[i] = test_pack(codec, NULL, stream + at, n, &b->in_nbytes[i]);
        b->in[i] = b->sources[i];
    }
}

/* The batch before, in the stream as the chain. */
static void decode_parts(struct fixture *f, const struct blocks *b, size_t from, size_t to,
                         uint32_t codec)
{
    struct wharf_cuda_batch batch = WHARF_CUDA_BATCH_INIT;

    batch.codec = codec;
    batch.n_chunks = to - from;
    batch.in = b->in + from;
    batch.in_nbytes = b->in_nbytes + from;
    batch.out = f->parts + from;
    batch.out_avail = f->parts_avail + from;
    batch.outcomes = f->part_outcomes + from;
    cr_assert_eq(wharf_cuda_decode_scratch(f->cuda, &batch, &batch.scratch_nbytes), 0);
    cr_assert_eq(posix_memalign(&batch.scratch, WHARF_CUDA_SCRATCH_ALIGN, batch.scratch_nbytes), 0);
    cr_assert_eq(wharf_cuda_decode(f->cuda, &batch, NULL), 0);
    free(batch.scratch);
}

static void check_codec(uint32_t codec)
{
    uint8_t *plain = test_data_new(&test_data_kinds[codec % test_data_n_kinds], codec, N_PLAIN);
    size_t nbytes = test_data_fit(codec, 0, plain, N_PLAIN), stream_nbytes;
    uint8_t *stream = test_pack(codec, NULL, plain, nbytes, &stream_nbytes);
    size_t block_nbytes = stream_nbytes / 40 + 1;
    struct blocks blocks[3] = {0};
    struct fixture f;

    begin(&f, codec, 0);
    for (unsigned i = 0; i < 3; i++) {
        size_t from = f.chain.n_parts;
        add_blocks(&f, &blocks[i], stream, stream_nbytes, block_nbytes, WHARF_CODEC_DEFLATE);
        add_chunk(&f, i == 2 ? nbytes - 1 : nbytes);
        if (i == 1)
            blocks[i].sources[from + 3][blocks[i].in_nbytes[from + 3] / 2] ^= 0xff;
        decode_parts(&f, &blocks[i], from, f.chain.n_parts, WHARF_CODEC_DEFLATE);
    }
    decode(&f);
    expect_all(&f);
    cr_assert_eq(f.outcomes[0].result, WHARF_OK, "codec %u", codec);
    cr_assert_eq(memcmp(f.out[0], plain, nbytes), 0);
    for (unsigned i = 0; i < 3; i++) {
        test_guard_free(&blocks[i].place);
        for (unsigned k = 0; k < MAX_PARTS; k++)
            free(blocks[i].sources[k]);
    }
    end(&f);
    free(stream);
    free(plain);
}

Test(cuda_chain_simt, every_codec_behind_deflate)
{
    unsigned n = 0;

    for (uint32_t codec = 0; wharf_codec_find(codec); codec++)
        if (wharf_cuda_can_decode(codec)) {
            check_codec(codec);
            n++;
        }
    cr_assert_geq(n, 18, "%u codecs", n);
}

/* As ORC has them: some blocks are not compressed.  They are a batch of their own. */
Test(cuda_chain_simt, parts_of_two_batches_in_order)
{
    const struct wharf_encoder_options options = {.parameter = WHARF_RLE_I64};
    uint8_t *plain = test_data_new(test_data_find("text"), 1, N_PLAIN);
    size_t stream_nbytes;
    uint8_t *stream = test_pack(WHARF_CODEC_RLE2, &options, plain, N_PLAIN, &stream_nbytes);
    enum { N_BLOCKS = 9, N_STORED = 4 };
    size_t block_nbytes = (stream_nbytes - 1) / N_BLOCKS + 1;
    uint8_t *place = malloc(stream_nbytes);
    uint32_t order[N_BLOCKS];
    struct blocks b = {0};
    struct fixture f;

    begin(&f, WHARF_CODEC_RLE2, WHARF_RLE_I64);
    f.chain.order = f.order;
    for (unsigned batch = 0; batch < 2; batch++)
        for (unsigned k = 0; k < N_BLOCKS; k++) {
            size_t at = k * block_nbytes;
            size_t nbytes = k + 1 < N_BLOCKS ? block_nbytes : stream_nbytes - at;
            bool is_stored = k % 2 == 1;
            if (is_stored != (batch == 1))
                continue;
            uint32_t i = add_part(&f, place + at, nbytes, WHARF_INTERNAL, 0);
            b.sources[i] = test_pack(is_stored ? WHARF_CODEC_STORED : WHARF_CODEC_DEFLATE, NULL,
                                     stream + at, nbytes, &b.in_nbytes[i]);
            b.in[i] = b.sources[i];
            order[k] = i;
        }
    memcpy(f.order, order, sizeof(order));
    add_chunk(&f, N_PLAIN);
    decode_parts(&f, &b, 0, N_BLOCKS - N_STORED, WHARF_CODEC_DEFLATE);
    decode_parts(&f, &b, N_BLOCKS - N_STORED, N_BLOCKS, WHARF_CODEC_STORED);
    f.batch.flags = WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT;
    decode(&f);
    expect_all(&f);
    cr_assert_eq(f.outcomes[0].result, WHARF_OK);
    cr_assert_eq(memcmp(f.out[0], plain, N_PLAIN), 0);
    /* In the order of arrays the second is out of place. */
    f.chain.order = NULL;
    decode(&f);
    expect(&f, 0, WHARF_BAD_REQUEST, WHARF_REASON_CHAIN_PLACE, 1);
    for (unsigned k = 0; k < N_BLOCKS; k++)
        free(b.sources[k]);
    end(&f);
    free(place);
    free(stream);
    free(plain);
}

/* The outputs of a chain are parts of another. */
Test(cuda_chain_simt, three_steps)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 2, N_PLAIN);
    size_t middle_nbytes, stream_nbytes;
    uint8_t *middle = test_pack(WHARF_CODEC_SNAPPY, NULL, plain, N_PLAIN, &middle_nbytes);
    uint8_t *stream = test_pack(WHARF_CODEC_LZ4, NULL, middle, middle_nbytes, &stream_nbytes);
    struct blocks b = {0};
    struct fixture first, second;

    begin(&first, WHARF_CODEC_LZ4, 0);
    add_blocks(&first, &b, stream, stream_nbytes, 100, WHARF_CODEC_GZIP);
    add_chunk(&first, middle_nbytes + 7);
    decode_parts(&first, &b, 0, first.chain.n_parts, WHARF_CODEC_GZIP);
    decode(&first);
    begin(&second, WHARF_CODEC_SNAPPY, 0);
    add_part(&second, first.out[0], first.out_avail[0], 0, 0);
    second.part_outcomes[0] = first.outcomes[0];
    add_chunk(&second, N_PLAIN);
    decode(&second);
    expect_all(&second);
    cr_assert_eq(second.outcomes[0].result, WHARF_OK);
    cr_assert_eq(memcmp(second.out[0], plain, N_PLAIN), 0);
    end(&second);
    for (unsigned k = 0; k < MAX_PARTS; k++)
        free(b.sources[k]);
    test_guard_free(&b.place);
    end(&first);
    free(stream);
    free(middle);
    free(plain);
}

/* ---- sources that are none ------------------------------------------------------------------- */

Test(cuda_chain_simt, failed_short_and_misplaced_parts_are_named)
{
    struct test_guard place = test_guard_new(3000, TEST_GUARD_END);
    struct fixture f;

    begin(&f, WHARF_CODEC_STORED, 0);
    /* 0: the 41st of 50 has failed, and the 45th too. */
    for (unsigned i = 0; i < 50; i++)
        add_part(&f, place.data + 10 * i, 10, i == 40 || i == 44 ? WHARF_BAD_CHECKSUM : WHARF_OK,
                 i == 40 || i == 44 ? 0 : 10);
    add_chunk(&f, 600);
    /* 1: a short one in the middle, before one that failed. */
    add_part(&f, place.data, 10, WHARF_OK, 10);
    add_part(&f, place.data + 10, 10, WHARF_OK, 9);
    add_part(&f, place.data + 20, 10, WHARF_BAD_DATA, 0);
    add_chunk(&f, 600);
    /* 2: the last of more than a warp's is short, which is good. */
    for (unsigned i = 0; i < 33; i++)
        add_part(&f, place.data + 10 * i, 10, WHARF_OK, i == 32 ? 3 : 10);
    add_chunk(&f, 600);
    /* 3: the first one that the second look is at does not begin where the one before it ends. */
    for (unsigned i = 0; i < 33; i++)
        add_part(&f, place.data + 10 * i + (i == 32), 10, WHARF_OK, 10);
    add_chunk(&f, 600);
    /* 4: no parts. */
    add_chunk(&f, 600);
    /* 5: empty ones. */
    add_part(&f, NULL, 0, WHARF_OK, 0);
    add_part(&f, NULL, 0, WHARF_OK, 0);
    add_chunk(&f, 600);
    decode(&f);
    expect_all(&f);
    expect(&f, 0, WHARF_BAD_CHECKSUM, WHARF_REASON_CHAIN_PART, 40);
    expect(&f, 1, WHARF_OUTPUT_SHORT, WHARF_REASON_CHAIN_GAP, 1);
    cr_expect_eq(f.outcomes[2].out_nbytes, 323);
    expect(&f, 3, WHARF_BAD_REQUEST, WHARF_REASON_CHAIN_PLACE, 32);
    cr_expect_eq(f.outcomes[4].result, WHARF_OK);
    cr_expect_eq(f.outcomes[5].result, WHARF_OK);
    end(&f);
    test_guard_free(&place);
}

Test(cuda_chain_simt, impossible_parts_and_offsets_are_refused)
{
    struct test_guard place = test_guard_new(3000, TEST_GUARD_END);
    const size_t most = WHARF_CUDA_MAX_CHUNK_NBYTES, half = (size_t)1 << 63;
    struct fixture f;

    begin(&f, WHARF_CODEC_STORED, 0);
    f.chain.order = f.order;
    /* 0: no part has this number. */
    add_part(&f, place.data, 10, WHARF_OK, 10);
    f.order[add_part(&f, place.data + 10, 10, WHARF_OK, 10)] = UINT32_MAX;
    add_chunk(&f, 600);
    /* 1: more bytes than its place. */
    add_part(&f, place.data, 10, WHARF_OK, 11);
    add_chunk(&f, 600);
    /* 2: at NULL. */
    add_part(&f, NULL, 10, WHARF_OK, 10);
    add_chunk(&f, 600);
    /* 3: a sum that is 16 by 64 bits. */
    add_part(&f, place.data, half, WHARF_OK, half);
    add_part(&f, (void *)((uintptr_t)place.data + half), half, WHARF_OK, half);
    add_part(&f, place.data, 16, WHARF_OK, 16);
    add_chunk(&f, 600);
    /* 4: a sum that is too large. */
    add_part(&f, place.data, most, WHARF_OK, most);
    add_part(&f, place.data + most, 1, WHARF_OK, 1);
    add_chunk(&f, 600);
    /* 5 and 6: more parts than there are, and less than none. */
    add_part(&f, place.data, 10, WHARF_OK, 10);
    add_chunk(&f, 600);
    add_chunk(&f, 600);
    /* 7: a good one goes on. */
    add_part(&f, place.data, 10, WHARF_OK, 10);
    add_chunk(&f, 600);
    f.offsets[6] = (uint32_t)f.chain.n_parts + 1;
    decode(&f);
    expect(&f, 0, WHARF_BAD_REQUEST, WHARF_REASON_CHAIN_PLACE, 1);
    expect(&f, 1, WHARF_BAD_REQUEST, WHARF_REASON_CHAIN_PLACE, 0);
    expect(&f, 2, WHARF_BAD_REQUEST, WHARF_REASON_CHAIN_PLACE, 0);
    expect(&f, 3, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
    expect(&f, 4, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
    expect(&f, 5, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_BATCH, 0);
    expect(&f, 6, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_BATCH, 0);
    expect_chunk(&f, 7);
    cr_expect_eq(f.outcomes[7].out_nbytes, 10);
    /* A source that is its own destination. */
    free(f.out[7]);
    f.out[7] = place.data + 5;
    decode(&f);
    expect(&f, 7, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_OVERLAP, 0);
    f.out[7] = NULL;
    end(&f);
    test_guard_free(&place);
}

/* Parts of all kinds, most of them good, against the walk above. */
Test(cuda_chain_simt, random_parts)
{
    static const uint32_t codecs[] = {WHARF_CODEC_STORED, WHARF_CODEC_RLE1, WHARF_CODEC_BYTERLE,
                                      WHARF_CODEC_LZ4, WHARF_CODEC_BLOSC};
    enum { N_PLACE = 2000 };
    struct test_random random = {22};
    struct test_guard place = test_guard_new(N_PLACE, TEST_GUARD_END);

    for (size_t at = 0; at < N_PLACE; at++)
        place.data[at] = (uint8_t)test_random_below(&random, 256);
    for (unsigned round = 0; round < 400; round++) {
        unsigned odds = 1 + (unsigned)test_random_below(&random, 200);
        struct fixture f;

        begin(&f, codecs[round % 5], 0);
        f.chain.order = round % 3 ? f.order : NULL;
        for (unsigned c = 0; c < 4; c++) {
            size_t at = test_random_below(&random, 100);
            for (uint64_t n = test_random_below(&random, MAX_PARTS / 4 + 1); n > 0; n--) {
                size_t avail = test_random_below(&random, 40);
                bool is_odd = test_random_below(&random, odds) == 0;
                unsigned kind = (unsigned)test_random_below(&random, 4);
                size_t nbytes = is_odd && kind == 1 ? avail / 2 : avail;
                uint32_t i = add_part(&f, place.data + at + (is_odd && kind == 2), avail,
                                      is_odd && kind == 0 ? WHARF_BAD_DATA : WHARF_OK, nbytes);
                f.order[i] += is_odd && kind == 3;
                at += avail;
            }
            add_chunk(&f, 300);
        }
        decode(&f);
        expect_all(&f);
        end(&f);
    }
    test_guard_free(&place);
}

/* ---- what a caller gets wrong ---------------------------------------------------------------- */

static void expect_refused(struct fixture *f, int rc, const char *what)
{
    unsigned n_calls = cuda_batch_simt.n_calls;

    cr_expect_eq(wharf_cuda_decode_chain(f->cuda, &f->chain, &f->batch, NULL), rc, "%s", what);
    cr_expect_eq(cuda_batch_simt.n_calls, n_calls, "%s", what);
    cr_expect_eq(f->outcomes[0].result, 0xa5a5a5a5, "%s", what);
}

Test(cuda_chain_simt, refuses_bad_calls)
{
    uint8_t place[10] = {0};
    size_t nbytes;
    struct fixture f, good;

    begin(&f, WHARF_CODEC_STORED, 0);
    add_part(&f, place, sizeof(place), WHARF_OK, sizeof(place));
    add_chunk(&f, 20);
    decode(&f);
    cr_assert_eq(f.outcomes[0].result, WHARF_OK);
    memset(f.outcomes, 0xa5, sizeof(f.outcomes));
    good = f;
#define REFUSED(rc, change)                                                                        \
    do {                                                                                           \
        change;                                                                                    \
        expect_refused(&f, rc, #change);                                                           \
        f.chain = good.chain;                                                                      \
        f.batch = good.batch;                                                                      \
    } while (0)
    REFUSED(-EINVAL, f.chain.struct_nbytes = 8);
    REFUSED(-EINVAL, f.chain.reserved = 1);
    REFUSED(-EINVAL, f.chain.n_parts = WHARF_CUDA_MAX_CHUNKS + 1);
    REFUSED(-EINVAL, f.chain.parts = NULL);
    REFUSED(-EINVAL, f.chain.parts_avail = NULL);
    REFUSED(-EINVAL, f.chain.part_outcomes = NULL);
    REFUSED(-EINVAL, f.chain.offsets = NULL);
    REFUSED(-EINVAL, f.batch.out = NULL);
    REFUSED(-EINVAL, f.batch.out_avail = NULL);
    REFUSED(-EINVAL, f.batch.outcomes = NULL);
    REFUSED(-EINVAL, (f.batch.flags = WHARF_JOB_CHECKSUM, f.batch.checksums = NULL));
    REFUSED(-EINVAL, f.batch.scratch = (uint8_t *)f.batch.scratch + 16);
    REFUSED(-ENOSPC, f.batch.scratch_nbytes--);
    REFUSED(-EOPNOTSUPP, f.batch.codec = UINT32_MAX);
    cuda_batch_simt.current = 1;
    expect_refused(&f, -EINVAL, "another GPU");
    cuda_batch_simt.current = 0;
    cr_expect_eq(wharf_cuda_decode_chain(f.cuda, NULL, &f.batch, NULL), -EINVAL);
    cr_expect_eq(wharf_cuda_decode_chain(f.cuda, &f.chain, NULL, NULL), -EINVAL);
    cr_expect_eq(wharf_cuda_decode_chain(NULL, &f.chain, &f.batch, NULL), -EINVAL);
    cr_expect_eq(wharf_cuda_chain_scratch(f.cuda, &f.batch, NULL), -EINVAL);
    cr_expect_eq(wharf_cuda_chain_scratch(f.cuda, NULL, &nbytes), -EINVAL);
    cr_expect_eq(wharf_cuda_chain_scratch(NULL, &f.batch, &nbytes), -EINVAL);
    cuda_batch_simt.failure = -EIO;
    cr_expect_eq(wharf_cuda_decode_chain(f.cuda, &f.chain, &f.batch, NULL), -EIO);
    cuda_batch_simt.failure = 0;
    f.batch.n_chunks = 0;
    cr_expect_eq(wharf_cuda_decode_chain(f.cuda, &f.chain, &f.batch, NULL), 0);
    f.batch.n_chunks = 1;
    end(&f);
}
