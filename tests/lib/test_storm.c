/* SPDX-License-Identifier: Apache-2.0 */
/* test_storm.c: keeps many jobs in flight, and checks each (test_storm.h). */
#include "tests/lib/test_storm.h"
#include "daemon/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/decode_job.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_random.h"

/* ---- chunks -------------------------------------------------------------------------------- */

static void *must(void *memory)
{
    if (!memory) {
        fprintf(stderr, "test_storm: out of memory\n");
        exit(1);
    }
    return memory;
}

static void make_chunk(struct test_chunk *chunk, struct test_random *random, size_t max_nbytes,
                       unsigned bad_one_in)
{
    const struct test_data_kind *kind =
        &test_data_kinds[test_random_below(random, test_data_n_kinds)];
    size_t nbytes = test_random_one_in(random, 16) ? 0 : test_random_below(random, max_nbytes + 1);
    uint8_t *plain = test_data_new(kind, test_random_next(random), nbytes);

    chunk->codec = (uint32_t)test_random_below(random, WHARF_CODEC_GZIP + 1);
    chunk->packed = test_pack(chunk->codec, NULL, plain, nbytes, &chunk->packed_nbytes);
    free(plain);
    if (bad_one_in && chunk->packed_nbytes && test_random_one_in(random, bad_one_in))
        chunk->packed[test_random_below(random, chunk->packed_nbytes)] ^=
            (uint8_t)(1u << test_random_below(random, 8));
    chunk->out_avail = nbytes;
    chunk->plain = must(malloc(nbytes + 1));
    struct wharf_decode_job job = {
        .codec = chunk->codec,
        .in = chunk->packed,
        .in_nbytes = chunk->packed_nbytes,
        .out = chunk->plain,
        .out_avail = nbytes,
    };
    wharf_decode_job_run(&job, 0, &chunk->outcome);
}

void test_chunks_init(struct test_chunks *chunks, uint64_t seed, size_t n, size_t max_nbytes,
                      unsigned bad_one_in)
{
    struct test_random random = {seed};

    memset(chunks, 0, sizeof(*chunks));
    chunks->chunks = must(calloc(n, sizeof(*chunks->chunks)));
    chunks->n = n;
    for (size_t i = 0; i < n; i++) {
        struct test_chunk *chunk = &chunks->chunks[i];
        make_chunk(chunk, &random, max_nbytes, bad_one_in);
        if (chunk->packed_nbytes > chunks->max_packed_nbytes)
            chunks->max_packed_nbytes = chunk->packed_nbytes;
        if (chunk->out_avail > chunks->max_out_avail)
            chunks->max_out_avail = chunk->out_avail;
    }
}

void test_chunks_deinit(struct test_chunks *chunks)
{
    for (size_t i = 0; i < chunks->n; i++) {
        free(chunks->chunks[i].packed);
        free(chunks->chunks[i].plain);
    }
    free(chunks->chunks);
    memset(chunks, 0, sizeof(*chunks));
}

/* ---- the storm ----------------------------------------------------------------------------- */

enum { MAX_BATCH = 4, REAP = 64 };

/* A job's memory, which is reused. */
struct slot {
    uint8_t *in[MAX_BATCH];
    uint8_t *out[MAX_BATCH];
    const struct test_chunk *chunks[MAX_BATCH];
    struct wharf_chunk_result results[MAX_BATCH];
    unsigned n_chunks; /* 0: not in flight */
    int is_batch;
    int is_cancelled;
    uint64_t sequence;
};

struct run {
    struct test_storm *storm;
    struct test_random random;
    struct slot *slots;
    unsigned *free_slots;
    unsigned n_free;
};

__attribute__((format(printf, 3, 4))) static int fail(struct run *run, int number,
                                                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(run->storm->error, sizeof(run->storm->error), format, arguments);
    va_end(arguments);
    run->storm->error_number = number;
    return -1;
}

/* The distance of outputs, which gives them all alignments. */
static size_t out_stride(const struct test_storm *storm)
{
    return storm->chunks->max_out_avail + 13;
}

size_t test_storm_out_nbytes(const struct test_storm *storm)
{
    return storm->n_in_flight * MAX_BATCH * out_stride(storm);
}

/* The distance of sources, which gives them other alignments. */
static size_t in_stride(const struct test_storm *storm)
{
    return storm->chunks->max_packed_nbytes + 7;
}

size_t test_storm_in_nbytes(const struct test_storm *storm)
{
    return storm->n_in_flight * MAX_BATCH * in_stride(storm);
}

static int is_in_arena(const struct test_storm *storm, unsigned slot, size_t k)
{
    return !storm->out_memory || (slot + k) % 2 == 0;
}

