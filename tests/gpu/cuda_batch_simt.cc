/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_batch_simt.cc: kernels/cuda_batch.h on the SIMT layer, for tests of libwharf-cuda's calls on
 * machines without a GPU: all that is above it is the library's own code, and so is what the device
 * runs.  A call is done when it returns; streams are not looked at.
 *
 * Tests may say which call is the next to fail, and on which GPU the thread is.
 */
#include "tests/gpu/cuda_batch_simt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/chain_source.cuh"
#include "kernels/chain_sources.h"
#include "kernels/chunk_size.cuh"
#include "kernels/chunk_sizes.h"
#include "kernels/cuda_batch.h"
#include "kernels/line_warp.cuh"
#include "kernels/rans/rans_pieces.cuh"
#include "kernels/simt/simt_batch.h"

using namespace wharf;

struct wharf_cuda_decoder {
    int device;
};

struct cuda_batch_simt cuda_batch_simt;

static thread_local char error_text[256];

const char *wharf_cuda_error_text(void)
{
    return error_text;
}

int wharf_cuda_refuse(int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error_text, sizeof(error_text), format, args);
    va_end(args);
    return rc;
}

static int begin_call(void)
{
    cuda_batch_simt.n_calls++;
    return cuda_batch_simt.failure
               ? wharf_cuda_refuse(cuda_batch_simt.failure, "the test makes this call fail")
               : 0;
}

int wharf_cuda_decoder_new(struct wharf_cuda_decoder **ret_decoder)
{
    if (int rc = begin_call())
        return rc;
    *ret_decoder = static_cast<wharf_cuda_decoder *>(calloc(1, sizeof(wharf_cuda_decoder)));
    if (!*ret_decoder)
        return -ENOMEM;
    (*ret_decoder)->device = cuda_batch_simt.current;
    return 0;
}

void wharf_cuda_decoder_free(struct wharf_cuda_decoder *decoder)
{
    free(decoder);
}

int wharf_cuda_check_current(const struct wharf_cuda_decoder *decoder)
{
    return decoder->device == cuda_batch_simt.current
               ? 0
               : wharf_cuda_refuse(-EINVAL, "another GPU is current");
}

bool wharf_cuda_has_decoder(uint32_t codec)
{
    return codec < WHARF_DEVICE_INDEXED && wharf_simt_can_decode(codec);
}

/* As a GPU that holds a hundred warps; simt_batch.cc has scratch of its own for decoders. */
size_t wharf_cuda_scratch_nbytes(const struct wharf_cuda_decoder *, uint32_t kernel,
                                 uint32_t n_chunks, bool has_models)
{
    size_t n_warps = n_chunks < 100 ? n_chunks : 100;
    if (!wharf_simt_can_decode(kernel))
        return 0;
    size_t own = kernel == WHARF_CODEC_RANS && !has_models ? (n_warps << 17) : 0;
    return 256 + (n_chunks * sizeof(wharf_device_chunk) + 255) / 256 * 256 + own;
}

int wharf_cuda_decode_batch(const struct wharf_cuda_decoder *,
                            const struct wharf_device_batch *batch, void *, struct CUstream_st *)
{
    if (int rc = begin_call())
        return rc;
    return wharf_simt_decode_batch(batch, WHARF_SIMT_RANDOM, batch->n_chunks, nullptr);
}

int wharf_cuda_decode_arrays(const struct wharf_cuda_decoder *decoder, uint32_t kernel,
                             const struct wharf_device_arrays *arrays, void *d_scratch,
                             struct CUstream_st *stream)
{
    auto *chunks = reinterpret_cast<wharf_device_chunk *>(static_cast<uint8_t *>(d_scratch) + 256);
    for (uint32_t i = 0; i < arrays->n_chunks; i++)
        chunks[i] = gather_chunk(*arrays, i);
    wharf_device_batch batch = {chunks, arrays->outcomes, arrays->n_chunks, kernel};
    return wharf_cuda_decode_batch(decoder, &batch, d_scratch, stream);
}

template <uint32_t CODEC, uint32_t TYPE = WHARF_LINE_BF16>
static int encode(const wharf_device_arrays &arrays, const wharf_device_lines &lines)
{
    using shared = line_encode_shared<CODEC, TYPE>;
    simt::run_warp<shared>({simt::lane_order::random, arrays.n_chunks},
                           [&](shared &s) { run_line_warp<CODEC, TYPE>(s, arrays, lines, 0, 1); });
    return 0;
}

static int encode_palette(const wharf_device_arrays &arrays, const wharf_device_lines &lines)
{
    switch (lines.type) {
    case WHARF_LINE_BF16:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_BF16>(arrays, lines);
    case WHARF_LINE_F16:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_F16>(arrays, lines);
    case WHARF_LINE_E4M3:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_E4M3>(arrays, lines);
    default:
        return encode<WHARF_CODEC_PALETTE, WHARF_LINE_E5M2>(arrays, lines);
    }
}

