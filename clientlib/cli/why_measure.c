/* SPDX-License-Identifier: Apache-2.0 */
/* why_measure.c: decodes a sample of a file's chunks, in every way that there is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/any_decode.h"
#include "clientlib/cli/bench_clients.h"
#include "clientlib/cli/why.h"
#include "clientlib/now.h"
#include "encoders/decode_job.h"

enum {
    /* Of output, spread over the file; more than caches hold, and soon decoded. */
    SAMPLE_NBYTES = 32 << 20,
    /* Of a stream, from its start on. */
    STREAM_NBYTES = 64 << 20,
    MIN_REPETITIONS = 3,
    MAX_REPETITIONS = 200,
    MAX_ROUNDS = 1000,
    ROUND_NS = 30000000,
    SLOW_NS = 500000000, /* what takes longer is done once */
    SIMT_NBYTES = 1 << 20,
    /* Of a daemon's client in flight: chunks, and bytes of their output. */
    MOST_DEPTH = 128,
    IN_FLIGHT_NBYTES = 32 << 20,
};

struct sample {
    struct wharf_cli_why *why;
    struct wharf_cli_bench_chunk *chunks;
    uint64_t *offsets; /* where their streams stand in the file */
    size_t n;
    size_t largest_nbytes; /* output of one */
    uint8_t *in;
    struct wharf_cli_crew *crew;
    uint8_t **outs; /* of each thread */
    wharf_decode_fn *const *decode;
    int has_fault; /* one thread was the first with one: */
    struct wharf_cli_fault fault;
};

/* ---- choosing ------------------------------------------------------------------------------ */

/* The sample is every n-th of the kept chunks: n. */
static size_t stride_of(const struct wharf_cli_why_chunks *chunks)
{
    uint64_t nbytes = 0;

    for (size_t i = 0; i < chunks->n_kept; i++)
        nbytes += chunks->kept[i].out_nbytes;
    return (size_t)(nbytes / SAMPLE_NBYTES) + 1;
}

static int allocate(struct sample *sample, size_t n, size_t in_nbytes)
{
    sample->chunks = calloc(n, sizeof(*sample->chunks));
    sample->offsets = calloc(n, sizeof(*sample->offsets));
    sample->in = malloc(in_nbytes + 1);
    return sample->chunks && sample->offsets && sample->in ? 0 : -ENOMEM;
}

static int load(struct sample *sample, const struct wharf_cli_why_chunk *from, uint8_t *in)
{
    struct wharf_cli_task *task = sample->why->task;
    int64_t n = wharf_cli_input_read_at(task->input, from->offset, in, from->in_nbytes);

    if (n < 0)
        return wharf_cli_task_read_error(task, (int)n);
    sample->offsets[sample->n] = from->offset;
    /* A file that became shorter meanwhile is cut off, as its decoder says. */
    sample->chunks[sample->n++] = (struct wharf_cli_bench_chunk){
        from->codec, from->parameter, from->flags, from->checksum,
        in,          (size_t)n,       NULL,        (size_t)from->out_nbytes};
    if (from->out_nbytes > sample->largest_nbytes)
        sample->largest_nbytes = (size_t)from->out_nbytes;
    sample->why->sample_nbytes += from->out_nbytes;
    return WHARF_CLI_GOOD;
}

static int choose(struct sample *sample)
{
    const struct wharf_cli_why_chunks *chunks = &sample->why->chunks;
    size_t stride = stride_of(chunks);
    size_t in_nbytes = 0;
    int status = WHARF_CLI_GOOD;

    for (size_t i = 0; i < chunks->n_kept; i += stride)
        in_nbytes += chunks->kept[i].in_nbytes;
    if (allocate(sample, chunks->n_kept / stride + 1, in_nbytes) < 0)
        return wharf_cli_task_error(sample->why->task, "cannot measure", -ENOMEM);
    uint8_t *in = sample->in;
    for (size_t i = 0; i < chunks->n_kept && status == WHARF_CLI_GOOD; i += stride) {
        status = load(sample, &chunks->kept[i], in);
        in += chunks->kept[i].in_nbytes;
    }
    sample->why->n_sample = sample->n;
    return status;
}

/* ---- in this process ----------------------------------------------------------------------- */

static void note_fault(struct sample *sample, size_t item, const struct wharf_outcome *outcome)
{
    if (__atomic_exchange_n(&sample->has_fault, 1, __ATOMIC_RELAXED))
        return;
    sample->fault = (struct wharf_cli_fault){
        /* The room was what a header promised: more than that is damage. */
        .result = outcome->result == WHARF_OUTPUT_TOO_SMALL ? WHARF_BAD_DATA : outcome->result,
        .reason = outcome->reason,
        .bit_offset = 8 * sample->offsets[item] + outcome->bit_offset,
        .chunk = WHARF_CLI_NO_CHUNK,
    };
}

