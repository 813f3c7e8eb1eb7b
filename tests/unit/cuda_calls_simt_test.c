/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_calls_simt_test: libwharf-cuda's calls, over the SIMT layer in a GPU's place: outcomes and
 * bytes are those of the CPU engine, and what a caller gets wrong is refused before anything
 * starts.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cuda/wharf_cuda.h"
#include "encoders/codec.h"
#include "encoders/decode_job.h"
#include "tests/gpu/cuda_batch_simt.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_rans.h"

enum { MAX_CHUNKS = 16, N_PLAIN = 5000 };

/* A batch, its arrays, and what stays to be freed. */
struct fixture {
    struct wharf_cuda *cuda;
    struct wharf_cuda_batch batch;
    const void *in[MAX_CHUNKS];
    void *out[MAX_CHUNKS];
    size_t in_nbytes[MAX_CHUNKS], out_avail[MAX_CHUNKS];
    uint32_t checksums[MAX_CHUNKS];
    struct wharf_outcome outcomes[MAX_CHUNKS];
};

static void *lend(size_t nbytes)
{
    void *p;

    cr_assert_eq(posix_memalign(&p, WHARF_CUDA_SCRATCH_ALIGN, nbytes), 0);
    memset(p, 0x5a, nbytes);
    return p;
}

static void lend_scratch(struct fixture *f)
{
    free(f->batch.scratch);
    cr_assert_eq(wharf_cuda_decode_scratch(f->cuda, &f->batch, &f->batch.scratch_nbytes), 0, "%s",
                 wharf_cuda_error_message());
    cr_assert_gt(f->batch.scratch_nbytes, 0);
    cr_assert_eq(f->batch.scratch_nbytes % WHARF_CUDA_SCRATCH_ALIGN, 0);
    f->batch.scratch = lend(f->batch.scratch_nbytes);
}

static void begin(struct fixture *f, uint32_t codec)
{
    *f = (struct fixture){.batch = WHARF_CUDA_BATCH_INIT};
    cr_assert_eq(wharf_cuda_open(&f->cuda), 0, "%s", wharf_cuda_error_message());
    f->batch.codec = codec;
    f->batch.in = f->in;
    f->batch.out = f->out;
    f->batch.in_nbytes = f->in_nbytes;
    f->batch.out_avail = f->out_avail;
    f->batch.checksums = f->checksums;
    f->batch.outcomes = f->outcomes;
}

static void end(struct fixture *f)
{
    free(f->batch.scratch);
    wharf_cuda_close(f->cuda);
}

/* One more chunk, which the caller's memory has. */
static void add(struct fixture *f, const void *in, size_t in_nbytes, void *out, size_t out_avail)
{
    size_t i = f->batch.n_chunks++;

    cr_assert_lt(i, MAX_CHUNKS);
    f->in[i] = in;
    f->in_nbytes[i] = in_nbytes;
    f->out[i] = out;
    f->out_avail[i] = out_avail;
}

static void decode(struct fixture *f)
{
    lend_scratch(f);
    memset(f->outcomes, 0xa5, sizeof(f->outcomes));
    cr_assert_eq(wharf_cuda_decode(f->cuda, &f->batch, NULL), 0, "%s", wharf_cuda_error_message());
}

/* Each chunk's outcome and bytes are the CPU engine's. */
static void expect_cpu(const struct fixture *f, const void *image)
{
    for (size_t i = 0; i < f->batch.n_chunks; i++) {
        uint8_t *want_out = malloc(f->out_avail[i] < 1 << 20 ? f->out_avail[i] + 1 : 1);
        struct wharf_decode_job job = {
            .codec = f->batch.codec,
            .flags = f->batch.flags,
            .checksum = f->checksums[i],
            .setting = {.parameter = f->batch.parameter, .model = image},
            .in = f->in[i],
            .in_nbytes = f->in_nbytes[i],
            .out = f->out[i] && f->outcomes[i].result != WHARF_BAD_REQUEST ? want_out : f->out[i],
            .out_avail = f->out_avail[i],
        };
        struct wharf_outcome want;

        wharf_decode_job_run(&job, 0, &want);
        cr_assert(test_outcome_same(&want, &f->outcomes[i]), "codec %u, chunk %zu: %s, not %s",
                  f->batch.codec, i, test_outcome_text(&f->outcomes[i]).text,
                  test_outcome_text(&want).text);
        if (want.result == WHARF_OK && want.out_nbytes > 0)
            cr_assert_eq(memcmp(want_out, f->out[i], want.out_nbytes), 0, "codec %u, chunk %zu",
                         f->batch.codec, i);
        free(want_out);
    }
}

