/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf.h: splits BGZF into blocks that can be decoded independently.
 *
 * BGZF (the SAM/BAM specification, section 4.1) is gzip in members of at most 64 KiB.  An extra
 * field of each member's header, subfield "BC", holds the member's size minus one, so the next
 * member can be found without decoding.  A complete file ends with a marker, an empty member with
 * fixed bytes; a file without it may have been cut between two members.
 *
 *     struct wharf_bgzf_splitter splitter = {0};
 *     for (;;) {
 *         wharf_bgzf_next(&splitter, in, in_nbytes, at_end, &piece);
 *         switch (piece.kind) {
 *         case WHARF_BGZF_MORE:   ... get piece.nbytes bytes at `in`, or set at_end ...
 *         case WHARF_BGZF_BLOCK:  ... decode piece.nbytes at `in`; advance `in` ...
 *         case WHARF_BGZF_STREAM: ... decode all from here on as gzip; done ...
 *         case WHARF_BGZF_REST:   ... ignore all from here on; done ...
 *         case WHARF_BGZF_END:    ... done; see splitter.ends_with_marker ...
 *         }
 *     }
 *
 * Nothing is copied or kept: the caller holds at most WHARF_BGZF_MAX_NBYTES at a time.
 *
 * READ ME FIRST.  No checksum protects the "BC" field, so it is a hint, and the gzip format alone
 * says what a file holds.  If a block does not decode as wharf_bgzf_block_job asks, discard its
 * result and decode the file from that block's first byte on as one gzip stream
 * (encoders/deflate/inflate_stream.h).  That result is the file's, good or bad.  So a file gives
 * the same bytes and the same error whether it was split or not.
 */
#ifndef WHARF_ENCODERS_GZIP_BGZF_H
#define WHARF_ENCODERS_GZIP_BGZF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/decode_job.h"

enum {
    /* The field has 16 bits and holds the size minus one. */
    WHARF_BGZF_MAX_NBYTES = 65536,
    /* The most output of a block by the specification.  A member with more is decoded as gzip. */
    WHARF_BGZF_MAX_OUT_NBYTES = 65536,
    WHARF_BGZF_MARKER_NBYTES = 28,
};

/* The empty member at the end of a complete file. */
extern const uint8_t wharf_bgzf_marker[WHARF_BGZF_MARKER_NBYTES];

enum wharf_bgzf_piece_kind {
    WHARF_BGZF_MORE = 0,   /* more bytes are needed to decide: piece.nbytes in all */
    WHARF_BGZF_BLOCK = 1,  /* a block of piece.nbytes, all of which are at `in` */
    WHARF_BGZF_STREAM = 2, /* a gzip member that is no block, or is cut off, even to a lone 1f */
    WHARF_BGZF_REST = 3,   /* bytes that are no gzip member, before the first block or after any */
    WHARF_BGZF_END = 4,    /* the end of the file, after a member or at its beginning */
};

struct wharf_bgzf_piece {
    uint32_t kind;
    uint32_t nbytes;      /* see the kinds; else 0 */
    uint32_t out_nbytes;  /* BLOCK: the size of its output by its trailer, 0 to MAX_OUT_NBYTES */
    uint64_t number;      /* the number of blocks before it */
    uint64_t file_offset; /* where it begins, from where the splitter began */
    uint64_t out_offset;  /* where its output begins, if all sizes in trailers are right */
};

/* All zero at first.  Callers may read the fields. */
struct wharf_bgzf_splitter {
    uint64_t n_blocks;
    uint64_t file_offset;  /* of the next piece */
    uint64_t out_nbytes;   /* of all blocks so far */
    bool ends_with_marker; /* the last block was the marker */
};

/*
 * wharf_bgzf_next: tells what begins at `in`.  After BLOCK, the splitter has advanced past the
 * block, and the next call's `in` must follow it.  After any other kind, the next call is for the
 * same place.
 *   in, in_nbytes   the file's bytes from there on, as many as the caller has
 *   at_end          no more will come
 */
void wharf_bgzf_next(struct wharf_bgzf_splitter *splitter, const uint8_t *in, size_t in_nbytes,
                     bool at_end, struct wharf_bgzf_piece *ret_piece);

/* The job that decodes a block: all of the input to exactly out_nbytes of output. */
struct wharf_decode_job wharf_bgzf_block_job(const struct wharf_bgzf_piece *block,
                                             const uint8_t *in, uint8_t *out);

/*
 * Whether the header of a BGZF block begins at `in`: 1 yes, 0 no, -1 more bytes are needed.  After
 * 1, *ret_nbytes is the block's size by its header.
 */
int wharf_bgzf_look(const uint8_t *in, size_t in_nbytes, uint32_t *ret_nbytes);

#endif
