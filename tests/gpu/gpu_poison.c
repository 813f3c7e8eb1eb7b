/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_poison.c: wharfd-poison, the daemon in whose GPU jobs can ask for faults. */
#include "daemon/gpu/gpu_state.h"
#include "tests/lib/test_poison.h"

const bool wharf_gpu_has_faults = true;

uint32_t wharf_gpu_opcode(const struct wharf_submission *submission)
{
    return test_poison_opcode(submission);
}