/* Good chunks, with less room, cut off and damaged; of few chunks and of many. */
static void check_codec(uint32_t codec)
{
    uint8_t *plain = test_data_new(&test_data_kinds[codec % test_data_n_kinds], codec, N_PLAIN);
    size_t nbytes = test_data_fit(codec, 0, plain, N_PLAIN), in_nbytes;
    uint8_t *in = test_pack(codec, NULL, plain, nbytes, &in_nbytes);
    uint8_t *damaged = malloc(in_nbytes);
    uint8_t *out = malloc((size_t)MAX_CHUNKS * N_PLAIN);
    struct fixture f;

    memcpy(damaged, in, in_nbytes);
    damaged[in_nbytes / 2] ^= 0x10;
    for (unsigned n = 1; n <= 8; n += 7) {
        begin(&f, codec);
        for (unsigned i = 0; i < n; i++)
            add(&f, i % 4 == 3 ? damaged : in, i % 4 == 2 ? in_nbytes / 2 : in_nbytes,
                out + (size_t)i * N_PLAIN, i % 4 == 1 ? nbytes - 1 : nbytes);
        f.batch.flags = n > 1 ? WHARF_JOB_CHECKSUM | WHARF_JOB_EXACT_OUTPUT : 0;
        decode(&f);
        expect_cpu(&f, NULL);
        end(&f);
    }
    free(out);
    free(damaged);
    free(in);
    free(plain);
}

Test(cuda_calls_simt, all_codecs_give_the_processors_outcomes)
{
    unsigned n = 0;

    for (uint32_t codec = 0; wharf_codec_find(codec); codec++)
        if (wharf_cuda_can_decode(codec)) {
            check_codec(codec);
            n++;
        }
    cr_assert_geq(n, 18, "%u codecs", n);
    cr_assert(!wharf_cuda_can_decode(UINT32_MAX));
}

Test(cuda_calls_simt, refuses_ranges_as_the_processor_does)
{
    struct test_guard memory = test_guard_new(64, TEST_GUARD_END);
    struct fixture f;

    begin(&f, WHARF_CODEC_STORED);
    add(&f, NULL, 0, NULL, 0);
    add(&f, NULL, 1, memory.data, 8);
    add(&f, memory.data, 8, NULL, 1);
    add(&f, memory.data, (size_t)PTRDIFF_MAX + 1, memory.data, 8);
    add(&f, (void *)(UINTPTR_MAX - 3), 5, memory.data, 8);
    add(&f, memory.data, 8, (void *)(UINTPTR_MAX - 3), 5);
    add(&f, memory.data, 8, memory.data + 7, 8);
    add(&f, memory.data + 8, 8, memory.data, 9);
    add(&f, memory.data, 8, memory.data + 8, 8);
    decode(&f);
    expect_cpu(&f, NULL);
    cr_assert_eq(f.outcomes[6].reason, WHARF_REASON_REQUEST_OVERLAP);
    cr_assert_eq(f.outcomes[8].result, WHARF_OK);
    /* What only a device refuses. */
    f.batch.n_chunks = 1;
    f.in[0] = memory.data;
    f.in_nbytes[0] = WHARF_CUDA_MAX_CHUNK_NBYTES + 1;
    decode(&f);
    cr_assert_eq(f.outcomes[0].result, WHARF_BAD_REQUEST);
    cr_assert_eq(f.outcomes[0].reason, WHARF_REASON_REQUEST_SIZE);
    end(&f);
    test_guard_free(&memory);
}

