/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are registered with a daemon: on every engine, and over the death of worker and
 * daemon. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static struct test_wharfd wharfd;

/* What a stream cannot bring with it: 5 distributions of 2^16 slots; and one of bytes. */
static const struct test_rans_plan large = {16, 2, 5, 20000, 12, 3000, 1};
static const struct test_rans_plan small = {11, 1, 1, 20000, 12, 250, 2};

static struct wharf *open_handle(uint32_t engine, uint32_t flags)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = flags;
    options.socket_path = wharfd.socket;
    options.engine = engine;
    options.patience_ms = TEST_PATIENCE_MS;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    return wharf;
}

static uint32_t add(struct wharf *wharf, const struct test_rans *rans)
{
    struct wharf_model model = WHARF_MODEL_INIT;
    uint32_t parameter;

    model.data = rans->model;
    model.nbytes = rans->model_nbytes;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), 0, "%s", wharf_error_message());
    cr_assert_geq(parameter, WHARF_FIRST_MODEL);
    return parameter;
}

/* Decodes a stream by a job and by a batch of three, and compares. */
static void expect_symbols(struct wharf *wharf, const struct test_rans *rans, uint32_t parameter)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_batch_chunk chunks[3] = {0};
    struct wharf_outcome outcome;
    struct wharf_completion completion;
    void *in, *out;

    cr_assert_eq(wharf_alloc(wharf, rans->stream_nbytes, &in), 0);
    cr_assert_eq(wharf_alloc(wharf, 3 * rans->plain_nbytes, &out), 0);
    memcpy(in, rans->stream, rans->stream_nbytes);
    memset(out, 0, 3 * rans->plain_nbytes);
    job.codec = batch.codec = WHARF_CODEC_RANS;
    job.parameter = batch.parameter = parameter;
    job.in = in;
    job.in_nbytes = rans->stream_nbytes;
    job.out = out;
    job.out_avail = rans->plain_nbytes;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    cr_assert_eq(outcome.result, WHARF_OK, "%s", wharf_reason_string(outcome.reason));
    cr_assert_eq(outcome.out_nbytes, rans->plain_nbytes);
    cr_assert(memcmp(out, rans->plain, rans->plain_nbytes) == 0);
    memset(out, 0, 3 * rans->plain_nbytes);
    for (unsigned i = 0; i < 3; i++) {
        chunks[i].in = in;
        chunks[i].in_nbytes = (uint32_t)rans->stream_nbytes;
        chunks[i].out = (char *)out + i * rans->plain_nbytes;
        chunks[i].out_avail = (uint32_t)rans->plain_nbytes;
    }
    batch.chunks = chunks;
    batch.n_chunks = 3;
    cr_assert_eq(wharf_submit_batch(wharf, &batch), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
    cr_assert_eq(completion.result, WHARF_OK);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(memcmp(chunks[i].out, rans->plain, rans->plain_nbytes) == 0);
    wharf_free(wharf, in);
    wharf_free(wharf, out);
}

/* ---- what they are for --------------------------------------------------------------------- */

static void use_models(struct wharf *wharf)
{
    struct test_rans rans[2] = {test_rans_new_registered(&large), test_rans_new_registered(&small)};
    uint32_t parameters[2] = {add(wharf, &rans[0]), add(wharf, &rans[1])};

    for (unsigned i = 0; i < 4; i++)
        expect_symbols(wharf, &rans[i % 2], parameters[i % 2]);
    cr_assert_eq(wharf_unregister_model(wharf, parameters[0]), 0, "%s", wharf_error_message());
    expect_symbols(wharf, &rans[1], parameters[1]);
    cr_assert_eq(add(wharf, &rans[0]), parameters[0]);
    expect_symbols(wharf, &rans[0], parameters[0]);
    test_rans_free(&rans[0]);
    test_rans_free(&rans[1]);
}

