/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/vector_engines.h"

#include <stdlib.h>

#include "clientlib/wharf.h"

static bool can_decode_any(uint32_t codec)
{
    return wharf_codec_find(codec) != NULL;
}

static void decode_cpu(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                       size_t out_avail, struct wharf_outcome *ret_outcome)
{
    wharf_codec_find(codec)->ops->decode(in, in_nbytes, out, out_avail, ret_outcome);
}

static void decode_reference(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                             size_t out_avail, struct wharf_outcome *ret_outcome)
{
    wharf_codec_find(codec)->ops->decode_reference(in, in_nbytes, out, out_avail, ret_outcome);
}

/* Through the public API. */
static void decode_library(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                           size_t out_avail, struct wharf_outcome *ret_outcome)
{
    struct wharf *wharf;
    struct wharf_job job = WHARF_JOB_INIT;
    job.codec = codec;
    job.in = in;
    job.in_nbytes = in_nbytes;
    job.out = out;
    job.out_avail = out_avail;
    if (wharf_open(NULL, &wharf) < 0 || wharf_decompress(wharf, &job, ret_outcome) < 0)
        abort();
    wharf_close(wharf);
}

const struct vector_engine vector_engines[] = {
    {"cpu", can_decode_any, decode_cpu, false},
    {"reference", can_decode_any, decode_reference, false},
    {"library", can_decode_any, decode_library, false},
};
const size_t n_vector_engines = sizeof(vector_engines) / sizeof(vector_engines[0]);
