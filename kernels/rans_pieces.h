/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_pieces.h: one rans stream decoded by many warps; C and C++.
 *
 * The host takes the stream apart, since the fields of its splits are found one behind the other,
 * and chooses how many of the splits are used: as many as the moment deserves.  A *piece* is what
 * one decoder decodes, of which a warp has several: from behind one split's window to the end of
 * another's.  Whatever is chosen, the outcome is the same (encoders/rans/rans_format.h: splits are
 * not believed).
 *
 * A first kernel decodes all pieces, and refuses those that it does not find good; a second one,
 * for which there is seldom anything to do, decodes these again and verifies them.
 */
#ifndef WHARF_KERNELS_RANS_PIECES_H
#define WHARF_KERNELS_RANS_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A split's fields, so that a warp need not look for them: a lane's start is base_group plus the
 * start_nbits bits of the body from bit starts_at + 4 + start_nbits * lane on; first_word is the
 * split's cut; first_group and last_group are the least and the most of the starts.  Number 0 is
 * the stream's beginning: no lane has a start, first_group is 0, last_group the group before, and
 * first_word the stream's last word.
 */
struct wharf_rans_place {
    uint32_t starts_at;
    uint32_t start_nbits;
    uint32_t base_group;
    int32_t first_word;
    uint32_t first_group, last_group;
} __attribute__((aligned(16)));

/* What a piece came to: no reason, or the first in the piece, and the bit of the stream; or, by the
 * first kernel, WHARF_RANS_REFUSED. */
#define WHARF_RANS_REFUSED 0xfffffffeu
struct wharf_rans_piece_outcome {
    uint32_t reason;
    uint32_t bit_offset;
};

/* A stream taken apart: as struct stream of kernels/rans/rans_stream.cuh. */
struct wharf_rans_layout {
    uint32_t n_bits, symbol_nbytes, n_distributions, alphabet;
    uint32_t model_nbytes, indexes_at, body_at;
    uint32_t n_splits, n_symbols, n_groups;
    uint32_t cut_nbits, group_nbits;
    uint32_t cuts_at, groups_at, starts_at;
    uint32_t split_states_at, words_at;
    int32_t n_words;
};

/* What a kernel is given.  Pointers are the device's. */
struct wharf_rans_stream_job {
    struct wharf_rans_layout layout;
    const uint8_t *in;
    const uint8_t *model; /* the image of a registered one, or NULL */
    uint8_t *out;         /* room for all symbols */
    uint32_t in_nbytes;
    uint32_t n_pieces;
    const struct wharf_rans_place *places;     /* one a split */
    struct wharf_rans_piece_outcome *outcomes; /* one a piece */
};

/* What is to be decoded, in the host's memory. */
struct wharf_rans_stream_request {
    const uint8_t *h_in;
    size_t in_nbytes;
    uint32_t parameter;  /* the codec's: symbols of 1 byte or 2 */
    const void *h_model; /* the image of a registered model, which counts in its place; or NULL */
    uint64_t out_avail;
};

/*
 * Takes a stream apart and fills in `layout`, n_pieces, at most max_pieces (1 or more), and
 * `places`, which has room for max_places; rules 1 and 3 to 5 of rans_format.h.  The job's pointers
 * are the caller's to fill in.
 * Returns 0; -EILSEQ with the outcome; -ENOTSUP for streams that bring a model of 16-bit symbols or
 * of several distributions, whose tables are too large for a block to make (register the model
 * instead), and for those of more than 2^28 bytes of input or output; -ENOBUFS with layout.n_splits
 * where there are more splits than places.
 */
int wharf_rans_stream_job_init(const struct wharf_rans_stream_request *request, uint32_t max_pieces,
                               struct wharf_rans_place *places, uint32_t max_places,
                               struct wharf_rans_stream_job *ret_job,
                               struct wharf_outcome *ret_outcome);

/*
 * The stream's outcome from those of its pieces, in the host's memory: the first failure counts.
 * False when the first kernel refused a piece, so that it hangs on the second one.
 */
bool wharf_rans_stream_job_settle(const struct wharf_rans_stream_job *job,
                                  const struct wharf_rans_piece_outcome *outcomes,
                                  struct wharf_outcome *ret_outcome);

struct CUstream_st;

/* Starts the first kernel; as wharf_cuda_decode_batch. */
int wharf_cuda_decode_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *stream);

/* Starts the second one, behind the first. */
int wharf_cuda_verify_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *stream);

/* Starts a third one, behind that: the stream's outcome, as wharf_rans_stream_job_settle has it. */
int wharf_cuda_settle_rans(const struct wharf_rans_stream_job *job, struct wharf_outcome *d_outcome,
                           struct CUstream_st *stream);

/* Loads all of these kernels into the current GPU. */
int wharf_cuda_load_rans(void);

/* In how many pieces the current GPU decodes a stream with so much output soonest, as measured on
 * an H100: of bytes, or of symbols whose model is an image; 0 or -errno. */
int wharf_cuda_rans_max_pieces(uint64_t out_nbytes, bool is_of_bytes, uint32_t *ret_n);

#ifdef __cplusplus
}
#endif

#endif
