/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rle.h: streams of ORC's run lengths that no encoder would write: any groups in any order,
 * most of them good.
 */
#ifndef WHARF_TESTS_TEST_RLE_H
#define WHARF_TESTS_TEST_RLE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/test_random.h"

/*
 * Writes groups of rle1, rle2, byterle or boolrle, as many as fit in `avail` bytes.  Numbers have
 * up to nbits bits, rarely more.  Returns the stream's size.
 */
size_t test_rle_stream(struct test_random *random, uint32_t codec, unsigned nbits, uint8_t *out,
                       size_t avail);

#endif
