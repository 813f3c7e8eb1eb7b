/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/vector_engines.h"

#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "encoders/blosc/blosc_order.h"
#include "encoders/deflate/inflate_loop.h"
#include "encoders/deflate/inflate_stream.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/zstd/zstd_loops.h"
#include "encoders/zstd/zstd_stream.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_stream.h"

static bool can_decode_any(uint32_t codec)
{
    return wharf_codec_find(codec) != NULL;
}

static void decode_cpu(uint32_t codec, uint32_t parameter, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome)
{
    const struct wharf_codec_setting setting = {.parameter = parameter};
    wharf_codec_find(codec)->ops->decode(in, in_nbytes, out, out_avail, &setting, ret_outcome);
}

/* The loops for machines without BMI2 or vectors, whatever this one has. */
static void decode_cpu_plain(uint32_t codec, uint32_t parameter, const uint8_t *in,
                             size_t in_nbytes, uint8_t *out, size_t out_avail,
                             struct wharf_outcome *ret_outcome)
{
    if (wharf_inflate_loop_force("plain") < 0 || wharf_rans_loop_force("none") < 0 ||
        wharf_zstd_loops_force("plain") < 0 || wharf_blosc_order_force("plain") < 0)
        abort();
    decode_cpu(codec, parameter, in, in_nbytes, out, out_avail, ret_outcome);
    wharf_inflate_loop_force(NULL);
    wharf_zstd_loops_force(NULL);
    wharf_blosc_order_force(NULL);
    wharf_rans_loop_force(NULL);
}

/* Vectors of 256 bits: machines that have larger ones use these otherwise. */
static bool can_decode_avx2(uint32_t codec)
{
    bool has_form = wharf_rans_loop_force("avx2") == 0;

    wharf_rans_loop_force(NULL);
    return codec == WHARF_CODEC_RANS && has_form;
}

static void decode_cpu_avx2(uint32_t codec, uint32_t parameter, const uint8_t *in, size_t in_nbytes,
                            uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome)
{
    if (wharf_rans_loop_force("avx2") < 0)
        abort();
    decode_cpu(codec, parameter, in, in_nbytes, out, out_avail, ret_outcome);
    wharf_rans_loop_force(NULL);
}

static void decode_reference(uint32_t codec, uint32_t parameter, const uint8_t *in,
                             size_t in_nbytes, uint8_t *out, size_t out_avail,
                             struct wharf_outcome *ret_outcome)
{
    const struct wharf_codec_setting setting = {.parameter = parameter};
    wharf_codec_find(codec)->ops->decode_reference(in, in_nbytes, out, out_avail, &setting,
                                                   ret_outcome);
}

/* Through the public API. */
static void decode_library(uint32_t codec, uint32_t parameter, const uint8_t *in, size_t in_nbytes,
                           uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome)
{
    struct wharf *wharf;
    struct wharf_job job = WHARF_JOB_INIT;
    job.codec = codec;
    job.parameter = parameter;
    job.in = in;
    job.in_nbytes = in_nbytes;
    job.out = out;
    job.out_avail = out_avail;
    if (wharf_open(NULL, &wharf) < 0 || wharf_decompress(wharf, &job, ret_outcome) < 0)
        abort();
    wharf_close(wharf);
}

/* A stream decoder for the codec, or NULL. */
static struct wharf_stream *new_stream(uint32_t codec)
{
    switch (codec) {
    case WHARF_CODEC_DEFLATE:
        return wharf_inflate_stream_new(WHARF_INFLATE_RAW);
    case WHARF_CODEC_ZLIB:
        return wharf_inflate_stream_new(WHARF_INFLATE_ZLIB);
    case WHARF_CODEC_GZIP:
        return wharf_inflate_stream_new(WHARF_INFLATE_GZIP);
    case WHARF_CODEC_ZSTD:
        return wharf_zstd_stream_new(WHARF_ZSTD_ALL_FRAMES);
    default:
        return NULL;
    }
}

