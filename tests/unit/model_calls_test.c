/* SPDX-License-Identifier: Apache-2.0 */
/* The library's calls about models: what they refuse, and how. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_wait.h"

static struct wharf *open_handle(const char *path)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.socket_path = path;
    options.patience_ms = TEST_PATIENCE_MS;
    options.flags = path ? WHARF_OPEN_DAEMON : WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    return wharf;
}

static struct wharf_model model_of(const struct test_rans *rans)
{
    struct wharf_model model = WHARF_MODEL_INIT;

    model.data = rans->model;
    model.nbytes = rans->model_nbytes;
    return model;
}

static void expect_message(const char *word)
{
    cr_expect(strstr(wharf_error_message(), word), "`%s` is not in: %s", word,
              wharf_error_message());
}

static const struct test_rans_plan plan = {11, 1, 1, 5000, 3, 200, 1};

Test(model_calls, arguments_that_cannot_be_are_refused)
{
    struct wharf *wharf = open_handle(NULL);
    struct test_rans rans = test_rans_new_registered(&plan);
    struct wharf_model model = model_of(&rans);
    uint32_t parameter = 77;

    cr_assert_eq(wharf_register_model(NULL, &model, &parameter), -EINVAL);
    cr_assert_eq(wharf_register_model(wharf, NULL, &parameter), -EINVAL);
    cr_assert_eq(wharf_register_model(wharf, &model, NULL), -EINVAL);
    model.data = NULL;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -EINVAL);
    model = model_of(&rans);
    model.nbytes = 0;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -EINVAL);
    model = model_of(&rans);
    model.struct_nbytes = 4;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -EINVAL);
    model = model_of(&rans);
    model.codec = WHARF_CODEC_ZLIB;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -EINVAL);
    model.codec = 12345;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -EINVAL);
    model = model_of(&rans);
    model.nbytes--;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -EBADMSG);
    expect_message("the model is none");
    cr_assert_eq(parameter, 77);
    cr_assert_eq(wharf_unregister_model(wharf, 256), -ENOENT);
    cr_assert_eq(wharf_unregister_model(wharf, 0), -ENOENT);
    cr_assert_eq(wharf_unregister_model(wharf, UINT32_MAX), -ENOENT);
    wharf_close(wharf);
    test_rans_free(&rans);
}

Test(model_calls, numbers_are_used_again_and_come_to_an_end)
{
    struct wharf *wharf = open_handle(NULL);
    struct test_rans rans = test_rans_new_registered(&plan);
    struct wharf_model model = model_of(&rans);
    uint32_t parameter;

    for (uint32_t i = 0; i < WHARF_MAX_MODELS; i++) {
        cr_assert_eq(wharf_register_model(wharf, &model, &parameter), 0);
        cr_assert_eq(parameter, WHARF_FIRST_MODEL + i);
    }
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -ENOSPC);
    cr_assert_eq(wharf_unregister_model(wharf, 300), 0);
    cr_assert_eq(wharf_unregister_model(wharf, 300), -ENOENT);
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), 0);
    cr_assert_eq(parameter, 300);
    wharf_close(wharf);
    test_rans_free(&rans);
}

/* A job that was submitted names its model until its completion has been taken up. */
Test(model_calls, models_of_jobs_in_flight_stay)
{
    struct wharf *wharf = open_handle(NULL);
    struct test_rans rans = test_rans_new_registered(&plan);
    struct wharf_model model = model_of(&rans);
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    struct wharf_outcome outcome;
    void *in, *out;

    cr_assert_eq(wharf_register_model(wharf, &model, &job.parameter), 0);
    cr_assert_eq(wharf_alloc(wharf, rans.stream_nbytes, &in), 0);
    cr_assert_eq(wharf_alloc(wharf, rans.plain_nbytes, &out), 0);
    job.codec = WHARF_CODEC_RANS;
    job.in = memcpy(in, rans.stream, rans.stream_nbytes);
    job.in_nbytes = rans.stream_nbytes;
    job.out = out;
    job.out_avail = rans.plain_nbytes;
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    cr_assert_eq(wharf_unregister_model(wharf, job.parameter), -EBUSY);
    expect_message("in flight");
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(wharf_unregister_model(wharf, job.parameter), 0);
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0);
    cr_assert_eq(outcome.reason, WHARF_REASON_REQUEST_PARAMETER);
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    cr_assert_eq(completion.reason, WHARF_REASON_REQUEST_PARAMETER);
    /* A number means nothing with another codec. */
    cr_assert_eq(wharf_register_model(wharf, &model, &job.parameter), 0);
    job.codec = WHARF_CODEC_RLE1;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0);
    cr_assert_eq(outcome.reason, WHARF_REASON_REQUEST_PARAMETER);
    wharf_close(wharf);
    test_rans_free(&rans);
}

static struct test_rans shared_rans;
static struct wharf *shared;
static uint32_t shared_parameter;
static int is_over;

