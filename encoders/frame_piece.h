/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_piece.h: takes files of framed blocks (LZ4 frames, framed Snappy) apart.
 *
 * A splitter is given the file's bytes in order and says what stands next: a frame's header, a
 * block, something to pass over, a frame's end.  It decodes nothing and copies nothing.
 * lz4/lz4_frame.h and snappy/snappy_frame.h have a splitter each:
 *
 *     struct wharf_frame_splitter splitter = {0};
 *     for (;;) {
 *         wharf_lz4_frame_next(&splitter, in, in_nbytes, at_end, &piece);
 *         switch (piece.kind) {
 *         case WHARF_FRAME_MORE: ... have piece.nbytes bytes at `in`, or say at_end ...
 *         case WHARF_FRAME_END:  ... done ...
 *         case WHARF_FRAME_BAD:  ... done: piece.reason ...
 *         default:               ... use it; move `in` on by piece.nbytes ...
 *         }
 *     }
 */
#ifndef WHARF_ENCODERS_FRAME_PIECE_H
#define WHARF_ENCODERS_FRAME_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wharf_frame_piece_kind {
    WHARF_FRAME_MORE = 0,   /* piece.nbytes are needed to say, more than there are */
    WHARF_FRAME_BEGIN = 1,  /* a frame's header: piece.frame */
    WHARF_FRAME_BLOCK = 2,  /* a block, all of which is there */
    WHARF_FRAME_SKIP = 3,   /* to be passed over: piece.nbytes, perhaps more than there are */
    WHARF_FRAME_FINISH = 4, /* the end of a frame */
    WHARF_FRAME_END = 5,    /* the end of the file, between frames */
    WHARF_FRAME_BAD = 6,    /* something that cannot be: the file ends here */
};

/* What a check is of, and how it is stored. */
enum wharf_frame_check {
    WHARF_FRAME_CHECK_NONE = 0,
    WHARF_FRAME_CHECK_XXH32_IN = 1,   /* of a block's stored bytes */
    WHARF_FRAME_CHECK_CRC32C_OUT = 2, /* masked, of a block's output */
    WHARF_FRAME_CHECK_XXH32_OUT = 3,  /* of a frame's output */
};

#define WHARF_FRAME_SIZE_UNKNOWN UINT64_MAX

/* What a frame's header says. */
struct wharf_frame_header {
    uint64_t content_nbytes;   /* of its output, or WHARF_FRAME_SIZE_UNKNOWN */
    uint32_t block_max_nbytes; /* of output */
    bool is_linked;            /* matches reach back into blocks before */
    bool has_block_checks;     /* each block has a check of its own */
    bool has_content_check;    /* the frame has one of all its output */
};

struct wharf_frame_piece {
    uint32_t kind;
    uint64_t nbytes;

    /* BEGIN */
    struct wharf_frame_header frame;

    /* BLOCK.  Where its data stands in the piece, and what that is. */
    uint32_t data_offset;
    uint32_t data_nbytes;
    uint32_t codec;          /* WHARF_CODEC_STORED or the format's own */
    uint32_t out_max_nbytes; /* it may decode to so much */
    bool is_exact;           /* it decodes to just so much, or is bad */

    /* BLOCK, FINISH */
    uint32_t check; /* enum wharf_frame_check */
    uint32_t check_offset;
    uint32_t check_value;

    /* BAD: enum wharf_result and enum wharf_reason; it stands at the piece's first bit */
    uint32_t result;
    uint32_t reason;
};

/* All zero to begin with. */
struct wharf_frame_splitter {
    /* Set by whoever wants to know only what blocks there are: a BLOCK's piece.nbytes need not be
     * there then, and its check_value is not filled in. */
    bool wants_headers;
    bool is_inside;                  /* of a frame */
    bool is_legacy;                  /* the frame is an LZ4 one of the old kind */
    struct wharf_frame_header frame; /* the last one that began */
};

/*
 * Says what begins at `in`.  After BEGIN, BLOCK, SKIP and FINISH the splitter counts the piece as
 * taken, and the next call's `in` is behind it; after any other kind the next call is about the
 * same place. in, in_nbytes   the file's bytes from there on, as many as there are so far at_end no
 * more will come A SKIP, or with wants_headers a BLOCK, that is longer than what is left of the
 * file is for the caller to find out: the input is truncated at its first bit.
 */
typedef void wharf_frame_next_fn(struct wharf_frame_splitter *splitter, const uint8_t *in,
                                 size_t in_nbytes, bool at_end,
                                 struct wharf_frame_piece *ret_piece);

/* ---- for splitters ------------------------------------------------------------------------- */

static inline void wharf_frame_bad(struct wharf_frame_piece *ret_piece, uint32_t result,
                                   uint32_t reason)
{
    *ret_piece =
        (struct wharf_frame_piece){.kind = WHARF_FRAME_BAD, .result = result, .reason = reason};
}

/* Whether nbytes are there.  If not, *ret_piece asks for them, or says that they are missing. */
bool wharf_frame_has(uint64_t nbytes, size_t in_nbytes, bool at_end,
                     struct wharf_frame_piece *ret_piece);

#endif
