/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memo_main.c: a client whose chunks come again and again, and a daemon whose GPU keeps all of
 * them, too few to find any again, or none.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "tests/bench/bench_row.h"
#include "tests/gpu/gpu_memory_parts.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_tap.h"

static const char help[] =
    "usage: wharf_gpu_memo [--engine simt] check\n"
    "       wharf_gpu_memo [--engine simt] speed SECONDS CODEC\n"
    "\n"
    "Has the daemon decode the same chunks of 64 KiB over and over.  The modes:\n"
    "\n"
    "  check     bytes of each chunk, decoded and copied, in the arena and in GPU memory\n"
    "  speed     output bytes a second, where the GPU keeps nothing, keeps chunks and has\n"
    "            them no more when they come again, and has all\n"
    "\n"
    "check reports in the Test Anything Protocol, speed prints one JSON object a line.\n"
    "It is run from BUILD/tests or from a folder beside wharfd and wharfd-gpu.  With --engine\n"
    "simt there is no GPU memory.\n";

#define MiB ((size_t)1 << 20)

enum {
    CHUNK_NBYTES = 65536,
    MOST_CHUNKS = 2048,
    BATCH = 64,     /* chunks */
    N_WINDOWS = 10, /* of which the spread is given; some before them, to get ready */
    N_BEFORE = 2,
    N_TURNS = 3, /* of each setting, one after the other */
};

static uint32_t engine = WHARF_ENGINE_GPU;
static uint32_t n_chunks = MOST_CHUNKS;
static unsigned n_rounds = 12; /* warps that end at the same time do not keep all at once */

/* The settings that are compared. */
static struct setting {
    const char *name, *memo;
} settings[] = {{"off", "0"}, {"all miss", "4M"}, {"all hit", "1G"}};
enum { OFF, MISS, HIT, N_SETTINGS };

/* A tenant without any has no sample. */
static double metric(const char *name)
{
    double value = test_wharfd_metric(&gpu_memory_wharfd, name, NULL);

    return value > 0 ? value : 0;
}

static void start(const struct setting *setting)
{
    char more[200];

    snprintf(more, sizeof(more),
             "memo = %s\nmemo_users = 1\n[quota]\nmax_memory = 64G\nmax_arena = 8G\n",
             setting->memo);
    test_wharfd_start_gpu(&gpu_memory_wharfd, engine == WHARF_ENGINE_GPU ? "cuda" : "simt", more);
}

/* ---- chunks -------------------------------------------------------------------------------- */

static uint8_t *plain[MOST_CHUNKS], *streams[MOST_CHUNKS];
static size_t stream_nbytes[MOST_CHUNKS];

static void make_chunks(uint32_t codec)
{
    const struct test_data_kind *kind = test_data_find("text");

    for (uint32_t i = 0; i < n_chunks; i++) {
        plain[i] = test_data_new(kind, i + 1, CHUNK_NBYTES);
        streams[i] = test_pack(codec, NULL, plain[i], CHUNK_NBYTES, &stream_nbytes[i]);
    }
}

/* All chunks in batches, with sources and outputs in one memory. */
struct flood {
    struct wharf *wharf;
    uint8_t *memory;
    bool on_gpu;
    struct wharf_batch batches[MOST_CHUNKS / BATCH];
    struct wharf_batch_chunk chunks[MOST_CHUNKS];
    struct wharf_chunk_result results[MOST_CHUNKS];
};

static void put(const struct flood *flood, uint8_t *to, const void *from, size_t nbytes)
{
    if (flood->on_gpu)
        gpu_memory_must_cuda("copying", gpu_client_put(to, from, nbytes));
    else
        memcpy(to, from, nbytes);
}

static struct flood *flood_new(uint32_t codec, bool on_gpu)
{
    struct flood *flood = calloc(1, sizeof(*flood));
    size_t nbytes = n_chunks * (size_t)CHUNK_NBYTES, at;
    void *memory;

