/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_cases.h: the jobs that the GPU's tests run.
 */
#ifndef WHARF_TESTS_GPU_CASES_H
#define WHARF_TESTS_GPU_CASES_H

#include "tests/gpu/gpu_check.h"
#include "tests/lib/test_forge.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_vector.h"

struct gpu_case_list {
    struct gpu_case *cases;
    size_t n_cases, capacity;
    /* What the cases' inputs and names stand in. */
    void **owned;
    size_t n_owned, owned_capacity;
};

void gpu_case_list_deinit(struct gpu_case_list *list);

/* Appends a case; its input and name must outlive the list, or be given to it. */
void gpu_case_list_add(struct gpu_case_list *list, const struct gpu_case *c);
/* Makes malloc'ed memory the list's own; returns it. */
void *gpu_case_list_own(struct gpu_case_list *list, void *p);

/* Each vector of a codec that the device decodes (with `serial`, gpu_check_options', by the serial
 * kernel), and each good one with a byte less of room. */
void gpu_cases_add_vectors(struct gpu_case_list *list, const struct test_vector_list *vectors,
                           uint32_t serial);

/*
 * Good streams: every kind of data in several sizes by every encoder of the codec at several
 * levels, with every parameter; of rans also those of several distributions, and of registered
 * models.  Adds them as cases with exactly the room that they need.
 */
void gpu_cases_add_streams(struct gpu_case_list *list, uint32_t codec);

/*
 * Streams of Deflate that no packer writes (tests/lib/test_forge.h): good ones number `first` to
 * first + n - 1, with the room that they need.
 */
void gpu_cases_add_forged(struct gpu_case_list *list, uint64_t first, uint64_t n);

/*
 * What else may be asked of a good stream: more and less room, a source that is cut off or has
 * something behind it, all job flags, wrong checksums.  `random` chooses.
 */
void gpu_cases_add_variants(struct gpu_case_list *list, const struct gpu_case *stream,
                            struct test_random *random, unsigned n_variants);

/* The stream with one to four bits changed, half of them in the first 64 bytes. */
void gpu_cases_add_damaged(struct gpu_case_list *list, const struct gpu_case *stream,
                           struct test_random *random, uint64_t number);

#endif
