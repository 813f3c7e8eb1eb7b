/* SPDX-License-Identifier: Apache-2.0 */
/* bench_run.c: times encoding and decoding of one input. */
#include "clientlib/cli/bench_run.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/bench_clients.h"
#include "clientlib/cli/message.h"

enum {
    MIN_REPETITIONS = 5,
    MAX_REPETITIONS = 1000,
    MAX_ROUNDS = 1000,
};

/* A repetition with a daemon lasts so long.  Most chunks of a few milliseconds are decoded while
 * there are fewer than clients have in flight: at the beginning, when a GPU's kernel is started,
 * and at the end. */
#define REPETITION_NS 50000000u

struct packed {
    uint8_t *bytes; /* packed_avail of them */
    size_t nbytes;
};

struct run {
    const struct wharf_cli_bench *bench;
    const struct wharf_codec_ops *ops;
    size_t n_chunks;
    struct packed *packed; /* of each chunk */
    size_t packed_avail;
    struct wharf_encoder **encoders; /* of each thread */
    uint8_t **outs;                  /* of each thread, chunk_nbytes long */
    struct wharf_codec_setting setting;
    wharf_decode_fn *decode;
    bool compare; /* what was decoded with what it should be */
};

static size_t chunk_size(const struct wharf_cli_bench *bench, size_t chunk)
{
    size_t left = bench->raw_nbytes - chunk * bench->chunk_nbytes;

    return left < bench->chunk_nbytes ? left : bench->chunk_nbytes;
}

static const uint8_t *chunk_at(const struct wharf_cli_bench *bench, size_t chunk)
{
    return bench->raw + chunk * bench->chunk_nbytes;
}

static int encode_chunk(void *context, size_t chunk, unsigned hand)
{
    struct run *run = context;
    struct packed *packed = &run->packed[chunk];

    return run->ops->encoder->encode(run->encoders[hand], chunk_at(run->bench, chunk),
                                     chunk_size(run->bench, chunk), packed->bytes,
                                     run->packed_avail, &packed->nbytes);
}

static int decode_chunk(void *context, size_t chunk, unsigned hand)
{
    const struct run *run = context;
    const struct packed *packed = &run->packed[chunk];
    size_t nbytes = chunk_size(run->bench, chunk);
    uint8_t *out = run->outs[hand];
    struct wharf_outcome outcome;

    run->decode(packed->bytes, packed->nbytes, out, nbytes, &run->setting, &outcome);
    if (outcome.result != WHARF_OK || outcome.out_nbytes != nbytes)
        return -EBADMSG;
    if (run->compare && memcmp(out, chunk_at(run->bench, chunk), nbytes) != 0)
        return -EBADMSG;
    return 0;
}

/* ---- repetitions ----------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

/* Of times in each of which the input was gone through so often. */
static void summarise(const struct wharf_cli_bench *bench, unsigned n_rounds, uint64_t *times,
                      unsigned n, struct wharf_cli_bench_speed *ret_speed)
{
    double nbytes = (double)bench->raw_nbytes * n_rounds; /* bytes a ns are GB a second */

    qsort(times, n, sizeof(times[0]), compare_times);
    ret_speed->max = nbytes / (double)times[0];
    ret_speed->median = nbytes / (double)times[n / 2];
    ret_speed->min = nbytes / (double)times[n - 1];
    ret_speed->n_repetitions = n;
}

static int repeat_rounds(const struct wharf_cli_bench *bench, wharf_cli_crew_work *work,
                         void *context, size_t n_items, unsigned n_rounds,
                         struct wharf_cli_bench_speed *ret_speed)
{
    uint64_t times[MAX_REPETITIONS];
    uint64_t total_ns = 0;
    unsigned n = 0;

    while (n < MIN_REPETITIONS || (total_ns < bench->least_ns && n < MAX_REPETITIONS)) {
        int r = wharf_cli_crew_run(bench->crew, work, context, n_items, &times[n]);

        if (r < 0)
            return r;
        times[n] += times[n] == 0; /* a clock that did not move: the least it can tell */
        total_ns += times[n++];
    }
    summarise(bench, n_rounds, times, n, ret_speed);
    return 0;
}

static int repeat(const struct wharf_cli_bench *bench, wharf_cli_crew_work *work, void *context,
                  size_t n_items, struct wharf_cli_bench_speed *ret_speed)
{
    return repeat_rounds(bench, work, context, n_items, 1, ret_speed);
}

