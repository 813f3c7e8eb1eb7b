/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bare.h: the daemon's core without threads, clients or real GPUs, for tests that queue jobs
 * under its lock and pick them by hand.  Failures end the program.
 */
#ifndef WHARF_TESTS_TEST_BARE_H
#define WHARF_TESTS_TEST_BARE_H

#include "daemon/core/core.h"
#include "proto/wharf_job.h"

/* A core with default settings, and n_gpus GPUs that accept all codecs.  Undone by
 * wharf_core_deinit. */
void test_bare_core_init(struct wharf_core *core, uint32_t n_gpus);

/* Zero, except for its weight and the scheduler's state. */
void test_bare_tenant_init(struct wharf_tenant *tenant);
void test_bare_session_init(struct wharf_session *session, struct wharf_tenant *tenant,
                            uint32_t engine);

/* A chunk from one region to another, ready to be queued. */
void test_bare_job_init(struct wharf_job *job, struct wharf_session *session, uint32_t codec,
                        uint64_t in_nbytes, uint64_t out_nbytes, struct wharf_region *source,
                        struct wharf_region *destination);

#endif
