/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_recoil.h: the files of the paper's own program.
 *
 * A stream of it is a body, as rans_format.h has it, and nothing else.  The model is a file of
 * 16-bit words, little-endian: for each distribution the sums of the frequencies before each
 * symbol, and at last the sum of all, 2^n - 1: one slot is left to nobody.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_RECOIL_H
#define WHARF_ENCODERS_RANS_RANS_RECOIL_H

#include "encoders/codec.h"
#include "encoders/rans/rans_body.h"
#include "encoders/rans/rans_model.h"

/*
 * The shape of a model file: n_bits and symbol_nbytes are given, alphabet and n_distributions are
 * found.  0, or -EINVAL if it is no model of that shape: sizes do not agree, sums do not begin with
 * 0, fall, or do not end with 2^n - 1.
 */
int wharf_rans_cdf_shape(const uint8_t *cdf, size_t cdf_nbytes, struct wharf_rans_shape *shape);

/* The model file of one distribution, whose frequencies add up to 2^n - 1: alphabet + 1 words. */
void wharf_rans_cdf_write(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                          uint8_t *out);

/*
 * Frequencies as that program wants them, of less than 2^33 symbols that were counted: at least 1
 * for each of the 256, whether counted or not, and 2^n - 1 in all.  0, -EINVAL (n is less than 9:
 * there are not so many slots), -ENOMEM.
 */
int wharf_rans_recoil_normalise(const uint64_t *counts, uint32_t n_bits, uint32_t *ret_frequencies);

/*
 * Takes a body apart as wharf_rans_body_parse does, but leaves out splits that break rule 4: that
 * program writes splits whose windows overlap when they are many and the symbols few, and decodes
 * these windows twice.  The body is then another one, in *ret_changed, which the caller frees; NULL
 * when it is the one that was given.  0; -EILSEQ and the reason; -ENOMEM.
 */
int wharf_rans_recoil_parse(const uint8_t *in, size_t in_nbytes, struct wharf_rans_body *ret_body,
                            uint8_t **ret_changed, enum wharf_reason *ret_reason);

/* A stream of that program, its model, and for several distributions an index for each symbol. */
struct wharf_rans_recoil {
    const uint8_t *stream;
    size_t stream_nbytes;
    const uint8_t *cdf;
    struct wharf_rans_shape shape; /* by wharf_rans_cdf_shape */
    const uint8_t *indexes;        /* NULL if there is one distribution */
    size_t n_indexes;
    bool leaves_model_out; /* for importing: it will be registered */
};

/* How many bytes it decodes to; 0 and *ret_nbytes, or -EILSEQ and the reason. */
int wharf_rans_recoil_size(const struct wharf_rans_recoil *recoil, uint64_t *ret_nbytes,
                           enum wharf_reason *ret_reason);

/*
 * Decodes it, into as many bytes as wharf_rans_recoil_size says.  Outcomes are those of a rans
 * stream with this body; bits are counted from the stream's first.  0, or -ENOMEM.
 */
int wharf_rans_recoil_decode(const struct wharf_rans_recoil *recoil, bool plain, uint8_t *out,
                             struct wharf_outcome *ret_outcome);

/*
 * Makes a rans stream of it: header, model and indexes in front of the body.  `out` is NULL to ask
 * for the size.  0 and *ret_out_nbytes; -EILSEQ and the reason; -E2BIG, when a rans stream cannot
 * bring so large a model with it; -ENOMEM.
 */
int wharf_rans_recoil_import(const struct wharf_rans_recoil *recoil, uint8_t *out,
                             size_t *ret_out_nbytes, enum wharf_reason *ret_reason);

/* What is registered of its model: rans_format.h.  `out` is NULL to ask for the size.  0 or
 * -ENOMEM. */
int wharf_rans_recoil_model(const struct wharf_rans_recoil *recoil, uint8_t *out,
                            size_t *ret_out_nbytes);

#endif
