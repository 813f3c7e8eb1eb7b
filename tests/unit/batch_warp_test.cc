/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_warp_test: which chunk a warp of a batch takes next (kernels/batch_warp.cuh).
 */
#include <criterion/criterion.h>

#include "kernels/batch_warp.cuh"

using namespace wharf;

Test(batch_warp, every_chunk_beyond_the_first_ones_is_taken_once)
{
    for (uint32_t n_warps : {1u, 3u, 8u, 9u})
        for (uint32_t n_chunks : {1u, 7u, 8u, 9u, 20u}) {
            uint32_t next = n_warps;
            /* Every warp asks until it is refused, so there are as many questions as this. */
            for (uint32_t taken = 0; taken < n_chunks + n_warps; taken++) {
                uint32_t chunk = chunk_taken(n_chunks, n_warps, taken);
                cr_assert(chunk == (next < n_chunks ? next : n_chunks), "%u of %u by %u: %u", taken,
                          n_chunks, n_warps, chunk);
                next++;
            }
        }
}

/* n_warps + taken once wrapped to a low chunk here, and the batch began anew. */
Test(batch_warp, the_last_of_nearly_2_to_the_32_chunks_are_the_last)
{
    const uint32_t n_warps = 4224, n_chunks = 0xffffffffu;
    cr_assert(chunk_taken(n_chunks, n_warps, n_chunks - n_warps - 1) == n_chunks - 1);
    for (uint32_t taken = n_chunks - n_warps; taken != 0; taken++) /* to 2^32 - 1 */
        cr_assert(chunk_taken(n_chunks, n_warps, taken) == n_chunks, "%u", taken);
}
