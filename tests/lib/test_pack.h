/* SPDX-License-Identifier: Apache-2.0 */
/* test_pack.h: compressed chunks, for tests that are not about their encoder.  Failures end the
 * program. */
#ifndef WHARF_TESTS_TEST_PACK_H
#define WHARF_TESTS_TEST_PACK_H

#include "encoders/codec.h"

/* Compresses with the codec's encoder and these options (NULL: defaults) into memory that the
 * caller frees. */
uint8_t *test_pack(uint32_t codec, const struct wharf_encoder_options *options,
                   const uint8_t *plain, size_t plain_nbytes, size_t *ret_nbytes);

/* The same with default options, into out_avail bytes.  Returns the size. */
size_t test_pack_into(uint32_t codec, const uint8_t *plain, size_t plain_nbytes, uint8_t *out,
                      size_t out_avail);

#endif
