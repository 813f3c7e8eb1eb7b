/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_rans_calls.c: the public functions for one large rans stream.
 *
 * A plan is the job that rans_pieces.h makes from a stream on the host, with the places of its
 * splits in GPU memory.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "clientlib/cuda/cuda_handle.h"
#include "clientlib/cuda/wharf_cuda.h"
#include "clientlib/error_text.h"
#include "encoders/rans/rans.h"
#include "kernels/rans_pieces.h"

struct wharf_cuda_rans_plan {
    const struct wharf_cuda *cuda;
    void *d_places;
    size_t out_avail;
    struct wharf_rans_stream_job job;
};

static int job_failed(int rc)
{
    if (rc == -EILSEQ)
        return wharf_client_fail(-EBADMSG, "the stream is bad, as its outcome says");
    if (rc == -ENOTSUP)
        return wharf_client_fail(-EOPNOTSUPP, "the whole GPU does not decode such a stream");
    return rc < 0 ? wharf_client_fail(rc, "the stream cannot be taken apart") : 0;
}

/* Chooses the number of pieces with which a stream of this layout is decoded soonest. */
static int choose_pieces(const struct wharf_rans_layout *layout, uint32_t *ret_n)
{
    uint64_t out_nbytes = (uint64_t)layout->n_symbols * layout->symbol_nbytes;
    bool is_of_bytes = layout->symbol_nbytes == 1 && layout->n_distributions == 1;

    return wharf_cuda_note(wharf_cuda_rans_max_pieces(out_nbytes, is_of_bytes, ret_n));
}

/* Makes the job, and the places of its splits in memory that the caller frees. */
static int take_apart(const struct wharf_rans_stream_request *request,
                      struct wharf_rans_stream_job *ret_job, struct wharf_rans_place **ret_places,
                      struct wharf_outcome *ret_outcome)
{
    struct wharf_rans_place none;
    uint32_t max_pieces = 1;
    /* Without room for places, this call only returns the layout. */
    int rc = wharf_rans_stream_job_init(request, max_pieces, &none, 0, ret_job, ret_outcome);

    if (rc != -ENOBUFS)
        return job_failed(rc);
    uint32_t n_splits = ret_job->layout.n_splits;
    rc = choose_pieces(&ret_job->layout, &max_pieces);
    if (rc < 0)
        return rc;
    struct wharf_rans_place *places = malloc(n_splits * sizeof(*places));
    if (!places)
        return wharf_client_fail(-ENOMEM, "out of memory");
    rc = wharf_rans_stream_job_init(request, max_pieces, places, n_splits, ret_job, ret_outcome);
    if (rc < 0) {
        free(places);
        return job_failed(rc);
    }
    *ret_places = places;
    return 0;
}

static int check_request(const struct wharf_cuda *cuda, uint32_t parameter,
                         const struct wharf_cuda_model *model)
{
    if (!cuda)
        return wharf_client_fail(-EINVAL, "the handle is NULL");
    if (model && (model->cuda != cuda || model->codec != WHARF_CODEC_RANS))
        return wharf_client_fail(-EINVAL, "the model is another handle's or codec's");
    if (!model && wharf_rans_unit_nbytes(parameter) == 0)
        return wharf_client_fail(-EINVAL, "%u is no parameter of rans", parameter);
    return 0;
}

int wharf_cuda_rans_plan_new(struct wharf_cuda *cuda, uint32_t parameter,
                             const struct wharf_cuda_model *model, const void *in, size_t in_nbytes,
                             size_t out_avail, struct wharf_cuda_rans_plan **ret_plan,
                             struct wharf_outcome *ret_outcome)
{
    const struct wharf_rans_stream_request request = {
        .h_in = in,
        .in_nbytes = in_nbytes,
        .parameter = parameter,
        .h_model = model ? model->image : NULL,
        .out_avail = out_avail,
    };
    struct wharf_rans_place *places = NULL;
    struct wharf_outcome outcome;
    int rc = check_request(cuda, parameter, model);

    if (rc < 0)
        return rc;
    if ((!in && in_nbytes > 0) || !ret_plan || !ret_outcome)
        return wharf_client_fail(-EINVAL, "the stream, ret_plan or ret_outcome is NULL");
    rc = wharf_cuda_note(wharf_cuda_check_current(cuda->decoder));
    if (rc < 0)
        return rc;
    struct wharf_cuda_rans_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return wharf_client_fail(-ENOMEM, "out of memory");
    rc = take_apart(&request, &plan->job, &places, &outcome);
    if (rc < 0) {
        if (rc == -EBADMSG)
            *ret_outcome = outcome;
        free(plan);
        return rc;
    }
    plan->cuda = cuda;
    plan->out_avail = out_avail;
    rc = wharf_cuda_note(wharf_cuda_copy_in(
        cuda->decoder, places, plan->job.layout.n_splits * sizeof(*places), &plan->d_places));
    free(places);
    if (rc < 0) {
        free(plan);
        return rc;
    }
    plan->job.places = plan->d_places;
    plan->job.model = model ? model->d_image : NULL;
    *ret_plan = plan;
    return 0;
}

void wharf_cuda_rans_plan_free(struct wharf_cuda_rans_plan *plan)
{
    if (!plan)
        return;
    wharf_cuda_copy_free(plan->d_places);
    free(plan);
}

size_t wharf_cuda_rans_scratch(const struct wharf_cuda_rans_plan *plan)
{
    size_t nbytes = plan ? plan->job.n_pieces * sizeof(struct wharf_rans_piece_outcome) : 0;

    return (nbytes + WHARF_CUDA_SCRATCH_ALIGN - 1) / WHARF_CUDA_SCRATCH_ALIGN *
           WHARF_CUDA_SCRATCH_ALIGN;
}

int wharf_cuda_rans_decode(const struct wharf_cuda_rans_plan *plan, const void *in, void *out,
                           struct wharf_outcome *outcome, void *scratch, size_t scratch_nbytes,
                           struct CUstream_st *stream)
{
    if (!plan || !in || !outcome || (!out && plan->out_avail > 0))
        return wharf_client_fail(-EINVAL, "plan, source, destination or outcome is NULL");
    int rc = wharf_cuda_check_scratch(scratch, scratch_nbytes, wharf_cuda_rans_scratch(plan));
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_check_current(plan->cuda->decoder));
    if (rc < 0)
        return rc;
    struct wharf_rans_stream_job job = plan->job;
    job.in = in;
    job.out = out;
    job.outcomes = scratch;
    rc = wharf_cuda_decode_rans(&job, stream);
    if (rc == 0)
        rc = wharf_cuda_verify_rans(&job, stream);
    if (rc == 0)
        rc = wharf_cuda_settle_rans(&job, outcome, stream);
    return wharf_cuda_note(rc);
}
