/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stream.h: a whole source through a decoder of encoders/stream.h, in pieces.
 */
#ifndef WHARF_TESTS_TEST_STREAM_H
#define WHARF_TESTS_TEST_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/stream.h"

struct test_stream {
    struct wharf_outcome outcome;
    uint8_t *out; /* all that was handed out, memory that test_stream_free gives back */
    size_t out_nbytes;
    uint64_t verified;
    size_t n_rest; /* filled in but not taken */
};

/*
 * Feeds `in` in pieces of 1 to max_piece_nbytes (of exactly that many with seed 0) and keeps what
 * comes.  Frees the stream, which is new.  `last` is said with the last piece or, if the seed is
 * odd, behind it.  Ends the program when memory is out, or when the stream breaks its word: an
 * empty span, no room for input, a change of its mind at the end.
 */
struct test_stream test_stream_decode(struct wharf_stream *stream, const uint8_t *in,
                                      size_t in_nbytes, size_t max_piece_nbytes, uint64_t seed);
void test_stream_free(struct test_stream *stream);

#endif
