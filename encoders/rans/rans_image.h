/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_image.h: a registered model, made ready once for all jobs that name it; C and C++.
 *
 * What is registered is the first part of a stream: its header, without indexes, and its model, and
 * nothing behind.  Streams that leave it out are decoded with the *image* that is made of it: the
 * tables, in one piece of memory without pointers, which other processes and devices read as it is.
 *
 *     struct wharf_rans_image
 *     registered       of one distribution of bytes: what was registered, from which devices make
 *                      tables of their own
 *     totals           4 bytes a distribution      as struct wharf_rans_model has them
 *     ranges           4 bytes a range
 *     slots            2 bytes a slot, and room for vector loads to read past the last one
 *     packed slots     4 bytes a slot, where tuned decoders want them (rans_loop.h)
 *     windows, scales, buckets    of all others, where they are of use: rans_window.h
 */
#ifndef WHARF_ENCODERS_RANS_RANS_IMAGE_H
#define WHARF_ENCODERS_RANS_RANS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Places are in bytes from the image's beginning, multiples of 16; 0: there is none. */
struct wharf_rans_image {
    uint32_t n_bits, symbol_nbytes, alphabet, n_distributions;
    uint32_t is_full;
    uint32_t registered_nbytes;
    uint32_t registered_at;
    uint32_t totals_at;
    uint32_t ranges_at;
    uint32_t slots_at;
    uint32_t packed_slots_at;
    uint32_t windows_at;
    uint32_t scales_at;
    uint32_t buckets_at;
    uint32_t windows_stride;
    uint32_t reserved; /* 0 */
};

struct wharf_rans_model;
struct wharf_rans_shape;

/*
 * wharf_rans_image_nbytes: how large the image of a model is, by its header and size alone; so that
 * memory can be charged before it is taken.  NONE with *ret_nbytes (101 MiB at most, and then the
 * model has 320 KiB at least), or why it is no model: INPUT_TRUNCATED, RANS_VERSION, RANS_HEADER,
 * INPUT_LEFT, when there is more than the header says, or RANS_MODEL, when its size is none that
 * such a model can have.
 */
enum wharf_reason wharf_rans_image_nbytes(const uint8_t *model, size_t model_nbytes,
                                          size_t *ret_nbytes);

/*
 * wharf_rans_image_make: makes it, in memory of that size, aligned to 16 and zeroed.  NONE, or
 * RANS_MODEL.  The model must not change meanwhile.
 */
enum wharf_reason wharf_rans_image_make(const uint8_t *model, size_t model_nbytes, void *image);

/* Whether an image is of a model of this shape. */
bool wharf_rans_image_has_shape(const void *image, const struct wharf_rans_shape *shape);

/* The tables of an image, which stays as it is, for decoders on the CPU. */
void wharf_rans_image_model(const void *image, struct wharf_rans_model *ret_model);

/*
 * wharf_rans_model_write: what is registered, of frequencies as wharf_rans_model_pack takes them.
 * Returns its size; writes it if that is at most out_avail.
 */
size_t wharf_rans_model_write(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                              uint8_t *out, size_t out_avail);

#ifdef __cplusplus
}
#endif

#endif
