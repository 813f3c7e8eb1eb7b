/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_bench.c: rans on the CPU, each form of the tuned decoder beside the plain one, and encoding.
 *
 *     rans_bench [--repetitions N] [--threads N] FILE...
 *
 * Each file is cut into chunks of 128 KiB (what is left over at its end is not used), which are
 * coded one by one with n = 11 and n = 16; one run decodes all of them, on one thread, and on all
 * cores, or on N, as often as it takes to keep each thread busy for far longer than it takes to
 * start.  Forms take turns.  Every output is compared before the clock starts.
 *
 * The whole file as one stream of 2176 splits, as the paper has them, is encoded as well, and
 * thinned to 16 splits beside memcpy of as many bytes, with a copy of its words and without: GB/s
 * count symbols, and the stream's bytes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "encoders/codec.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/rans/rans_thin.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"

enum { CHUNK_NBYTES = 128 << 10, MAX_THREADS = 256, DEFAULT_REPETITIONS = 11 };

/* Each of several threads has about so many chunks in one run: some milliseconds. */
enum { THREAD_NCHUNKS = 256 };

struct chunk {
    const uint8_t *raw;
    uint8_t *packed;
    size_t packed_nbytes;
};

/* A file in chunks, with n of the coder. */
struct work {
    struct chunk *chunks;
    size_t n_chunks;
    uint64_t packed_nbytes;
    int n_bits;
};

/* Cannot go on: a benchmark has nobody to tell but who runs it. */
static _Noreturn void die(const char *what)
{
    fprintf(stderr, "rans_bench: %s\n", what);
    exit(1);
}

