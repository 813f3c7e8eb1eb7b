/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_storm.h: many jobs in flight on one handle, each checked when it completes.
 *
 * Every job must complete exactly once, with the outcome and output of the CPU decoder.  As soon as
 * it has completed, its memory is overwritten and used for another job, so that later accesses are
 * found out.  Works with handles of any kind, and with daemons that die meanwhile.
 */
#ifndef WHARF_TESTS_TEST_STORM_H
#define WHARF_TESTS_TEST_STORM_H

#include <stddef.h>
#include <stdint.h>

#include "clientlib/wharf.h"

/* A chunk, with the expected outcome in a destination of out_avail bytes. */
struct test_chunk {
    uint32_t codec;
    uint8_t *packed;
    size_t packed_nbytes;
    uint8_t *plain;
    size_t out_avail;
    struct wharf_outcome outcome;
};

struct test_chunks {
    struct test_chunk *chunks;
    size_t n;
    size_t max_packed_nbytes;
    size_t max_out_avail;
};

/*
 * test_chunks_init: makes n chunks of all codecs, of 0 to max_nbytes, of which about one in
 * bad_one_in is damaged (0: none).  Ends the program if out of memory.
 */
void test_chunks_init(struct test_chunks *chunks, uint64_t seed, size_t n, size_t max_nbytes,
                      unsigned bad_one_in);
void test_chunks_deinit(struct test_chunks *chunks);

enum test_storm_way {
    TEST_STORM_WAIT, /* wharf_wait for some */
    TEST_STORM_POLL, /* wharf_poll in a loop */
    TEST_STORM_FD,   /* sleep on wharf_fd, then wharf_poll */
};

struct test_storm {
    struct wharf *wharf;
    const struct test_chunks *chunks;
    enum test_storm_way way;
    uint64_t seed;
    uint64_t n_jobs;        /* in total */
    unsigned n_in_flight;   /* at a time, if possible */
    unsigned batch_one_in;  /* one in so many submissions is a batch; 0: none */
    unsigned cancel_one_in; /* one in so many jobs is cancelled after it was submitted; 0: none */
    unsigned limit_s;       /* fails if no job completes for longer */
    void (*tick)(const struct test_storm *storm); /* called now and then; may be NULL */
    void *tick_data;

    /* Registered memory, or NULL: out_memory, of test_storm_out_nbytes, holds every second output,
     * and in_memory, of test_storm_in_nbytes, every second pair of sources.  If only the GPU can
     * access it, set the functions below; NULL: memset and memcpy. */
    uint8_t *out_memory;
    uint8_t *in_memory;
    void (*set_memory)(uint8_t *to, int byte, size_t nbytes);
    void (*put_memory)(uint8_t *to, const void *from, size_t nbytes);
    void (*get_memory)(void *to, const uint8_t *from, size_t nbytes);

    /* Results. */
    uint64_t n_submitted;
    uint64_t n_done;
    uint64_t n_cancelled;
    uint64_t n_bad; /* damaged ones, with the expected result */
    uint64_t last_done_ns;
    uint64_t longest_gap_ns; /* between two completions */
    int error_number;        /* of a failed call, or 0 */
    char error[256];
    void *in_flight; /* jobs may write here after a failure: free it after wharf_close */
};

size_t test_storm_out_nbytes(const struct test_storm *storm);
size_t test_storm_in_nbytes(const struct test_storm *storm);

/* test_storm_run: returns 0, or -1 with `error`. */
int test_storm_run(struct test_storm *storm);

#endif