static int decode_item(void *context, size_t item, unsigned hand)
{
    struct sample *sample = context;
    const struct wharf_cli_bench_chunk *chunk = &sample->chunks[item];
    const struct wharf_decode_job job = {
        .codec = chunk->codec,
        .flags = chunk->flags,
        .checksum = chunk->checksum,
        .setting = {.parameter = chunk->parameter},
        .in = chunk->packed,
        .in_nbytes = chunk->packed_nbytes,
        .out = sample->outs[hand],
        .out_avail = chunk->raw_nbytes,
    };
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, sample->why->task->options->engine == WHARF_ENGINE_REFERENCE,
                         &outcome);
    if (outcome.result == WHARF_OK)
        return 0;
    note_fault(sample, item, &outcome);
    return -EBADMSG;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

/* `work` goes n_rounds times through the sample. */
static int repeat(struct sample *sample, wharf_cli_crew_work *work, void *context, size_t n_items,
                  unsigned n_rounds, struct wharf_cli_why_way *way)
{
    double nbytes = (double)sample->why->sample_nbytes * n_rounds;
    uint64_t times[MAX_REPETITIONS], total_ns = 0;
    unsigned n = 0;
    int r = 0;

    while (r == 0 &&
           (n < MIN_REPETITIONS || (total_ns < sample->why->least_ns && n < MAX_REPETITIONS))) {
        r = wharf_cli_crew_run(sample->crew, work, context, n_items, &times[n]);
        times[n] += times[n] == 0;
        total_ns += times[n++];
    }
    if (r < 0)
        return r;
    qsort(times, n, sizeof(times[0]), compare_times);
    way->speed = (struct wharf_cli_bench_speed){
        nbytes / (double)times[n - 1], nbytes / (double)times[n / 2], nbytes / (double)times[0], n};
    way->is_measured = true;
    return 0;
}

static int make_hands(struct sample *sample)
{
    unsigned n = sample->why->task->options->n_threads;

    sample->outs = calloc(n, sizeof(*sample->outs));
    for (unsigned i = 0; sample->outs && i < n; i++)
        if (!(sample->outs[i] = malloc(sample->largest_nbytes + 1)))
            return -ENOMEM;
    return sample->outs ? wharf_cli_crew_new(n, &sample->crew) : -ENOMEM;
}

/* Reports a damaged chunk as `wharf test` does; of several, the one that was found first. */
static int measure_here(struct sample *sample)
{
    struct wharf_cli_task *task = sample->why->task;
    int r = repeat(sample, decode_item, sample, sample->n, 1, &sample->why->here);

    if (r == -EBADMSG)
        return wharf_cli_task_fault(task, &sample->fault, 0);
    return r < 0 ? wharf_cli_task_error(task, "cannot measure", r) : WHARF_CLI_GOOD;
}

/* ---- through the daemon -------------------------------------------------------------------- */

static unsigned depth_for(const struct sample *sample)
{
    size_t n = IN_FLIGHT_NBYTES / (sample->largest_nbytes + 1) + 2;

    return n < MOST_DEPTH ? (unsigned)n : MOST_DEPTH;
}

/* Once to get going, then as often without a stop that beginning and end count for little. */
static int repeat_clients(struct sample *sample, struct wharf_cli_bench_clients *clients,
                          unsigned n, struct wharf_cli_why_way *way)
{
    uint64_t ns = 0;
    int r = wharf_cli_crew_run(sample->crew, wharf_cli_bench_clients_decode, clients, n, &ns);

    if (r < 0 || ns > SLOW_NS) {
        double gbps = (double)sample->why->sample_nbytes / (double)(ns + 1);
        way->speed = (struct wharf_cli_bench_speed){gbps, gbps, gbps, 1};
        way->is_measured = r == 0;
        return r;
    }
    uint64_t n_rounds = ROUND_NS / (ns + 1) + 1;
    n_rounds = n_rounds < MAX_ROUNDS ? n_rounds : MAX_ROUNDS;
    wharf_cli_bench_clients_go_round(clients, (unsigned)n_rounds);
    return repeat(sample, wharf_cli_bench_clients_decode, clients, n, (unsigned)n_rounds, way);
}

/* By the engine that is asked for; a daemon that refuses or fails is no failure of the command. */
static void measure_way(struct sample *sample, uint32_t engine, struct wharf_cli_why_way *way)
{
    struct wharf_cli_options options = *sample->why->task->options;
    struct wharf_cli_bench_clients *clients = NULL;
    unsigned n = options.n_threads;

    options.engine = engine;
    way->error =
        wharf_cli_bench_clients_new(&options, sample->chunks, sample->n, sample->largest_nbytes, n,
                                    depth_for(sample), &clients);
    if (way->error == 0)
        way->error = repeat_clients(sample, clients, n, way);
    for (uint32_t i = 0; way->error == 0 && i < WHARF_CLI_WHY_MAX_ENGINES; i++)
        way->n_by[i] = wharf_cli_bench_clients_count(clients, i);
    wharf_cli_bench_clients_free(clients);
}

