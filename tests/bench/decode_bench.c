/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_bench.c: decoding chunks on the CPU, beside libdeflate and zlib.
 */
#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/codec.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: decode_bench [--repetitions N] FILE...\n"
    "\n"
    "Times decoding on this CPU beside libdeflate and zlib, N times each (15).\n"
    "\n"
    "Each file is cut into chunks of 64 KiB that zlib packs one by one, at several levels;\n"
    "one run decodes all of them, on one thread and on all cores.  Every output is compared\n"
    "with the data before the clock starts.  Prints one JSON object for each measurement.\n";

enum { CHUNK_NBYTES = 64 << 10, MAX_THREADS = 256, DEFAULT_REPETITIONS = 15 };

/* Raw Deflate at three levels, and the other formats once, for what their checksums cost. */
static const struct packing {
    uint32_t codec;
    int level;
    int zlib_window; /* as zlib wants to be told of the format */
} packings[] = {
    {WHARF_CODEC_DEFLATE, 1, -15}, {WHARF_CODEC_DEFLATE, 6, -15}, {WHARF_CODEC_DEFLATE, 9, -15},
    {WHARF_CODEC_ZLIB, 6, 15},     {WHARF_CODEC_GZIP, 6, 31},
};
enum { N_PACKINGS = sizeof(packings) / sizeof(packings[0]) };

struct chunk {
    const uint8_t *raw;
    size_t raw_nbytes;
    uint8_t *packed;
    size_t packed_nbytes;
};

/* ---- engines: `state` is one thread's; decode returns the number of bytes, 0 on failure ------ */

struct engine {
    const char *name;
    void *(*new_state)(const struct packing *packing);
    size_t (*decode)(void *state, const struct packing *packing, const struct chunk *chunk,
                     uint8_t *out);
    void (*free_state)(void *state);
};

static void *new_wharf(const struct packing *packing)
{
    return (void *)(uintptr_t)wharf_codec_find(packing->codec);
}

static size_t decode_wharf(void *state, const struct packing *packing, const struct chunk *chunk,
                           uint8_t *out)
{
    const struct wharf_codec_row *row = state;
    struct wharf_outcome outcome;
    (void)packing;
    row->ops->decode(chunk->packed, chunk->packed_nbytes, out, chunk->raw_nbytes, NULL, &outcome);
    return outcome.out_nbytes;
}

static void free_wharf(void *state)
{
    (void)state;
}

static void *new_libdeflate(const struct packing *packing)
{
    (void)packing;
    return bench_check(libdeflate_alloc_decompressor());
}

static size_t decode_libdeflate(void *state, const struct packing *packing,
                                const struct chunk *chunk, uint8_t *out)
{
    size_t n = 0;
    if (packing->codec == WHARF_CODEC_DEFLATE)
        libdeflate_deflate_decompress(state, chunk->packed, chunk->packed_nbytes, out,
                                      chunk->raw_nbytes, &n);
    else if (packing->codec == WHARF_CODEC_ZLIB)
        libdeflate_zlib_decompress(state, chunk->packed, chunk->packed_nbytes, out,
                                   chunk->raw_nbytes, &n);
    else
        libdeflate_gzip_decompress(state, chunk->packed, chunk->packed_nbytes, out,
                                   chunk->raw_nbytes, &n);
    return n;
}

static void free_libdeflate(void *state)
{
    libdeflate_free_decompressor(state);
}

static void *new_zlib(const struct packing *packing)
{
    z_stream *stream = bench_check(calloc(1, sizeof(*stream)));
    if (inflateInit2(stream, packing->zlib_window) != Z_OK)
        bench_die("out of memory");
    return stream;
}

static size_t decode_zlib(void *state, const struct packing *packing, const struct chunk *chunk,
                          uint8_t *out)
{
    z_stream *stream = state;
    (void)packing;
    inflateReset(stream);
    stream->next_in = chunk->packed;
    stream->avail_in = (uInt)chunk->packed_nbytes;
    stream->next_out = out;
    stream->avail_out = (uInt)chunk->raw_nbytes;
    return inflate(stream, Z_FINISH) == Z_STREAM_END ? stream->total_out : 0;
}

static void free_zlib(void *state)
{
    inflateEnd(state);
    free(state);
}

/* The first is the one that the others are compared with. */
static const struct engine engines[] = {
    {"wharf", new_wharf, decode_wharf, free_wharf},
    {"libdeflate " LIBDEFLATE_VERSION_STRING, new_libdeflate, decode_libdeflate, free_libdeflate},
    {"zlib " ZLIB_VERSION, new_zlib, decode_zlib, free_zlib},
};
enum { N_ENGINES = sizeof(engines) / sizeof(engines[0]) };

/* ---- one file in one packing ----------------------------------------------------------------- */

struct work {
    const struct packing *packing;
    struct chunk *chunks;
    size_t n_chunks;
    uint64_t packed_nbytes;
    uint64_t raw_nbytes;
};

static void pack_chunk(const struct packing *packing, struct chunk *chunk)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, packing->level, Z_DEFLATED, packing->zlib_window, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        bench_die("out of memory");
    size_t bound = deflateBound(&stream, chunk->raw_nbytes);
    chunk->packed = bench_check(malloc(bound));
    stream.next_in = (Bytef *)(uintptr_t)chunk->raw;
    stream.avail_in = (uInt)chunk->raw_nbytes;
    stream.next_out = chunk->packed;
    stream.avail_out = (uInt)bound;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        bench_die("cannot pack");
    chunk->packed_nbytes = stream.total_out;
    deflateEnd(&stream);
}

