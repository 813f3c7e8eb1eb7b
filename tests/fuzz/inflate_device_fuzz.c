/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_device_fuzz.c: streams of many parts, with any changes, by the code of a whole GPU on the
 * SIMT layer.
 *
 * The outcome, the bytes and their CRC must be the CPU engine's.  The input says which of a few
 * streams is taken, into how much room, how small its parts are, and over how much one is measured,
 * in four bytes, and then how it is changed (test_changed_stream).  Streams and parts are tiny:
 * parts that meet, and those that do not, come about the same way.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/decode_job.h"
#include "kernels/simt/simt_inflate.h"
#include "tests/lib/test_changed_stream.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { RAW_NBYTES = 4000, HEAD_NBYTES = 4, LEAST_PART_NBYTES = 64 };

static void check(int good)
{
    if (!good)
        abort();
}

static struct wharf_outcome decode(const struct wharf_decode_job *here, const uint8_t *head,
                                   const uint8_t *in, uint8_t *out, uint32_t *ret_crc)
{
    struct wharf_inflate_shape shape = wharf_simt_inflate_shape;
    struct wharf_outcome outcome;
    struct wharf_inflate_job job = {
        .in = in,
        .out = out,
        .in_nbytes = here->in_nbytes,
        .out_avail = here->out_avail,
        .outcome = &outcome,
        .codec = here->codec,
        .wants_crc = 1,
    };
    void *scratch;

    shape.least_part_nbytes = LEAST_PART_NBYTES + 4 * (uint64_t)head[2];
    shape.least_most_nbytes = 256 + 16 * (uint64_t)head[3];
    size_t n = wharf_inflate_plan(&job, &shape);
    check(posix_memalign(&scratch, 256, n) == 0);
    memset(scratch, 0x5a, n);
    wharf_inflate_lend(&job, scratch);
    wharf_simt_inflate(&job);
    *ret_crc = job.control->out_crc;
    free(scratch);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const uint32_t codecs[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};
    static uint8_t bytes[2 * RAW_NBYTES], want_out[RAW_NBYTES + 1];
    struct wharf_outcome want, got;
    uint32_t crc;

    if (nbytes < HEAD_NBYTES)
        return 0;
    unsigned format = data[0] / TEST_STREAM_SHAPES % TEST_STREAM_FORMATS;
    size_t n = test_changed_stream(data[0] % TEST_STREAM_SHAPES, format, RAW_NBYTES,
                                   data + HEAD_NBYTES, nbytes - HEAD_NBYTES, bytes);
    size_t out_avail = data[1] % 2 ? RAW_NBYTES * (size_t)data[1] / 256 : RAW_NBYTES + 1;
    struct test_guard in = test_guard_copy(bytes, n, TEST_GUARD_END);
    struct test_guard out =
        test_guard_new(out_avail, data[1] / 2 % 2 ? TEST_GUARD_START : TEST_GUARD_END);
    const struct wharf_decode_job here = {
        .codec = codecs[format],
        .in = in.data,
        .in_nbytes = n,
        .out = want_out,
        .out_avail = out_avail,
    };

    wharf_decode_job_run(&here, 0, &want);
    got = decode(&here, data, in.data, out.data, &crc);
    check(test_outcome_same(&want, &got));
    if (want.result == WHARF_OK) {
        check(want.out_nbytes == 0 || memcmp(want_out, out.data, want.out_nbytes) == 0);
        check(crc == wharf_crc32(WHARF_CRC32_INIT, want_out, want.out_nbytes));
    }
    test_guard_free(&in);
    test_guard_free(&out);
    return 0;
}