/* So all four kinds of jobs occur even if outputs have memory of their own. */
static int has_source_in_arena(const struct test_storm *storm, unsigned slot, size_t k)
{
    return !storm->in_memory || (slot + k) / 2 % 2 == 0;
}

static int take_output(struct run *run, unsigned slot, size_t k)
{
    const struct test_storm *storm = run->storm;
    void *out = NULL;
    int r = 0;

    if (is_in_arena(storm, slot, k))
        r = wharf_alloc(storm->wharf, storm->chunks->max_out_avail, &out);
    else
        out = storm->out_memory + (slot * MAX_BATCH + k) * out_stride(storm);
    run->slots[slot].out[k] = out;
    return r;
}

static int take_source(struct run *run, unsigned slot, size_t k)
{
    const struct test_storm *storm = run->storm;
    void *in = NULL;
    int r = 0;

    if (has_source_in_arena(storm, slot, k))
        r = wharf_alloc(storm->wharf, storm->chunks->max_packed_nbytes, &in);
    else
        in = storm->in_memory + (slot * MAX_BATCH + k) * in_stride(storm);
    run->slots[slot].in[k] = in;
    return r;
}

static int is_within(const uint8_t *at, const uint8_t *memory, size_t nbytes)
{
    return memory && at >= memory && at < memory + nbytes;
}

/* Whether it is in memory that the caller has given. */
static int is_given(const struct test_storm *storm, const uint8_t *at)
{
    return is_within(at, storm->out_memory, test_storm_out_nbytes(storm)) ||
           is_within(at, storm->in_memory, test_storm_in_nbytes(storm));
}

static void set_memory(const struct test_storm *storm, uint8_t *to, int byte, size_t nbytes)
{
    if (storm->set_memory && is_given(storm, to))
        storm->set_memory(to, byte, nbytes);
    else
        memset(to, byte, nbytes);
}

static void put_memory(const struct test_storm *storm, uint8_t *to, const void *from, size_t nbytes)
{
    if (storm->put_memory && is_given(storm, to))
        storm->put_memory(to, from, nbytes);
    else
        memcpy(to, from, nbytes);
}

/* Whether an output is correct. */
static int is_right(const struct test_storm *storm, const uint8_t *out, const uint8_t *plain,
                    size_t nbytes)
{
    if (!storm->get_memory || !is_given(storm, out))
        return memcmp(out, plain, nbytes) == 0;
    uint8_t *copy = must(malloc(nbytes + 1));
    storm->get_memory(copy, out, nbytes);
    int result = memcmp(copy, plain, nbytes) == 0;
    free(copy);
    return result;
}

static int take_memory(struct run *run)
{
    const struct test_storm *storm = run->storm;
    size_t n_pieces = storm->batch_one_in ? MAX_BATCH : 1;

    for (unsigned i = 0; i < storm->n_in_flight; i++) {
        for (size_t k = 0; k < n_pieces; k++) {
            int r = take_source(run, i, k);
            if (r == 0)
                r = take_output(run, i, k);
            if (r < 0)
                return fail(run, r, "wharf_alloc: %s", wharf_error_message());
        }
        run->free_slots[run->n_free++] = i;
    }
    return 0;
}

static void give_memory_back(struct run *run)
{
    for (unsigned i = 0; i < run->storm->n_in_flight; i++)
        for (size_t k = 0; k < MAX_BATCH; k++) {
            if (has_source_in_arena(run->storm, i, k))
                wharf_free(run->storm->wharf, run->slots[i].in[k]);
            if (is_in_arena(run->storm, i, k))
                wharf_free(run->storm->wharf, run->slots[i].out[k]);
        }
}

/* ---- submitting ---------------------------------------------------------------------------- */

/* Mostly loads another chunk than the last one in the same memory. */
static void load_chunk(struct run *run, struct slot *slot, unsigned k, uint32_t codec)
{
    const struct test_chunks *chunks = run->storm->chunks;
    const struct test_chunk *chunk;

    do {
        chunk = &chunks->chunks[test_random_below(&run->random, chunks->n)];
    } while (codec != UINT32_MAX && chunk->codec != codec);
    slot->chunks[k] = chunk;
    put_memory(run->storm, slot->in[k], chunk->packed, chunk->packed_nbytes);
    set_memory(run->storm, slot->out[k], 0x5a, chunk->out_avail);
}

static int submit_single(struct run *run, struct slot *slot, uint64_t user_data)
{
    struct wharf_job job = WHARF_JOB_INIT;

    load_chunk(run, slot, 0, UINT32_MAX);
    job.codec = slot->chunks[0]->codec;
    job.in = slot->in[0];
    job.in_nbytes = slot->chunks[0]->packed_nbytes;
    job.out = slot->out[0];
    job.out_avail = slot->chunks[0]->out_avail;
    job.user_data = user_data;
    job.job_class = (uint32_t)test_random_below(&run->random, 4);
    int r = wharf_submit(run->storm->wharf, &job, 1);
    slot->n_chunks = r == 1;
    return r == 1 ? 0 : r;
}

