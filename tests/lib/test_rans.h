/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rans.h: rANS streams of all shapes, and their decoding by all forms that this machine can
 * run.
 */
#ifndef WHARF_TESTS_TEST_RANS_H
#define WHARF_TESTS_TEST_RANS_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/rans/rans_model.h"
#include "proto/wharf_result.h"

/* The parameters of a stream; n_bits as in wharf_rans_shape. */
struct test_rans_plan {
    uint32_t n_bits;
    uint32_t symbol_nbytes;
    uint32_t n_distributions;
    uint32_t n_symbols;
    uint32_t max_splits;
    uint32_t alphabet; /* number of symbols, at most 2^n_bits */
    uint64_t seed;
};

struct test_rans {
    struct wharf_rans_shape shape;
    uint8_t *plain; /* symbols */
    size_t plain_nbytes;
    uint8_t *stream;
    size_t stream_nbytes;
    /* Set by test_rans_new_registered. */
    uint8_t *model;
    size_t model_nbytes;
    void *image;
    size_t image_nbytes;
};

/* Makes a stream of symbols of falling frequency, with its model.  Failures end the program. */
struct test_rans test_rans_new(const struct test_rans_plan *plan);

/* The same with a registered model, which is not in the stream; and the model's image. */
struct test_rans test_rans_new_registered(const struct test_rans_plan *plan);
/* The same with n_free unused slots in each distribution, as far as possible. */
struct test_rans test_rans_new_with_free_slots(const struct test_rans_plan *plan, uint32_t n_free);
void test_rans_free(struct test_rans *rans);

/* Removes splits `first` to first + n - 1, counted from 1, from the stream: the split before them
 * decodes their symbols. */
void test_rans_drop_splits(struct test_rans *rans, uint32_t first, uint32_t n);

/* Encodes bytes as one stream, with a model of their statistics, into memory that the caller
 * frees. */
uint8_t *test_rans_encode(const uint8_t *bytes, uint32_t n, uint32_t n_bits, uint32_t max_splits,
                          size_t *ret_nbytes);

/* The same with n_free unused slots, as far as possible. */
uint8_t *test_rans_encode_with_free_slots(const uint8_t *bytes, uint32_t n, uint32_t n_bits,
                                          uint32_t max_splits, uint32_t n_free, size_t *ret_nbytes);

/* Makes the image of a model, in memory that the caller frees; its size is in *ret_nbytes unless
 * that is NULL. */
void *test_rans_image(const uint8_t *model, size_t model_nbytes, size_t *ret_nbytes);

/*
 * Decodes by the reference, and by every form of the fast decoder into buffers between inaccessible
 * pages.  Returns NULL if all give the same outcome and, on success, the same bytes; else the name
 * of a form that does not.  `out` (of out_avail bytes) gets the reference's output.
 */
const char *test_rans_decode_all(const uint8_t *in, size_t in_nbytes, uint32_t parameter,
                                 uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome);

/* The same with the image of a registered model. */
const char *test_rans_decode_registered(const uint8_t *in, size_t in_nbytes, const void *image,
                                        uint8_t *out, size_t out_avail,
                                        struct wharf_outcome *ret_outcome);

/* The same with an image; if that is NULL, as test_rans_decode_all. */
const char *test_rans_decode_either(const uint8_t *in, size_t in_nbytes, uint32_t parameter,
                                    const void *image, uint8_t *out, size_t out_avail,
                                    struct wharf_outcome *ret_outcome);

#endif
