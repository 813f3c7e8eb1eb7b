/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compress.h: jobs that compress, by libwharf's calls, on any handle.  What does not work ends
 * the program.
 */
#ifndef WHARF_TESTS_TEST_COMPRESS_H
#define WHARF_TESTS_TEST_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

#include "clientlib/wharf.h"

/* All that there are. */
extern const uint32_t test_compress_codecs[];
extern const size_t test_compress_n_codecs;

/* A job without its memory. */
struct wharf_job test_compress_job(uint32_t codec, uint32_t parameter, uint32_t encoder,
                                   uint32_t level);

/* The job made a stream of nbytes: it must decode, to as many bytes as the source has; and to the
 * source, unless that has changed since. */
void test_compress_decodes(struct wharf *wharf, const struct wharf_job *made, size_t nbytes,
                           int has_changed);

/* Data of that kind and back, by a destination of exactly the bound. */
void test_compress_round_trip(struct wharf *wharf, struct wharf_job job, const char *kind,
                              size_t nbytes);

/* All encoders that this program is linked with, with all parameters below 8, with their least,
 * greatest and default level, and sizes around 0, 1, a unit, a line and a group of lines. */
void test_compress_every_encoder(struct wharf *wharf);

/* Each destination that is too small for some text gets nothing behind it, and the result that says
 * so. */
void test_compress_every_room(struct wharf *wharf);

/* What makes no sense is refused, in the order of the checks. */
void test_compress_refusals(struct wharf *wharf);

#endif
