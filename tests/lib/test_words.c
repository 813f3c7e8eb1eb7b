/* SPDX-License-Identifier: Apache-2.0 */
/* test_words.c: waits for jobs by their done words (test_words.h). */
#include "tests/lib/test_words.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "proto/ring_ops.h"
#include "tests/lib/test_random.h"

enum { MAX_BATCH = 3, REAP = 32 };

/* The byte that the stream writes over memory that is its own. */
#define TAKEN 0x5e

enum state {
    IDLE,
    HELD,    /* waits for the stream, which makes its source first */
    WAITING, /* the stream waits for its word */
    TAKEN_OVER,
};

/* A job's memory, which is reused. */
struct slot {
    uint32_t state; /* enum state */
    uint8_t *in[MAX_BATCH];
    uint8_t *out[MAX_BATCH];
    const struct test_chunk *chunks[MAX_BATCH];
    struct wharf_chunk_result results[MAX_BATCH];
    unsigned n_chunks;
    int is_batch;
    int is_cancelled;
    int is_held;
    uint32_t serial;
    struct wharf_done *done;
    uint64_t *start;
    struct wharf_completion said; /* by the done word */
};

struct run {
    struct test_words *words;
    struct test_random random;
    struct slot *slots;
    uint64_t *starts; /* or NULL */
    uint32_t stops;   /* ends the stream threads */
    uint32_t failed;  /* atomic */
    pthread_mutex_t error_lock;
};

__attribute__((format(printf, 2, 3))) static int fail(struct run *run, const char *format, ...)
{
    va_list arguments;

    pthread_mutex_lock(&run->error_lock);
    if (!run->failed) {
        va_start(arguments, format);
        vsnprintf(run->words->error, sizeof(run->words->error), format, arguments);
        va_end(arguments);
    }
    __atomic_store_n(&run->failed, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&run->error_lock);
    return -1;
}

static int has_failed(const struct run *run)
{
    return (int)__atomic_load_n(&run->failed, __ATOMIC_ACQUIRE);
}

static void *must(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "no memory\n");
    abort();
}

static uint32_t state_of(const struct slot *slot)
{
    return __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct slot *slot, enum state state)
{
    __atomic_store_n(&slot->state, (uint32_t)state, __ATOMIC_RELEASE);
}

/* ---- memory -------------------------------------------------------------------------------- */

static size_t out_nbytes(const struct test_words *words)
{
    return words->chunks->max_out_avail + 13;
}

static size_t chunk_nbytes(const struct test_words *words)
{
    return words->chunks->max_packed_nbytes + 7 + out_nbytes(words);
}

size_t test_words_nbytes(const struct test_words *words)
{
    return words->n_in_flight * MAX_BATCH * chunk_nbytes(words);
}

static int take_slot(struct run *run, unsigned i)
{
    struct test_words *words = run->words;
    struct slot *slot = &run->slots[i];
    void *at = NULL;
    int r = wharf_alloc(words->wharf, sizeof(*slot->done), &at);

    slot->done = at;
    for (unsigned k = 0; r == 0 && k < MAX_BATCH; k++) {
        at = NULL;
        if (words->memory && i % 2)
            at = words->memory + (i * MAX_BATCH + k) * chunk_nbytes(words);
        else
            r = wharf_alloc(words->wharf, chunk_nbytes(words), &at);
        slot->out[k] = at;
        slot->in[k] = (uint8_t *)at + out_nbytes(words);
    }
    if (r < 0)
        return fail(run, "wharf_alloc: %s", wharf_error_message());
    memset(slot->done, 0, sizeof(*slot->done));
    return 0;
}

static void give_slot_back(const struct run *run, unsigned i)
{
    const struct slot *slot = &run->slots[i];

    for (unsigned k = 0; k < MAX_BATCH; k++)
        if (!run->words->memory || i % 2 == 0)
            wharf_free(run->words->wharf, slot->out[k]);
    wharf_free(run->words->wharf, slot->done);
}

/* ---- the streams --------------------------------------------------------------------------- */

/* Whether a chunk has the outcome and output of the CPU decoder. */
static int is_right(const struct slot *slot, unsigned k, uint32_t result, uint64_t out_nbytes)
{
    const struct wharf_outcome *expected = &slot->chunks[k]->outcome;

    if (result == WHARF_CANCELLED && slot->is_cancelled)
        return 1;
    return result == expected->result && out_nbytes == expected->out_nbytes &&
           (result != WHARF_OK || memcmp(slot->out[k], slot->chunks[k]->plain, out_nbytes) == 0);
}

static int batch_is_right(const struct slot *slot)
{
    uint64_t sum = 0;

    if (slot->said.result == WHARF_CANCELLED)
        return slot->is_cancelled;
    for (unsigned k = 0; k < slot->n_chunks; k++) {
        const struct wharf_outcome *expected = &slot->chunks[k]->outcome;
        if (expected->result != WHARF_OK)
            return slot->said.result == expected->result && slot->said.first_bad_chunk == k;
        if (memcmp(slot->out[k], slot->chunks[k]->plain, expected->out_nbytes) != 0)
            return 0;
        sum += expected->out_nbytes;
    }
    return slot->said.result == WHARF_OK && slot->said.out_nbytes == sum;
}

