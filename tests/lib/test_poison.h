/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_poison.h: jobs that make a GPU's worker fail.  Only a daemon with TEST_POISON_TAKEN accepts
 * them.
 */
#ifndef WHARF_TESTS_TEST_POISON_H
#define WHARF_TESTS_TEST_POISON_H

#include <stdint.h>

#include "kernels/work_queue.h"
#include "proto/wharf_job.h"
#include "proto/wharf_ring.h"

/* A job's user_data tells what its item does, as enum wharf_work_opcode: FAULT or HANG. */
#define TEST_POISON_MARK ((uint64_t)0xfa17)
#define TEST_POISON(opcode) (TEST_POISON_MARK << 48 | (uint64_t)(opcode) << 32)

/* Replaces daemon/gpu/gpu_faults.c. */
#define TEST_POISON_TAKEN                                                                          \
    const bool wharf_gpu_has_faults = true;                                                        \
                                                                                                   \
    uint32_t wharf_gpu_opcode(const struct wharf_submission *submission)                           \
    {                                                                                              \
        return submission->user_data >> 48 == TEST_POISON_MARK                                     \
                   ? (uint32_t)(submission->user_data >> 32 & 0xff)                                \
                   : WHARF_WORK_DECODE;                                                            \
    }

#endif
