/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_storm.h: many jobs in flight on one handle, each looked at when it comes back.
 *
 * Every job must come back exactly once, with the outcome and the bytes that the CPU decoder gives
 * for it.  As soon as it is back its memory is scribbled over and used for another one, so that
 * whoever reads or writes it later than that is found out.  Good for handles of any kind, and for
 * daemons that die meanwhile.
 */
#ifndef WHARF_TESTS_TEST_STORM_H
#define WHARF_TESTS_TEST_STORM_H

#include <stddef.h>
#include <stdint.h>

#include "clientlib/wharf.h"

/* A chunk with what must become of it in a destination of out_avail bytes. */
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
 * test_chunks_init: n chunks of all codecs and of 0 to max_nbytes, of which about one in bad_one_in
 * is damaged (0: none).  Ends the program when there is no memory.
 */
void test_chunks_init(struct test_chunks *chunks, uint64_t seed, size_t n, size_t max_nbytes,
                      unsigned bad_one_in);
void test_chunks_deinit(struct test_chunks *chunks);

enum test_storm_way {
    TEST_STORM_WAIT, /* wharf_wait for some */
    TEST_STORM_POLL, /* wharf_poll all the time */
    TEST_STORM_FD,   /* sleep on wharf_fd, then wharf_poll */
};

struct test_storm {
    struct wharf *wharf;
    const struct test_chunks *chunks;
    enum test_storm_way way;
    uint64_t seed;
    uint64_t n_jobs;        /* in all */
    unsigned n_in_flight;   /* at a time, as far as possible */
    unsigned batch_one_in;  /* of so many submissions one is a batch; 0: none */
    unsigned cancel_one_in; /* likewise, of jobs that are cancelled after they were submitted */
    unsigned limit_s;       /* fails when no job ends for longer */
    void (*tick)(const struct test_storm *storm); /* called now and then; may be NULL */
    void *tick_data;

    /* Registered memory of test_storm_out_nbytes, where every second output goes, and of
     * test_storm_in_nbytes, where every second pair of sources is; NULL: none.  They may be such as
     * only these can reach: the GPU's.  NULL: memset and memcpy. */
    uint8_t *out_memory;
    uint8_t *in_memory;
    void (*set_memory)(uint8_t *to, int byte, size_t nbytes);
    void (*put_memory)(uint8_t *to, const void *from, size_t nbytes);
    void (*get_memory)(void *to, const uint8_t *from, size_t nbytes);

    /* Results. */
    uint64_t n_submitted;
    uint64_t n_done;
    uint64_t n_cancelled;
    uint64_t n_bad; /* as they should be */
    uint64_t last_done_ns;
    uint64_t longest_gap_ns; /* between two completions */
    int error_number;        /* of the call that failed, or 0 */
    char error[256];
    void *in_flight; /* after a failure, jobs may still write here: free it after wharf_close */
};

size_t test_storm_out_nbytes(const struct test_storm *storm);
size_t test_storm_in_nbytes(const struct test_storm *storm);

/* test_storm_run: returns 0, or -1 with `error`. */
int test_storm_run(struct test_storm *storm);

#endif
