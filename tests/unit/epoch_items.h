/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_items.h: what tests of epoch kernels on the SIMT layer give them, and see come back. */
#ifndef WHARF_TESTS_EPOCH_ITEMS_H
#define WHARF_TESTS_EPOCH_ITEMS_H

#include <criterion/criterion.h>

#include "encoders/decode_job.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_epoch.h"
#include "tests/lib/test_random.h"

enum { N_ENTRIES = 64, CHUNK_NBYTES = 8192 };

/* Few items go to the kernel of blocks: one by one, or up to eight, items are its. */
static const struct wharf_epoch_config base_config = {
    .n_entries = N_ENTRIES,
    .few = 4,
    .most_out = 1,
    .n_warps = 3,
    .chunk_nbytes = CHUNK_NBYTES,
    .idle_us = 1000,
};

/* With one kernel for any number of items.  Where there are two, one that is started late leaves
 * for the other, and an item takes two epochs. */
static inline struct wharf_epoch_config one_kernel(void)
{
    struct wharf_epoch_config config = base_config;
    config.few = 0;
    return config;
}

static inline uint64_t address_of(const void *p)
{
    return (uintptr_t)p;
}

static inline struct wharf_work_item stored_item(const uint8_t *src, uint32_t nbytes, uint8_t *dst)
{
    return (struct wharf_work_item){
        .src = address_of(src),
        .dst = address_of(dst),
        .src_nbytes = nbytes,
        .dst_nbytes = nbytes,
        .codec = WHARF_CODEC_STORED,
        .opcode = WHARF_WORK_DECODE,
    };
}

/* What the CPU engine says of the same job. */
static inline struct wharf_outcome cpu_outcome(const struct wharf_work_item *item, uint8_t *out)
{
    struct wharf_decode_job job = {
        .codec = item->codec,
        .flags = item->flags,
        .checksum = item->checksum,
        .in = (const uint8_t *)(uintptr_t)item->src,
        .in_nbytes = item->src_nbytes,
        .out = out,
        .out_avail = item->dst_nbytes,
    };
    struct wharf_outcome outcome;
    wharf_decode_job_run(&job, 0, &outcome);
    return outcome;
}

static inline void fill(struct test_random *random, uint8_t *out, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        out[i] = (uint8_t)(test_random_one_in(random, 8) ? test_random_next(random) : i / 50);
}

static inline void expect(const struct wharf_work_completion *completion, uint32_t result,
                          uint32_t reason, uint32_t in_nbytes, uint32_t out_nbytes)
{
    cr_expect(completion->result == result && completion->reason == reason &&
                  completion->in_nbytes == in_nbytes && completion->out_nbytes == out_nbytes,
              "result %u, reason %u, %u bytes in, %u out; expected %u, %u, %u, %u",
              completion->result, completion->reason, completion->in_nbytes, completion->out_nbytes,
              result, reason, in_nbytes, out_nbytes);
}

#endif
