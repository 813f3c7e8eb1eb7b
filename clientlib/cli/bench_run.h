/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_run.h: times encoding and decoding of one input, cut into chunks, by several threads.
 */
#ifndef WHARF_CLI_BENCH_RUN_H
#define WHARF_CLI_BENCH_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "clientlib/cli/crew.h"
#include "clientlib/cli/gpu_card.h"
#include "clientlib/cli/options.h"
#include "encoders/codec.h"

struct wharf_cli_bench {
    const uint8_t *raw;
    size_t raw_nbytes; /* 1 or more */
    uint32_t chunk_nbytes;
    unsigned n_threads;
    uint64_t least_ns; /* how long each measurement is repeated */
    struct wharf_cli_crew *crew;
    const struct wharf_cli_options *daemon; /* how to reach one, to be measured too; or NULL */
    unsigned depth;                         /* chunks that each of its clients has in flight */
    bool is_gpu; /* GPUs are compared with this CPU: encoders are not timed, nor the reference */
    struct wharf_cli_card *card; /* to be measured too, or NULL */
};

/* Uncompressed GB (10^9 bytes) a second, over all repetitions. */
struct wharf_cli_bench_speed {
    double min;
    double median;
    double max;
    unsigned n_repetitions;
};

struct wharf_cli_bench_row {
    uint32_t codec;
    uint32_t parameter; /* one of the codec's */
    const struct wharf_encoder_row *encoder;
    int level;

    /* Results. */
    uint64_t packed_nbytes;
    struct wharf_cli_bench_speed compress;
    struct wharf_cli_bench_speed decode_cpu;
    struct wharf_cli_bench_speed decode_reference;
    struct wharf_cli_bench_speed decode_daemon;
    struct wharf_cli_bench_speed decode_card; /* by libwharf-cuda */
    size_t n_copies;                          /* of the input that the card had; 0: not measured */
    uint32_t daemon_engines; /* bits 1 << enum wharf_engine: what ran those; 0: not measured */
};

/*
 * Fills in a row's results.  Every chunk is decoded once by each engine and compared before its
 * decoding is timed.  The daemon has n_threads clients.  Returns 0; -EBADMSG when an engine gave
 * wrong bytes; -EILSEQ when the input is no whole number of values; or another -errno.
 */
int wharf_cli_bench_measure(const struct wharf_cli_bench *bench, struct wharf_cli_bench_row *row);

#endif
