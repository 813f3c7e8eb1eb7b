/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_words.h: jobs whose ends are waited for by their done words, by a stand-in for streams.
 *
 * A thread of its own plays the streams: it calls nothing, it only looks at the words of all jobs
 * in flight.  As soon as one is set it compares the output, and from then on the job's memory,
 * source and output, is its own: it writes over both.  Whoever reads or writes there later, as a
 * job does that is run once more, is found out: the completion that comes must be what the word
 * said, and the memory as the stream left it.  Good for daemons and workers that die meanwhile.
 */
#ifndef WHARF_TESTS_TEST_WORDS_H
#define WHARF_TESTS_TEST_WORDS_H

#include <stdint.h>

#include "tests/lib/test_storm.h"

struct test_words {
    struct wharf *wharf;
    const struct test_chunks *chunks;
    uint64_t seed;
    uint64_t n_jobs;        /* in all */
    unsigned n_in_flight;   /* at a time */
    unsigned batch_one_in;  /* of so many jobs one is a batch; 0: none */
    unsigned cancel_one_in; /* likewise, of jobs that are cancelled */
    unsigned start_one_in;  /* likewise, of jobs that wait until the stream has made their source */
    unsigned limit_s;       /* fails when no job ends for longer */
    void (*tick)(const struct test_words *words); /* called now and then; may be NULL */
    void *tick_data;

    /* Registered memory of test_words_nbytes, where sources and outputs of every second job are;
     * NULL: none. */
    uint8_t *memory;

    /* Results. */
    uint64_t n_done;
    uint64_t n_cancelled;
    char error[256];
};

size_t test_words_nbytes(const struct test_words *words);

/* test_words_run: returns 0, or -1 with `error`. */
int test_words_run(struct test_words *words);

#endif
