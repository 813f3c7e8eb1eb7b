/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_words.h: waits for jobs by their done words, as CUDA streams do.
 *
 * A thread plays the streams: it calls nothing, and only polls the words of all jobs in flight.  As
 * soon as one is set, it compares the output.  From then on it owns the job's memory, source and
 * output, and overwrites both.  Later accesses, as by a job that is run once more, are found out:
 * the completion must agree with the word, and the memory must be as the stream left it.  Works
 * with daemons and workers that die meanwhile.
 */
#ifndef WHARF_TESTS_TEST_WORDS_H
#define WHARF_TESTS_TEST_WORDS_H

#include <stdint.h>

#include "tests/lib/test_storm.h"

struct test_words {
    struct wharf *wharf;
    const struct test_chunks *chunks;
    uint64_t seed;
    uint64_t n_jobs;        /* in total */
    unsigned n_in_flight;   /* at a time */
    unsigned batch_one_in;  /* one in so many jobs is a batch; 0: none */
    unsigned cancel_one_in; /* one in so many is cancelled; 0: none */
    unsigned start_one_in;  /* one in so many waits until the stream has made its source */
    unsigned limit_s;       /* fails if no job completes for longer */
    void (*tick)(const struct test_words *words); /* called now and then; may be NULL */
    void *tick_data;

    /* Registered memory of test_words_nbytes, which holds sources and outputs of every second job;
     * or NULL. */
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
