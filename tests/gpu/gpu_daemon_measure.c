/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon_measure.c: what a client of the daemon gets: round trips, and bytes a second; and what
 * that costs of processors. */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "encoders/codec.h"
#include "encoders/rans/rans_encode.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_rans.h"

#define MOST_SAMPLES 200000
#define REAP 64

struct load {
    uint32_t codec;
    const char *data; /* what it is packed from */
    const uint8_t *packed;
    size_t packed_nbytes;
    size_t nbytes; /* of a chunk's output */
};

static void must(int r)
{
    if (r >= 0)
        return;
    fprintf(stderr, "wharf_gpu_daemon: %s\n", wharf_error_message());
    exit(1);
}

/* ---- processors ---------------------------------------------------------------------------- */

static bool read_line(char *line, size_t nbytes, const char *folder, const char *task,
                      const char *name)
{
    char path[600];

    snprintf(path, sizeof(path), "%s/%s/%s", folder, task, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool good = fgets(line, (int)nbytes, file) != NULL;
    fclose(file);
    return good;
}

struct gpu_daemon_used gpu_daemon_used_now(void)
{
    struct gpu_daemon_used used = {0, 0};
    char folder[64], line[128];
    struct dirent *entry;

    snprintf(folder, sizeof(folder), "/proc/%d/task", (int)gpu_daemon_pid());
    DIR *tasks = opendir(folder);
    while (tasks && (entry = readdir(tasks))) {
        if (!read_line(line, sizeof(line), folder, entry->d_name, "schedstat"))
            continue;
        double ns = strtod(line, NULL);
        used.daemon_ns += ns;
        if (read_line(line, sizeof(line), folder, entry->d_name, "comm") &&
            strncmp(line, "wharf-gpu-", 10) == 0)
            used.feeder_ns += ns;
    }
    if (tasks)
        closedir(tasks);
    return used;
}

static double own_ns(void)
{
    struct timespec own;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (double)own.tv_sec * 1e9 + (double)own.tv_nsec;
}

/* ---- round trips --------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void measure_lone(uint32_t engine, const struct load *load, double seconds)
{
    struct wharf *wharf = gpu_daemon_open(engine, 4, 16 << 20);
    uint64_t *samples = malloc(MOST_SAMPLES * sizeof(*samples));
    uint64_t end_ns = wharf_now_ns() + (uint64_t)(seconds * 1e9);
    struct wharf_completion completion = {.engine = 0};
    struct wharf_job job = WHARF_JOB_INIT;
    void *in, *out;
    size_t n = 0;

    must(wharf_alloc(wharf, load->packed_nbytes, &in));
    must(wharf_alloc(wharf, load->nbytes, &out));
    memcpy(in, load->packed, load->packed_nbytes);
    job.codec = load->codec;
    job.in = in;
    job.in_nbytes = load->packed_nbytes;
    job.out = out;
    job.out_avail = load->nbytes;
    while (wharf_now_ns() < end_ns && n < MOST_SAMPLES) {
        uint64_t begun_ns = wharf_now_ns();
        must(wharf_submit(wharf, &job, 1));
        must(wharf_wait(wharf, &completion, 1, 1, -1));
        samples[n++] = wharf_now_ns() - begun_ns;
        if (completion.result != WHARF_OK)
            exit(1);
    }
    qsort(samples, n, sizeof(*samples), by_value);
    printf("{\"what\": \"lone\", \"asked\": \"%s\", \"ran\": \"%s\", \"codec\": \"%s\", "
           "\"data\": \"%s\", \"chunk_nbytes\": %zu, \"n\": %zu, \"p50_us\": %.1f, \"p99_us\": "
           "%.1f}\n",
           wharf_engine_name(engine), wharf_engine_name(completion.engine),
           wharf_codec_find(load->codec)->name, load->data, load->nbytes, n,
           1e-3 * (double)samples[n / 2], 1e-3 * (double)samples[n * 99 / 100]);
    free(samples);
    wharf_close(wharf);
}

/* ---- floods -------------------------------------------------------------------------------- */

static void measure_flood(uint32_t engine, const struct load *load, unsigned depth, double seconds)
{
    struct wharf *wharf =
        gpu_daemon_open(engine, depth, depth * (load->packed_nbytes + load->nbytes + 256));
    struct wharf_job *jobs = calloc(depth, sizeof(*jobs));
    struct wharf_completion completions[REAP];
    uint64_t n_done[WHARF_ENGINE_SIMT + 1] = {0}, n_all = 0;
    struct gpu_daemon_used before = gpu_daemon_used_now();
    double own_before_ns = own_ns();

    for (unsigned i = 0; i < depth; i++) {
        void *in, *out;
        must(wharf_alloc(wharf, load->packed_nbytes, &in));
        must(wharf_alloc(wharf, load->nbytes, &out));
        memcpy(in, load->packed, load->packed_nbytes);
        memset(out, 0, load->nbytes);
        jobs[i] = (struct wharf_job)WHARF_JOB_INIT;
        jobs[i].codec = load->codec;
        jobs[i].in = in;
        jobs[i].in_nbytes = load->packed_nbytes;
        jobs[i].out = out;
        jobs[i].out_avail = load->nbytes;
        jobs[i].user_data = i;
    }
    must(wharf_submit(wharf, jobs, depth));
    /* Estimates settle, and memory gets ready, in the first fifth. */
    uint64_t begun_ns = 0, start_ns = wharf_now_ns(), now_ns = start_ns;
    while ((double)(now_ns - start_ns) < 1e9 * seconds) {
        int n = wharf_wait(wharf, completions, REAP, 1, -1);
        must(n);
        now_ns = wharf_now_ns();
        if (!begun_ns && (double)(now_ns - start_ns) > 2e8 * seconds) {
            begun_ns = now_ns;
            memset(n_done, 0, sizeof(n_done));
            n_all = 0;
            before = gpu_daemon_used_now();
            own_before_ns = own_ns();
        }
        for (int i = 0; i < n; i++) {
            n_done[completions[i].engine]++;
            must(wharf_submit(wharf, &jobs[completions[i].user_data], 1));
        }
        n_all += (unsigned)n;
    }
    struct gpu_daemon_used after = gpu_daemon_used_now();
    double n = (double)n_all;
    printf("{\"what\": \"flood\", \"asked\": \"%s\", \"codec\": \"%s\", \"data\": \"%s\", "
           "\"chunk_nbytes\": %zu, "
           "\"depth\": %u, \"gbps\": %.3f, \"by_cpu\": %" PRIu64 ", \"by_gpu\": %" PRIu64
           ", \"chunk_us\": %.3f, \"feeder_us\": %.3f, \"daemon_us\": %.3f, \"client_us\": %.3f}\n",
           wharf_engine_name(engine), wharf_codec_find(load->codec)->name, load->data, load->nbytes,
           depth, n * (double)load->nbytes / (double)(now_ns - begun_ns), n_done[WHARF_ENGINE_CPU],
           n_done[WHARF_ENGINE_GPU] + n_done[WHARF_ENGINE_SIMT],
           1e-3 * (double)(now_ns - begun_ns) / n, 1e-3 * (after.feeder_ns - before.feeder_ns) / n,
           1e-3 * (after.daemon_ns - before.daemon_ns) / n, 1e-3 * (own_ns() - own_before_ns) / n);
    fflush(stdout);
    wharf_close(wharf);
    free(jobs);
}

/* ---- cancels -------------------------------------------------------------------------------- */

/* A cancel has to be seen while the fields of splits are read, of which a stream can have these. */
static size_t most_splits(size_t nbytes)
{
    size_t n = nbytes / WHARF_RANS_SPLIT_MIN_NSYMBOLS;

    return n < WHARF_RANS_MAX_SPLITS ? n : WHARF_RANS_MAX_SPLITS;
}

static void print_cancels(const char *name, size_t nbytes, uint64_t *samples, size_t n)
{
    if (n == 0)
        return;
    qsort(samples, n, sizeof(*samples), by_value);
    printf("{\"what\": \"%s\", \"chunk_nbytes\": %zu, \"most_splits\": %zu, \"n\": %zu, "
           "\"p50_us\": %.1f, \"p99_us\": %.1f, \"worst_us\": %.1f}\n",
           name, nbytes, most_splits(nbytes), n, 1e-3 * (double)samples[n / 2],
           1e-3 * (double)samples[n * 99 / 100], 1e-3 * (double)samples[n - 1]);
}

/* Runs the job; cancels it after delay_ns unless that is 0.  Returns the time from the cancel, or
 * else from the submission, to the completion. */
static uint64_t run_cancelled(struct wharf *wharf, const struct wharf_job *job, uint64_t delay_ns,
                              struct wharf_completion *ret_completion)
{
    uint64_t begun_ns = wharf_now_ns();

    must(wharf_submit(wharf, job, 1));
    while (delay_ns && wharf_now_ns() < begun_ns + delay_ns)
        ;
    if (delay_ns) {
        begun_ns = wharf_now_ns();
        must(wharf_cancel(wharf, job->user_data));
    }
    must(wharf_wait(wharf, ret_completion, 1, 1, -1));
    return wharf_now_ns() - begun_ns;
}

void gpu_daemon_measure_cancels(uint32_t engine, double seconds, size_t nbytes)
{

    uint8_t *plain = test_data_new(test_data_find("text"), 1, nbytes);
    size_t packed_nbytes, n_full = 0, n_cancelled = 0;
    uint8_t *packed =
        test_rans_encode(plain, (uint32_t)nbytes, 12, WHARF_RANS_MAX_SPLITS, &packed_nbytes);
    struct wharf *wharf = gpu_daemon_open(engine, 4, nbytes + packed_nbytes + (1 << 20));
    uint64_t *full = calloc(MOST_SAMPLES, sizeof(*full)), *cut = calloc(MOST_SAMPLES, sizeof(*cut));
    struct wharf_completion completion = {.engine = 0};
    struct wharf_job job = WHARF_JOB_INIT;
    void *in, *out;

    must(wharf_alloc(wharf, packed_nbytes, &in));
    must(wharf_alloc(wharf, nbytes, &out));
    memcpy(in, packed, packed_nbytes);
    job.codec = WHARF_CODEC_RANS;
    job.in = in;
    job.in_nbytes = packed_nbytes;
    job.out = out;
    job.out_avail = nbytes;
    uint64_t end_ns = wharf_now_ns() + (uint64_t)(seconds * 1e9), longest_ns = 0;
    for (unsigned i = 0; wharf_now_ns() < end_ns && i < MOST_SAMPLES; i++) {
        bool whole = i < 10 || i % 16 == 0;
        /* Every moment of a whole run comes round, and a few after its end. */
        uint64_t delay_ns = whole ? 0 : 1 + longest_ns * (i * 37 % 512) / 500;
        job.user_data = i;
        uint64_t ns = run_cancelled(wharf, &job, delay_ns, &completion);
        if (completion.result == WHARF_CANCELLED && !whole)
            cut[n_cancelled++] = ns;
        else if (completion.result != WHARF_OK || memcmp(out, plain, nbytes) != 0)
            exit(1);
        else if (whole && i >= 5)
            full[n_full++] = longest_ns = ns;
    }
    print_cancels("whole", nbytes, full, n_full);
    print_cancels("cancelled", nbytes, cut, n_cancelled);
    wharf_close(wharf);
    free(full);
    free(cut);
    free(packed);
    free(plain);
}

/* ---- all ----------------------------------------------------------------------------------- */

void gpu_daemon_measure(uint32_t engine, double seconds, size_t chunk_nbytes, const char *asked)
{
    /* Runs are quick on a processor, and text is slow. */
    static const struct load loads[] = {
        {.codec = WHARF_CODEC_STORED, .data = "text"},
        {.codec = WHARF_CODEC_DEFLATE, .data = "text"},
        {.codec = WHARF_CODEC_DEFLATE, .data = "runs"},
    };
    const unsigned depths[] = {2, 16, 128, 1024, 4000};
    bool is_simt = engine == WHARF_ENGINE_SIMT;
    size_t nbytes = chunk_nbytes ? chunk_nbytes : is_simt ? 1000 : 65536;

    for (unsigned i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        struct load load = loads[i];
        uint8_t *plain = test_data_new(test_data_find(load.data), 1, nbytes);
        load.nbytes = nbytes;
        load.packed = test_pack(load.codec, NULL, plain, nbytes, &load.packed_nbytes);
        const uint32_t engines[] = {WHARF_ENGINE_CPU, engine, WHARF_ENGINE_AUTO};
        for (unsigned e = 0; e < 3; e++) {
            if (strcmp(asked, "all") != 0 && strcmp(asked, wharf_engine_name(engines[e])) != 0)
                continue;
            measure_lone(engines[e], &load, seconds);
            for (unsigned d = 0; d < sizeof(depths) / sizeof(depths[0]); d++)
                if (!is_simt || depths[d] <= 64)
                    measure_flood(engines[e], &load, depths[d], seconds);
        }
        free((void *)load.packed);
        free(plain);
    }
}
