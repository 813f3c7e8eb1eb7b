/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_pack.h: a file cut into chunks and packed, for the GPU's benchmarks. */
#ifndef WHARF_TESTS_GPU_PACK_H
#define WHARF_TESTS_GPU_PACK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/codec.h"

struct gpu_packed {
    uint8_t *data;
    size_t nbytes;
};

/* A file cut into chunks and packed. */
struct gpu_source {
    const struct wharf_codec_row *codec;
    uint32_t codec_number;
    uint32_t parameter;
    const char *encoder; /* NULL: the codec's first */
    int level; /* of codecs that zlib does not pack; 0: 9 where levels are of effort, or its own */
    const uint8_t *file;
    size_t chunk_nbytes, last_nbytes; /* only a lone chunk is shorter than the others */
    size_t n_chunks;
    struct gpu_packed *packed;
    atomic_size_t next;
};

/* Finds a codec by name: NAME, NAME:TYPE of values, or NAME:ENCODER.  Ends the program if there is
 * none. */
void gpu_source_choose(struct gpu_source *source, const char *name);

/*
 * Cuts at most n_wanted chunks from the file (codec, its number and the file are set) and packs
 * them on all cores: Deflate, zlib and gzip by zlib, level 9, memory level 9; other codecs by the
 * source's encoder at its level.  Ends the program if that fails.
 */
void gpu_pack(struct gpu_source *source, size_t file_nbytes, size_t chunk, size_t n_wanted);
void gpu_source_free(struct gpu_source *source);
/* Of each chunk, unpacked. */
size_t gpu_chunk_nbytes(const struct gpu_source *source);

#endif