static bool can_stream(uint32_t codec)
{
    struct wharf_stream *stream = new_stream(codec);

    wharf_stream_free(stream);
    return stream;
}

/* What no longer fits `out` is dropped. */
static void decode_stream(uint32_t codec, size_t max_piece, const uint8_t *in, size_t in_nbytes,
                          uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome)
{
    struct test_stream stream =
        test_stream_decode(new_stream(codec), in, in_nbytes, max_piece, in_nbytes);
    size_t n = stream.out_nbytes < out_avail ? stream.out_nbytes : out_avail;
    if (n > 0)
        memcpy(out, stream.out, n);
    *ret_outcome = stream.outcome;
    test_stream_free(&stream);
}

static void decode_stream_bytes(uint32_t codec, uint32_t parameter, const uint8_t *in,
                                size_t in_nbytes, uint8_t *out, size_t out_avail,
                                struct wharf_outcome *ret_outcome)
{
    (void)parameter;
    decode_stream(codec, 1, in, in_nbytes, out, out_avail, ret_outcome);
}

static void decode_stream_pieces(uint32_t codec, uint32_t parameter, const uint8_t *in,
                                 size_t in_nbytes, uint8_t *out, size_t out_avail,
                                 struct wharf_outcome *ret_outcome)
{
    (void)parameter;
    decode_stream(codec, 40000, in, in_nbytes, out, out_avail, ret_outcome);
}

static bool can_decode_simt(uint32_t codec)
{
    return wharf_simt_can_decode(codec);
}

/* The device's code, its lanes in one of the three orders; serial: WHARF_DEVICE_SERIAL or such. */
static void decode_simt(uint32_t codec, uint32_t parameter, uint32_t serial, const uint8_t *in,
                        size_t in_nbytes, uint8_t *out, size_t out_avail,
                        enum wharf_simt_order order, struct wharf_outcome *ret_outcome)
{
    struct wharf_device_chunk chunk = {.in = in,
                                       .in_nbytes = in_nbytes,
                                       .out = out,
                                       .out_avail = out_avail,
                                       .codec = codec,
                                       .parameter = parameter};
    struct wharf_device_batch batch = {&chunk, ret_outcome, 1, codec | serial};
    if (wharf_simt_decode_batch(&batch, order, in_nbytes, NULL) < 0)
        abort();
}

static void decode_simt_ascending(uint32_t codec, uint32_t parameter, const uint8_t *in,
                                  size_t in_nbytes, uint8_t *out, size_t out_avail,
                                  struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, 0, in, in_nbytes, out, out_avail, WHARF_SIMT_ASCENDING,
                ret_outcome);
}

static void decode_simt_descending(uint32_t codec, uint32_t parameter, const uint8_t *in,
                                   size_t in_nbytes, uint8_t *out, size_t out_avail,
                                   struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, 0, in, in_nbytes, out, out_avail, WHARF_SIMT_DESCENDING,
                ret_outcome);
}

static void decode_simt_random(uint32_t codec, uint32_t parameter, const uint8_t *in,
                               size_t in_nbytes, uint8_t *out, size_t out_avail,
                               struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, 0, in, in_nbytes, out, out_avail, WHARF_SIMT_RANDOM, ret_outcome);
}

static bool can_decode_serial(uint32_t codec)
{
    return wharf_simt_can_decode(codec | WHARF_DEVICE_SERIAL);
}

static void decode_simt_serial(uint32_t codec, uint32_t parameter, const uint8_t *in,
                               size_t in_nbytes, uint8_t *out, size_t out_avail,
                               struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, WHARF_DEVICE_SERIAL, in, in_nbytes, out, out_avail,
                WHARF_SIMT_RANDOM, ret_outcome);
}

static void decode_simt_registers(uint32_t codec, uint32_t parameter, const uint8_t *in,
                                  size_t in_nbytes, uint8_t *out, size_t out_avail,
                                  struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, WHARF_DEVICE_SERIAL_REGISTERS, in, in_nbytes, out, out_avail,
                WHARF_SIMT_RANDOM, ret_outcome);
}