/* Models of both kernels; of another codec and handle none. */
static void check_model(const struct test_rans_plan *plan)
{
    struct test_rans rans = test_rans_new_registered(plan);
    struct wharf_cuda_model *model;
    uint8_t *out = malloc(rans.plain_nbytes);
    struct fixture f, other;

    begin(&f, WHARF_CODEC_RANS);
    cr_assert_eq(
        wharf_cuda_model_new(f.cuda, WHARF_CODEC_RANS, rans.model, rans.model_nbytes, &model), 0);
    f.batch.model = model;
    add(&f, rans.stream, rans.stream_nbytes, out, rans.plain_nbytes);
    decode(&f);
    cr_assert_eq(f.outcomes[0].result, WHARF_OK);
    expect_cpu(&f, rans.image);
    cr_assert_eq(memcmp(out, rans.plain, rans.plain_nbytes), 0);
    f.batch.codec = WHARF_CODEC_LZ4;
    cr_assert_eq(wharf_cuda_decode(f.cuda, &f.batch, NULL), -EINVAL);
    f.batch.codec = WHARF_CODEC_RANS;
    begin(&other, WHARF_CODEC_RANS);
    cr_assert_eq(wharf_cuda_decode(other.cuda, &f.batch, NULL), -EINVAL);
    end(&other);
    wharf_cuda_model_free(model);
    end(&f);
    free(out);
    test_rans_free(&rans);
}

Test(cuda_calls_simt, streams_of_registered_models)
{
    const struct test_rans_plan plans[] = {{11, 1, 1, 3000, 4, 200, 1},
                                           {12, 2, 1, 3000, 4, 900, 2}};
    struct wharf_cuda_model *model = NULL;
    struct fixture f;

    check_model(&plans[0]);
    check_model(&plans[1]);
    begin(&f, WHARF_CODEC_RANS);
    cr_assert_eq(wharf_cuda_model_new(f.cuda, WHARF_CODEC_RANS, "no model", 8, &model), -EBADMSG);
    cr_assert_eq(wharf_cuda_model_new(f.cuda, WHARF_CODEC_LZ4, "no model", 8, &model), -EOPNOTSUPP);
    cr_assert_eq(wharf_cuda_model_new(f.cuda, WHARF_CODEC_RANS, NULL, 8, &model), -EINVAL);
    cr_assert_eq(wharf_cuda_model_new(NULL, WHARF_CODEC_RANS, "no model", 8, &model), -EINVAL);
    cr_assert_null(model);
    wharf_cuda_model_free(NULL);
    end(&f);
}

/* ---- one large stream ------------------------------------------------------------------------ */

