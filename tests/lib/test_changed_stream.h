/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_changed_stream.h: streams of Deflate, zlib and gzip with many blocks, changed as a fuzz
 * target's input says.
 */
#ifndef WHARF_TESTS_TEST_CHANGED_STREAM_H
#define WHARF_TESTS_TEST_CHANGED_STREAM_H

#include <stddef.h>
#include <stdint.h>

enum { TEST_STREAM_SHAPES = 4, TEST_STREAM_FORMATS = 3 };

/*
 * test_changed_stream: what zlib makes of raw_nbytes, the same in all calls, in one of the shapes
 * and formats (0 raw, 1 zlib, 2 gzip), in buf, of 2 * raw_nbytes; returns its size.  Each four
 * bytes of `data` change a byte of it: where (3 bytes) and how (exclusive or).  The first change of
 * nothing cuts the stream there.  Ends the program if out of memory.
 */
size_t test_changed_stream(unsigned shape, unsigned format, size_t raw_nbytes, const uint8_t *data,
                           size_t data_nbytes, uint8_t *buf);

#endif
