/* SPDX-License-Identifier: Apache-2.0 */
/* test_pack.h: chunks for tests that want one and not its encoder.  What does not work ends the
 * program. */
#ifndef WHARF_TESTS_TEST_PACK_H
#define WHARF_TESTS_TEST_PACK_H

#include "encoders/codec.h"

/* By that codec's encoder, with these options or (NULL) the usual ones; in memory that the caller
 * frees. */
uint8_t *test_pack(uint32_t codec, const struct wharf_encoder_options *options,
                   const uint8_t *plain, size_t plain_nbytes, size_t *ret_nbytes);

/* With the usual ones, into out_avail bytes.  Returns how many it takes. */
size_t test_pack_into(uint32_t codec, const uint8_t *plain, size_t plain_nbytes, uint8_t *out,
                      size_t out_avail);

#endif