static void decode_simt_prefetch(uint32_t codec, uint32_t parameter, const uint8_t *in,
                                 size_t in_nbytes, uint8_t *out, size_t out_avail,
                                 struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, WHARF_DEVICE_SERIAL_PREFETCH, in, in_nbytes, out, out_avail,
                WHARF_SIMT_RANDOM, ret_outcome);
}

static bool can_decode_block(uint32_t codec)
{
    return wharf_simt_can_decode(codec | WHARF_DEVICE_BLOCK);
}

static void decode_simt_block(uint32_t codec, uint32_t parameter, const uint8_t *in,
                              size_t in_nbytes, uint8_t *out, size_t out_avail,
                              struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, WHARF_DEVICE_BLOCK, in, in_nbytes, out, out_avail,
                WHARF_SIMT_RANDOM, ret_outcome);
}

/* Of Blosc, a warp for each chunk, around the decoders of other codecs. */
static bool can_decode_around(uint32_t codec)
{
    return codec == WHARF_CODEC_BLOSC;
}

static void decode_simt_around(uint32_t codec, uint32_t parameter, const uint8_t *in,
                               size_t in_nbytes, uint8_t *out, size_t out_avail,
                               struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, WHARF_DEVICE_ANY_CODEC, in, in_nbytes, out, out_avail,
                WHARF_SIMT_RANDOM, ret_outcome);
}

static bool can_decode_crew(uint32_t codec)
{
    return wharf_simt_can_decode(codec | WHARF_DEVICE_CREW);
}

static void decode_simt_crew(uint32_t codec, uint32_t parameter, const uint8_t *in,
                             size_t in_nbytes, uint8_t *out, size_t out_avail,
                             struct wharf_outcome *ret_outcome)
{
    decode_simt(codec, parameter, WHARF_DEVICE_CREW, in, in_nbytes, out, out_avail,
                WHARF_SIMT_RANDOM, ret_outcome);
}

const struct vector_engine vector_engines[] = {
    {"cpu", can_decode_any, decode_cpu, false, false, VECTOR_ENGINE_CPU},
    {"cpu, plain loop", can_decode_any, decode_cpu_plain, false, true, VECTOR_ENGINE_CPU},
    {"cpu, AVX2", can_decode_avx2, decode_cpu_avx2, false, true, VECTOR_ENGINE_CPU},
    {"reference", can_decode_any, decode_reference, false, true, VECTOR_ENGINE_CPU},
    {"stream of single bytes", can_stream, decode_stream_bytes, true, false, VECTOR_ENGINE_CPU},
    {"stream of pieces", can_stream, decode_stream_pieces, true, false, VECTOR_ENGINE_CPU},
    {"library", can_decode_any, decode_library, false, false, VECTOR_ENGINE_CPU},
    {"simt ascending", can_decode_simt, decode_simt_ascending, false, true,
     VECTOR_ENGINE_DEVICE_AGAIN},
    {"simt descending", can_decode_simt, decode_simt_descending, false, true,
     VECTOR_ENGINE_DEVICE_AGAIN},
    {"simt random", can_decode_simt, decode_simt_random, false, true, VECTOR_ENGINE_DEVICE},
    {"simt serial", can_decode_serial, decode_simt_serial, false, true, VECTOR_ENGINE_DEVICE},
    {"simt serial, registers", can_decode_serial, decode_simt_registers, false, true,
     VECTOR_ENGINE_DEVICE},
    {"simt serial, prefetch", can_decode_serial, decode_simt_prefetch, false, true,
     VECTOR_ENGINE_DEVICE},
    {"simt block", can_decode_block, decode_simt_block, false, true, VECTOR_ENGINE_DEVICE},
    {"simt around", can_decode_around, decode_simt_around, false, true, VECTOR_ENGINE_DEVICE},
    {"simt crew", can_decode_crew, decode_simt_crew, false, true, VECTOR_ENGINE_DEVICE},
};
const size_t n_vector_engines = sizeof(vector_engines) / sizeof(vector_engines[0]);
