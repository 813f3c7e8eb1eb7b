/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_parts.h: what the parts of wharfd_bench share.
 *
 * Clients are libwharf's, as users have them.  Whatever goes wrong ends the program: a figure of a
 * daemon that gives wrong answers says nothing.
 */
#ifndef WHARF_TESTS_BENCH_DAEMON_PARTS_H
#define WHARF_TESTS_BENCH_DAEMON_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "clientlib/wharf.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_wharfd.h"

/* BENCH_MOST_CHUNKS: of each source. */
enum { BENCH_CHUNK = 65536, BENCH_MOST_CHUNKS = 16, BENCH_MOST_CLIENTS = 256 };

/* Chunks of one file, by zlib at level 6. */
struct bench_source {
    const char *name;
    unsigned n_chunks;
    const uint8_t **plain;
    uint8_t **packed;
    uint32_t *packed_nbytes;
    uint32_t most_packed_nbytes;
};

struct daemon_bench {
    struct test_wharfd wharfd;
    char second_socket[128]; /* another tenant's than the daemon's first one */
    unsigned n_clients;      /* as many as processors */
    unsigned n_samples;
    double n_seconds; /* that each side of a comparison of floods takes together */
    const struct bench_source *sources;
    unsigned n_sources;
};

/* A handle that waits in this way, with room for so many jobs of one chunk each. */
struct wharf *bench_open(const char *socket, uint32_t spin_us, unsigned max_jobs);

/* Memory of the handle's arena. */
void *bench_alloc(struct wharf *wharf, size_t nbytes);

/* A job that decodes chunk i of the source, which lies at `in`. */
struct wharf_job bench_job(const struct bench_source *source, unsigned i, const void *in,
                           void *out);

/* All packed chunks of a source in the handle's arena. */
struct bench_loaded {
    const struct bench_source *source;
    uint8_t **in;
};
struct bench_loaded bench_load(struct wharf *wharf, const struct bench_source *source);

/* Decodes chunk i here, with the decoder that the daemon has. */
void bench_decode_here(const struct bench_source *source, unsigned i, uint8_t *out);

/* The second tenant decodes n interactive chunks, one at a time, as somebody who waits for each one
 * would ask for it. */
void bench_sample_interactive(const struct daemon_bench *bench, unsigned n,
                              struct bench_samples *samples);

void bench_noop(struct daemon_bench *bench);
void bench_lone_chunk(struct daemon_bench *bench);
void bench_flood(struct daemon_bench *bench);
void bench_shares(struct daemon_bench *bench);
void bench_fairness(struct daemon_bench *bench);
void bench_compress(struct daemon_bench *bench);
void bench_shared(struct daemon_bench *bench);
void bench_recovery(struct daemon_bench *bench);
void bench_stats(struct daemon_bench *bench);

#endif