/* By a plan of the good stream, and bytes that may be others by now. */
static void check_stream(struct wharf_cuda *cuda, const struct test_rans *rans,
                         const struct wharf_cuda_model *model, size_t damaged_at)
{
    struct test_guard in = test_guard_copy(rans->stream, rans->stream_nbytes, TEST_GUARD_END);
    struct wharf_cuda_rans_plan *plan = NULL;
    uint32_t parameter = rans->shape.symbol_nbytes - 1;
    uint8_t *want_out = malloc(rans->plain_nbytes), *changed = malloc(rans->stream_nbytes);
    struct test_guard out = test_guard_new(rans->plain_nbytes, TEST_GUARD_END);
    struct wharf_outcome want, planned, got;

    memcpy(changed, rans->stream, rans->stream_nbytes);
    changed[damaged_at] ^= 0x20;
    const uint8_t *source = damaged_at ? changed : in.data;
    const void *image = model ? rans->image : NULL;
    cr_assert_null(test_rans_decode_either(source, rans->stream_nbytes, parameter, image, want_out,
                                           rans->plain_nbytes, &want));
    int rc = wharf_cuda_rans_plan_new(cuda, parameter, model, source, rans->stream_nbytes,
                                      rans->plain_nbytes, &plan, &planned);
    if (rc == -EBADMSG) {
        cr_assert(test_outcome_same(&want, &planned));
        cr_assert_null(plan);
    } else {
        cr_assert_eq(rc, 0, "%s", wharf_cuda_error_message());
        size_t nbytes = wharf_cuda_rans_scratch(plan);
        void *scratch = lend(nbytes);
        cr_assert_eq(
            wharf_cuda_rans_decode(plan, source, out.data, &got, scratch, nbytes - 1, NULL),
            -ENOSPC);
        cr_assert_eq(wharf_cuda_rans_decode(plan, NULL, out.data, &got, scratch, nbytes, NULL),
                     -EINVAL);
        cr_assert_eq(wharf_cuda_rans_decode(plan, source, out.data, &got, scratch, nbytes, NULL),
                     0);
        cr_assert(test_outcome_same(&want, &got), "byte %zu changed: %s, not %s", damaged_at,
                  test_outcome_text(&got).text, test_outcome_text(&want).text);
        if (want.result == WHARF_OK)
            cr_assert_eq(memcmp(want_out, out.data, want.out_nbytes), 0);
        free(scratch);
    }
    wharf_cuda_rans_plan_free(plan);
    test_guard_free(&out);
    test_guard_free(&in);
    free(changed);
    free(want_out);
}

Test(cuda_calls_simt, one_stream_by_all_warps)
{
    const struct test_rans_plan plans[] = {{11, 1, 1, 9000, 50, 200, 1},
                                           {16, 1, 1, 9000, 12, 250, 2}};
    const struct test_rans_plan registered = {12, 2, 1, 9000, 12, 900, 3};
    struct wharf_cuda_rans_plan *plan = NULL;
    struct wharf_cuda_model *model;
    struct wharf_outcome outcome;
    struct fixture f;

    begin(&f, WHARF_CODEC_RANS);
    for (unsigned p = 0; p < 2; p++) {
        struct test_rans rans = test_rans_new(&plans[p]);
        for (unsigned i = 0; i < 12; i++)
            check_stream(f.cuda, &rans, NULL, i * (rans.stream_nbytes - 1) / 11);
        test_rans_free(&rans);
    }
    struct test_rans rans = test_rans_new_registered(&registered);
    cr_assert_eq(
        wharf_cuda_model_new(f.cuda, WHARF_CODEC_RANS, rans.model, rans.model_nbytes, &model), 0);
    check_stream(f.cuda, &rans, model, 0);
    check_stream(f.cuda, &rans, model, rans.stream_nbytes / 2);
    wharf_cuda_model_free(model);
    test_rans_free(&rans);
    /* What it does not decode, and wrong arguments. */
    rans = test_rans_new(&registered);
    cr_assert_eq(wharf_cuda_rans_plan_new(f.cuda, 1, NULL, rans.stream, rans.stream_nbytes,
                                          rans.plain_nbytes, &plan, &outcome),
                 -EOPNOTSUPP);
    cr_assert_eq(wharf_cuda_rans_plan_new(f.cuda, 2, NULL, rans.stream, rans.stream_nbytes,
                                          rans.plain_nbytes, &plan, &outcome),
                 -EINVAL);
    cr_assert_eq(wharf_cuda_rans_plan_new(f.cuda, 1, NULL, NULL, 5, 5, &plan, &outcome), -EINVAL);
    cr_assert_eq(wharf_cuda_rans_plan_new(NULL, 1, NULL, rans.stream, 5, 5, &plan, &outcome),
                 -EINVAL);
    cr_assert_null(plan);
    cr_assert_eq(wharf_cuda_rans_scratch(NULL), 0);
    test_rans_free(&rans);
    end(&f);
}

