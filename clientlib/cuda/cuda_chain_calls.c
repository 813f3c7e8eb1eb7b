/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_chain_calls.c: the public functions for batches whose sources are outputs of others. */
#include <errno.h>

#include "clientlib/cuda/cuda_handle.h"
#include "clientlib/cuda/wharf_cuda.h"
#include "clientlib/error_text.h"
#include "clientlib/sized_struct.h"
#include "kernels/chain_sources.h"

enum {
    CHAIN_NBYTES_0_1 = offsetof(struct wharf_cuda_chain, offsets) + sizeof(void *),
};

/* The arrays of sources, in front of the scratch of decoding. */
static size_t sources_nbytes(size_t n_chunks)
{
    size_t nbytes = n_chunks * (sizeof(void *) + sizeof(size_t));

    return (nbytes + WHARF_CUDA_SCRATCH_ALIGN - 1) / WHARF_CUDA_SCRATCH_ALIGN *
           WHARF_CUDA_SCRATCH_ALIGN;
}

static size_t scratch_of(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *own)
{
    return sources_nbytes(own->n_chunks) + wharf_cuda_scratch_of(cuda, own);
}

int wharf_cuda_chain_scratch(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                             size_t *ret_nbytes)
{
    struct wharf_cuda_batch own;
    int rc = wharf_cuda_take_batch(cuda, batch, &own);

    if (rc < 0)
        return rc;
    if (!ret_nbytes)
        return wharf_client_fail(-EINVAL, "ret_nbytes is NULL");
    *ret_nbytes = scratch_of(cuda, &own);
    return 0;
}

static int take_chain(const struct wharf_cuda_chain *chain, size_t n_chunks,
                      struct wharf_device_chain *ret_device)
{
    struct wharf_cuda_chain own;

    if (!chain)
        return wharf_client_fail(-EINVAL, "the chain is NULL");
    int rc = wharf_client_copy_struct(&own, sizeof(own), CHAIN_NBYTES_0_1, chain, "the chain");
    if (rc < 0)
        return rc;
    if (own.n_parts > WHARF_CUDA_MAX_CHUNKS || own.reserved != 0)
        return wharf_client_fail(-EINVAL, "more than %zu parts, or reserved is not 0",
                                 WHARF_CUDA_MAX_CHUNKS);
    if ((n_chunks > 0 && !own.offsets) ||
        (own.n_parts > 0 && (!own.parts || !own.parts_avail || !own.part_outcomes)))
        return wharf_client_fail(-EINVAL, "an array of the chain is NULL");
    *ret_device = (struct wharf_device_chain){
        .parts = (uint8_t *const *)own.parts,
        .parts_avail = own.parts_avail,
        .outcomes = own.part_outcomes,
        .order = own.order,
        .offsets = own.offsets,
        .n_parts = (uint32_t)own.n_parts,
    };
    return 0;
}

/* Lends the batch its arrays of sources, which begin at the scratch, and leaves it the rest. */
static void lend_sources(struct wharf_cuda_batch *own, const uint8_t ***ret_in,
                         uint64_t **ret_in_nbytes)
{
    size_t nbytes = sources_nbytes(own->n_chunks);

    *ret_in = own->scratch;
    *ret_in_nbytes = (uint64_t *)(void *)(*ret_in + own->n_chunks);
    own->in = (const void *const *)*ret_in;
    own->in_nbytes = *ret_in_nbytes;
    own->scratch = (uint8_t *)own->scratch + nbytes;
    own->scratch_nbytes -= nbytes;
}

static int start(const struct wharf_cuda *cuda, const struct wharf_device_chain *chain,
                 struct wharf_cuda_batch *own, struct CUstream_st *stream)
{
    uint32_t n_chunks = (uint32_t)own->n_chunks;
    const uint8_t **in;
    uint64_t *in_nbytes;

    lend_sources(own, &in, &in_nbytes);
    int rc = wharf_cuda_note(wharf_cuda_start_sources(chain, n_chunks, in, in_nbytes, stream));
    if (rc == 0)
        rc = wharf_cuda_start_batch(cuda, own, stream);
    if (rc == 0)
        rc = wharf_cuda_note(
            wharf_cuda_start_failures(in, in_nbytes, own->outcomes, n_chunks, stream));
    return rc;
}

int wharf_cuda_decode_chain(struct wharf_cuda *cuda, const struct wharf_cuda_chain *chain,
                            const struct wharf_cuda_batch *batch, struct CUstream_st *stream)
{
    struct wharf_device_chain device;
    struct wharf_cuda_batch own;
    int rc = wharf_cuda_take_batch(cuda, batch, &own);

    if (rc == 0)
        rc = wharf_cuda_check_outputs(&own);
    if (rc == 0)
        rc = take_chain(chain, own.n_chunks, &device);
    if (rc < 0 || own.n_chunks == 0)
        return rc;
    rc = wharf_cuda_check_scratch(own.scratch, own.scratch_nbytes, scratch_of(cuda, &own));
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_check_current(cuda->decoder));
    return rc < 0 ? rc : start(cuda, &device, &own, stream);
}