static int measure_decode(struct run *run, wharf_decode_fn *decode,
                          struct wharf_cli_bench_speed *ret_speed)
{
    uint64_t ns;
    int r;

    run->decode = decode;
    run->compare = true;
    r = wharf_cli_crew_run(run->bench->crew, decode_chunk, run, run->n_chunks, &ns);
    run->compare = false;
    return r < 0 ? r : repeat(run->bench, decode_chunk, run, run->n_chunks, ret_speed);
}

/* ---- by libwharf-cuda -------------------------------------------------------------------- */

/* As much output at a time as README's table has. */
#define CARD_NBYTES ((uint64_t)512 << 20)

static int repeat_card(const struct wharf_cli_bench *bench, struct wharf_cli_card_batch *batch,
                       struct wharf_cli_bench_row *row)
{
    uint64_t times[MAX_REPETITIONS];
    uint64_t total_ns = 0;
    unsigned n = 0;
    int r = wharf_cli_card_batch_decode(batch, &times[0]);

    if (r == 0)
        r = wharf_cli_card_batch_compare(batch);
    while (r == 0 && (n < MIN_REPETITIONS || (total_ns < bench->least_ns && n < MAX_REPETITIONS))) {
        r = wharf_cli_card_batch_decode(batch, &times[n]);
        times[n] += times[n] == 0;
        total_ns += times[n++];
    }
    if (r == 0)
        summarise(bench, (unsigned)row->n_copies, times, n, &row->decode_card);
    return r;
}

static int measure_card(const struct wharf_cli_bench *bench, struct wharf_cli_bench_chunk *chunks,
                        size_t n_chunks, struct wharf_cli_bench_row *row)
{
    struct wharf_cli_card_batch *batch = NULL;
    char message[256] = "";

    row->n_copies =
        wharf_cli_card_copies(bench->card, row->packed_nbytes, bench->raw_nbytes, CARD_NBYTES);
    int r = wharf_cli_card_batch_new(bench->card, chunks, n_chunks, row->n_copies, &batch, message,
                                     sizeof(message));
    if (r == 0)
        r = repeat_card(bench, batch, row);
    else
        wharf_cli_say("libwharf-cuda: %s", message);
    wharf_cli_card_batch_free(batch);
    return r;
}

/* ---- through a daemon -------------------------------------------------------------------- */

/* So many that a repetition is long enough, by how long one was. */
static unsigned rounds_for(const struct wharf_cli_bench *bench, uint64_t ns)
{
    uint64_t wanted_ns = bench->least_ns / MIN_REPETITIONS;

    wanted_ns = wanted_ns < REPETITION_NS ? wanted_ns : REPETITION_NS;
    uint64_t n = wanted_ns / (ns + 1) + 1;
    return n < MAX_ROUNDS ? (unsigned)n : MAX_ROUNDS;
}

/* As many clients as threads, one on each. */
static int measure_clients(const struct wharf_cli_bench *bench,
                           struct wharf_cli_bench_clients *clients, struct wharf_cli_bench_row *row)
{
    uint64_t ns = 0;
    int r;

    wharf_cli_bench_clients_compare(clients, true);
    r = wharf_cli_crew_run(bench->crew, wharf_cli_bench_clients_decode, clients, bench->n_threads,
                           &ns);
    wharf_cli_bench_clients_compare(clients, false);
    if (r == 0)
        r = wharf_cli_crew_run(bench->crew, wharf_cli_bench_clients_decode, clients,
                               bench->n_threads, &ns);
    unsigned n_rounds = rounds_for(bench, ns);
    wharf_cli_bench_clients_go_round(clients, n_rounds);
    if (r == 0)
        r = repeat_rounds(bench, wharf_cli_bench_clients_decode, clients, bench->n_threads,
                          n_rounds, &row->decode_daemon);
    row->daemon_engines = wharf_cli_bench_clients_engines(clients);
    return r;
}

static struct wharf_cli_bench_chunk chunk_of(const struct run *run,
                                             const struct wharf_cli_bench_row *row, size_t i)
{
    return (struct wharf_cli_bench_chunk){
        .codec = row->codec,
        .parameter = row->parameter,
        .packed = run->packed[i].bytes,
        .packed_nbytes = run->packed[i].nbytes,
        .raw = chunk_at(run->bench, i),
        .raw_nbytes = chunk_size(run->bench, i),
    };
}

