/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_cuda.c: decodes a program's chunks in its own CUDA context, by libwharf-cuda.
 *
 *     cc example_cuda.c $(pkg-config --cflags --libs wharf-cuda) -I CUDA/include \
 *         -L CUDA/lib64 -lcudart
 *
 * It decodes two raw Snappy chunks, a good one and a damaged one, and prints their outcomes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <wharf_cuda.h>

enum { N_CHUNKS = 2, ROOM = 64 };

/* "wharf " six times: six literals, and a match of the other thirty bytes; and the same with a
 * match that reaches before the first byte. */
static const unsigned char chunks[N_CHUNKS][11] = {
    {36, 5 << 2, 'w', 'h', 'a', 'r', 'f', ' ', (30 - 1) << 2 | 2, 6, 0},
    {36, 5 << 2, 'w', 'h', 'a', 'r', 'f', ' ', (30 - 1) << 2 | 2, 7, 0},
};

/* The contents of GPU memory: sources, destinations, the arrays of a batch, and outcomes. */
struct memory {
    unsigned char in[N_CHUNKS][11];
    unsigned char out[N_CHUNKS][ROOM];
    const void *sources[N_CHUNKS];
    void *destinations[N_CHUNKS];
    size_t in_nbytes[N_CHUNKS], out_avail[N_CHUNKS];
    struct wharf_outcome outcomes[N_CHUNKS];
};

static void must(int good, const char *what, const char *why)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void must_cuda(cudaError_t error, const char *what)
{
    must(error == cudaSuccess, what, cudaGetErrorString(error));
}

int main(void)
{
    struct wharf_cuda_batch batch = WHARF_CUDA_BATCH_INIT;
    struct wharf_cuda *cuda;
    struct memory here, *there;
    cudaStream_t stream;
    int status = 0;

    must_cuda(cudaSetDevice(0), "the GPU");
    must(wharf_cuda_open(&cuda) == 0, "libwharf-cuda", wharf_cuda_error_message());
    must_cuda(cudaStreamCreate(&stream), "a stream");
    must_cuda(cudaMalloc((void **)&there, sizeof(*there)), "memory");
    memset(&here, 0, sizeof(here));
    memcpy(here.in, chunks, sizeof(chunks));
    for (int i = 0; i < N_CHUNKS; i++) {
        here.sources[i] = there->in[i];
        here.destinations[i] = there->out[i];
        here.in_nbytes[i] = sizeof(chunks[i]);
        here.out_avail[i] = ROOM;
    }
    must_cuda(cudaMemcpyAsync(there, &here, sizeof(here), cudaMemcpyHostToDevice, stream),
              "a copy");

    batch.codec = WHARF_CODEC_SNAPPY;
    batch.n_chunks = N_CHUNKS;
    batch.in = there->sources;
    batch.in_nbytes = there->in_nbytes;
    batch.out = there->destinations;
    batch.out_avail = there->out_avail;
    batch.outcomes = there->outcomes;
    must(wharf_cuda_decode_scratch(cuda, &batch, &batch.scratch_nbytes) == 0, "libwharf-cuda",
         wharf_cuda_error_message());
    must_cuda(cudaMalloc(&batch.scratch, batch.scratch_nbytes), "scratch");
    must(wharf_cuda_decode(cuda, &batch, stream) == 0, "libwharf-cuda", wharf_cuda_error_message());
    must_cuda(cudaMemcpyAsync(&here, there, sizeof(here), cudaMemcpyDeviceToHost, stream),
              "a copy");
    must_cuda(cudaStreamSynchronize(stream), "the stream");

    for (int i = 0; i < N_CHUNKS; i++) {
        const struct wharf_outcome *outcome = &here.outcomes[i];
        if (outcome->result == WHARF_OK) {
            printf("chunk %d: %.*s\n", i, (int)outcome->out_nbytes, (const char *)here.out[i]);
        } else {
            printf("chunk %d: %s at bit %" PRIu64 "\n", i, wharf_reason_string(outcome->reason),
                   outcome->bit_offset);
            status = 1;
        }
    }
    cudaFree(batch.scratch);
    cudaFree(there);
    cudaStreamDestroy(stream);
    wharf_cuda_close(cuda);
    return status;
}