int wharf_cuda_encode_lines(const struct wharf_cuda_decoder *,
                            const struct wharf_device_arrays *arrays,
                            const struct wharf_device_lines *lines, struct CUstream_st *)
{
    if (int rc = begin_call())
        return rc;
    switch (arrays->codec) {
    case WHARF_CODEC_BDI:
        return encode<WHARF_CODEC_BDI>(*arrays, *lines);
    case WHARF_CODEC_FPC:
        return encode<WHARF_CODEC_FPC>(*arrays, *lines);
    case WHARF_CODEC_CPACK:
        return encode<WHARF_CODEC_CPACK>(*arrays, *lines);
    case WHARF_CODEC_BEST:
        return encode<WHARF_CODEC_BEST>(*arrays, *lines);
    case WHARF_CODEC_PALETTE:
        return encode_palette(*arrays, *lines);
    default:
        return wharf_cuda_refuse(-EINVAL, "no such encoder");
    }
}

uint32_t wharf_cuda_choose_kernel(const struct wharf_cuda_decoder *, uint32_t codec,
                                  size_t n_chunks)
{
    bool few = n_chunks <= 4 && wharf_simt_can_decode(WHARF_DEVICE_BLOCK | codec);
    bool has_crew = wharf_simt_can_decode(WHARF_DEVICE_CREW | codec);
    return few ? WHARF_DEVICE_BLOCK | codec : has_crew ? WHARF_DEVICE_CREW | codec : codec;
}

int wharf_cuda_get_kernel_info(const struct wharf_cuda_decoder *, uint32_t,
                               struct wharf_cuda_kernel_info *)
{
    return wharf_cuda_refuse(-EINVAL, "the SIMT layer has no kernels");
}

int wharf_cuda_copy_in(const struct wharf_cuda_decoder *decoder, const void *from, size_t nbytes,
                       void **ret_d_copy)
{
    if (int rc = wharf_cuda_check_current(decoder))
        return rc;
    if (int rc = begin_call())
        return rc;
    if (posix_memalign(ret_d_copy, 256, nbytes))
        return -ENOMEM;
    memcpy(*ret_d_copy, from, nbytes);
    return 0;
}

void wharf_cuda_copy_free(void *d_copy)
{
    free(d_copy);
}

/* ---- kernels/chunk_sizes.h ------------------------------------------------------------------ */

int wharf_cuda_load_sizes(void)
{
    return begin_call();
}

int wharf_cuda_start_sizes(const struct wharf_device_arrays *arrays, uint64_t *d_sizes,
                           struct CUstream_st *)
{
    struct nothing {
    };
    if (int rc = begin_call())
        return rc;
    simt::run_warp<nothing>({simt::lane_order::random, arrays->n_chunks}, [&](nothing &) {
        for (uint32_t i = lane_id(); i < arrays->n_chunks; i += WARP_LANES)
            d_sizes[i] = size_of_output(*arrays, i);
    });
    return 0;
}

/* ---- kernels/chain_sources.h ---------------------------------------------------------------- */

int wharf_cuda_load_chain(void)
{
    return begin_call();
}

int wharf_cuda_start_sources(const struct wharf_device_chain *chain, uint32_t n_chunks,
                             const uint8_t **d_in, uint64_t *d_in_nbytes, struct CUstream_st *)
{
    struct nothing {
    };
    if (int rc = begin_call())
        return rc;
    for (uint32_t i = 0; i < n_chunks; i++)
        simt::run_warp<nothing>({simt::lane_order::random, i}, [&](nothing &) {
            chain_source source = find_source(*chain, i);
            if (lane_id() == 0) {
                d_in[i] = source.in;
                d_in_nbytes[i] = source.in_nbytes;
            }
        });
    return 0;
}

int wharf_cuda_start_failures(const uint8_t *const *d_in, const uint64_t *d_in_nbytes,
                              struct wharf_outcome *d_outcomes, uint32_t n_chunks,
                              struct CUstream_st *)
{
    for (uint32_t i = 0; i < n_chunks; i++)
        if (!d_in[i] && d_in_nbytes[i] != 0)
            d_outcomes[i] = failure_of(d_in_nbytes[i]);
    return begin_call();
}

/* ---- kernels/rans_pieces.h: the verifier decodes all pieces --------------------------------- */

constexpr unsigned RANS_WARPS = 8;

int wharf_cuda_load_rans(void)
{
    return begin_call();
}

int wharf_cuda_rans_max_pieces(uint64_t, bool, uint32_t *ret_n)
{
    *ret_n = 40;
    return begin_call();
}

int wharf_cuda_decode_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *)
{
    for (uint32_t i = 0; i < job->n_pieces; i++)
        job->outcomes[i] = {WHARF_RANS_REFUSED, 0};
    return begin_call();
}

int wharf_cuda_verify_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *)
{
    using memory = rans::verify_memory<RANS_WARPS>;
    for (uint32_t block = 0; block < 3; block++)
        simt::run_block<memory>(
            {simt::lane_order::random, block}, RANS_WARPS,
            [&](memory &s, unsigned warp) { rans::verify_pieces(s, warp, block, 3, *job); });
    return begin_call();
}

int wharf_cuda_settle_rans(const struct wharf_rans_stream_job *job, struct wharf_outcome *d_outcome,
                           struct CUstream_st *)
{
    simt::run_block<rans::first_bad_memory>(
        {simt::lane_order::random, 1}, RANS_WARPS, [&](rans::first_bad_memory &s, unsigned warp) {
            rans::settle_pieces(s, warp, RANS_WARPS, *job, d_outcome);
        });
    return begin_call();
}
