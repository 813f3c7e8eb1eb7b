/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.h: fills in struct wharf_outcome as proto/wharf_result.h says, for decoders.
 */
#ifndef WHARF_ENCODERS_OUTCOME_H
#define WHARF_ENCODERS_OUTCOME_H

#include "proto/wharf_result.h"

static inline void wharf_outcome_ok(struct wharf_outcome *ret_outcome, uint64_t in_nbytes,
                                    uint64_t out_nbytes)
{
    *ret_outcome = (struct wharf_outcome){WHARF_OK, WHARF_REASON_NONE, 0, in_nbytes, out_nbytes};
}

static inline void wharf_outcome_fail(struct wharf_outcome *ret_outcome, uint32_t result,
                                      uint32_t reason, uint64_t bit_offset)
{
    *ret_outcome = (struct wharf_outcome){result, reason, bit_offset, 0, 0};
}

#endif