/* The stream has reached the job, which may begin. */
static void let_begin(struct slot *slot)
{
    for (unsigned k = 0; k < slot->n_chunks; k++)
        memcpy(slot->in[k], slot->chunks[k]->packed, slot->chunks[k]->packed_nbytes);
    set_state(slot, WAITING);
    wharf_ring_store_start(slot->start, WHARF_START_VALUE(slot->serial));
}

/* The word is set: from now on the stream owns the memory. */
static void take_over(struct run *run, struct slot *slot)
{
    const struct test_words *words = run->words;
    int good = slot->is_batch ? batch_is_right(slot)
                              : is_right(slot, 0, slot->said.result, slot->said.out_nbytes);

    if (!good)
        fail(run, "the word with serial %u says %s (%s), %llu bytes%s", slot->serial,
             wharf_result_name(slot->said.result), wharf_reason_name(slot->said.reason),
             (unsigned long long)slot->said.out_nbytes, slot->is_batch ? ", of a batch" : "");
    for (unsigned k = 0; k < slot->n_chunks; k++)
        memset(slot->out[k], TAKEN, chunk_nbytes(words));
    set_state(slot, TAKEN_OVER);
}

static void *play_streams(void *data)
{
    struct run *run = data;

    while (!__atomic_load_n(&run->stops, __ATOMIC_RELAXED)) {
        unsigned n = 0;
        for (unsigned i = 0; i < run->words->n_in_flight; i++) {
            struct slot *slot = &run->slots[i];
            if (state_of(slot) == HELD) {
                let_begin(slot);
                n++;
            }
            if (state_of(slot) != WAITING ||
                !wharf_ring_read_done(slot->done, slot->serial, &slot->said))
                continue;
            take_over(run, slot);
            n++;
        }
        if (n == 0)
            sched_yield();
    }
    return NULL;
}

/* ---- the program --------------------------------------------------------------------------- */

static void load_chunk(struct run *run, struct slot *slot, unsigned k, uint32_t codec)
{
    const struct test_chunks *chunks = run->words->chunks;
    const struct test_chunk *chunk;

    do {
        chunk = &chunks->chunks[test_random_below(&run->random, chunks->n)];
    } while (codec != UINT32_MAX && chunk->codec != codec);
    slot->chunks[k] = chunk;
    memset(slot->out[k], 0, out_nbytes(run->words));
    if (slot->is_held)
        memset(slot->in[k], TAKEN, chunk->packed_nbytes);
    else
        memcpy(slot->in[k], chunk->packed, chunk->packed_nbytes);
}

static int submit_batch(struct run *run, struct slot *slot, uint64_t user_data)
{
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_batch_chunk chunks[MAX_BATCH];

    for (unsigned k = 0; k < slot->n_chunks; k++) {
        load_chunk(run, slot, k, k ? slot->chunks[0]->codec : UINT32_MAX);
        chunks[k] = (struct wharf_batch_chunk){
            .in = slot->in[k],
            .out = slot->out[k],
            .in_nbytes = (uint32_t)slot->chunks[k]->packed_nbytes,
            .out_avail = (uint32_t)slot->chunks[k]->out_avail,
        };
    }
    batch.codec = slot->chunks[0]->codec;
    batch.user_data = user_data;
    batch.chunks = chunks;
    batch.n_chunks = slot->n_chunks;
    batch.results = slot->results;
    batch.done = slot->done;
    batch.done_serial = batch.start_serial = slot->serial;
    batch.start = slot->is_held ? slot->start : NULL;
    set_state(slot, slot->is_held ? HELD : WAITING);
    return wharf_submit_batch(run->words->wharf, &batch);
}

static int submit_chunk(struct run *run, struct slot *slot, uint64_t user_data)
{
    struct wharf_job job = WHARF_JOB_INIT;

    load_chunk(run, slot, 0, UINT32_MAX);
    job.codec = slot->chunks[0]->codec;
    job.in = slot->in[0];
    job.in_nbytes = slot->chunks[0]->packed_nbytes;
    job.out = slot->out[0];
    job.out_avail = slot->chunks[0]->out_avail;
    job.user_data = user_data;
    job.done = slot->done;
    job.done_serial = job.start_serial = slot->serial;
    job.start = slot->is_held ? slot->start : NULL;
    set_state(slot, slot->is_held ? HELD : WAITING);
    return wharf_submit(run->words->wharf, &job, 1) == 1 ? 0 : -1;
}

static int chance(struct run *run, unsigned one_in)
{
    return one_in && test_random_one_in(&run->random, one_in);
}

