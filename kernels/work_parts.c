/* SPDX-License-Identifier: Apache-2.0 */
/* work_parts.c: the outcome of a chunk whose parts were decoded each by itself. */
#include "kernels/work_parts.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "encoders/checksum.h"
#include "encoders/crc32_join.h"
#include "encoders/decode_job.h"
#include "encoders/outcome.h"

/* A part that was refused, as larger items are. */
static bool is_refused(const struct wharf_work_part *part)
{
    return part->result == WHARF_BAD_REQUEST;
}

/* The part whose verdict is the chunk's; NULL: all are good. */
static const struct wharf_work_part *first_bad(const struct wharf_work_part *parts, uint32_t n)
{
    const struct wharf_work_part *first = NULL;

    for (uint32_t i = 0; i < n; i++) {
        if (parts[i].result == WHARF_OK)
            continue;
        if (parts[i].part == WHARF_PART_FLAW_OF_SPLITS)
            return &parts[i];
        first = first ? first : &parts[i];
    }
    return first;
}

/* Whether each part begins where the one before it ends, and all end within the destination. */
static bool fit_together(const struct wharf_work_part *parts, uint32_t n, uint64_t out_avail,
                         uint64_t *ret_nbytes)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (parts[i].bit_offset != end)
            return false;
        end += parts[i].out_nbytes;
    }
    *ret_nbytes = end;
    return end <= out_avail;
}

static uint32_t join_checksums(const struct wharf_work_part *parts, uint32_t n)
{
    uint32_t crc = WHARF_CRC32_INIT;

    for (uint32_t i = 0; i < n; i++)
        crc = wharf_crc32_join(crc, parts[i].part, parts[i].out_nbytes);
    return crc;
}

int wharf_work_parts_settle(const struct wharf_work_part *parts, uint32_t n,
                            const struct wharf_decode_job *job, struct wharf_outcome *ret_outcome)
{
    const struct wharf_work_part *bad = first_bad(parts, n);
    uint64_t out_nbytes;
    uint32_t crc = WHARF_CRC32_INIT;

    for (uint32_t i = 0; i < n; i++)
        if (is_refused(&parts[i]))
            return -EAGAIN;
    if (bad) {
        wharf_outcome_fail(ret_outcome, bad->result, bad->reason, bad->bit_offset);
        return 0;
    }
    if (!fit_together(parts, n, job->out_avail, &out_nbytes)) {
        /* The source was another one for each of them. */
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, WHARF_REASON_RANS_SPLIT, 0);
        return 0;
    }
    wharf_outcome_ok(ret_outcome, job->in_nbytes, out_nbytes);
    if (wharf_decode_job_wants_checksum(job, ret_outcome))
        crc = join_checksums(parts, n);
    wharf_decode_job_settle(job, crc, ret_outcome);
    return 0;
}
