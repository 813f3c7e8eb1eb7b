/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_frame.h: reads the headers of frames, blocks and literals sections, and verifies them as
 * zstd_format.h says.  Every byte is read once.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_FRAME_H
#define WHARF_ENCODERS_ZSTD_ZSTD_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/zstd/zstd_format.h"
#include "proto/wharf_result.h"

struct wharf_zstd_frame {
    bool is_skippable;
    bool has_checksum;
    bool has_content_size;
    uint64_t header_nbytes;  /* of a skippable frame: all of it, whether it is there or not */
    uint64_t content_nbytes; /* UINT64_MAX if it is not known */
    uint64_t window_nbytes;  /* the content's size for a single segment */
    uint32_t block_max;      /* no block has more output, nor more bytes */
    uint32_t dictionary;     /* its number; 0: none, or it is not said which */
};

/* The frame header at `in`, but neither what it asks for nor whether all of a skippable frame is
 * there (steps 1, 3 and 4): NONE or the reason. */
enum wharf_reason wharf_zstd_read_frame(const uint8_t *in, size_t in_nbytes,
                                        struct wharf_zstd_frame *ret_frame);

enum wharf_zstd_block_type {
    WHARF_ZSTD_RAW = 0,
    WHARF_ZSTD_RLE = 1,
    WHARF_ZSTD_COMPRESSED = 2,
};

struct wharf_zstd_block {
    enum wharf_zstd_block_type type;
    bool is_last;
    uint32_t nbytes;     /* behind the header */
    uint32_t out_nbytes; /* unless it is compressed */
};

/* The block header at `in`, which has in_nbytes with what follows; of these only the header is
 * read. */
enum wharf_reason wharf_zstd_read_block(const uint8_t *in, size_t in_nbytes, uint32_t block_max,
                                        struct wharf_zstd_block *ret_block);

enum wharf_zstd_literals_type {
    WHARF_ZSTD_LITERALS_RAW = 0,
    WHARF_ZSTD_LITERALS_RLE = 1,
    WHARF_ZSTD_LITERALS_TREE = 2,   /* with a tree */
    WHARF_ZSTD_LITERALS_REPEAT = 3, /* with the tree of a block before */
};

struct wharf_zstd_literals {
    enum wharf_zstd_literals_type type;
    bool has_four_streams;
    uint32_t header_nbytes;
    uint32_t n_literals;
    uint32_t nbytes; /* behind the header */
};

/* The header of the literals section at `in`, in_nbytes being those of the block. */
enum wharf_reason wharf_zstd_read_literals(const uint8_t *in, size_t in_nbytes,
                                           struct wharf_zstd_literals *ret_literals);

#endif