/* Decodes as long as the model is there, or comes back. */
static void *decode_on(void *data)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uint8_t *out = malloc(shared_rans.plain_nbytes);
    int *ret_is_bad = data;

    job.codec = WHARF_CODEC_RANS;
    job.parameter = shared_parameter;
    job.in = shared_rans.stream;
    job.in_nbytes = shared_rans.stream_nbytes;
    job.out = out;
    job.out_avail = shared_rans.plain_nbytes;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        *ret_is_bad |=
            wharf_decompress(shared, &job, &outcome) != 0 ||
            (outcome.result != WHARF_OK && outcome.reason != WHARF_REASON_REQUEST_PARAMETER);
    }
    free(out);
    return NULL;
}

/* Without a lock: a model is not freed while a call looks things up in it. */
Test(model_calls, threads_may_take_models_away_from_each_other)
{
    enum { N_THREADS = 3, N_ROUNDS = 300 };
    pthread_t threads[N_THREADS];
    int are_bad[N_THREADS] = {0};

    shared = open_handle(NULL);
    shared_rans = test_rans_new_registered(&plan);
    struct wharf_model model = model_of(&shared_rans);
    cr_assert_eq(wharf_register_model(shared, &model, &shared_parameter), 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, decode_on, &are_bad[i]), 0);
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        int r = wharf_unregister_model(shared, shared_parameter);
        uint32_t parameter;
        cr_assert(r == 0 || r == -EBUSY);
        if (r < 0)
            continue;
        cr_assert_eq(wharf_register_model(shared, &model, &parameter), 0);
        cr_assert_eq(parameter, shared_parameter);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_not(are_bad[i]);
    }
    wharf_close(shared);
    test_rans_free(&shared_rans);
}

/* One that knows nothing of models. */
Test(model_calls, daemons_that_are_too_old_are_said_to_be)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_rans rans = test_rans_new_registered(&plan);
    struct wharf_model model = model_of(&rans);
    uint32_t parameter;

    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon->path);
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), -EOPNOTSUPP);
    expect_message("too old");
    cr_assert_eq(wharf_ping(wharf), 0, "%s", wharf_error_message());
    wharf_close(wharf);
    test_daemon_stop(daemon);
    test_daemon_free(daemon);
    test_rans_free(&rans);
}

/* ---- making them --------------------------------------------------------------------------- */

Test(model_calls, frequencies_become_the_model)
{
    /* 2 distributions of 3 symbols, and what leaves a slot to nobody. */
    const uint32_t f[] = {100, 0, 156, 1, 1, 253};
    struct wharf_rans_frequencies frequencies = {sizeof(frequencies), 8, 1, 3, 2, 0, f};
    struct wharf *wharf = open_handle(NULL);
    struct wharf_model model = WHARF_MODEL_INIT;
    uint8_t data[64];
    size_t nbytes, again;
    uint32_t parameter;

    cr_assert_eq(wharf_make_rans_model(&frequencies, NULL, 0, &nbytes), 0);
    /* However much there would be room for nowhere. */
    cr_assert_eq(wharf_make_rans_model(&frequencies, NULL, SIZE_MAX, &again), 0);
    cr_assert_eq(again, nbytes);
    cr_assert_eq(wharf_make_rans_model(&frequencies, data, nbytes - 1, &again), -ENOSPC);
    cr_assert_eq(wharf_make_rans_model(&frequencies, data, sizeof(data), &again), 0);
    cr_assert_eq(again, nbytes);
    model.data = data;
    model.nbytes = nbytes;
    cr_assert_eq(wharf_register_model(wharf, &model, &parameter), 0, "%s", wharf_error_message());
    wharf_close(wharf);
}

Test(model_calls, frequencies_that_are_none_are_refused)
{
    const uint32_t good[] = {100, 156}, none[] = {0, 0}, many[] = {200, 57},
                   huge[] = {UINT32_MAX, 2};
    struct wharf_rans_frequencies frequencies = {sizeof(frequencies), 8, 1, 2, 1, 0, good};
    struct wharf_rans_frequencies bad[] = {frequencies, frequencies, frequencies, frequencies,
                                           frequencies, frequencies, frequencies, frequencies};
    size_t nbytes;

    cr_assert_eq(wharf_make_rans_model(&frequencies, NULL, 0, &nbytes), 0);
    cr_assert_eq(wharf_make_rans_model(NULL, NULL, 0, &nbytes), -EINVAL);
    cr_assert_eq(wharf_make_rans_model(&frequencies, NULL, 0, NULL), -EINVAL);
    bad[0].frequencies = none;
    bad[1].frequencies = many;
    bad[2].frequencies = huge;
    bad[3].frequencies = NULL;
    bad[4].n_bits = 7;
    bad[5].symbol_nbytes = 3;
    bad[6].alphabet = 257;
    bad[7].n_distributions = 257;
    for (unsigned i = 0; i < 8; i++)
        cr_assert_eq(wharf_make_rans_model(&bad[i], NULL, 0, &nbytes), -EINVAL, "%u", i);
    frequencies.reserved = 1;
    cr_assert_eq(wharf_make_rans_model(&frequencies, NULL, 0, &nbytes), -EINVAL);
}
