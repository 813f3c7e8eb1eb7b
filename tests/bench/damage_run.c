/* SPDX-License-Identifier: Apache-2.0 */
/* damage_run.c: gives damaged chunks to wharf, in process or through a daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/gpu_card.h"
#include "clientlib/wharf.h"
#include "tests/bench/damage.h"

void damage_note(struct damage_result *result, const struct wharf_outcome *outcome,
                 const uint8_t *out)
{
    bool is_of_data = outcome->result == WHARF_BAD_DATA || outcome->result == WHARF_BAD_CHECKSUM ||
                      outcome->result == WHARF_OUTPUT_TOO_SMALL ||
                      outcome->result == WHARF_UNSUPPORTED;

    *result = (struct damage_result){
        .state = outcome->result == WHARF_OK ? DAMAGE_ACCEPTED
                 : is_of_data                ? DAMAGE_REFUSED
                                             : DAMAGE_FAILED,
        .has_place = is_of_data && outcome->reason != WHARF_REASON_NONE,
        .bit_offset = outcome->bit_offset,
    };
    if (outcome->result != WHARF_OK)
        return;
    result->out_nbytes = outcome->out_nbytes;
    result->sum = damage_sum(out, outcome->out_nbytes);
}

static void *must(void *p)
{
    if (!p) {
        perror("damage: memory");
        exit(DAMAGE_CANNOT);
    }
    return p;
}

static int cannot(const char *what, const char *why)
{
    fprintf(stderr, "damage: %s: %s\n", what, why);
    return DAMAGE_CANNOT;
}

static uint64_t end_of(const struct damage_run *run, uint64_t first)
{
    uint64_t left = run->corpus->n_chunks - first;

    return first + (left < run->batch ? left : run->batch);
}

/* What was not done before keeps its state, which tells a hang from work. */
static void begin_batch(const struct damage_run *run, uint64_t first)
{
    __atomic_store_n(&run->results->at, first, __ATOMIC_RELEASE);
}

static size_t largest(const struct damage_corpus *corpus)
{
    size_t most = 1;

    for (uint64_t i = 0; i < corpus->n_chunks; i++)
        if (corpus->chunks[i].out_avail > most)
            most = corpus->chunks[i].out_avail;
    return most;
}

/* As those codecs' own libraries have it: a stream is all of its bytes. */
static uint32_t flags_of(uint32_t codec)
{
    return codec == WHARF_CODEC_LZ4 || codec == WHARF_CODEC_SNAPPY || codec == WHARF_CODEC_ZSTD
               ? WHARF_JOB_EXACT_INPUT
               : 0;
}

static struct wharf_job job_of(const struct damage_corpus *corpus, uint64_t i)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = corpus->codec;
    job.parameter = corpus->parameter;
    job.flags = flags_of(corpus->codec);
    job.in_nbytes = corpus->chunks[i].in_nbytes;
    job.out_avail = corpus->chunks[i].out_avail;
    job.user_data = i;
    return job;
}

/* ---- libwharf in this process -------------------------------------------------------------- */

int damage_run_here(const struct damage_run *run)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    uint8_t *out = must(malloc(largest(run->corpus)));
    struct wharf *wharf;

    options.flags = WHARF_OPEN_EMBEDDED;
    if (wharf_open(&options, &wharf) < 0)
        return cannot("libwharf", wharf_error_message());
    for (uint64_t first = run->first; first < run->corpus->n_chunks; first = end_of(run, first)) {
        begin_batch(run, first);
        for (uint64_t i = first; i < end_of(run, first); i++) {
            struct wharf_job job = job_of(run->corpus, i);
            struct wharf_outcome outcome;

            job.in = damage_stream(run->corpus, i);
            job.out = out;
            if (wharf_decompress(wharf, &job, &outcome) < 0)
                return cannot("libwharf", wharf_error_message());
            damage_note(&run->results->results[i], &outcome, out);
        }
    }
    wharf_close(wharf);
    free(out);
    return 0;
}

/* ---- libwharf-cuda in this process --------------------------------------------------------- */

struct noting {
    const struct damage_run *run;
    uint64_t first;
};

static int note_one(void *context, size_t i, const struct wharf_outcome *outcome,
                    const uint8_t *out)
{
    const struct noting *noting = context;

    damage_note(&noting->run->results->results[noting->first + i], outcome, out);
    return 0;
}

static int run_batch(const struct damage_run *run, struct wharf_cli_card *card, uint64_t first,
                     uint64_t end)
{
    struct wharf_cli_bench_chunk *chunks = must(calloc(end - first, sizeof(*chunks)));
    struct wharf_cli_card_batch *batch = NULL;
    struct noting noting = {run, first};
    char message[256] = "the GPU does not answer";
    uint64_t ns;

    for (uint64_t i = first; i < end; i++)
        chunks[i - first] = (struct wharf_cli_bench_chunk){
            .codec = run->corpus->codec,
            .parameter = run->corpus->parameter,
            .flags = flags_of(run->corpus->codec),
            .packed = damage_stream(run->corpus, i),
            .packed_nbytes = run->corpus->chunks[i].in_nbytes,
            .raw_nbytes = run->corpus->chunks[i].out_avail,
        };
    int r =
        wharf_cli_card_batch_new(card, chunks, end - first, 1, &batch, message, sizeof(message));
    if (r == 0)
        r = wharf_cli_card_batch_decode(batch, &ns);
    if (r == 0)
        r = wharf_cli_card_batch_each(batch, note_one, &noting);
    if (r < 0)
        fprintf(stderr, "damage: libwharf-cuda: %s\n", message);
    wharf_cli_card_batch_free(batch);
    free(chunks);
    return r;
}

