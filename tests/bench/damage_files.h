/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage_files.h: the file of damaged chunks, and the file of a library's results.
 *
 * tests/gpu/nvcomp_damage.cu reads and writes them too, without the rest of this tree.  Numbers
 * have the machine's byte order.
 */
#ifndef WHARF_TESTS_DAMAGE_FILES_H
#define WHARF_TESTS_DAMAGE_FILES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A corpus: a head, n_chunks of these, and the bytes of all streams. */
struct damage_chunk {
    uint64_t offset; /* of its stream in the file */
    uint64_t in_nbytes;
    uint64_t out_avail;
};

struct damage_corpus {
    char magic[8]; /* "whdamage" */
    uint32_t codec;
    uint32_t parameter;
    uint64_t n_chunks;
    struct damage_chunk chunks[];
};

enum damage_state {
    DAMAGE_UNKNOWN = 0,
    DAMAGE_ACCEPTED = 1,
    DAMAGE_REFUSED = 2,
    DAMAGE_LOST = 3,  /* its batch ended the context, or hung: written by damage-run */
    DAMAGE_FAILED = 4 /* with an error that is not about data */
};

struct damage_result {
    uint32_t state;
    uint32_t has_place; /* bit_offset is the error's position */
    uint64_t bit_offset;
    uint64_t out_nbytes;
    uint64_t sum; /* of an accepted chunk's output */
};

/* Results: a head, and one for each chunk. */
struct damage_results {
    uint64_t at; /* where the batch under way begins */
    uint64_t reserved[3];
    struct damage_result results[];
};

/* Maps a file, which ends the program if that fails. */
void *damage_map(const char *path, int may_write);

static inline const uint8_t *damage_stream(const struct damage_corpus *corpus, uint64_t i)
{
    return (const uint8_t *)corpus + corpus->chunks[i].offset;
}

/* FNV-1a of the output: enough to tell whether two are alike. */
static inline uint64_t damage_sum(const uint8_t *p, uint64_t nbytes)
{
    uint64_t sum = 0xcbf29ce484222325u;

    for (uint64_t i = 0; i < nbytes; i++)
        sum = (sum ^ p[i]) * 0x100000001b3u;
    return sum;
}

#ifdef __cplusplus
}
#endif

#endif
