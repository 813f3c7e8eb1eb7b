/* SPDX-License-Identifier: Apache-2.0 */
/* test_parallel.c: decodes a source by the parallel inflater, and compares. */
#include "tests/lib/test_parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/inflate_parallel/parallel_parts.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_stream.h"

static void check(bool good)
{
    if (!good)
        abort();
}

struct source {
    const uint8_t *in;
    size_t in_nbytes;
    size_t at;
    const struct test_parallel_setting *setting;
};

static int64_t read_some(void *context, void *buf, size_t nbytes)
{
    struct source *source = context;
    size_t max = source->setting->max_piece_nbytes;

    if (nbytes > source->in_nbytes - source->at)
        nbytes = source->in_nbytes - source->at;
    if (max && nbytes > max)
        nbytes = max;
    if (nbytes == 0)
        return source->setting->read_error;
    memcpy(buf, source->in + source->at, nbytes);
    source->at += nbytes;
    return (int64_t)nbytes;
}

static void *work(void *stream)
{
    wharf_parallel_inflate_work(stream);
    return NULL;
}

/* Whether no worker has work left before output is taken. */
static bool is_idle(struct wharf_parallel_inflate *stream)
{
    bool idle;

    pthread_mutex_lock(&stream->lock);
    idle = stream->is_over;
    if (!idle && stream->proven_want == WHARF_WANTS_ROOM) {
        idle = !stream->is_reading && !stream->first_task && !stream->proven_busy &&
               (stream->at_end || stream->n_begun - stream->n_freed == stream->n_slots);
        for (uint64_t i = stream->n_freed; i < stream->n_begun; i++)
            idle = idle && !wharf_part_at(stream, i)->has_thread;
        idle = idle && !wharf_parallel_can_prove(stream) && !wharf_parallel_guessable(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

static void keep(struct test_parallel *parallel, const uint8_t *span, size_t nbytes)
{
    check(nbytes > 0);
    parallel->out = realloc(parallel->out, parallel->out_nbytes + nbytes);
    check(parallel->out != NULL);
    memcpy(parallel->out + parallel->out_nbytes, span, nbytes);
    parallel->out_nbytes += nbytes;
}

static void keep_place(struct test_parallel *parallel, const struct wharf_parallel_inflate *stream)
{
    struct test_parallel_place *place = &parallel->places[parallel->n_places];

    if (parallel->n_places == TEST_PARALLEL_MAX_POINTS)
        return;
    place->out_offset = parallel->out_nbytes;
    parallel->n_places += wharf_parallel_inflate_point(stream, &place->point);
}

static void check_rest(const struct wharf_parallel_inflate *stream, const struct source *source,
                       const struct wharf_outcome *outcome)
{
    size_t nbytes = wharf_parallel_inflate_rest_nbytes(stream);
    uint8_t *rest = malloc(nbytes + 1);

    check(rest && outcome->in_nbytes + nbytes == source->at);
    wharf_parallel_inflate_copy_rest(stream, rest);
    check(memcmp(rest, source->in + outcome->in_nbytes, nbytes) == 0);
    free(rest);
}

struct test_parallel test_parallel_decode(enum wharf_inflate_format format, const uint8_t *in,
                                          size_t in_nbytes,
                                          const struct test_parallel_setting *setting)
{
    struct source source = {in, in_nbytes, 0, setting};
    struct wharf_parallel_source read = {read_some, &source};
    struct test_parallel parallel = {.out = malloc(1)};
    struct wharf_parallel_inflate *stream;
    pthread_t threads[TEST_PARALLEL_MAX_WORKERS];
    const uint8_t *span;
    size_t nbytes;

    check(parallel.out && setting->n_workers <= TEST_PARALLEL_MAX_WORKERS);
    wharf_parallel_inflate_force(setting->part_nbytes, setting->max_queued);
    check(wharf_parallel_inflate_new(format, setting->n_workers, &read, &stream) == 0);
    if (setting->wants_points)
        wharf_parallel_inflate_want_points(stream);
    for (unsigned i = 0; i < setting->n_workers; i++)
        check(pthread_create(&threads[i], NULL, work, stream) == 0);
    while (setting->guesses_first && !is_idle(stream))
        sched_yield();
    while ((parallel.error = wharf_parallel_inflate_next(stream, &span, &nbytes)) > 0) {
        keep_place(&parallel, stream);
        keep(&parallel, span, nbytes);
    }
    wharf_parallel_inflate_stop(stream);
    for (unsigned i = 0; i < setting->n_workers; i++)
        pthread_join(threads[i], NULL);
    wharf_parallel_inflate_outcome(stream, &parallel.outcome);
    parallel.verified = wharf_parallel_inflate_verified(stream);
    parallel.member_start = wharf_parallel_inflate_member_start(stream);
    parallel.counts = wharf_parallel_inflate_counts(stream);
    if (parallel.error == 0 && parallel.outcome.result == WHARF_OK)
        check_rest(stream, &source, &parallel.outcome);
    wharf_parallel_inflate_free(stream);
    return parallel;
}

void test_parallel_free(struct test_parallel *parallel)
{
    free(parallel->out);
}

const char *test_parallel_differs(enum wharf_inflate_format format, const uint8_t *in,
                                  size_t in_nbytes, const struct test_parallel *parallel)
{
    struct test_stream want =
        test_stream_decode(wharf_inflate_stream_new(format), in, in_nbytes, 128 << 10, 0);
    const char *differs = NULL;

    if (!test_outcome_same(&parallel->outcome, &want.outcome))
        differs = "the outcome";
    else if (parallel->out_nbytes != want.out_nbytes)
        differs = "how much was put out";
    else if (want.out_nbytes && memcmp(parallel->out, want.out, want.out_nbytes) != 0)
        differs = "the output";
    else if (parallel->verified != want.verified)
        differs = "what was verified";
    test_stream_free(&want);
    return differs;
}