static int submit(struct run *run, unsigned i)
{
    struct slot *slot = &run->slots[i];
    int r;

    slot->is_batch = chance(run, run->words->batch_one_in);
    slot->n_chunks = slot->is_batch ? 1 + (unsigned)test_random_below(&run->random, MAX_BATCH) : 1;
    slot->is_cancelled = chance(run, run->words->cancel_one_in);
    slot->is_held = chance(run, run->words->start_one_in);
    slot->serial++;
    r = slot->is_batch ? submit_batch(run, slot, i) : submit_chunk(run, slot, i);
    if (r < 0)
        return fail(run, "not submitted: %s", wharf_error_message());
    if (slot->is_cancelled && wharf_cancel(run->words->wharf, i) < 0)
        return fail(run, "not cancelled: %s", wharf_error_message());
    return 0;
}

/* A completion: the stream must have seen the word, and nobody may have touched the memory
 * since. */
static int settle(struct run *run, const struct wharf_completion *completion)
{
    struct slot *slot = &run->slots[completion->user_data % run->words->n_in_flight];
    const uint64_t until_ns = wharf_now_ns() + (uint64_t)run->words->limit_s * WHARF_NS_PER_S;

    while (state_of(slot) != TAKEN_OVER && state_of(slot) != IDLE && !has_failed(run)) {
        if (wharf_now_ns() > until_ns)
            return fail(run, "a job is completed, and its word is not set");
        sched_yield();
    }
    if (has_failed(run))
        return -1;
    if (state_of(slot) != TAKEN_OVER)
        return fail(run, "a job is completed twice");
    if (completion->result != slot->said.result || completion->reason != slot->said.reason ||
        completion->out_nbytes != slot->said.out_nbytes ||
        completion->in_nbytes != slot->said.in_nbytes ||
        completion->bit_offset != slot->said.bit_offset ||
        completion->first_bad_chunk != slot->said.first_bad_chunk)
        return fail(run, "the word says %s, and the completion %s",
                    wharf_result_name(slot->said.result), wharf_result_name(completion->result));
    for (unsigned k = 0; k < slot->n_chunks; k++)
        for (size_t at = 0; at < chunk_nbytes(run->words); at++)
            if (slot->out[k][at] != TAKEN)
                return fail(run, "byte %zu was written after the word was set", at);
    run->words->n_done++;
    run->words->n_cancelled += completion->result == WHARF_CANCELLED;
    set_state(slot, IDLE);
    return 0;
}

static int reap(struct run *run, unsigned *n_in_flight)
{
    struct wharf_completion completions[REAP];
    uint64_t until_ns = wharf_now_ns() + (uint64_t)run->words->limit_s * WHARF_NS_PER_S;
    int n = 0;

    while (n == 0 && *n_in_flight > 0) {
        n = wharf_wait(run->words->wharf, completions, REAP, 1, 20000000);
        if (n < 0)
            return fail(run, "wharf_wait: %s", wharf_error_message());
        if (run->words->tick)
            run->words->tick(run->words);
        if (has_failed(run))
            return -1;
        if (n == 0 && wharf_now_ns() > until_ns)
            return fail(run, "%u jobs in flight do not end", *n_in_flight);
    }
    for (int i = 0; i < n; i++)
        if (settle(run, &completions[i]) < 0)
            return -1;
    *n_in_flight -= (unsigned)n;
    return 0;
}

static int make_starts(struct run *run)
{
    struct test_words *words = run->words;
    uint64_t *starts;

    if (!words->start_one_in)
        return 0;
    if (wharf_make_start_words(words->wharf, words->n_in_flight, &starts) < 0)
        return fail(run, "no start words: %s", wharf_error_message());
    run->starts = starts;
    for (unsigned i = 0; i < words->n_in_flight; i++)
        run->slots[i].start = &starts[i];
    return 0;
}

static int work(struct run *run)
{
    struct test_words *words = run->words;
    unsigned n_in_flight = 0;
    uint64_t n_submitted = 0;

    if (make_starts(run) < 0)
        return -1;
    for (unsigned i = 0; i < words->n_in_flight; i++)
        if (take_slot(run, i) < 0)
            return -1;
    while (words->n_done < words->n_jobs) {
        for (unsigned i = 0; i < words->n_in_flight && n_submitted < words->n_jobs; i++) {
            if (state_of(&run->slots[i]) != IDLE)
                continue;
            if (submit(run, i) < 0)
                return -1;
            n_in_flight++;
            n_submitted++;
        }
        if (reap(run, &n_in_flight) < 0)
            return -1;
    }
    return 0;
}

int test_words_run(struct test_words *words)
{
    struct run run = {.words = words, .random = {words->seed}};
    pthread_t streams;

    pthread_mutex_init(&run.error_lock, NULL);
    run.slots = must(calloc(words->n_in_flight, sizeof(*run.slots)));
    if (pthread_create(&streams, NULL, play_streams, &run) != 0)
        abort();
    int r = work(&run);
    __atomic_store_n(&run.stops, 1, __ATOMIC_RELAXED);
    pthread_join(streams, NULL);
    if (r == 0)
        for (unsigned i = 0; i < words->n_in_flight; i++)
            give_slot_back(&run, i);
    if (r == 0 && run.starts && wharf_unregister(words->wharf, run.starts) < 0)
        r = fail(&run, "start words stay: %s", wharf_error_message());
    free(run.slots);
    pthread_mutex_destroy(&run.error_lock);
    return r || run.failed ? -1 : 0;
}
