/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_epoch_parts.c: one chunk of rans in parts, an item each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/decode_job.h"
#include "kernels/work_parts.h"
#include "tests/gpu/gpu_epoch.h"
#include "tests/lib/test_random.h"

enum { WARM_UP = 10, N_DAMAGED = 200 };

/* The chunk, in memory that the device reaches. */
struct whole {
    struct wharf_work_item item;
    struct wharf_decode_job job;
    uint8_t *in, *out;
};

static struct whole whole_of(const struct gpu_jobs *jobs)
{
    const struct wharf_work_item *item = &jobs->items[0];
    return (struct whole){
        .item = *item,
        .job = {.codec = item->codec,
                .in = jobs->in,
                .in_nbytes = item->src_nbytes,
                .out_avail = item->dst_nbytes},
        .in = jobs->in,
        .out = jobs->out,
    };
}

static void submit_parts(struct gpu_epoch *e, const struct whole *whole, uint32_t n_parts)
{
    struct wharf_work_item item = whole->item;
    item.opcode = WHARF_WORK_DECODE_PART;
    item.output = WHARF_WORK_TO_HOST;
    for (uint32_t i = 0; i < n_parts; i++) {
        item.staging = WHARF_WORK_PART(i, n_parts);
        test_epoch_submit(&e->t, &item);
    }
    test_epoch_publish(&e->t);
}

static struct wharf_work_completion await_one(struct gpu_epoch *e)
{
    struct wharf_work_completion completion;
    if (e->t.naps)
        return test_epoch_await(&e->t);
    while (!test_epoch_reap(&e->t, &completion))
        ;
    return completion;
}

/* In so many parts; returns what wharf_work_parts_settle says, and how long it took. */
static int run_parts(struct gpu_epoch *e, const struct whole *whole, uint32_t n_parts,
                     struct wharf_outcome *ret_outcome, double *ret_us)
{
    struct wharf_work_part parts[WHARF_WORK_MAX_PARTS];
    uint32_t first = e->t.submitter.tail;
    double start = gpu_now_us();
    submit_parts(e, whole, n_parts);
    for (uint32_t i = 0; i < n_parts; i++) {
        struct wharf_work_completion c = await_one(e);
        parts[c.item - first] =
            (struct wharf_work_part){c.result, c.reason, c.bit_offset, c.out_nbytes, c.part};
    }
    *ret_us = gpu_now_us() - start;
    return wharf_work_parts_settle(parts, n_parts, &whole->job, ret_outcome);
}

static void time_parts(struct gpu_epoch *e, const struct gpu_source *source,
                       const struct whole *whole, uint32_t n_parts, size_t n)
{
    struct wharf_outcome outcome;
    double *us = calloc(n, sizeof(*us));
    double unused;
    size_t n_wrong = 0, n_refused = 0;
    for (unsigned i = 0; i < WARM_UP; i++)
        run_parts(e, whole, n_parts, &outcome, &unused);
    memset(whole->out, 0, whole->item.dst_nbytes);
    for (size_t i = 0; i < n; i++) {
        int rc = run_parts(e, whole, n_parts, &outcome, &us[i]);
        n_refused += rc < 0;
        n_wrong += rc == 0 && (outcome.result != WHARF_OK ||
                               memcmp(whole->out, source->file, outcome.out_nbytes) != 0);
    }
    e->wrong |= n_wrong > 0;
    struct gpu_latency latency = gpu_latency_of(us, n);
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-parts\",\"codec\":\"%s\",\"data\":\"%s\","
           "\"chunk\":%zu,\"parts\":%u,\"wrong\":%zu,\"refused\":%zu,\"p50_us\":%.2f,"
           "\"p99_us\":%.2f,\"min_us\":%.2f,\"max_us\":%.1f,\"n\":%zu,%s}\n",
           source->codec->name, e->data_name, gpu_chunk_nbytes(source), n_parts, n_wrong, n_refused,
           latency.p50_us, latency.p99_us, latency.min_us, latency.max_us, n, gpu_epoch_facts(e));
    fflush(stdout);
    free(us);
}

static bool is_same(const struct wharf_outcome *a, const struct wharf_outcome *b)
{
    return a->result == b->result && a->reason == b->reason && a->bit_offset == b->bit_offset &&
           a->in_nbytes == b->in_nbytes && a->out_nbytes == b->out_nbytes;
}

/* Each with a bit flipped, in the first KiB of every second one, beside the reference. */
static void check_damaged(struct gpu_epoch *e, const struct gpu_source *source,
                          const struct whole *whole)
{
    struct test_random random = {1};
    struct wharf_decode_job reference = whole->job;
    size_t n_wrong = 0, n_refused = 0;
    double unused;
    reference.out = malloc(whole->job.out_avail);
    for (unsigned i = 0; i < N_DAMAGED; i++) {
        uint64_t limit = i % 2 || whole->job.in_nbytes < 1024 ? whole->job.in_nbytes : 1024;
        uint64_t bit = test_random_below(&random, 8 * limit);
        struct wharf_outcome want, got;
        whole->in[bit / 8] ^= (uint8_t)(1u << bit % 8);
        wharf_decode_job_run(&reference, 1, &want);
        int rc = run_parts(e, whole, 1 + i % 32, &got, &unused);
        n_refused += rc < 0;
        n_wrong += rc == 0 && !is_same(&got, &want);
        whole->in[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    e->wrong |= n_wrong > 0;
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-parts-damaged\",\"codec\":\"%s\",\"data\":\"%s\","
           "\"chunk\":%zu,\"wrong\":%zu,\"refused\":%zu,\"n\":%d,%s}\n",
           source->codec->name, e->data_name, gpu_chunk_nbytes(source), n_wrong, n_refused,
           N_DAMAGED, gpu_epoch_facts(e));
    fflush(stdout);
    free(reference.out);
}

void gpu_epoch_parts(struct gpu_epoch *e, const struct gpu_source *source, size_t n)
{
    struct gpu_jobs jobs;
    e->output = WHARF_WORK_TO_HOST;
    gpu_jobs_new(e, &jobs, source, 1);
    struct whole whole = whole_of(&jobs);
    for (uint32_t n_parts = 1; n_parts <= WHARF_WORK_MAX_PARTS; n_parts *= 2)
        time_parts(e, source, &whole, n_parts, n);
    check_damaged(e, source, &whole);
    gpu_jobs_free(e, &jobs);
}