Test(wharfd_model, every_engine_decodes_with_registered_models)
{
    static const uint32_t engines[] = {WHARF_ENGINE_CPU, WHARF_ENGINE_REFERENCE, WHARF_ENGINE_SIMT,
                                       WHARF_ENGINE_AUTO};

    test_wharfd_start_gpu(&wharfd, "simt", "");
    for (unsigned i = 0; i < 4; i++) {
        struct wharf *wharf = open_handle(engines[i], WHARF_OPEN_DAEMON);
        use_models(wharf);
        wharf_close(wharf);
    }
    test_wharfd_finish(&wharfd);
}

Test(wharfd_model, the_embedded_engine_decodes_with_registered_models)
{
    struct wharf *wharf = open_handle(WHARF_ENGINE_CPU, WHARF_OPEN_EMBEDDED);

    use_models(wharf);
    wharf_close(wharf);
}

/* ---- over deaths --------------------------------------------------------------------------- */

/* The next daemon knows nothing: libwharf registers them again, before it submits. */
Test(wharfd_model, models_outlive_the_daemon, .timeout = 600)
{
    struct test_rans rans[2] = {test_rans_new_registered(&large), test_rans_new_registered(&small)};

    test_wharfd_start_gpu(&wharfd, "simt", "");
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT, WHARF_OPEN_DAEMON);
    uint32_t parameters[2] = {add(wharf, &rans[0]), add(wharf, &rans[1])};

    for (unsigned i = 0; i < 3; i++) {
        test_wharfd_kill(&wharfd);
        test_wharfd_restart(&wharfd);
        expect_symbols(wharf, &rans[i % 2], parameters[i % 2]);
    }
    cr_assert_eq(wharf_unregister_model(wharf, parameters[0]), 0, "%s", wharf_error_message());
    test_wharfd_kill(&wharfd);
    test_wharfd_restart(&wharfd);
    expect_symbols(wharf, &rans[1], parameters[1]);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans[0]);
    test_rans_free(&rans[1]);
}

/* The next worker is given them again. */
Test(wharfd_model, models_outlive_the_worker, .timeout = 600)
{
    struct test_rans rans = test_rans_new_registered(&large);

    test_wharfd_start_gpu(&wharfd, "simt", "");
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT, WHARF_OPEN_DAEMON);
    uint32_t parameter = add(wharf, &rans);

    for (unsigned i = 0; i < 3; i++) {
        pid_t worker = test_worker_pid(wharfd.pid);
        cr_assert_gt(worker, 0);
        kill(worker, SIGKILL);
        expect_symbols(wharf, &rans, parameter);
        cr_assert_gt(test_worker_wait(wharfd.pid, worker), 0);
        expect_symbols(wharf, &rans, parameter);
    }
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* More than the GPU may have of a tenant's: each one has the place of another one in its turn, and
 * once there was none left the rest was refused for good. */
Test(wharfd_model, models_take_turns_on_the_gpu, .timeout = 600)
{
    enum { N = 5 };
    struct test_rans rans[N];
    uint32_t parameters[N];

    test_wharfd_start_gpu(&wharfd, "simt", "[quota]\nmax_gpu_models = 2\n");
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT, WHARF_OPEN_DAEMON);
    for (unsigned i = 0; i < N; i++) {
        struct test_rans_plan plan = small;
        plan.seed = 10 + i;
        rans[i] = test_rans_new_registered(&plan);
        parameters[i] = add(wharf, &rans[i]);
    }
    for (unsigned i = 0; i < 3 * N; i++)
        expect_symbols(wharf, &rans[i % N], parameters[i % N]);
    /* Of those that wait, and those that are there. */
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(wharf_unregister_model(wharf, parameters[i]), 0, "%s", wharf_error_message());
    parameters[0] = add(wharf, &rans[0]);
    expect_symbols(wharf, &rans[0], parameters[0]);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    for (unsigned i = 0; i < N; i++)
        test_rans_free(&rans[i]);
}
