/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rans.h: rans streams of all shapes, and their decoding by all forms that this machine has.
 */
#ifndef WHARF_TESTS_TEST_RANS_H
#define WHARF_TESTS_TEST_RANS_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/rans/rans_model.h"
#include "proto/wharf_result.h"

/* What a stream is made of; n_bits as wharf_rans_shape has it. */
struct test_rans_plan {
    uint32_t n_bits;
    uint32_t symbol_nbytes;
    uint32_t n_distributions;
    uint32_t n_symbols;
    uint32_t max_splits;
    uint32_t alphabet; /* the most: at most 2^n_bits */
    uint64_t seed;
};

struct test_rans {
    struct wharf_rans_shape shape;
    uint8_t *plain; /* symbols */
    size_t plain_nbytes;
    uint8_t *stream;
    size_t stream_nbytes;
    /* What test_rans_new_registered adds. */
    uint8_t *model;
    size_t model_nbytes;
    void *image;
    size_t image_nbytes;
};

/* Symbols of falling frequency, coded with a model of their own.  Ends the program when anything
 * goes wrong. */
struct test_rans test_rans_new(const struct test_rans_plan *plan);

/* The same, with a model that is registered and not in the stream; and its image. */
struct test_rans test_rans_new_registered(const struct test_rans_plan *plan);
/* The same, with so many slots of each distribution that are nobody's, as far as there can be. */
struct test_rans test_rans_new_with_free_slots(const struct test_rans_plan *plan, uint32_t n_free);
void test_rans_free(struct test_rans *rans);

/* Takes splits `first` to first + n - 1, counted from 1, out of its stream: their symbols are left
 * to the one before them. */
void test_rans_drop_splits(struct test_rans *rans, uint32_t first, uint32_t n);

/* One stream of bytes, with a model of their statistics; the result is for the caller to free. */
uint8_t *test_rans_encode(const uint8_t *bytes, uint32_t n, uint32_t n_bits, uint32_t max_splits,
                          size_t *ret_nbytes);

/* The image of a model, and in ret_nbytes its size unless that is NULL; for the caller to free. */
void *test_rans_image(const uint8_t *model, size_t model_nbytes, size_t *ret_nbytes);

/*
 * Decodes by the reference, and by every form of the tuned decoder into buffers between untouchable
 * pages.  Returns NULL if all give the same outcome, and on success the same bytes; else the name
 * of the form that does not.  `out` (of out_avail bytes) gets the reference's output.
 */
const char *test_rans_decode_all(const uint8_t *in, size_t in_nbytes, uint32_t parameter,
                                 uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome);

/* The same with a registered model's image. */
const char *test_rans_decode_registered(const uint8_t *in, size_t in_nbytes, const void *image,
                                        uint8_t *out, size_t out_avail,
                                        struct wharf_outcome *ret_outcome);

/* With that, or if image is NULL as test_rans_decode_all. */
const char *test_rans_decode_either(const uint8_t *in, size_t in_nbytes, uint32_t parameter,
                                    const void *image, uint8_t *out, size_t out_avail,
                                    struct wharf_outcome *ret_outcome);

#endif
