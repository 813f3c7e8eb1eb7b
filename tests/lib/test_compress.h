/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compress.h: jobs that compress, through libwharf, on any handle.  Failures end the program.
 */
#ifndef WHARF_TESTS_TEST_COMPRESS_H
#define WHARF_TESTS_TEST_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

#include "clientlib/wharf.h"

/* All codecs that have encoders. */
extern const uint32_t test_compress_codecs[];
extern const size_t test_compress_n_codecs;

/* A job without memory. */
struct wharf_job test_compress_job(uint32_t codec, uint32_t parameter, uint32_t encoder,
                                   uint32_t level);

/* The job has made a stream of nbytes.  It must decode to as many bytes as the source has, and to
 * the source itself unless that has changed meanwhile. */
void test_compress_decodes(struct wharf *wharf, const struct wharf_job *made, size_t nbytes,
                           int has_changed);

/* Compresses data of a kind and decompresses it, with a destination of exactly the bound. */
void test_compress_round_trip(struct wharf *wharf, struct wharf_job job, const char *kind,
                              size_t nbytes);

/* Tries all encoders that the program links, with all parameters below 8, with their least,
 * greatest and default level, and with sizes around 0, 1, a unit, a line and a group of lines. */
void test_compress_every_encoder(struct wharf *wharf);

/* Tries all destinations that are too small for a text: nothing may be written past their ends, and
 * the result must say so. */
void test_compress_every_room(struct wharf *wharf);

/* Invalid jobs are refused, in the order of the checks. */
void test_compress_refusals(struct wharf *wharf);

#endif