int damage_run_library(const struct damage_run *run)
{
    struct wharf_cli_card *card;
    char message[256];
    int r = wharf_cli_card_open(&card, message, sizeof(message));

    if (r < 0)
        return cannot("libwharf-cuda", message);
    if (!wharf_cli_card_can_decode(card, run->corpus->codec))
        return cannot("libwharf-cuda", "it does not decode this codec");
    for (uint64_t first = run->first; first < run->corpus->n_chunks && r == 0;
         first = end_of(run, first)) {
        begin_batch(run, first);
        r = run_batch(run, card, first, end_of(run, first));
    }
    wharf_cli_card_close(card);
    return r == 0 ? 0 : r == -EIO ? DAMAGE_CONTEXT_KILLED : DAMAGE_CANNOT;
}

/* ---- through a daemon ---------------------------------------------------------------------- */

struct slot {
    void *in, *out;
};

static int take_batch(const struct damage_run *run, struct wharf *wharf, const struct slot *slots,
                      uint64_t first, uint64_t n)
{
    struct wharf_completion completions[64];

    for (uint64_t done = 0; done < n;) {
        int r = wharf_wait(wharf, completions, 64, 1, -1);

        if (r < 0)
            return r;
        for (int i = 0; i < r; i++) {
            const struct wharf_completion *completion = &completions[i];
            const struct wharf_outcome outcome = {
                .result = completion->result,
                .reason = completion->reason,
                .bit_offset = completion->bit_offset,
                .in_nbytes = completion->in_nbytes,
                .out_nbytes = completion->out_nbytes,
            };
            uint64_t at = completion->user_data;
            if (completion->reason == WHARF_REASON_GPU_CODEC)
                return -EOPNOTSUPP;
            damage_note(&run->results->results[at], &outcome, slots[at - first].out);
        }
        done += (uint64_t)r;
    }
    return 0;
}

static int give_batch(const struct damage_run *run, struct wharf *wharf, struct slot *slots,
                      uint64_t first, uint64_t n)
{
    struct wharf_job *jobs = must(calloc(n, sizeof(*jobs)));
    int r = 0;

    for (uint64_t i = 0; i < n && r == 0; i++) {
        jobs[i] = job_of(run->corpus, first + i);
        r = wharf_alloc(wharf, jobs[i].in_nbytes, &slots[i].in);
        if (r == 0)
            r = wharf_alloc(wharf, jobs[i].out_avail, &slots[i].out);
        if (r < 0)
            break;
        memcpy(slots[i].in, damage_stream(run->corpus, first + i), jobs[i].in_nbytes);
        jobs[i].in = slots[i].in;
        jobs[i].out = slots[i].out;
    }
    for (uint64_t sent = 0; sent < n && r >= 0; sent += (uint64_t)r)
        r = wharf_submit(wharf, jobs + sent, (unsigned)(n - sent));
    free(jobs);
    return r < 0 ? r : 0;
}

static void free_batch(struct wharf *wharf, struct slot *slots, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        wharf_free(wharf, slots[i].in);
        wharf_free(wharf, slots[i].out);
        slots[i] = (struct slot){NULL, NULL};
    }
}

/* Workers that ended, each with its context. */
static void count_ended(void *data, const struct wharf_metric *metric)
{
    if (strcmp(metric->family, "wharf_gpu_workers_ended_total") == 0)
        *(double *)data += metric->value;
}

static int open_daemon(const struct damage_run *run, struct wharf **ret_wharf)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = run->socket;
    options.engine = run->engine;
    options.max_jobs = (uint32_t)run->batch;
    options.arena_nbytes = run->batch * (2 * largest(run->corpus) + 4096);
    return wharf_open(&options, ret_wharf);
}

int damage_run_daemon(const struct damage_run *run)
{
    struct slot *slots = must(calloc(run->batch, sizeof(*slots)));
    struct wharf *wharf;
    double n_before = 0, n_after = 0;
    int r = open_daemon(run, &wharf);

    if (r < 0)
        return cannot("the daemon", wharf_error_message());
    wharf_stats(wharf, count_ended, &n_before);
    for (uint64_t first = run->first; first < run->corpus->n_chunks && r == 0;
         first = end_of(run, first)) {
        uint64_t n = end_of(run, first) - first;

        begin_batch(run, first);
        r = give_batch(run, wharf, slots, first, n);
        if (r == 0)
            r = take_batch(run, wharf, slots, first, n);
        free_batch(wharf, slots, n);
    }
    if (r < 0)
        return cannot("the daemon", r == -EOPNOTSUPP ? "its GPU does not decode this codec"
                                                     : wharf_error_message());
    wharf_stats(wharf, count_ended, &n_after);
    printf("{\"workers_ended\":%.0f}\n", n_after - n_before);
    wharf_close(wharf);
    free(slots);
    return 0;
}
