/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/split_parts.h"

#include "encoders/codec.h"
#include "kernels/work_parts.h"

bool wharf_parts_has_splits(uint32_t codec)
{
    return wharf_codec_find(codec)->ops->least_shared_nbytes > 0;
}

uint64_t wharf_parts_alone(uint32_t codec, uint64_t nbytes)
{
    /* Half of them are output. */
    uint64_t n = nbytes / 2 / WHARF_PARTS_LEAST_NBYTES;

    if (n < 1 || !wharf_parts_has_splits(codec))
        return 1;
    return n < WHARF_WORK_MAX_PARTS ? n : WHARF_WORK_MAX_PARTS;
}
