/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_parts.c: handles, memory and jobs, for all parts of wharfd_bench. */
#include "tests/bench/daemon_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "encoders/decode_job.h"

void bench_decode_here(const struct bench_source *source, unsigned i, uint8_t *out)
{
    struct wharf_decode_job job = {
        .codec = WHARF_CODEC_ZLIB,
        .in = source->packed[i],
        .in_nbytes = source->packed_nbytes[i],
        .out = out,
        .out_avail = BENCH_CHUNK,
    };
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, 0, &outcome);
    if (outcome.result != WHARF_OK)
        bench_die("cannot decode");
}

struct wharf *bench_open(const char *socket, uint32_t spin_us, unsigned max_jobs)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = socket;
    options.spin_us = spin_us;
    options.max_jobs = max_jobs;
    /* Output of each job, and the packed chunks, which are smaller, with some to spare. */
    options.arena_nbytes = (size_t)BENCH_CHUNK * (max_jobs + 2 * BENCH_MOST_CHUNKS);
    if (wharf_open(&options, &wharf) < 0)
        bench_die(wharf_error_message());
    return wharf;
}

void *bench_alloc(struct wharf *wharf, size_t nbytes)
{
    void *memory;

    if (wharf_alloc(wharf, nbytes, &memory) < 0)
        bench_die("no memory in the arena");
    return memory;
}

struct wharf_job bench_job(const struct bench_source *source, unsigned i, const void *in, void *out)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = WHARF_CODEC_ZLIB;
    job.in = in;
    job.in_nbytes = source->packed_nbytes[i];
    job.out = out;
    job.out_avail = BENCH_CHUNK;
    return job;
}

struct bench_loaded bench_load(struct wharf *wharf, const struct bench_source *source)
{
    struct bench_loaded loaded = {source, calloc(source->n_chunks, sizeof(loaded.in[0]))};

    for (unsigned i = 0; i < source->n_chunks; i++) {
        loaded.in[i] = bench_alloc(wharf, source->packed_nbytes[i]);
        memcpy(loaded.in[i], source->packed[i], source->packed_nbytes[i]);
    }
    return loaded;
}

void bench_sample_interactive(const struct daemon_bench *bench, unsigned n,
                              struct bench_samples *samples)
{
    const struct bench_source *source = &bench->sources[0];
    struct wharf *wharf = bench_open(bench->second_socket, 0, 1);
    struct bench_loaded loaded = bench_load(wharf, source);
    void *out = bench_alloc(wharf, BENCH_CHUNK);
    struct wharf_completion done;

    for (unsigned i = 0; i < n; i++) {
        unsigned chunk = i % source->n_chunks;
        struct wharf_job job = bench_job(source, chunk, loaded.in[chunk], out);
        job.job_class = WHARF_CLASS_INTERACTIVE;
        usleep(500);
        double start = bench_now_us();
        if (wharf_submit(wharf, &job, 1) != 1 || wharf_wait(wharf, &done, 1, 1, -1) != 1 ||
            done.result != WHARF_OK)
            bench_die("a job failed");
        bench_samples_add(samples, bench_now_us() - start);
    }
    free(loaded.in);
    wharf_close(wharf);
}
