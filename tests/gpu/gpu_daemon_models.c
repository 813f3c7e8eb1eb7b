/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon_models.c: models of rans that are registered with the daemon, on its GPU. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_worker.h"

#define MiB ((size_t)1 << 20)

static void must(int r)
{
    if (r >= 0)
        return;
    fprintf(stderr, "wharf_gpu_daemon: %s\n", wharf_error_message());
    exit(1);
}

static uint32_t add(struct wharf *wharf, const struct test_rans *rans)
{
    struct wharf_model model = WHARF_MODEL_INIT;
    uint32_t parameter;

    model.data = rans->model;
    model.nbytes = rans->model_nbytes;
    must(wharf_register_model(wharf, &model, &parameter));
    return parameter;
}

/* ---- right --------------------------------------------------------------------------------- */

/* Of each kind of table that decoders have, and of more slots than a stream can bring. */
static const struct test_rans_plan plans[] = {
    {10, 1, 1, 60000, 9, 200, 1},   {11, 1, 1, 60000, 9, 200, 2},   {12, 1, 1, 60000, 9, 250, 3},
    {16, 1, 1, 60000, 9, 256, 4},   {11, 2, 1, 30000, 9, 900, 5},   {16, 2, 1, 30000, 9, 40000, 6},
    {14, 2, 20, 30000, 9, 3000, 7}, {16, 1, 256, 60000, 9, 256, 8},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

static bool gives_the_same(struct wharf *wharf, const struct test_rans *rans, uint32_t parameter)
{
    struct wharf_job job = WHARF_JOB_INIT;
    uint8_t *out = calloc(1, rans->plain_nbytes), *expected_out = calloc(1, rans->plain_nbytes);
    struct wharf_outcome outcome, expected;

    if (test_rans_decode_registered(rans->stream, rans->stream_nbytes, rans->image, expected_out,
                                    rans->plain_nbytes, &expected))
        exit(1);
    job.codec = WHARF_CODEC_RANS;
    job.parameter = parameter;
    job.in = rans->stream;
    job.in_nbytes = rans->stream_nbytes;
    job.out = out;
    job.out_avail = rans->plain_nbytes;
    must(wharf_decompress(wharf, &job, &outcome));
    bool good = test_outcome_same(&outcome, &expected) &&
                memcmp(out, expected_out, outcome.out_nbytes) == 0;
    if (!good)
        printf("# n %u, %u distributions: %s; not %s\n", rans->shape.n_bits,
               rans->shape.n_distributions, test_outcome_text(&outcome).text,
               test_outcome_text(&expected).text);
    free(out);
    free(expected_out);
    return good;
}

static void damage(struct test_rans *rans, struct test_random *random)
{
    uint64_t bit = test_random_below(random, 8 * rans->stream_nbytes);

    rans->stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

unsigned gpu_daemon_check_models(uint32_t engine, unsigned n_damaged)
{
    struct wharf *wharf = gpu_daemon_open(engine, 16, 0);
    struct test_rans rans[N_PLANS];
    uint32_t parameters[N_PLANS];
    struct test_random random = {9};
    unsigned n_bad = 0;

    for (unsigned i = 0; i < N_PLANS; i++) {
        struct test_rans_plan plan = plans[i];
        plan.n_symbols /= engine == WHARF_ENGINE_SIMT ? 20 : 1;
        rans[i] = test_rans_new_registered(&plan);
        parameters[i] = add(wharf, &rans[i]);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < N_PLANS; i++)
            n_bad += !gives_the_same(wharf, &rans[i], parameters[i]);
        pid_t worker = test_worker_pid(gpu_daemon_pid());
        kill(worker, SIGKILL);
        n_bad += test_worker_wait(gpu_daemon_pid(), worker) == 0;
    }
    /* Taken away beside others that stay. */
    for (unsigned i = 0; i < N_PLANS; i += 2) {
        must(wharf_unregister_model(wharf, parameters[i]));
        parameters[i] = add(wharf, &rans[i]);
    }
    for (unsigned n = 0; n < n_damaged; n++) {
        damage(&rans[n % N_PLANS], &random);
        n_bad += !gives_the_same(wharf, &rans[n % N_PLANS], parameters[n % N_PLANS]);
    }
    wharf_close(wharf);
    for (unsigned i = 0; i < N_PLANS; i++)
        test_rans_free(&rans[i]);
    return n_bad;
}

/* ---- fast ---------------------------------------------------------------------------------- */

enum { N_BATCHES = 24, BATCH_NCHUNKS = 128 };

/* Batches of one stream again and again. */
static void measure_one(uint32_t engine, const struct test_rans *rans, bool is_registered,
                        double seconds)
{
    size_t chunk_nbytes = (rans->plain_nbytes + 63) & ~(size_t)63;
    struct wharf *wharf = gpu_daemon_open(engine, N_BATCHES,
                                          N_BATCHES * BATCH_NCHUNKS * (chunk_nbytes + 128) +
                                              rans->stream_nbytes + 16 * MiB);
    uint32_t parameter = is_registered ? add(wharf, rans) : rans->shape.symbol_nbytes - 1;
    struct wharf_batch_chunk *chunks = calloc((size_t)N_BATCHES * BATCH_NCHUNKS, sizeof(*chunks));
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_completion completion;
    void *in, *out;
    uint64_t n = 0, begun_ns = 0, start_ns = wharf_now_ns(), now_ns = start_ns;

    must(wharf_alloc(wharf, rans->stream_nbytes, &in));
    must(wharf_alloc(wharf, N_BATCHES * BATCH_NCHUNKS * chunk_nbytes, &out));
    memcpy(in, rans->stream, rans->stream_nbytes);
    memset(out, 0, N_BATCHES * BATCH_NCHUNKS * chunk_nbytes);
    for (unsigned i = 0; i < N_BATCHES * BATCH_NCHUNKS; i++) {
        chunks[i].in = in;
        chunks[i].in_nbytes = (uint32_t)rans->stream_nbytes;
        chunks[i].out = (char *)out + i * chunk_nbytes;
        chunks[i].out_avail = (uint32_t)rans->plain_nbytes;
    }
    batch.codec = WHARF_CODEC_RANS;
    batch.parameter = parameter;
    batch.n_chunks = BATCH_NCHUNKS;
    for (unsigned i = 0; i < N_BATCHES; i++) {
        batch.user_data = i;
        batch.chunks = chunks + i * BATCH_NCHUNKS;
        must(wharf_submit_batch(wharf, &batch));
    }
    /* Memory gets ready, and estimates settle, in the first third. */
    while ((double)(now_ns - start_ns) < 1e9 * seconds) {
        must(wharf_wait(wharf, &completion, 1, 1, -1));
        if (completion.result != WHARF_OK)
            exit(1);
        now_ns = wharf_now_ns();
        n++;
        if (!begun_ns && (double)(now_ns - start_ns) > 1e9 * seconds / 3) {
            begun_ns = now_ns;
            n = 0;
        }
        batch.user_data = completion.user_data;
        batch.chunks = chunks + completion.user_data * BATCH_NCHUNKS;
        must(wharf_submit_batch(wharf, &batch));
    }
    printf("{\"what\": \"models\", \"asked\": \"%s\", \"registered\": %s, \"n\": %u, "
           "\"symbol_nbytes\": %u, \"distributions\": %u, \"alphabet\": %u, \"chunk_nbytes\": %zu, "
           "\"in_nbytes\": %zu, \"model_nbytes\": %zu, \"gbps\": %.3f, \"chunk_us\": %.3f}\n",
           wharf_engine_name(engine), is_registered ? "true" : "false", rans->shape.n_bits,
           rans->shape.symbol_nbytes, rans->shape.n_distributions, rans->shape.alphabet,
           rans->plain_nbytes, rans->stream_nbytes, rans->model_nbytes,
           (double)(n * BATCH_NCHUNKS * rans->plain_nbytes) / (double)(now_ns - begun_ns),
           1e-3 * (double)(now_ns - begun_ns) / (double)(n * BATCH_NCHUNKS));
    fflush(stdout);
    wharf_close(wharf);
    free(chunks);
}

void gpu_daemon_measure_models(uint32_t engine, double seconds)
{
    static const struct test_rans_plan loads[] = {
        {11, 1, 1, 2048, 1, 250, 1},   {11, 1, 1, 8192, 4, 250, 1},   {11, 1, 1, 65536, 4, 250, 1},
        {12, 2, 16, 32768, 4, 900, 2}, {16, 2, 64, 32768, 4, 900, 3},
    };
    const uint32_t engines[] = {WHARF_ENGINE_CPU, engine};

    for (unsigned i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        struct test_rans_plan plan = loads[i];
        plan.n_symbols /= engine == WHARF_ENGINE_SIMT ? 16 : 1;
        struct test_rans registered = test_rans_new_registered(&plan);
        bool fits = (uint64_t)plan.n_distributions << plan.n_bits <= 65536;
        for (unsigned e = 0; e < 2; e++) {
            if (fits) {
                struct test_rans brings = test_rans_new(&plan);
                measure_one(engines[e], &brings, false, seconds);
                test_rans_free(&brings);
            }
            measure_one(engines[e], &registered, true, seconds);
        }
        test_rans_free(&registered);
    }
}
