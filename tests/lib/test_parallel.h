/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_parallel.h: decodes a whole source by encoders/inflate_parallel/parallel_inflate.h.
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
    uint8_t *out; /* all output; freed by test_parallel_free */
    size_t out_nbytes;
    uint64_t verified;
    uint64_t member_start;
    int error; /* the last result of _next */
    struct wharf_parallel_inflate_counts counts;
    unsigned n_places; /* of the first points, if points were wanted */
    struct test_parallel_place places[TEST_PARALLEL_MAX_POINTS];
};

struct test_parallel_setting {
    unsigned n_workers;
    size_t part_nbytes;      /* 0: the default */
    unsigned max_queued;     /* 0: the default */
    size_t max_piece_nbytes; /* the most that a read returns; 0: all that was asked for */
    int read_error;          /* -errno that follows the source in place of its end */
    bool wants_points;
    bool guesses_first; /* output is taken only after all possible guesses were made */
};

/* Ends the program if out of memory, or if the bytes after a good stream are not those that were
 * read past its end. */
struct test_parallel test_parallel_decode(enum wharf_inflate_format format, const uint8_t *in,
                                          size_t in_nbytes,
                                          const struct test_parallel_setting *setting);
void test_parallel_free(struct test_parallel *parallel);

/* NULL if outcome, output and verified bytes are those of the serial decoder; else what differs. */
const char *test_parallel_differs(enum wharf_inflate_format format, const uint8_t *in,
                                  size_t in_nbytes, const struct test_parallel *parallel);

#endif
