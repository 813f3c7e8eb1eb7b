/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon.h: inside wharf_gpu_daemon. */
#ifndef WHARF_TESTS_GPU_DAEMON_H
#define WHARF_TESTS_GPU_DAEMON_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/lib/test_storm.h"
#include "tests/lib/test_wharfd.h"

/* How much larger a daemon may be after half of the sessions: those have less than a tenth of it
 * together in places of the worker's queue that were never used before. */
#define GPU_DAEMON_MORE_KIB (4 << 10)

/* The first four as in wharfd.conf: `setting` is a line of section gpu.  All are set before a
 * daemon starts. */
struct gpu_daemon_options {
    const char *engine, *output, *worker, *setting;
    uint32_t spin_us; /* of clients */
};
extern struct gpu_daemon_options gpu_daemon_options;

/* The engine that is tested: the GPU's, or its code on the CPU. */
uint32_t gpu_daemon_engine(void);

/* Starts a daemon with it, and further settings of section gpu; ends it, which has to go well. */
void gpu_daemon_start(const char *more);
void gpu_daemon_finish(void);

/* The address sanitizer keeps what was freed, and frames of functions that have returned, 40 KiB
 * and more for a session: not in daemons that are started from now on. */
void gpu_daemon_keep_nothing(void);

/* A handle of the running daemon; ends the program if there is none. */
struct wharf *gpu_daemon_open(uint32_t engine, uint32_t max_jobs, size_t arena_nbytes);

/* The running daemon. */
pid_t gpu_daemon_pid(void);
struct test_wharfd *gpu_daemon_wharfd(void);

/*
 * gpu_daemon_check.c.  Each starts a daemon of its own, and reports: every vector; storms of n_jobs
 * of one client, on the engine alone and on any; of several processes at once; with each worker, or
 * each daemon with its worker, killed; and what sessions that come and go leave.
 */
void gpu_daemon_check_vectors(const char *folder);
void gpu_daemon_check_storms(const struct test_chunks *chunks, uint64_t n_jobs);
void gpu_daemon_check_clients(const struct test_chunks *chunks, uint64_t n_jobs);
void gpu_daemon_check_kills(const struct test_chunks *chunks, int kills_daemons, uint64_t n_jobs);
void gpu_daemon_check_churn(const struct test_chunks *chunks, unsigned n_sessions);

/*
 * Latency and throughput, each for so many seconds: one JSON object a line.  chunk_nbytes: of all
 * chunks, 0 for what is usual of this engine.  asked: the only engine that is asked for, by its
 * name, "all" for CPU, GPU and any in turn.
 */
void gpu_daemon_measure(uint32_t engine, double seconds, size_t chunk_nbytes, const char *asked);

/* How soon a job with as many splits as there can be ends after its cancel, at every moment of its
 * run, and how long a whole run takes: nbytes of output, two JSON objects. */
void gpu_daemon_measure_cancels(uint32_t engine, double seconds, size_t nbytes);

/* What somebody has used of processors. */
struct gpu_daemon_used {
    double feeder_ns; /* the daemon's threads that feed workers */
    double daemon_ns; /* all of its threads */
};
struct gpu_daemon_used gpu_daemon_used_now(void);

/*
 * gpu_daemon_flood.c: so many clients, each of which has its part of so many chunks in flight all
 * the time, for so many seconds: a JSON object for each number of clients and of chunks.
 */
struct gpu_daemon_flood {
    const char *codec; /* or CODEC:TYPE */
    const char *path;
    size_t chunk_nbytes;
    unsigned batch;               /* chunks of each job; 0: jobs are chunks */
    const char *clients, *depths; /* numbers with commas */
    const char *asked;            /* engines with commas, in turn; "all" is the GPU's */
    unsigned n_passes;            /* how often each is asked */
};
void gpu_daemon_flood(const struct gpu_daemon_flood *what, double seconds);

/*
 * For so many seconds, sixteen clients of all kinds at once: storms on each engine, short sessions,
 * lone jobs, memory that is registered and let go, jobs that nobody waits for, bytes that no client
 * should send; some are killed, and so is the worker.  Reports whether all was right, and what they
 * left in the daemon.
 */
void gpu_daemon_soak(uint32_t engine, const struct test_chunks *chunks, double seconds);

/* gpu_daemon_faults.c: jobs that end the worker of wharfd-poison, which is running, with another
 * socket for another tenant. */
void gpu_daemon_faults(uint32_t engine);

/* gpu_daemon_gpus.c: storms of n_jobs on GPUs 0 and 1, also while one's worker is killed. */
void gpu_daemon_check_gpus(uint32_t engine, const struct test_chunks *chunks, uint64_t n_jobs);

/* gpu_daemon_models.c: registered models of rans, over the death of workers, with good streams and
 * n_damaged bad ones.  Returns how many gave something else than the CPU. */
unsigned gpu_daemon_check_models(uint32_t engine, unsigned n_damaged);

/* Streams that bring their model and the same without, each for so many seconds, on the CPU and on
 * the engine: one JSON object a line. */
void gpu_daemon_measure_models(uint32_t engine, double seconds);

#endif
