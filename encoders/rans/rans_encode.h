/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_encode.h: makes rans streams, and drops splits from them.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_ENCODE_H
#define WHARF_ENCODERS_RANS_RANS_ENCODE_H

#include "encoders/codec.h"
#include "encoders/rans/rans_coder.h"
#include "encoders/rans/rans_model.h"

/* What is encoded, and how. */
struct wharf_rans_job {
    struct wharf_rans_shape shape;
    const uint32_t *frequencies; /* n_ranges; each symbol that occurs has one */
    const uint8_t *symbols; /* n_symbols of symbol_nbytes each, little-endian, below alphabet */
    const uint8_t *indexes; /* n_symbols, below n_distributions; NULL if there is one */
    uint32_t n_symbols;     /* at most WHARF_RANS_MAX_SYMBOLS */
    bool leaves_model_out;  /* who decodes it has it registered */
    uint32_t max_splits;    /* 1 to WHARF_RANS_MAX_SPLITS; fewer are made where symbols are too
                               few for so many */
};

/* Symbols that a split has at least: fewer cost more than they help. */
#define WHARF_RANS_SPLIT_MIN_NSYMBOLS 256

/*
 * The most bytes that wharf_rans_encode can need for a job; SIZE_MAX if that is no size.
 */
size_t wharf_rans_encode_bound(const struct wharf_rans_job *job);

/*
 * Writes a stream with its model.  0 and *ret_out_nbytes; -EINVAL (a shape or size that is not
 * allowed, a symbol without a frequency), -ENOSPC, -ENOMEM, with `out` undefined.
 * Takes memory for the time of the call: 2 bytes a symbol and 140 a split, which has at least
 * WHARF_RANS_SPLIT_MIN_NSYMBOLS symbols, so at most 2.6 bytes a symbol, and 8 bytes for each
 * range.
 */
int wharf_rans_encode(const struct wharf_rans_job *job, uint8_t *out, size_t out_avail,
                      size_t *ret_out_nbytes);

/*
 * The same for one distribution, whose packed form and codes are there already: job->frequencies
 * and leaves_model_out mean nothing.  Codes are for every number that a symbol can have, so that
 * symbols which change meanwhile make another stream, bad perhaps, but no other harm.
 */
struct wharf_rans_ready_model {
    const uint8_t *packed;
    size_t packed_nbytes;
    const struct wharf_rans_code *codes;
};
int wharf_rans_encode_ready(const struct wharf_rans_job *job,
                            const struct wharf_rans_ready_model *model, uint8_t *out,
                            size_t out_avail, size_t *ret_out_nbytes);

/*
 * The codec's encoder: bytes or, by the parameter, 16-bit symbols, with a model made from the
 * chunk.  Its level is the largest n, raised when it is too small for the symbols that occur.
 */
extern const struct wharf_encoder_ops wharf_rans_encoder;
extern const struct wharf_encoder_row wharf_rans_encoder_rows[];

#endif
