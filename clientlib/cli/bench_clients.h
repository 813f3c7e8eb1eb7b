/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_clients.h: clients of a daemon, for measurements.
 *
 * Each has a connection, rings and an arena of its own, as a process would, with its share of the
 * chunks in the arena, and keeps many of them in flight.
 */
#ifndef WHARF_CLI_BENCH_CLIENTS_H
#define WHARF_CLI_BENCH_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clientlib/cli/options.h"

/* A chunk: compressed, and as it was before. */
struct wharf_cli_bench_chunk {
    uint32_t codec;
    uint32_t parameter;
    uint32_t flags;    /* enum wharf_job_flag, */
    uint32_t checksum; /* and what one of them asks for */
    const uint8_t *packed;
    size_t packed_nbytes;
    const uint8_t *raw; /* NULL: not known, and not to be compared */
    size_t raw_nbytes;
};

/* Jobs that a client can have in flight. */
#define WHARF_CLI_BENCH_MOST_IN_FLIGHT 255

struct wharf_cli_bench_clients;

/*
 * Connects n_clients, which together have all of n_chunks, of at most chunk_nbytes, and each up to
 * `depth` in flight.  The chunks and options must stay.  0; or -errno, after saying what is wrong
 * where the daemon said no.
 */
int wharf_cli_bench_clients_new(const struct wharf_cli_options *options,
                                const struct wharf_cli_bench_chunk *chunks, size_t n_chunks,
                                size_t chunk_nbytes, unsigned n_clients, unsigned depth,
                                struct wharf_cli_bench_clients **ret_clients);

/* Takes NULL. */
void wharf_cli_bench_clients_free(struct wharf_cli_bench_clients *clients);

/* Whether what is decoded is compared. */
void wharf_cli_bench_clients_compare(struct wharf_cli_bench_clients *clients, bool compare);

/* How often each client goes through its chunks, without a stop between; 1 at first. */
void wharf_cli_bench_clients_go_round(struct wharf_cli_bench_clients *clients, unsigned n_rounds);

/* crew.h's work: `clients`' client number `client` has all of its chunks decoded. */
int wharf_cli_bench_clients_decode(void *clients, size_t client, unsigned hand);

/* What ran them: bits 1 << enum wharf_engine. */
uint32_t wharf_cli_bench_clients_engines(const struct wharf_cli_bench_clients *clients);

/* How many chunks an engine (enum wharf_engine) has run. */
uint64_t wharf_cli_bench_clients_count(const struct wharf_cli_bench_clients *clients,
                                       uint32_t engine);

#endif
