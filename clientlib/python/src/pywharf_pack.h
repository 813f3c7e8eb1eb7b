/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pywharf_pack.h: a compressed file that is being made.
 *
 * What comes in is gathered.  When there is a piece for each thread and more, all pieces are packed
 * at once, and what they give is appended to `out` in their order.  Nothing here needs the GIL.
 */
#ifndef WHARF_PYWHARF_PACK_H
#define WHARF_PYWHARF_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/codec.h"
#include "encoders/container_write.h"
#include "encoders/gzip/gzip_parts.h"
#include "encoders/zstd/zstd_seek.h"

struct pywharf_pack_bytes {
    uint8_t *at;
    size_t nbytes, avail;
};

/* Appends.  0 or -ENOMEM. */
int pywharf_pack_put(struct pywharf_pack_bytes *bytes, const void *from, size_t nbytes);

struct pywharf_pack_piece {
    const uint8_t *raw;
    size_t raw_nbytes;
    size_t window_nbytes; /* of the file, right before raw */
    bool is_last;
    uint8_t *out;
    size_t out_nbytes;
    uint32_t crc;
    struct wharf_container_packed packed;
    int error;
};

/* What a thread packs with: one of the two. */
struct pywharf_pack_tool {
    struct wharf_encoder *encoder;
    struct wharf_gzip_parts *parts;
};

struct pywharf_pack {
    const struct pywharf_pack_format *format;
    const struct wharf_codec_ops *ops; /* whose encoder it is */
    uint32_t codec;
    int level;
    size_t piece_nbytes;
    size_t out_avail; /* of a piece */
    unsigned n_threads;
    struct pywharf_pack_tool tools[PYWHARF_MAX_THREADS]; /* those that were needed */

    uint8_t *memory; /* a window, then n_pieces * piece_nbytes */
    uint8_t *outs;
    struct pywharf_pack_piece *pieces;
    size_t n_pieces;
    size_t n_there;  /* bytes behind the window */
    size_t n_window; /* bytes in the window, at its end */
    uint64_t n_packed;

    struct pywharf_pack_bytes out;
    uint32_t crc;
    struct wharf_container_writer writer;
    struct wharf_zstd_seek_entry *entries;
    size_t n_entries, entries_avail;
    bool is_begun, is_ended;
};

/* All but `pack` return 0 or -errno. */
struct pywharf_pack_format {
    const char *name;
    uint32_t codec; /* whose encoder it takes, unless the caller chooses one */
    size_t chunk_min_nbytes, chunk_max_nbytes, chunk_nbytes;
    bool has_window;
    bool may_be_empty; /* a piece of nothing at the end is one of the file */
    int (*make_tool)(const struct pywharf_pack *pack, struct pywharf_pack_tool *tool);
    size_t (*bound)(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool);
    int (*begin)(struct pywharf_pack *pack);
    int (*pack)(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool,
                struct pywharf_pack_piece *piece);
    int (*put)(struct pywharf_pack *pack, const struct pywharf_pack_piece *piece);
    int (*end)(struct pywharf_pack *pack);
};

/* NULL: there is none of that name. */
const struct pywharf_pack_format *pywharf_pack_format(const char *name);

#endif
