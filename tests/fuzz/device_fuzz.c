/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device decoders, on the SIMT layer: any bytes as a job, whose outcome and output must be the CPU
 * engine's; by a crew too, where there is one, and Blosc by its phases.
 *
 * The first byte chooses the codec (its lower four bits, and its highest for those from 16 on) and
 * the order of the lanes, the second the job's flags and the room for the output, the third the
 * codec's parameter (of Blosc 0 for a chunk, or twice the size of an element in bitshuffle's
 * framing, and 1 more for zstd); the rest is the source.  Both are capped: under a sanitizer every
 * collective of the warp costs two microseconds, and small sizes reach the same code.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/decode_job.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { HEAD_NBYTES = 3, MAX_IN_NBYTES = 2048, MAX_OUT_NBYTES = 6000, N_ORDERS = 3 };

static const uint32_t codecs[] = {
#define X(ID, name, number, summary) WHARF_CODEC_##ID,
    WHARF_CODEC_LIST(X)
#undef X
};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static const size_t rooms[] = {0, 1, 100, 1000, 4096, MAX_OUT_NBYTES};
enum { N_ROOMS = sizeof(rooms) / sizeof(rooms[0]) };

static void check(int good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static uint8_t want_out[MAX_OUT_NBYTES];
    struct wharf_outcome got;
    struct wharf_outcome want;

    if (nbytes < HEAD_NBYTES)
        return 0;
    uint32_t codec = codecs[((data[0] & 15) | data[0] >> 7 << 4) % N_CODECS];
    if (!wharf_simt_can_decode(codec))
        return 0;
    uint32_t parameter = data[2];
    if (!wharf_codec_unit_nbytes(wharf_codec_find(codec)->ops, parameter))
        parameter &= 7;
    if (!wharf_codec_unit_nbytes(wharf_codec_find(codec)->ops, parameter))
        parameter = 0;
    if (codec == WHARF_CODEC_BLOSC && data[2] > 1)
        parameter =
            (data[2] & 1 ? WHARF_BLOSC_BITSHUFFLE_ZSTD : WHARF_BLOSC_BITSHUFFLE_LZ4) + data[2] / 2;
    nbytes = nbytes - HEAD_NBYTES < MAX_IN_NBYTES ? nbytes - HEAD_NBYTES : MAX_IN_NBYTES;
    struct test_guard in = test_guard_copy(data + HEAD_NBYTES, nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(rooms[data[1] / 8 % N_ROOMS], TEST_GUARD_END);

    struct wharf_decode_job job = {
        .codec = codec,
        .flags = data[1] & WHARF_JOB_KNOWN_FLAGS,
        .setting.parameter = parameter,
        .in = in.data,
        .in_nbytes = nbytes,
        .out = want_out,
        .out_avail = out.nbytes,
    };
    wharf_decode_job_run(&job, 0, &want);

    struct wharf_device_chunk chunk = {
        .codec = job.codec,
        .flags = job.flags,
        .parameter = parameter,
        .in = in.data,
        .in_nbytes = nbytes,
        .out = out.data,
        .out_avail = out.nbytes,
    };
    enum wharf_simt_order order = (enum wharf_simt_order)(data[0] / 16 % 8 % N_ORDERS);
    const uint32_t kernels[] = {
        WHARF_DEVICE_ANY_CODEC,
        codec == WHARF_CODEC_BLOSC ? codec : WHARF_DEVICE_CREW | codec,
    };
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        struct wharf_device_batch batch = {&chunk, &got, 1, kernels[i]};
        if (i > 0 && !wharf_simt_can_decode(kernels[i]))
            continue;
        check(wharf_simt_decode_batch(&batch, order, nbytes, NULL) == 0);
        check(test_outcome_same(&got, &want));
        if (want.result == WHARF_OK)
            check(memcmp(out.data, want_out, want.out_nbytes) == 0);
    }
    test_guard_free(&in);
    test_guard_free(&out);
    return 0;
}
