/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_inflate_calls.c: the public functions for one large stream of Deflate. */
#include <errno.h>

#include "clientlib/cuda/cuda_handle.h"
#include "clientlib/cuda/wharf_cuda.h"
#include "clientlib/error_text.h"
#include "clientlib/sized_struct.h"

_Static_assert(WHARF_CUDA_MAX_STREAM_NBYTES == WHARF_INFLATE_MAX_STREAM_NBYTES,
               "as the header says");

enum {
    STREAM_NBYTES_0_1 = offsetof(struct wharf_cuda_deflate_stream, scratch_nbytes) + sizeof(size_t),
};

static bool is_codec(uint32_t codec)
{
    return codec == WHARF_CODEC_DEFLATE || codec == WHARF_CODEC_ZLIB || codec == WHARF_CODEC_GZIP;
}

/* Copies the caller's struct, checks all but its pointers, and makes a plan. */
static int take_stream(const struct wharf_cuda *cuda,
                       const struct wharf_cuda_deflate_stream *stream,
                       struct wharf_cuda_deflate_stream *ret_own, struct wharf_inflate_job *ret_job,
                       size_t *ret_scratch)
{
    if (!cuda || !stream)
        return wharf_client_fail(-EINVAL, "the handle or the stream is NULL");
    int rc = wharf_client_copy_struct(ret_own, sizeof(*ret_own), STREAM_NBYTES_0_1, stream,
                                      "the stream");
    if (rc < 0)
        return rc;
    if (!is_codec(ret_own->codec))
        return wharf_client_fail(-EOPNOTSUPP, "codec number %u is not deflate, zlib or gzip",
                                 ret_own->codec);
    if (ret_own->in_nbytes > WHARF_CUDA_MAX_STREAM_NBYTES)
        return wharf_client_fail(-EINVAL, "more than %zu bytes", WHARF_CUDA_MAX_STREAM_NBYTES);
    *ret_job = (struct wharf_inflate_job){
        .in = ret_own->in,
        .out = ret_own->out,
        .in_nbytes = ret_own->in_nbytes,
        .out_avail = ret_own->out_avail,
        .outcome = ret_own->outcome,
        .codec = ret_own->codec,
    };
    *ret_scratch = wharf_inflate_plan(ret_job, &cuda->inflate);
    return 0;
}

/* Whether nbytes at p can be one object. */
static bool is_range(const void *p, size_t nbytes)
{
    return nbytes == 0 || (p && nbytes <= PTRDIFF_MAX && nbytes - 1 <= UINTPTR_MAX - (uintptr_t)p);
}

static int check_ranges(const struct wharf_cuda_deflate_stream *own)
{
    uintptr_t from = (uintptr_t)own->in, to = (uintptr_t)own->out;

    if (!own->outcome || !is_range(own->in, own->in_nbytes) || !is_range(own->out, own->out_avail))
        return wharf_client_fail(-EINVAL, "outcome, source or destination is NULL or no range");
    if (own->in_nbytes > 0 && own->out_avail > 0 &&
        (from < to ? to - from < own->in_nbytes : from - to < own->out_avail))
        return wharf_client_fail(-EINVAL, "source and destination overlap");
    return 0;
}

int wharf_cuda_inflate_scratch(struct wharf_cuda *cuda,
                               const struct wharf_cuda_deflate_stream *stream, size_t *ret_nbytes)
{
    struct wharf_cuda_deflate_stream own;
    struct wharf_inflate_job job;
    size_t nbytes;
    int rc = take_stream(cuda, stream, &own, &job, &nbytes);

    if (rc < 0)
        return rc;
    if (!ret_nbytes)
        return wharf_client_fail(-EINVAL, "ret_nbytes is NULL");
    *ret_nbytes = nbytes;
    return 0;
}

int wharf_cuda_inflate(struct wharf_cuda *cuda, const struct wharf_cuda_deflate_stream *stream,
                       struct CUstream_st *cuda_stream)
{
    struct wharf_cuda_deflate_stream own;
    struct wharf_inflate_job job;
    size_t needed;
    int rc = take_stream(cuda, stream, &own, &job, &needed);

    if (rc == 0)
        rc = check_ranges(&own);
    if (rc == 0)
        rc = wharf_cuda_check_scratch(own.scratch, own.scratch_nbytes, needed);
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_check_current(cuda->decoder));
    if (rc < 0)
        return rc;
    wharf_inflate_lend(&job, own.scratch);
    return wharf_cuda_note(wharf_cuda_start_inflate(&job, cuda_stream));
}