static void work_init(struct work *work, const struct packing *packing, const uint8_t *raw,
                      size_t raw_nbytes)
{
    size_t n_chunks = (raw_nbytes + CHUNK_NBYTES - 1) / CHUNK_NBYTES;
    *work = (struct work){.packing = packing, .n_chunks = n_chunks, .raw_nbytes = raw_nbytes};
    work->chunks = bench_check(calloc(n_chunks, sizeof(*work->chunks)));
    for (size_t i = 0; i < n_chunks; i++) {
        size_t rest = raw_nbytes - i * CHUNK_NBYTES;
        struct chunk *chunk = &work->chunks[i];
        chunk->raw = raw + i * CHUNK_NBYTES;
        chunk->raw_nbytes = rest < CHUNK_NBYTES ? rest : CHUNK_NBYTES;
        pack_chunk(packing, chunk);
        work->packed_nbytes += chunk->packed_nbytes;
    }
}

static void work_deinit(struct work *work)
{
    for (size_t i = 0; i < work->n_chunks; i++)
        free(work->chunks[i].packed);
    free(work->chunks);
}

/* ---- running it ------------------------------------------------------------------------------ */

struct thread {
    struct team *team;
    void *state;
    uint8_t *out;
};

/* One engine with as many threads as take part; each takes the next chunk that nobody has. */
struct team {
    const struct engine *engine;
    const struct work *work;
    unsigned n_threads;
    bool compares;
    atomic_size_t next;
    struct thread threads[MAX_THREADS];
};

static void *decode_chunks(void *context)
{
    struct thread *thread = context;
    struct team *team = thread->team;
    for (size_t i; (i = atomic_fetch_add(&team->next, 1)) < team->work->n_chunks;) {
        const struct chunk *chunk = &team->work->chunks[i];
        size_t n = team->engine->decode(thread->state, team->work->packing, chunk, thread->out);
        if (n != chunk->raw_nbytes || (team->compares && memcmp(thread->out, chunk->raw, n) != 0))
            bench_die("wrong output");
    }
    return NULL;
}

static void run_team(void *context)
{
    struct team *team = context;
    pthread_t others[MAX_THREADS];
    atomic_store(&team->next, 0);
    for (unsigned i = 1; i < team->n_threads; i++)
        if (pthread_create(&others[i], NULL, decode_chunks, &team->threads[i]) != 0)
            bench_die("cannot start a thread");
    decode_chunks(&team->threads[0]);
    for (unsigned i = 1; i < team->n_threads; i++)
        pthread_join(others[i], NULL);
}

static void team_init(struct team *team, const struct engine *engine, const struct work *work,
                      unsigned n_threads)
{
    team->engine = engine;
    team->work = work;
    team->n_threads = n_threads;
    for (unsigned i = 0; i < n_threads; i++)
        team->threads[i] = (struct thread){.team = team,
                                           .state = engine->new_state(work->packing),
                                           .out = bench_check(malloc(CHUNK_NBYTES))};
    team->compares = true;
    run_team(team);
    team->compares = false;
}

static void team_deinit(struct team *team)
{
    for (unsigned i = 0; i < team->n_threads; i++) {
        team->engine->free_state(team->threads[i].state);
        free(team->threads[i].out);
    }
}

static void measure(const struct work *work, const char *name, unsigned n_threads,
                    unsigned repetitions)
{
    static struct team teams[N_ENGINES];
    struct bench_side sides[N_ENGINES];
    struct bench_times times[N_ENGINES];

    for (unsigned e = 0; e < N_ENGINES; e++) {
        team_init(&teams[e], &engines[e], work, n_threads);
        sides[e] = (struct bench_side){run_team, &teams[e]};
    }
    bench_compare(sides, N_ENGINES, repetitions, times);
    for (unsigned e = 1; e < N_ENGINES; e++) {
        struct bench_row row = {.what = "decode",
                                .codec = wharf_codec_find(work->packing->codec)->name,
                                .data = name,
                                .level = work->packing->level,
                                .threads = n_threads,
                                .repetitions = repetitions,
                                .chunk_nbytes = CHUNK_NBYTES,
                                .in_nbytes = work->packed_nbytes,
                                .out_nbytes = work->raw_nbytes,
                                .peer = engines[e].name,
                                .times = times[0],
                                .peer_times = times[e]};
        bench_print_row(stdout, &row);
    }
    for (unsigned e = 0; e < N_ENGINES; e++)
        team_deinit(&teams[e]);
}

static void measure_file(const char *path, unsigned n_cores, unsigned repetitions)
{
    size_t nbytes;
    uint8_t *raw = test_file_read(path, &nbytes);
    const char *slash = strrchr(path, '/');
    if (!raw || nbytes == 0)
        bench_die(path);
    for (unsigned p = 0; p < N_PACKINGS; p++) {
        struct work work;
        work_init(&work, &packings[p], raw, nbytes);
        measure(&work, slash ? slash + 1 : path, 1, repetitions);
        if (n_cores > 1)
            measure(&work, slash ? slash + 1 : path, n_cores, repetitions);
        work_deinit(&work);
    }
    free(raw);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    unsigned repetitions = DEFAULT_REPETITIONS;
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--repetitions") == 0) {
        repetitions = (unsigned)strtoul(argv[2], NULL, 10);
        first = 3;
    }
    if (first >= argc || repetitions < 1) {
        return test_usage(help);
    }
    n_cores = n_cores < 1 ? 1 : n_cores > MAX_THREADS ? MAX_THREADS : n_cores;
    for (int i = first; i < argc; i++)
        measure_file(argv[i], (unsigned)n_cores, repetitions);
    return 0;
}