static int submit_batch(struct run *run, struct slot *slot, uint64_t user_data)
{
    struct wharf_batch_chunk chunks[MAX_BATCH];
    struct wharf_batch batch = WHARF_BATCH_INIT;
    unsigned n = 1 + (unsigned)test_random_below(&run->random, MAX_BATCH);

    memset(chunks, 0, sizeof(chunks));
    for (unsigned k = 0; k < n; k++) {
        load_chunk(run, slot, k, k ? slot->chunks[0]->codec : UINT32_MAX);
        chunks[k].in = slot->in[k];
        chunks[k].in_nbytes = (uint32_t)slot->chunks[k]->packed_nbytes;
        chunks[k].out = slot->out[k];
        chunks[k].out_avail = (uint32_t)slot->chunks[k]->out_avail;
    }
    batch.codec = slot->chunks[0]->codec;
    batch.chunks = chunks;
    batch.n_chunks = n;
    batch.results = slot->results;
    batch.user_data = user_data;
    memset(slot->results, 0xa5, sizeof(slot->results));
    int r = wharf_submit_batch(run->storm->wharf, &batch);
    slot->n_chunks = r == 0 ? n : 0;
    return r;
}

static int submit_one(struct run *run)
{
    struct test_storm *storm = run->storm;
    unsigned at = run->free_slots[run->n_free - 1];
    struct slot *slot = &run->slots[at];
    uint64_t user_data = storm->n_submitted << 16 | at;
    int r;

    slot->is_batch = storm->batch_one_in && test_random_one_in(&run->random, storm->batch_one_in);
    slot->sequence = storm->n_submitted;
    slot->is_cancelled = 0;
    r = slot->is_batch ? submit_batch(run, slot, user_data) : submit_single(run, slot, user_data);
    if (r < 0)
        return r;
    run->n_free--;
    storm->n_submitted++;
    if (storm->cancel_one_in && test_random_one_in(&run->random, storm->cancel_one_in)) {
        slot->is_cancelled = 1;
        r = wharf_cancel(storm->wharf, user_data);
    }
    return r < 0 ? r : 0;
}

/* Submits a random number of jobs, as far as there is room. */
static int submit_some(struct run *run)
{
    uint64_t n = 1 + test_random_below(&run->random, run->storm->n_in_flight);

    for (; n && run->n_free && run->storm->n_submitted < run->storm->n_jobs; n--) {
        int r = submit_one(run);
        if (r == -EAGAIN)
            break;
        if (r < 0)
            return fail(run, r, "submitting: %s", wharf_error_message());
    }
    return 0;
}

/* ---- completions --------------------------------------------------------------------------- */

static int check_chunk(struct run *run, const struct slot *slot, unsigned k, uint32_t result,
                       uint32_t reason, uint64_t bit_offset, uint64_t in_nbytes,
                       uint64_t out_nbytes)
{
    const struct test_chunk *chunk = slot->chunks[k];
    const struct wharf_outcome *expected = &chunk->outcome;

    /* Some chunks of a cancelled batch may be done. */
    if (slot->is_cancelled && result == WHARF_CANCELLED)
        return 0;
    if (result != expected->result || reason != expected->reason ||
        bit_offset != expected->bit_offset || in_nbytes != expected->in_nbytes ||
        out_nbytes != expected->out_nbytes)
        return fail(run, 0, "job %llu chunk %u: %s, %s instead of %s, %s",
                    (unsigned long long)slot->sequence, k, wharf_result_name(result),
                    wharf_reason_name(reason), wharf_result_name(expected->result),
                    wharf_reason_name(expected->reason));
    if (result == WHARF_OK && !is_right(run->storm, slot->out[k], chunk->plain, out_nbytes))
        return fail(run, 0, "job %llu chunk %u: wrong bytes", (unsigned long long)slot->sequence,
                    k);
    run->storm->n_bad += result != WHARF_OK;
    return 0;
}

