/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_parts.h: a chunk that several items of the work queue decode, a part each
 * (WHARF_WORK_DECODE_PART), and how their outcomes make the chunk's; C and C++.
 *
 * Parts are numbered in the order of the stream.  As long as all parts before it are good, a part
 * has the outcome that a serial decoder would report for it: so the first bad part decides the
 * stream's outcome.  Errors in the stream's splits come first, and each part checks its own.
 *
 * Each part is decoded from its own copy of the input.  A client that writes it meanwhile can make
 * parts that do not fit together: that is a bad chunk, of nobody else's making.
 */
#ifndef WHARF_KERNELS_WORK_PARTS_H
#define WHARF_KERNELS_WORK_PARTS_H

#include <stdint.h>

#include "proto/wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most parts of a chunk. */
#define WHARF_WORK_MAX_PARTS 128u

/* What the item says of a part in `staging`. */
#define WHARF_WORK_PART(number, n_parts) ((uint64_t)(n_parts) << 32 | (number))

/* The completion's `part`, of a part that is bad. */
enum wharf_part_flaw {
    WHARF_PART_FLAW_IN_ORDER = 0,  /* counts where no part before this one is bad */
    WHARF_PART_FLAW_OF_SPLITS = 1, /* counts in any case */
};

/* What came of a part. */
struct wharf_work_part {
    uint32_t result;
    uint32_t reason;
    uint32_t bit_offset; /* as in struct wharf_outcome; of a good part, its first byte */
    uint32_t out_nbytes;
    uint32_t part; /* the CRC-32 of a good part's output, if the job wants it; enum
                      wharf_part_flaw of a bad one */
};

struct wharf_decode_job;

/*
 * The outcome of a chunk, as the job's flags make it, from those of its n parts in their order.
 * Returns 0, or -EAGAIN: some part could not be decoded by itself, which says nothing of the chunk.
 */
int wharf_work_parts_settle(const struct wharf_work_part *parts, uint32_t n,
                            const struct wharf_decode_job *job, struct wharf_outcome *ret_outcome);

#ifdef __cplusplus
}
#endif

#endif
