/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stream.h: decodes a whole source by a decoder of encoders/stream.h, in pieces.
 */
#ifndef WHARF_TESTS_TEST_STREAM_H
#define WHARF_TESTS_TEST_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/stream.h"

struct test_stream {
    struct wharf_outcome outcome;
    uint8_t *out; /* all output; freed by test_stream_free */
    size_t out_nbytes;
    uint64_t verified;
    size_t n_rest; /* input that was filled in but not consumed */
};

/*
 * Feeds `in` in pieces of 1 to max_piece_nbytes (of exactly that size if seed is 0) and keeps the
 * output.  Frees the stream, which must be new.  `last` is passed with the last piece or, if seed
 * is odd, after it.  Ends the program if out of memory, or if the stream breaks its contract: an
 * empty span, no room for input, another result at the end.
 */
struct test_stream test_stream_decode(struct wharf_stream *stream, const uint8_t *in,
                                      size_t in_nbytes, size_t max_piece_nbytes, uint64_t seed);
void test_stream_free(struct test_stream *stream);

#endif
