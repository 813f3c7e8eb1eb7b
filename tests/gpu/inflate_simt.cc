/* SPDX-License-Identifier: Apache-2.0 */
/* inflate_simt.cc: what starts the kernels of kernels/inflate_parts.h, with the SIMT layer in a
 * GPU's place, beside cuda_batch_simt.cc. */
#include "kernels/cuda_error.h"
#include "kernels/simt/simt_inflate.h"
#include "tests/gpu/cuda_batch_simt.h"

static int begin_call()
{
    cuda_batch_simt.n_calls++;
    return cuda_batch_simt.failure
               ? wharf_cuda_refuse(cuda_batch_simt.failure, "the test makes this call fail")
               : 0;
}

int wharf_cuda_load_inflate(struct wharf_inflate_shape *ret_shape)
{
    unsigned part = cuda_batch_simt.part_nbytes, most = cuda_batch_simt.most_nbytes;
    unsigned slice = cuda_batch_simt.slice_nbytes;
    *ret_shape = wharf_simt_inflate_shape;
    ret_shape->least_part_nbytes = part ? part : ret_shape->least_part_nbytes;
    ret_shape->least_most_nbytes = most ? most : ret_shape->least_most_nbytes;
    ret_shape->slice_nbytes = slice ? slice : ret_shape->slice_nbytes;
    return begin_call();
}

int wharf_cuda_start_inflate(const struct wharf_inflate_job *job, struct CUstream_st *)
{
    if (int rc = begin_call())
        return rc;
    wharf_simt_inflate(job);
    cuda_batch_simt.n_links = job->control->has_failed ? 0 : job->control->n_links;
    return 0;
}