/* What the daemon's reasons were, by what it counted meanwhile. */
static void note_reasons(struct wharf_cli_why *why)
{
    struct wharf_cli_metrics after;
    const char *const name = "wharf_placements_total";

    if (!why->has_metrics || wharf_cli_metrics_get(why->task->service->wharf, &after) < 0)
        return;
    const struct wharf_cli_family *family = wharf_cli_metrics_find(&after, name);
    for (size_t i = 0; family && i < family->n_samples; i++) {
        const char *reason = wharf_cli_sample_label(&family->samples[i], "reason");
        unsigned at = 0;
        while (reason && at < why->n_reasons && strcmp(why->reasons[at].name, reason) != 0)
            at++;
        if (!reason || at < why->n_reasons || at == WHARF_CLI_WHY_MAX_REASONS ||
            strlen(reason) >= sizeof(why->reasons[at].name))
            continue;
        double n = wharf_cli_metrics_sum(&after, name, "", "reason", reason) -
                   wharf_cli_metrics_sum(&why->metrics, name, "", "reason", reason);
        if (n <= 0)
            continue;
        strcpy(why->reasons[at].name, reason);
        why->reasons[why->n_reasons++].n = n;
    }
    wharf_cli_metrics_free(&after);
}

/* Chunks that are too large for its jobs are decoded here, and are no sample of what it does.  Of
 * others it gets some that have most_nbytes of output, and one at least. */
static void leave_out(struct sample *sample, uint64_t most_nbytes)
{
    uint64_t most = sample->why->task->service->info.max_job_nbytes;
    size_t n = 0;

    sample->why->sample_nbytes = 0;
    for (size_t i = 0; i < sample->n && (n == 0 || sample->why->sample_nbytes < most_nbytes); i++) {
        if (sample->chunks[i].packed_nbytes + sample->chunks[i].raw_nbytes > most)
            continue;
        sample->why->sample_nbytes += sample->chunks[i].raw_nbytes;
        sample->chunks[n++] = sample->chunks[i];
    }
    sample->n = n;
}

static void measure_daemon(struct sample *sample)
{
    struct wharf_cli_why *why = sample->why;
    uint32_t engine = why->task->options->engine;
    uint64_t sample_nbytes = why->sample_nbytes;

    leave_out(sample, engine == WHARF_ENGINE_SIMT ? SIMT_NBYTES : UINT64_MAX);
    if (sample->n > 0) {
        measure_way(sample, engine, &why->daemon);
        note_reasons(why);
    }
    if (why->gpu_engine == WHARF_ENGINE_SIMT)
        leave_out(sample, SIMT_NBYTES);
    if (sample->n > 0 && why->gpu_engine && engine == WHARF_ENGINE_AUTO)
        measure_way(sample, why->gpu_engine, &why->gpu);
    why->sample_nbytes = sample_nbytes;
}

static void free_sample(struct sample *sample)
{
    wharf_cli_crew_free(sample->crew);
    for (unsigned i = 0; sample->outs && i < sample->why->task->options->n_threads; i++)
        free(sample->outs[i]);
    free(sample->outs);
    free(sample->chunks);
    free(sample->offsets);
    free(sample->in);
}

static int measure_chunks(struct wharf_cli_why *why)
{
    struct sample sample = {.why = why};
    int status = choose(&sample);

    if (status == WHARF_CLI_GOOD && sample.n > 0) {
        int r = make_hands(&sample);
        status =
            r < 0 ? wharf_cli_task_error(why->task, "cannot measure", r) : measure_here(&sample);
        if (status == WHARF_CLI_GOOD && why->task->service->wharf)
            measure_daemon(&sample);
    }
    free_sample(&sample);
    return status;
}

/* ---- streams ------------------------------------------------------------------------------- */

/* Once: the input is read as it is decoded, as by any command. */
static int measure_stream(struct wharf_cli_why *why)
{
    struct wharf_cli_task *task = why->task;
    uint64_t start_ns;
    int status;

    wharf_cli_output_open_sink(task->output);
    task->output->may_end_early = true;
    start_ns = wharf_client_now_ns();
    status = wharf_cli_any_decode(task, (struct wharf_cli_range){0, STREAM_NBYTES, NULL, false});
    uint64_t ns = wharf_client_now_ns() - start_ns;
    if (status != WHARF_CLI_GOOD)
        return status;
    double gbps = (double)task->output->nbytes / (double)(ns + 1);
    why->sample_nbytes = task->output->nbytes;
    why->here.speed = (struct wharf_cli_bench_speed){gbps, gbps, gbps, 1};
    why->here.is_measured = why->sample_nbytes > 0;
    return WHARF_CLI_GOOD;
}

int wharf_cli_why_measure(struct wharf_cli_why *why)
{
    return why->is_chunked ? measure_chunks(why) : measure_stream(why);
}