    for (uint32_t i = 0; i < n_chunks; i++)
        nbytes += stream_nbytes[i] + 64;
    flood->on_gpu = on_gpu;
    flood->wharf = gpu_memory_open(engine, 256, nbytes + 64 * MiB);
    if (on_gpu)
        memory = gpu_memory_register(flood->wharf, nbytes).at;
    else
        gpu_memory_must("wharf_alloc", wharf_alloc(flood->wharf, nbytes, &memory));
    flood->memory = memory;
    at = n_chunks * (size_t)CHUNK_NBYTES;
    for (uint32_t i = 0; i < n_chunks; at += stream_nbytes[i++] + 64) {
        flood->chunks[i] = (struct wharf_batch_chunk){
            .in = flood->memory + at,
            .in_nbytes = (uint32_t)stream_nbytes[i],
            .out = flood->memory + i * (size_t)CHUNK_NBYTES,
            .out_avail = CHUNK_NBYTES,
        };
        put(flood, flood->memory + at, streams[i], stream_nbytes[i]);
    }
    for (uint32_t i = 0; i < n_chunks / BATCH; i++) {
        struct wharf_batch *batch = &flood->batches[i];
        *batch = (struct wharf_batch)WHARF_BATCH_INIT;
        batch->codec = codec;
        batch->chunks = flood->chunks + i * BATCH;
        batch->results = flood->results + i * BATCH;
        batch->n_chunks = BATCH;
        batch->user_data = i;
    }
    return flood;
}

static void flood_free(struct flood *flood)
{
    wharf_close(flood->wharf);
    free(flood);
}

static void submit(struct flood *flood, uint64_t batch)
{
    gpu_memory_must("submitting", wharf_submit_batch(flood->wharf, &flood->batches[batch]));
}

/* Takes what is done, and submits it again if `again`.  Returns how many batches. */
static uint32_t turn(struct flood *flood, bool again)
{
    struct wharf_completion completions[MOST_CHUNKS / BATCH];
    int n = wharf_wait(flood->wharf, completions, MOST_CHUNKS / BATCH, 1, -1);

    gpu_memory_must("waiting", n);
    for (int i = 0; i < n; i++) {
        if (completions[i].result != WHARF_OK || completions[i].engine != engine)
            bench_die(wharf_result_name(completions[i].result));
        if (again)
            submit(flood, completions[i].user_data);
    }
    return (uint32_t)n;
}

static void begin(struct flood *flood)
{
    for (uint32_t i = 0; i < n_chunks / BATCH; i++)
        submit(flood, i);
}

static void end(struct flood *flood)
{
    for (uint32_t left = n_chunks / BATCH; left > 0;)
        left -= turn(flood, false);
}

/* ---- check --------------------------------------------------------------------------------- */

/* Chunks are decoded at first and then copied. */
static bool is_right(struct flood *flood)
{
    static uint8_t out[CHUNK_NBYTES];
    bool is_good = true;

    for (unsigned round = 0; round < n_rounds; round++) {
        for (uint32_t i = 0; i < n_chunks; i++) {
            memset(out, 0x5a, sizeof(out));
            put(flood, flood->chunks[i].out, out, sizeof(out));
        }
        begin(flood);
        end(flood);
        for (uint32_t i = 0; i < n_chunks; i++) {
            if (flood->on_gpu)
                gpu_memory_must_cuda("copying",
                                     gpu_client_get(out, flood->chunks[i].out, sizeof(out)));
            else
                memcpy(out, flood->chunks[i].out, sizeof(out));
            is_good &= memcmp(out, plain[i], sizeof(out)) == 0;
        }
    }
    return is_good;
}

