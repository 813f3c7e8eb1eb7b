/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage.h: the parts of the program `damage`, which makes damaged chunks, gives them to a library,
 * and verifies the library's results.
 */
#ifndef WHARF_TESTS_DAMAGE_H
#define WHARF_TESTS_DAMAGE_H

#include <stddef.h>

#include "proto/wharf_result.h"
#include "tests/bench/damage_files.h"

/* Writes n chunks of a codec, each of up to chunk_nbytes of output and damaged in its own way. */
void damage_make(const char *path, uint32_t codec, uint64_t n, size_t chunk_nbytes, uint64_t seed);

/* The chunks for a library: those from `first` on, in batches of `batch`. */
struct damage_run {
    const struct damage_corpus *corpus;
    struct damage_results *results;
    uint64_t first, batch;
    const char *socket; /* of the daemon */
    uint32_t engine;    /* of its jobs */
};

/* The functions below return 0, or the program's exit status. */
enum { DAMAGE_CONTEXT_KILLED = 3, DAMAGE_CANNOT = 4 };

/* libwharf in this process, libwharf-cuda in this process, and libwharf through a daemon. */
int damage_run_here(const struct damage_run *run);
int damage_run_library(const struct damage_run *run);
int damage_run_daemon(const struct damage_run *run);

/* Notes an outcome of ours. */
void damage_note(struct damage_result *result, const struct wharf_outcome *outcome,
                 const uint8_t *out);

/* Prints a JSON object for each file of results: their counts, verified by the codec's own library
 * (zlib, liblz4, libsnappy, libzstd), or the reference decoder where there is none. */
void damage_verify(const struct damage_corpus *corpus, char **results, int n_results);

#endif