static void *check(void *memory)
{
    if (!memory)
        die("out of memory");
    return memory;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static void encode_chunks(void *context)
{
    struct work *work = context;
    const struct wharf_encoder_ops *ops = wharf_codec_find(WHARF_CODEC_RANS)->ops->encoder;
    struct wharf_encoder_options options = {.level = work->n_bits};
    struct wharf_encoder *encoder;

    if (ops->new (&options, &encoder) < 0)
        die("no encoder");
    work->packed_nbytes = 0;
    for (size_t i = 0; i < work->n_chunks; i++) {
        struct chunk *chunk = &work->chunks[i];
        size_t bound = ops->bound(encoder, CHUNK_NBYTES);

        if (!chunk->packed)
            chunk->packed = check(malloc(bound));
        if (ops->encode(encoder, chunk->raw, CHUNK_NBYTES, chunk->packed, bound,
                        &chunk->packed_nbytes) < 0)
            die("cannot encode");
        work->packed_nbytes += chunk->packed_nbytes;
    }
    ops->free(encoder);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* One form with as many threads as take part; each takes the next chunk that nobody has. */
struct team {
    const char *form;
    const struct work *work;
    unsigned n_threads;
    size_t n_passes; /* over all chunks */
    bool compares;
    atomic_size_t next;
};

static size_t count_passes(const struct work *work, unsigned n_threads)
{
    return n_threads > 1 ? (THREAD_NCHUNKS * n_threads + work->n_chunks - 1) / work->n_chunks : 1;
}

static void *decode_chunks(void *context)
{
    struct team *team = context;
    uint8_t *out = check(malloc(CHUNK_NBYTES));
    size_t n = team->n_passes * team->work->n_chunks;

    for (size_t i; (i = atomic_fetch_add(&team->next, 1)) < n;) {
        const struct chunk *chunk = &team->work->chunks[i % team->work->n_chunks];
        struct wharf_outcome outcome;

        wharf_rans_decode(chunk->packed, chunk->packed_nbytes, out, CHUNK_NBYTES, NULL, &outcome);
        if (outcome.out_nbytes != CHUNK_NBYTES ||
            (team->compares && memcmp(out, chunk->raw, CHUNK_NBYTES) != 0))
            die("wrong output");
    }
    free(out);
    return NULL;
}

static void run_team(void *context)
{
    struct team *team = context;
    pthread_t others[MAX_THREADS];

    if (wharf_rans_loop_force(team->form) < 0)
        die("no such form");
    atomic_store(&team->next, 0);
    for (unsigned i = 1; i < team->n_threads; i++)
        if (pthread_create(&others[i], NULL, decode_chunks, team) != 0)
            die("cannot start a thread");
    decode_chunks(team);
    for (unsigned i = 1; i < team->n_threads; i++)
        pthread_join(others[i], NULL);
}

/* The forms that this machine has; the plain one first. */
static size_t list_forms(const char **forms)
{
    size_t n = 0;

    forms[n++] = "none";
#define X(form, coder, where)                                                                      \
    if (wharf_rans_loop_force(#form) == 0)                                                         \
        forms[n++] = #form;
    WHARF_RANS_LOOP_LIST(X)
#undef X
    return n;
}

static void print(const char *what, const char *name, const struct work *work, unsigned n_threads,
                  size_t n_passes, unsigned repetitions, const char *peer,
                  const struct bench_times times[2])
{
    struct bench_row row = {.what = what,
                            .codec = "rans",
                            .data = name,
                            .level = work->n_bits,
                            .threads = n_threads,
                            .repetitions = repetitions,
                            .chunk_nbytes = CHUNK_NBYTES,
                            .in_nbytes = n_passes * work->packed_nbytes,
                            .out_nbytes = n_passes * work->n_chunks * (uint64_t)CHUNK_NBYTES,
                            .peer = peer,
                            .times = times[0],
                            .peer_times = times[1]};
    bench_print_row(stdout, &row);
}

/* Each form beside the plain one. */
static void measure(const struct work *work, const char *name, unsigned n_threads,
                    unsigned repetitions)
{
    const char *forms[8];
    size_t n_forms = list_forms(forms);
    struct team teams[8];
    struct bench_side sides[8];
    struct bench_times times[8];
    size_t n_passes = count_passes(work, n_threads);

    for (size_t i = 0; i < n_forms; i++) {
        teams[i] = (struct team){.form = forms[i],
                                 .work = work,
                                 .n_threads = n_threads,
                                 .n_passes = 1,
                                 .compares = true};
        run_team(&teams[i]);
        teams[i].n_passes = n_passes;
        teams[i].compares = false;
        sides[i] = (struct bench_side){run_team, &teams[i]};
    }
    bench_compare(sides, n_forms, repetitions, times);
    for (size_t i = 1; i < n_forms; i++) {
        char what[64];
        struct bench_times both[2] = {times[i], times[0]};

        snprintf(what, sizeof(what), "decode, %s", forms[i]);
        print(what, name, work, n_threads, n_passes, repetitions, "plain C", both);
    }
    wharf_rans_loop_force(NULL);
}

/* ---- one large stream ------------------------------------------------------------------------ */

enum { LARGE_NSPLITS = 2176, SMALL_NSPLITS = 16 };

struct large {
    struct wharf_rans_job job;
    uint8_t *stream, *thinned;
    size_t bound, stream_nbytes, thinned_nbytes;
};

static void encode_large(void *context)
{
    struct large *large = context;

    if (wharf_rans_encode(&large->job, large->stream, large->bound, &large->stream_nbytes) < 0)
        die("cannot encode");
}

/* Without the words, which stay where they are. */
static void thin_front(void *context)
{
    struct large *large = context;
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;

    if (!wharf_rans_stream_parse(large->stream, large->stream_nbytes, &stream, &outcome) ||
        wharf_rans_thin_front(&stream, large->stream, SMALL_NSPLITS, large->thinned, large->bound,
                              &large->thinned_nbytes) < 0)
        die("cannot thin");
}

/* All of it, from the stream's first byte on. */
static void thin_large(void *context)
{
    struct large *large = context;
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;

    if (!wharf_rans_stream_parse(large->stream, large->stream_nbytes, &stream, &outcome) ||
        wharf_rans_thin(&stream, large->stream, SMALL_NSPLITS, large->thinned, large->bound,
                        &large->thinned_nbytes) < 0)
        die("cannot thin");
}

static void copy_large(void *context)
{
    struct large *large = context;

    memcpy(large->thinned, large->stream, large->stream_nbytes);
}

static void print_large(const char *what, const char *name, const struct large *large,
                        uint64_t nbytes, const char *peer, const struct bench_times times[2],
                        unsigned repetitions)
{
    struct bench_row row = {.what = what,
                            .codec = "rans",
                            .data = name,
                            .level = (int)large->job.shape.n_bits,
                            .threads = 1,
                            .repetitions = repetitions,
                            .in_nbytes = large->stream_nbytes,
                            .out_nbytes = nbytes,
                            .peer = peer,
                            .times = times[0],
                            .peer_times = times[1]};
    bench_print_row(stdout, &row);
}

static void measure_large(const uint8_t *raw, size_t nbytes, const char *name, uint32_t n_bits,
                          unsigned repetitions)
{
    uint64_t counts[256] = {0};
    uint32_t frequencies[256];
    struct large large = {.job = {.shape = {n_bits, 1, 256, 1},
                                  .frequencies = frequencies,
                                  .symbols = raw,
                                  .n_symbols = (uint32_t)nbytes,
                                  .max_splits = LARGE_NSPLITS}};
    struct bench_side sides[3] = {{encode_large, &large}};
    struct bench_times times[3];
    unsigned n_encodes = repetitions < 5 ? repetitions : 5;

    for (size_t i = 0; i < nbytes; i++)
        counts[raw[i]]++;
    if (wharf_rans_normalise(counts, 256, n_bits, frequencies) < 0)
        die("cannot make a model");
    large.bound = wharf_rans_encode_bound(&large.job);
    large.stream = check(malloc(large.bound));
    large.thinned = check(malloc(large.bound));
    bench_compare(sides, 1, n_encodes, times);
    times[1] = times[0];
    print_large("encode, 2176 splits", name, &large, nbytes, "itself", times, n_encodes);
    sides[0] = (struct bench_side){thin_large, &large};
    sides[1] = (struct bench_side){copy_large, &large};
    sides[2] = (struct bench_side){thin_front, &large};
    bench_compare(sides, 3, repetitions, times);
    print_large("thin to 16 splits", name, &large, large.stream_nbytes, "memcpy", times,
                repetitions);
    times[0] = times[2];
    print_large("thin to 16 splits, words in place", name, &large, large.stream_nbytes, "memcpy",
                times, repetitions);
    free(large.stream);
    free(large.thinned);
}

static void measure_file(const char *path, unsigned n_threads, unsigned repetitions)
{
    static const int n_bits[] = {11, 16};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t nbytes;
    uint8_t *raw = test_file_read(path, &nbytes);

    if (!raw || nbytes < CHUNK_NBYTES)
        die(path);
    for (unsigned k = 0; k < 2; k++) {
        struct work work = {.n_chunks = nbytes / CHUNK_NBYTES, .n_bits = n_bits[k]};
        struct bench_side side = {encode_chunks, &work};
        struct bench_times times[2];

        work.chunks = check(calloc(work.n_chunks, sizeof(*work.chunks)));
        for (size_t i = 0; i < work.n_chunks; i++)
            work.chunks[i].raw = raw + i * CHUNK_NBYTES;
        bench_compare(&side, 1, repetitions < 5 ? repetitions : 5, times);
        times[1] = times[0];
        print("encode", name, &work, 1, 1, repetitions < 5 ? repetitions : 5, "itself", times);
        measure(&work, name, 1, repetitions);
        if (n_threads > 1)
            measure(&work, name, n_threads, repetitions);
        for (size_t i = 0; i < work.n_chunks; i++)
            free(work.chunks[i].packed);
        free(work.chunks);
        measure_large(raw, nbytes, name, (uint32_t)n_bits[k], repetitions);
    }
    free(raw);
}

int main(int argc, char **argv)
{
    unsigned repetitions = DEFAULT_REPETITIONS;
    long n_threads = sysconf(_SC_NPROCESSORS_ONLN);
    int first = 1;

    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        long value = strtol(argv[first + 1], NULL, 10);

        if (value < 1 || value > MAX_THREADS)
            break;
        if (strcmp(argv[first], "--repetitions") == 0)
            repetitions = (unsigned)value;
        else
            n_threads = value;
    }
    if (first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: rans_bench [--repetitions N] [--threads N] FILE...\n");
        return 2;
    }
    n_threads = n_threads < 1 ? 1 : n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
    for (int i = first; i < argc; i++)
        measure_file(argv[i], (unsigned)n_threads, repetitions);
    return 0;
}