static int measure_daemon(const struct wharf_cli_bench *bench,
                          const struct wharf_cli_bench_chunk *chunks, size_t n_chunks,
                          struct wharf_cli_bench_row *row)
{
    struct wharf_cli_bench_clients *clients = NULL;
    int r = wharf_cli_bench_clients_new(bench->daemon, chunks, n_chunks, bench->chunk_nbytes,
                                        bench->n_threads, bench->depth, &clients);

    if (r == 0)
        r = measure_clients(bench, clients, row);
    wharf_cli_bench_clients_free(clients);
    return r;
}

/* The daemon, and the card if it decodes the codec. */
static int measure_others(const struct run *run, struct wharf_cli_bench_row *row)
{
    const struct wharf_cli_bench *bench = run->bench;
    struct wharf_cli_bench_chunk *chunks = calloc(run->n_chunks, sizeof(*chunks));
    int r = chunks ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < run->n_chunks; i++)
        chunks[i] = chunk_of(run, row, i);
    if (r == 0 && bench->card && wharf_cli_card_can_decode(bench->card, row->codec))
        r = measure_card(bench, chunks, run->n_chunks, row);
    if (r == 0 && bench->daemon)
        r = measure_daemon(bench, chunks, run->n_chunks, row);
    /* A GPU that has no decoder for the codec is not measured. */
    if (r == -EOPNOTSUPP && bench->is_gpu)
        r = row->daemon_engines = 0;
    free(chunks);
    return r;
}

static int measure(struct run *run, struct wharf_cli_bench_row *row)
{
    uint64_t ns;
    int r = run->bench->is_gpu
                ? wharf_cli_crew_run(run->bench->crew, encode_chunk, run, run->n_chunks, &ns)
                : repeat(run->bench, encode_chunk, run, run->n_chunks, &row->compress);

    row->packed_nbytes = 0;
    for (size_t i = 0; i < run->n_chunks; i++)
        row->packed_nbytes += run->packed[i].nbytes;
    if (r == 0)
        r = measure_decode(run, run->ops->decode, &row->decode_cpu);
    if (r == 0 && !run->bench->is_gpu)
        r = measure_decode(run, run->ops->decode_reference, &row->decode_reference);
    if (r == 0)
        r = measure_others(run, row);
    return r;
}

/* ---- memory ---------------------------------------------------------------------------- */

static int make_hands(struct run *run, const struct wharf_cli_bench_row *row)
{
    const struct wharf_encoder_options options = {row->encoder->name, row->level, row->parameter};

    for (unsigned i = 0; i < run->bench->n_threads; i++) {
        int r = run->ops->encoder->new (&options, &run->encoders[i]);

        if (r < 0)
            return r;
        run->outs[i] = malloc(run->bench->chunk_nbytes);
        if (!run->outs[i])
            return -ENOMEM;
    }
    return 0;
}

static int make_chunks(struct run *run)
{
    run->packed_avail = run->ops->encoder->bound(run->encoders[0], run->bench->chunk_nbytes);
    for (size_t i = 0; i < run->n_chunks; i++) {
        run->packed[i].bytes = malloc(run->packed_avail);
        if (!run->packed[i].bytes)
            return -ENOMEM;
    }
    return 0;
}

static void free_run(struct run *run)
{
    for (unsigned i = 0; run->encoders && i < run->bench->n_threads; i++)
        run->ops->encoder->free(run->encoders[i]);
    for (unsigned i = 0; run->outs && i < run->bench->n_threads; i++)
        free(run->outs[i]);
    for (size_t i = 0; run->packed && i < run->n_chunks; i++)
        free(run->packed[i].bytes);
    free(run->encoders);
    free(run->outs);
    free(run->packed);
}

int wharf_cli_bench_measure(const struct wharf_cli_bench *bench, struct wharf_cli_bench_row *row)
{
    struct run run = {
        .bench = bench,
        .ops = wharf_codec_find(row->codec)->ops,
        .setting = {.parameter = row->parameter},
        .n_chunks = (bench->raw_nbytes - 1) / bench->chunk_nbytes + 1,
    };
    int r = -ENOMEM;

    run.encoders = calloc(bench->n_threads, sizeof(*run.encoders));
    run.outs = calloc(bench->n_threads, sizeof(*run.outs));
    run.packed = calloc(run.n_chunks, sizeof(*run.packed));
    if (run.encoders && run.outs && run.packed)
        r = make_hands(&run, row);
    if (r == 0)
        r = make_chunks(&run);
    if (r == 0)
        r = measure(&run, row);
    free_run(&run);
    return r;
}