/* Two lists: this library's has to be that of the codecs. */
Test(cuda_calls_simt, parameters_are_those_of_the_codecs)
{
    struct fixture f;
    size_t nbytes;

    for (uint32_t codec = 0; wharf_codec_find(codec); codec++) {
        if (!wharf_cuda_can_decode(codec))
            continue;
        begin(&f, codec);
        for (uint32_t parameter = 0; parameter < 600; parameter++) {
            f.batch.parameter = parameter;
            int rc = wharf_cuda_decode_scratch(f.cuda, &f.batch, &nbytes);
            bool is_one = wharf_codec_unit_nbytes(wharf_codec_find(codec)->ops, parameter) > 0;
            cr_assert_eq(rc, is_one ? 0 : -EINVAL, "codec %u, parameter %u", codec, parameter);
        }
        end(&f);
    }
}

/* Nothing is started, and no outcome touched. */
static void expect_refused(struct fixture *f, int rc)
{
    unsigned n_calls = cuda_batch_simt.n_calls;

    memset(f->outcomes, 0xa5, sizeof(f->outcomes));
    cr_assert_eq(wharf_cuda_decode(f->cuda, &f->batch, NULL), rc, "%s", wharf_cuda_error_message());
    cr_assert_eq(cuda_batch_simt.n_calls, n_calls);
    cr_assert_eq(f->outcomes[0].result, 0xa5a5a5a5);
    cr_assert_neq(wharf_cuda_error_message()[0], 0);
}

