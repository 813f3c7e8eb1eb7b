/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf.h: takes BGZF apart into blocks that can be decoded independently.
 *
 * BGZF (the SAM/BAM specification, section 4.1) is gzip in members of at most 64 KiB.  An extra
 * field of each member's header, subfield "BC", gives the member's size less one, so the next
 * member's place is known without decoding.  A whole file ends with a marker, one certain empty
 * member; a file without it may be cut off between two members.
 *
 *     struct wharf_bgzf_splitter splitter = {0};
 *     for (;;) {
 *         wharf_bgzf_next(&splitter, in, in_nbytes, at_end, &piece);
 *         switch (piece.kind) {
 *         case WHARF_BGZF_MORE:   ... have piece.nbytes bytes at `in`, or say at_end ...
 *         case WHARF_BGZF_BLOCK:  ... hand piece.nbytes at `in` to a decoder; move `in` on ...
 *         case WHARF_BGZF_STREAM: ... decode all from here on as gzip; done ...
 *         case WHARF_BGZF_REST:   ... all from here on is left alone; done ...
 *         case WHARF_BGZF_END:    ... done; see splitter.ends_with_marker ...
 *         }
 *     }
 *
 * Nothing is copied or kept: the caller holds at most WHARF_BGZF_MAX_NBYTES at a time.
 *
 * READ ME FIRST.  The "BC" field is a hint that nothing verifies; a file is what gzip says it is.
 * So where a block does not decode as wharf_bgzf_block_job asks, its own result is not the file's:
 * from that block's first byte on, decode the file as one gzip stream
 * (encoders/deflate/inflate_stream.h) and take what comes of it, good or bad.  Then a file gives
 * the same bytes and the same error whether it was split or not.
 */
#ifndef WHARF_ENCODERS_GZIP_BGZF_H
#define WHARF_ENCODERS_GZIP_BGZF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/decode_job.h"

enum {
    /* The field has 16 bits and counts one less. */
    WHARF_BGZF_MAX_NBYTES = 65536,
    /* What a block may decode to, by the specification; a member with more is decoded as gzip. */
    WHARF_BGZF_MAX_OUT_NBYTES = 65536,
    WHARF_BGZF_MARKER_NBYTES = 28,
};

/* The empty member at the end of a whole file. */
extern const uint8_t wharf_bgzf_marker[WHARF_BGZF_MARKER_NBYTES];

enum wharf_bgzf_piece_kind {
    WHARF_BGZF_MORE = 0,   /* piece.nbytes are needed to say, more than there are */
    WHARF_BGZF_BLOCK = 1,  /* a block of piece.nbytes, all of which are there */
    WHARF_BGZF_STREAM = 2, /* a gzip member that is no block, or is cut off (1f alone, too) */
    WHARF_BGZF_REST = 3,   /* bytes that are no gzip member; before the first block or behind one */
    WHARF_BGZF_END = 4,    /* the end of the file, behind a member or at its very beginning */
};

struct wharf_bgzf_piece {
    uint32_t kind;
    uint32_t nbytes;      /* see the kinds; else 0 */
    uint32_t out_nbytes;  /* BLOCK: what its trailer says that it decodes to, 0 to MAX_OUT_NBYTES */
    uint64_t number;      /* how many blocks stand before it */
    uint64_t file_offset; /* where it begins, counted from where the splitter began */
    uint64_t out_offset;  /* where its output begins, if all blocks keep their promises */
};

/* All zero to begin with.  The fields may be read. */
struct wharf_bgzf_splitter {
    uint64_t n_blocks;
    uint64_t file_offset;  /* of the next piece */
    uint64_t out_nbytes;   /* of all blocks so far */
    bool ends_with_marker; /* the last block was the marker */
};

/*
 * wharf_bgzf_next: what begins at `in`.  After BLOCK the splitter counts the block as taken, and
 * the next call's `in` is behind it; after any other kind the next call is about the same place.
 *   in, in_nbytes   the file's bytes from there on, as many as there are so far
 *   at_end          no more will come
 */
void wharf_bgzf_next(struct wharf_bgzf_splitter *splitter, const uint8_t *in, size_t in_nbytes,
                     bool at_end, struct wharf_bgzf_piece *ret_piece);

/* The job that decodes a block: all of the input, exactly out_nbytes of output. */
struct wharf_decode_job wharf_bgzf_block_job(const struct wharf_bgzf_piece *block,
                                             const uint8_t *in, uint8_t *out);

/*
 * Whether a BGZF block's header begins at `in`: 1 yes, 0 no, -1 cannot be said from in_nbytes.
 * With 1, *ret_nbytes is the block's size as it says.
 */
int wharf_bgzf_look(const uint8_t *in, size_t in_nbytes, uint32_t *ret_nbytes);

#endif
