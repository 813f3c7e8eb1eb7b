/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_faults.c: injects no faults.  Tests of faults link their own version of these functions. */
#include "daemon/gpu/gpu_state.h"

const bool wharf_gpu_has_faults = false;

uint32_t wharf_gpu_opcode(const struct wharf_submission *submission)
{
    (void)submission;
    return WHARF_WORK_DECODE;
}