static int check(void)
{
    make_chunks(WHARF_CODEC_GZIP);
    for (unsigned on_gpu = 0; on_gpu <= (engine == WHARF_ENGINE_GPU); on_gpu++) {
        for (unsigned s = 0; s < N_SETTINGS; s++) {
            start(&settings[s]);
            struct flood *flood = flood_new(WHARF_CODEC_GZIP, on_gpu);
            bool is_good = is_right(flood);
            double n_hits = metric("wharf_memo_hits_total");
            test_tap_report(is_good, "chunks in %s memory are right: %s", on_gpu ? "GPU" : "host",
                            settings[s].name);
            test_tap_report(s == HIT ? n_hits > n_chunks : n_hits < n_chunks,
                            "%.0f of %.0f were copied, %.0f kept, %.0f evicted", n_hits,
                            metric("wharf_memo_lookups_total"), metric("wharf_memo_kept_total"),
                            metric("wharf_memo_evicted_total"));
            flood_free(flood);
            test_tap_report(metric("wharf_gpu_workers_ended_total") == 0,
                            "and no worker has ended");
            test_wharfd_finish(&gpu_memory_wharfd);
        }
    }
    return test_tap_end();
}

/* ---- speed --------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* GB a second in so many windows. */
static void measure(struct flood *flood, double seconds, double *ret_rates)
{
    begin(flood);
    for (int i = -N_BEFORE; i < N_WINDOWS; i++) {
        uint64_t begun_ns = wharf_now_ns(), now_ns = begun_ns, n = 0;
        for (; (double)(now_ns - begun_ns) < 1e9 * seconds / N_WINDOWS; now_ns = wharf_now_ns())
            n += turn(flood, true);
        if (i >= 0)
            ret_rates[i] = (double)n * BATCH * CHUNK_NBYTES / (double)(now_ns - begun_ns);
    }
    end(flood);
}

static int measure_all(double seconds, const char *codec_name)
{
    static double rates[2][N_SETTINGS][N_TURNS * N_WINDOWS];
    double hits[N_SETTINGS] = {0}, looks[N_SETTINGS] = {0};
    int codec = wharf_codec_from_name(codec_name);
    bool has_gpu = engine == WHARF_ENGINE_GPU;

    if (codec < 0)
        bench_die("there is no such codec");
    make_chunks((uint32_t)codec);
    for (unsigned t = 0; t < N_TURNS; t++) {
        for (unsigned s = 0; s < N_SETTINGS; s++) {
            start(&settings[s]);
            for (unsigned on_gpu = 0; on_gpu <= has_gpu; on_gpu++) {
                struct flood *flood = flood_new((uint32_t)codec, on_gpu);
                measure(flood, seconds, rates[on_gpu][s] + t * N_WINDOWS);
                flood_free(flood);
            }
            hits[s] += metric("wharf_memo_hits_total");
            looks[s] += metric("wharf_memo_lookups_total");
            test_wharfd_finish(&gpu_memory_wharfd);
        }
    }
    for (unsigned on_gpu = 0; on_gpu <= has_gpu; on_gpu++) {
        for (unsigned s = 0; s < N_SETTINGS; s++) {
            double *all = rates[on_gpu][s];
            enum { N = N_TURNS * N_WINDOWS };
            qsort(all, N, sizeof(all[0]), by_size);
            printf("{\"what\":\"gpu_memo\",\"memo\":\"%s\",\"memory\":\"%s\",\"codec\":\"%s\","
                   "\"data\":\"text\",\"chunk_nbytes\":%d,\"chunks\":%u,\"windows\":%d,"
                   "\"seconds\":%.2f,\"hit_rate\":%.4f,\"GBps_median\":%.2f,\"GBps_min\":%.2f,"
                   "\"GBps_max\":%.2f}\n",
                   settings[s].name, on_gpu ? "gpu" : "host", codec_name, CHUNK_NBYTES,
                   (unsigned)n_chunks, N, seconds, looks[s] ? hits[s] / looks[s] : 0, all[N / 2],
                   all[0], all[N - 1]);
        }
    }
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc > 2 && strcmp(argv[1], "--engine") == 0 && strcmp(argv[2], "simt") == 0) {
        engine = WHARF_ENGINE_SIMT;
        n_chunks = BATCH;
        settings[MISS].memo = "1M";
        n_rounds = 3;
        argv += 2;
        argc -= 2;
    }
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        return check();
    if (argc == 4 && strcmp(argv[1], "speed") == 0)
        return measure_all(atof(argv[2]), argv[3]);
    return test_usage(help);
}