static int check_batch(struct run *run, const struct slot *slot,
                       const struct wharf_completion *completion)
{
    unsigned first_bad = slot->n_chunks;

    if (completion->flags != WHARF_COMPLETION_RESULTS)
        return fail(run, 0, "a batch came back without results: %s, %s",
                    wharf_result_name(completion->result), wharf_reason_name(completion->reason));
    for (unsigned k = 0; k < slot->n_chunks; k++) {
        const struct wharf_chunk_result *result = &slot->results[k];
        /* Cancelled after a bad one, whose result the batch has. */
        int is_left_out = slot->is_cancelled && result->result == WHARF_CANCELLED;
        if (!is_left_out &&
            check_chunk(run, slot, k, result->result, result->reason, result->bit_offset,
                        result->in_nbytes, result->out_nbytes) < 0)
            return -1;
        if (result->result != WHARF_OK && k < first_bad)
            first_bad = k;
    }
    if (first_bad < slot->n_chunks ? completion->first_bad_chunk != first_bad ||
                                         completion->result != slot->results[first_bad].result
                                   : completion->result != WHARF_OK)
        return fail(run, 0, "a batch's completion is not that of its chunks");
    return 0;
}

static int check(struct run *run, const struct wharf_completion *completion)
{
    struct test_storm *storm = run->storm;
    unsigned at = (unsigned)(completion->user_data & 0xffff);
    struct slot *slot = &run->slots[at];
    int r = 0;

    if (at >= storm->n_in_flight || slot->n_chunks == 0 ||
        slot->sequence != completion->user_data >> 16)
        return fail(run, 0, "job %llu came back, which was not in flight",
                    (unsigned long long)(completion->user_data >> 16));
    if (slot->is_cancelled && completion->result == WHARF_CANCELLED)
        storm->n_cancelled++;
    else if (slot->is_batch)
        r = check_batch(run, slot, completion);
    else
        r = check_chunk(run, slot, 0, completion->result, completion->reason,
                        completion->bit_offset, completion->in_nbytes, completion->out_nbytes);
    for (unsigned k = 0; k < slot->n_chunks; k++) {
        set_memory(storm, slot->in[k], 0xee, slot->chunks[k]->packed_nbytes);
        set_memory(storm, slot->out[k], 0xee, slot->chunks[k]->out_avail);
    }
    slot->n_chunks = 0;
    run->free_slots[run->n_free++] = at;
    storm->n_done++;
    return r;
}

static int reap(struct run *run, struct wharf_completion *completions)
{
    struct test_storm *storm = run->storm;
    unsigned n_out = storm->n_in_flight - run->n_free;
    unsigned min = 1 + (unsigned)test_random_below(&run->random, n_out);
    int fd;

    switch (storm->way) {
    case TEST_STORM_WAIT:
        return wharf_wait(storm->wharf, completions, REAP, min < REAP ? min : REAP, 100000000);
    case TEST_STORM_POLL:
        return wharf_poll(storm->wharf, completions, min < REAP ? min : REAP);
    default:
        fd = wharf_fd(storm->wharf);
        if (fd < 0)
            return fd;
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5000);
        return wharf_poll(storm->wharf, completions, REAP);
    }
}

static int take_some(struct run *run)
{
    struct test_storm *storm = run->storm;
    struct wharf_completion completions[REAP];
    int n = reap(run, completions);

    if (n < 0)
        return fail(run, n, "taking completions: %s", wharf_error_message());
    for (int i = 0; i < n; i++)
        if (check(run, &completions[i]) < 0)
            return -1;
    if (n) {
        uint64_t now = wharf_now_ns();
        if (now - storm->last_done_ns > storm->longest_gap_ns)
            storm->longest_gap_ns = now - storm->last_done_ns;
        storm->last_done_ns = now;
    }
    return 0;
}

static int blow(struct run *run)
{
    struct test_storm *storm = run->storm;
    int r = take_memory(run);

    while (r == 0 && storm->n_done < storm->n_jobs) {
        r = submit_some(run);
        if (r == 0 && run->n_free < storm->n_in_flight)
            r = take_some(run);
        if (r == 0 && storm->limit_s &&
            wharf_now_ns() - storm->last_done_ns > storm->limit_s * UINT64_C(1000000000))
            r = fail(run, -ETIMEDOUT, "%llu of %llu jobs are done, and none for %u s",
                     (unsigned long long)storm->n_done, (unsigned long long)storm->n_jobs,
                     storm->limit_s);
        if (r == 0 && storm->tick)
            storm->tick(storm);
    }
    return r;
}

int test_storm_run(struct test_storm *storm)
{
    struct run run = {.storm = storm, .random = {storm->seed}};
    int r;

    run.slots = must(calloc(storm->n_in_flight, sizeof(*run.slots)));
    run.free_slots = must(calloc(storm->n_in_flight, sizeof(*run.free_slots)));
    storm->last_done_ns = wharf_now_ns();
    r = blow(&run);
    if (r == 0) {
        give_memory_back(&run);
        free(run.slots);
    } else {
        storm->in_flight = run.slots;
    }
    free(run.free_slots);
    return r;
}
