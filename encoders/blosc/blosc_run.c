/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_run.c: decodes a chunk or bitshuffle's framing, by the parameter. */
#include "encoders/blosc/blosc_run.h"

#include "encoders/blosc/blosc.h"
#include "encoders/blosc/blosc_chunk.h"
#include "encoders/blosc/blosc_frame.h"

void wharf_blosc_run(const struct wharf_blosc_parts *parts, const uint8_t *in, size_t in_nbytes,
                     uint8_t *out, size_t out_avail, const struct wharf_codec_setting *setting,
                     uint8_t *scratch, struct wharf_outcome *ret_outcome)
{
    /* Replaces NULL, the pointer of an empty buffer: C does not define NULL + 0. */
    static uint8_t nothing[1];
    struct wharf_blosc_walk walk = {
        .in = in ? in : nothing,
        .in_nbytes = in_nbytes,
        .out = out ? out : nothing,
        .out_avail = out_avail,
        .setting = setting,
        .parts = *parts,
        .scratch = scratch,
        .failure = {.result = WHARF_OK},
    };

    if (setting && setting->parameter)
        wharf_blosc_walk_frame(&walk, ret_outcome);
    else
        wharf_blosc_walk_chunk(&walk, ret_outcome);
    if (walk.failure.result != WHARF_OK)
        *ret_outcome = walk.failure;
}

uint32_t wharf_blosc_unit_nbytes(uint32_t parameter)
{
    uint32_t element_nbytes = parameter % WHARF_BLOSC_PARAMETER_LZ4;
    uint32_t framing = parameter - element_nbytes;

    if (parameter == 0)
        return 1;
    return element_nbytes > 0 &&
           (framing == WHARF_BLOSC_PARAMETER_LZ4 || framing == WHARF_BLOSC_PARAMETER_ZSTD);
}
