/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_parallel.h: a whole source through encoders/inflate_parallel/parallel_inflate.h.
 */
#ifndef WHARF_TESTS_TEST_PARALLEL_H
#define WHARF_TESTS_TEST_PARALLEL_H

#include "encoders/inflate_parallel/parallel_inflate.h"

enum { TEST_PARALLEL_MAX_WORKERS = 8, TEST_PARALLEL_MAX_POINTS = 64 };

struct test_parallel_place {
    struct wharf_parallel_point point;
    size_t out_offset;
};

struct test_parallel {
    struct wharf_outcome outcome;
    uint8_t *out; /* all that was handed out, memory that test_parallel_free gives back */
    size_t out_nbytes;
    uint64_t verified;
    uint64_t member_start;
    int error; /* the last answer of _next */
    struct wharf_parallel_inflate_counts counts;
    unsigned n_places; /* the first ones, if points were wanted */
    struct test_parallel_place places[TEST_PARALLEL_MAX_POINTS];
};

struct test_parallel_setting {
    unsigned n_workers;
    size_t part_nbytes;      /* 0: the usual */
    unsigned max_queued;     /* 0: the usual */
    size_t max_piece_nbytes; /* of a read; 0: all that is wanted */
    int read_error;          /* what comes behind the source in place of its end, -errno */
    bool wants_points;
    bool guesses_first; /* nothing is taken before all that can be guessed was */
};

/* Ends the program when memory is out, or when the rest behind a good stream is not what was read
 * behind its end. */
struct test_parallel test_parallel_decode(enum wharf_inflate_format format, const uint8_t *in,
                                          size_t in_nbytes,
                                          const struct test_parallel_setting *setting);
void test_parallel_free(struct test_parallel *parallel);

/* NULL if the outcome, the bytes, and what was verified are those of the serial decoder; else what
 * differs. */
const char *test_parallel_differs(enum wharf_inflate_format format, const uint8_t *in,
                                  size_t in_nbytes, const struct test_parallel *parallel);

#endif