Test(cuda_calls_simt, refuses_wrong_arguments)
{
    uint8_t out[8];
    struct fixture f;
    struct wharf_cuda_batch good;

    begin(&f, WHARF_CODEC_STORED);
    add(&f, "hello", 5, out, sizeof(out));
    lend_scratch(&f);
    good = f.batch;
#define REFUSED(member, value, rc)                                                                 \
    (f.batch = good, f.batch.member = (value), expect_refused(&f, rc))
    REFUSED(codec, WHARF_CODEC_BLOSC + 1, -EOPNOTSUPP);
    REFUSED(codec, 0x40000001, -EOPNOTSUPP);
    REFUSED(parameter, 1, -EINVAL);
    REFUSED(flags, 8, -EINVAL);
    REFUSED(n_chunks, WHARF_CUDA_MAX_CHUNKS + 1, -EINVAL);
    REFUSED(in, NULL, -EINVAL);
    REFUSED(in_nbytes, NULL, -EINVAL);
    REFUSED(out, NULL, -EINVAL);
    REFUSED(out_avail, NULL, -EINVAL);
    REFUSED(outcomes, NULL, -EINVAL);
    REFUSED(scratch, NULL, -EINVAL);
    REFUSED(scratch, (char *)good.scratch + 16, -EINVAL);
    REFUSED(scratch_nbytes, good.scratch_nbytes - 1, -ENOSPC);
    REFUSED(struct_nbytes, 8, -EINVAL);
    f.batch = good;
    f.batch.flags = WHARF_JOB_CHECKSUM;
    f.batch.checksums = NULL;
    expect_refused(&f, -EINVAL);
    f.batch = good;
    cuda_batch_simt.current = 1;
    expect_refused(&f, -EINVAL);
    cuda_batch_simt.current = 0;
    cr_assert_eq(wharf_cuda_decode(NULL, &f.batch, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_decode(f.cuda, NULL, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_decode_scratch(f.cuda, &f.batch, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_open(NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_decode(f.cuda, &f.batch, NULL), 0);
    cr_assert_eq(memcmp(out, "hello", 5), 0);
    f.batch.n_chunks = 0;
    f.batch.in = NULL;
    f.batch.scratch = NULL;
    cr_assert_eq(wharf_cuda_decode(f.cuda, &f.batch, NULL), 0);
    f.batch = good;
    end(&f);
}

Test(cuda_calls_simt, says_what_the_gpu_failed_with)
{
    uint8_t out[8];
    struct fixture f;
    struct wharf_cuda *cuda = NULL;

    begin(&f, WHARF_CODEC_STORED);
    add(&f, "hello", 5, out, sizeof(out));
    lend_scratch(&f);
    cuda_batch_simt.failure = -EIO;
    cr_assert_eq(wharf_cuda_decode(f.cuda, &f.batch, NULL), -EIO);
    cr_assert_str_eq(wharf_cuda_error_message(), "the test makes this call fail");
    cuda_batch_simt.failure = -ENODEV;
    cr_assert_eq(wharf_cuda_open(&cuda), -ENODEV);
    cr_assert_null(cuda);
    cuda_batch_simt.failure = 0;
    end(&f);
}

Test(cuda_calls_simt, scratch_never_shrinks_with_more_chunks)
{
    static const size_t counts[] = {0, 1, 2, 3, 4, 5, 6, 100, 101, 4096, WHARF_CUDA_MAX_CHUNKS};
    struct fixture f;

    begin(&f, 0);
    for (uint32_t codec = 0; codec <= WHARF_CODEC_PALETTE; codec++) {
        size_t before = 0;
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            size_t nbytes;
            f.batch.codec = codec;
            f.batch.n_chunks = counts[i];
            cr_assert_eq(wharf_cuda_decode_scratch(f.cuda, &f.batch, &nbytes), 0);
            cr_assert_geq(nbytes, before);
            before = nbytes;
        }
    }
    end(&f);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

enum { SIZE_ROOM = 1 << 20 };

/* The capacity that is told for a stream, of which the next byte is not there. */
static size_t told_size(struct fixture *f, const uint8_t *in, size_t in_nbytes)
{
    struct test_guard source = test_guard_copy(in, in_nbytes, TEST_GUARD_END);
    size_t size = 0x5a5a5a5a;

    f->batch.n_chunks = 0;
    add(f, source.data, in_nbytes, NULL, 0);
    cr_assert_eq(wharf_cuda_sizes(f->cuda, &f->batch, &size, NULL), 0, "%s",
                 wharf_cuda_error_message());
    cr_assert_leq(size, WHARF_CUDA_MAX_CHUNK_NBYTES);
    test_guard_free(&source);
    return size;
}

/* If the processor decodes it with much room, it does with that much, and fills it. */
static void check_size(struct fixture *f, const uint8_t *in, size_t in_nbytes, uint8_t *out)
{
    size_t size = told_size(f, in, in_nbytes);
    struct wharf_decode_job job = {
        .codec = f->batch.codec,
        .setting = {.parameter = f->batch.parameter},
        .in = in,
        .in_nbytes = in_nbytes,
        .out = out,
        .out_avail = SIZE_ROOM,
    };
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, 0, &outcome);
    if (outcome.result == WHARF_OK)
        cr_assert_eq(outcome.out_nbytes, size, "codec %u, %zu bytes: %zu, not %zu", f->batch.codec,
                     in_nbytes, size, (size_t)outcome.out_nbytes);
}

/* Good, cut off everywhere, and damaged. */
static void check_sizes(uint32_t codec, uint32_t parameter, unsigned kind, uint8_t *out)
{
    uint8_t *plain = test_data_new(&test_data_kinds[kind], codec, 1500);
    size_t nbytes = test_data_fit(codec, parameter, plain, 1500), in_nbytes;
    const struct wharf_encoder_options options = {.level = WHARF_LEVEL_DEFAULT,
                                                  .parameter = parameter};
    uint8_t *in = test_pack(codec, &options, plain, nbytes, &in_nbytes);
    struct fixture f;

    begin(&f, codec);
    f.batch.parameter = parameter;
    size_t size = told_size(&f, in, in_nbytes);
    cr_assert(size >= nbytes && size - nbytes <= (codec == WHARF_CODEC_BOOLRLE ? 7 : 0),
              "codec %u, parameter %u, kind %u: %zu, not %zu", codec, parameter, kind, size,
              nbytes);
    for (size_t n = 0; n <= in_nbytes; n += 1 + n / 8)
        check_size(&f, in, n, out);
    for (size_t i = 0; i < 150 && in_nbytes > 0; i++) {
        size_t at = i < 40 ? i % in_nbytes : i * 7919 % in_nbytes;
        uint8_t was = in[at];
        in[at] ^= 1u << i % 8;
        check_size(&f, in, in_nbytes, out);
        in[at] = was;
    }
    end(&f);
    free(in);
    free(plain);
}

Test(cuda_calls_simt, tells_sizes_of_outputs)
{
    uint8_t *out = malloc(SIZE_ROOM);
    unsigned n = 0;

    for (uint32_t codec = 0; wharf_codec_find(codec); codec++) {
        if (!wharf_cuda_can_size(codec))
            continue;
        const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
        for (unsigned kind = 0; kind < test_data_n_kinds; kind++) {
            uint32_t parameter = kind % 8;
            bool is_one = wharf_codec_unit_nbytes(ops, parameter) > 0;
            check_sizes(codec, is_one ? parameter : 0, kind, out);
        }
        n++;
    }
    cr_assert_eq(n, 14);
    free(out);
}

Test(cuda_calls_simt, refuses_sizes_of_wrong_batches)
{
    struct fixture f;
    size_t sizes[3] = {7, 7, 7};

    begin(&f, WHARF_CODEC_STORED);
    add(&f, NULL, 1, NULL, 0);
    add(&f, (void *)(UINTPTR_MAX - 3), 5, NULL, 0);
    add(&f, sizes, WHARF_CUDA_MAX_CHUNK_NBYTES + 1, NULL, 0);
    f.batch.out = NULL;
    f.batch.outcomes = NULL;
    cr_assert_eq(wharf_cuda_sizes(f.cuda, &f.batch, sizes, NULL), 0);
    cr_assert(sizes[0] == 0 && sizes[1] == 0 && sizes[2] == 0);
    unsigned n_calls = cuda_batch_simt.n_calls;
    cr_assert_eq(wharf_cuda_sizes(f.cuda, &f.batch, NULL, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_sizes(NULL, &f.batch, sizes, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_sizes(f.cuda, NULL, sizes, NULL), -EINVAL);
    cuda_batch_simt.current = 1;
    cr_assert_eq(wharf_cuda_sizes(f.cuda, &f.batch, sizes, NULL), -EINVAL);
    cuda_batch_simt.current = 0;
    for (uint32_t codec = WHARF_CODEC_DEFLATE; codec <= WHARF_CODEC_GZIP; codec++) {
        f.batch.codec = codec;
        cr_assert(!wharf_cuda_can_size(codec));
        cr_assert_eq(wharf_cuda_sizes(f.cuda, &f.batch, sizes, NULL), -EOPNOTSUPP);
    }
    f.batch.codec = WHARF_CODEC_STORED;
    f.batch.in = NULL;
    cr_assert_eq(wharf_cuda_sizes(f.cuda, &f.batch, sizes, NULL), -EINVAL);
    f.batch.n_chunks = 0;
    cr_assert_eq(wharf_cuda_sizes(f.cuda, &f.batch, sizes, NULL), 0);
    cr_assert_eq(cuda_batch_simt.n_calls, n_calls);
    end(&f);
}

/* ---- encoding -------------------------------------------------------------------------------- */

static struct wharf_cuda_encoding encoding_of(struct fixture *f,
                                              const struct wharf_line_choice *choice)
{
    struct wharf_cuda_encoding encoding = WHARF_CUDA_ENCODING_INIT;

    encoding.codec = choice->codec;
    encoding.line_nbytes = choice->line_nbytes;
    encoding.layout = choice->layout;
    encoding.type = choice->type;
    encoding.n_chunks = f->batch.n_chunks;
    encoding.in = f->in;
    encoding.in_nbytes = f->in_nbytes;
    encoding.out = f->out;
    encoding.out_avail = f->out_avail;
    encoding.outcomes = f->outcomes;
    return encoding;
}

/* Into what it needs, a byte less, and where it must not be. */
static void check_choice(const struct wharf_line_choice *choice, const uint8_t *raw, size_t n)
{
    size_t nbytes, bound;
    uint8_t *want = test_lines_encode(choice, raw, n, &nbytes), *out;
    struct fixture f;

    begin(&f, choice->codec);
    struct wharf_cuda_encoding encoding = encoding_of(&f, choice);
    cr_assert_eq(wharf_cuda_encode_bound(&encoding, n, &bound), 0);
    cr_assert_eq(bound, wharf_line_bound(choice, n));
    out = lend(2 * (bound + 64));
    add(&f, raw, n, out, nbytes);
    add(&f, raw, n, out + (bound + 31) / 16 * 16, nbytes - 1);
    add(&f, raw, n, out + 1, bound);
    add(&f, raw, n, NULL, 5);
    encoding.n_chunks = f.batch.n_chunks;
    cr_assert_eq(wharf_cuda_encode(f.cuda, &encoding, NULL), 0, "%s", wharf_cuda_error_message());
    cr_assert_eq(f.outcomes[0].result, WHARF_OK);
    cr_assert_eq(f.outcomes[0].out_nbytes, nbytes);
    cr_assert_eq(f.outcomes[0].in_nbytes, n);
    cr_assert_eq(memcmp(out, want, nbytes), 0);
    cr_assert_eq(f.outcomes[1].result, WHARF_OUTPUT_TOO_SMALL);
    cr_assert_eq(f.outcomes[2].reason, WHARF_REASON_REQUEST_RANGE);
    cr_assert_eq(f.outcomes[3].reason, WHARF_REASON_REQUEST_NULL);
    end(&f);
    free(out);
    free(want);
}

Test(cuda_calls_simt, encodes_lines_to_the_processors_bytes)
{
    static uint8_t raw[5000];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        test_lines_fill((enum test_lines_kind)(c % TEST_LINES_N_KINDS), c, raw, sizeof(raw));
        check_choice(&choice, raw, c % 5 ? sizeof(raw) - c : c);
    }
}

Test(cuda_calls_simt, refuses_wrong_encodings)
{
    const struct wharf_line_choice choice = {WHARF_CODEC_BDI, 128, 0, 0};
    struct fixture f;
    size_t nbytes;

    begin(&f, WHARF_CODEC_BDI);
    f.batch.n_chunks = 1;
    const struct wharf_cuda_encoding good = encoding_of(&f, &choice);
    struct wharf_cuda_encoding encoding;
    unsigned n_calls = cuda_batch_simt.n_calls;
#define WRONG(member, value, rc)                                                                   \
    do {                                                                                           \
        encoding = good;                                                                           \
        encoding.member = (value);                                                                 \
        cr_assert_eq(wharf_cuda_encode(f.cuda, &encoding, NULL), rc);                              \
    } while (0)
    WRONG(codec, WHARF_CODEC_LZ4, -EOPNOTSUPP);
    WRONG(line_nbytes, 16, -EINVAL);
    WRONG(layout, 2, -EINVAL);
    WRONG(type, 1, -EINVAL);
    WRONG(reserved, 1, -EINVAL);
    WRONG(in, NULL, -EINVAL);
    WRONG(outcomes, NULL, -EINVAL);
    WRONG(n_chunks, WHARF_CUDA_MAX_CHUNKS + 1, -EINVAL);
    cr_assert_eq(wharf_cuda_encode(NULL, &good, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_encode(f.cuda, NULL, NULL), -EINVAL);
    cr_assert_eq(wharf_cuda_encode_bound(&good, WHARF_CUDA_MAX_CHUNK_NBYTES + 1, &nbytes), -EINVAL);
    cr_assert_eq(wharf_cuda_encode_bound(&good, 1, NULL), -EINVAL);
    cr_assert_eq(cuda_batch_simt.n_calls, n_calls);
    end(&f);
}
