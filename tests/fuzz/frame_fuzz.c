/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of LZ4 frames and framed Snappy: any bytes, taken apart and decoded.  The splitters say the
 * same of a window that grows as of the whole, and where a window holds headers alone; both
 * decoders give the same verdict and bytes, blocks that reach back included; and liblz4 reads what
 * is good, and nothing that is bad.
 */
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/crc32c.h"
#include "encoders/decode_job.h"
#include "encoders/lz4/lz4_frame.h"
#include "encoders/snappy/snappy_frame.h"
#include "encoders/xxh32.h"
#include "tests/lib/test_guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { OUT_AVAIL = 4 << 20 };

static uint8_t outs[2][OUT_AVAIL], expected[OUT_AVAIL];

static void check(int good)
{
    if (!good)
        abort();
}

/* ---- taking apart -------------------------------------------------------------------------- */

static void check_same(const struct wharf_frame_piece *a, const struct wharf_frame_piece *b)
{
    check(a->kind == b->kind && a->nbytes == b->nbytes && a->data_offset == b->data_offset &&
          a->data_nbytes == b->data_nbytes && a->codec == b->codec &&
          a->out_max_nbytes == b->out_max_nbytes && a->check == b->check &&
          a->check_offset == b->check_offset && a->result == b->result && a->reason == b->reason);
}

/* The next piece of the whole, and the same from a window that grows as MORE asks. */
static struct wharf_frame_piece next_piece(wharf_frame_next_fn *next,
                                           struct wharf_frame_splitter *splitter, const uint8_t *in,
                                           size_t in_nbytes)
{
    struct wharf_frame_splitter twin = *splitter, header = *splitter;
    struct wharf_frame_piece whole, piece;
    size_t window = 0;

    next(splitter, in, in_nbytes, true, &whole);
    for (;;) {
        next(&twin, in, window, window == in_nbytes, &piece);
        if (piece.kind != WHARF_FRAME_MORE)
            break;
        check(piece.nbytes > window && piece.nbytes <= WHARF_LZ4_FRAME_PIECE_MAX_NBYTES);
        window = piece.nbytes < in_nbytes ? (size_t)piece.nbytes : in_nbytes;
    }
    check_same(&whole, &piece);
    check(whole.check_value == piece.check_value);
    check(splitter->is_inside == twin.is_inside && splitter->is_legacy == twin.is_legacy &&
          splitter->frame.content_nbytes == twin.frame.content_nbytes &&
          splitter->frame.block_max_nbytes == twin.frame.block_max_nbytes);
    header.wants_headers = true;
    next(&header, in, in_nbytes, true, &piece);
    if (whole.kind != WHARF_FRAME_BAD)
        check_same(&whole, &piece);
    return whole;
}

/* ---- decoding ------------------------------------------------------------------------------ */

struct verdict {
    uint32_t result;
    uint32_t reason;
    uint64_t bit_offset;
    size_t out_nbytes;
    bool is_too_large; /* for this test */
    bool has_legacy;
};

struct decode {
    struct wharf_frame_header frame;
    uint8_t *out;
    size_t frame_start; /* in `out` */
    size_t at;          /* of the piece in the file */
    struct verdict verdict;
};

static bool fail(struct decode *decode, uint32_t result, uint32_t reason, uint64_t bit_offset)
{
    decode->verdict.result = result;
    decode->verdict.reason = reason;
    decode->verdict.bit_offset = 8 * (uint64_t)decode->at + bit_offset;
    return false;
}

static bool take_block(struct decode *decode, const uint8_t *in, int reference,
                       const struct wharf_frame_piece *piece)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(piece->codec)->ops;
    size_t start = decode->verdict.out_nbytes;
    size_t most = piece->out_max_nbytes;
    struct wharf_outcome outcome;

    if (!wharf_codec_may_yield(ops, piece->data_nbytes, most))
        most = (size_t)piece->data_nbytes * ops->max_ratio + ops->max_constant;
    decode->verdict.is_too_large = most > OUT_AVAIL - start;
    if (decode->verdict.is_too_large)
        return false;
    const struct wharf_decode_job job = {
        .codec = piece->codec,
        .flags = WHARF_JOB_EXACT_INPUT,
        .setting.history_nbytes = decode->frame.is_linked ? start - decode->frame_start : 0,
        .in = in + piece->data_offset,
        .in_nbytes = piece->data_nbytes,
        .out = decode->out + start,
        .out_avail = most,
    };
    if (piece->check == WHARF_FRAME_CHECK_XXH32_IN &&
        wharf_xxh32(job.in, job.in_nbytes) != piece->check_value)
        return fail(decode, WHARF_BAD_CHECKSUM, WHARF_REASON_LZ4_FRAME_BLOCK_CHECKSUM,
                    8 * (uint64_t)piece->check_offset);
    wharf_decode_job_run(&job, reference, &outcome);
    if (outcome.result != WHARF_OK)
        return fail(decode, outcome.result, outcome.reason,
                    outcome.bit_offset + 8 * (uint64_t)piece->data_offset);
    check(!piece->is_exact || outcome.out_nbytes == piece->out_max_nbytes);
    uint32_t crc32c = wharf_crc32c(job.out, (size_t)outcome.out_nbytes);
    check(crc32c == wharf_crc32c_plain(job.out, (size_t)outcome.out_nbytes));
    if (piece->check == WHARF_FRAME_CHECK_CRC32C_OUT &&
        wharf_snappy_frame_mask(crc32c) != piece->check_value)
        return fail(decode, WHARF_BAD_CHECKSUM, WHARF_REASON_SNAPPY_FRAME_CHECKSUM,
                    8 * (uint64_t)piece->check_offset);
    if (start + outcome.out_nbytes - decode->frame_start > decode->frame.content_nbytes)
        return fail(decode, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_CONTENT_SIZE, 0);
    decode->verdict.out_nbytes += (size_t)outcome.out_nbytes;
    return true;
}

static bool finish(struct decode *decode, const struct wharf_frame_piece *piece)
{
    const uint8_t *out = decode->out + decode->frame_start;
    size_t nbytes = decode->verdict.out_nbytes - decode->frame_start;

    if (decode->frame.content_nbytes != WHARF_FRAME_SIZE_UNKNOWN &&
        decode->frame.content_nbytes != nbytes)
        return fail(decode, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_CONTENT_SIZE, 0);
    if (decode->frame.has_content_check && wharf_xxh32(out, nbytes) != piece->check_value)
        return fail(decode, WHARF_BAD_CHECKSUM, WHARF_REASON_LZ4_FRAME_CHECKSUM,
                    8 * (uint64_t)piece->check_offset);
    return true;
}

/* False at the end, good or bad. */
static bool take(struct decode *decode, const uint8_t *in, size_t in_nbytes, int reference,
                 const struct wharf_frame_piece *piece)
{
    switch (piece->kind) {
    case WHARF_FRAME_BEGIN:
        decode->frame = piece->frame;
        decode->frame_start = decode->verdict.out_nbytes;
        return true;
    case WHARF_FRAME_BLOCK:
        return take_block(decode, in, reference, piece);
    case WHARF_FRAME_SKIP:
        return piece->nbytes <= in_nbytes ||
               fail(decode, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 0);
    case WHARF_FRAME_FINISH:
        return finish(decode, piece);
    case WHARF_FRAME_BAD:
        return fail(decode, piece->result, piece->reason, 0);
    default:
        return false;
    }
}

static struct verdict decode_file(wharf_frame_next_fn *next, const uint8_t *in, size_t in_nbytes,
                                  int reference)
{
    struct wharf_frame_splitter splitter = {0};
    struct decode decode = {.out = outs[reference]};
    struct wharf_frame_piece piece;

    do {
        piece = next_piece(next, &splitter, in + decode.at, in_nbytes - decode.at);
        decode.verdict.has_legacy = decode.verdict.has_legacy || splitter.is_legacy;
        if (!take(&decode, in + decode.at, in_nbytes - decode.at, reference, &piece))
            break;
        decode.at += (size_t)piece.nbytes;
    } while (piece.kind != WHARF_FRAME_END);
    return decode.verdict;
}

/* ---- liblz4 -------------------------------------------------------------------------------- */

/* Whether it reads all of it, as frames that all end.  A context each: one that is reset, of 1.9.4,
 * goes on with what was left of the last frame's content. */
static bool liblz4_reads(const uint8_t *in, size_t in_nbytes, size_t *ret_out_nbytes)
{
    LZ4F_dctx *context;
    size_t hint = 1, at = 0, n_out = 0;

    check(LZ4F_createDecompressionContext(&context, LZ4F_VERSION) == 0);
    while (at < in_nbytes && n_out < OUT_AVAIL && !LZ4F_isError(hint)) {
        size_t n_in = in_nbytes - at, n = OUT_AVAIL - n_out;

        hint = LZ4F_decompress(context, expected + n_out, &n, in + at, &n_in, NULL);
        at += n_in;
        n_out += n;
        if (n_in == 0 && n == 0)
            break;
    }
    LZ4F_freeDecompressionContext(context);
    *ret_out_nbytes = n_out;
    return at == in_nbytes && hint == 0;
}

/* What it does not look at, or takes: it knows where matches are too near the end of a block only
 * where there is no room behind that, takes offsets of 0, and of a dictionary's number makes
 * nothing. */
static bool may_overlook(uint32_t reason)
{
    return reason == WHARF_REASON_LZ4_END || reason == WHARF_REASON_LZ4_OFFSET ||
           reason == WHARF_REASON_LZ4_FRAME_DICTIONARY;
}

static void compare_with_liblz4(const uint8_t *in, size_t in_nbytes, const struct verdict *verdict)
{
    size_t out_nbytes;
    bool is_good;

    if (verdict->has_legacy || in_nbytes == 0)
        return;
    is_good = liblz4_reads(in, in_nbytes, &out_nbytes);
    if (verdict->result != WHARF_OK) {
        check(!is_good || may_overlook(verdict->reason));
        return;
    }
    check(is_good && out_nbytes == verdict->out_nbytes);
    check(memcmp(expected, outs[0], out_nbytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct test_guard in = test_guard_copy(data, nbytes, TEST_GUARD_END);
    bool is_lz4 = nbytes == 0 || data[0] != wharf_snappy_frame_identifier[0];
    wharf_frame_next_fn *next = is_lz4 ? wharf_lz4_frame_next : wharf_snappy_frame_next;
    struct verdict got = decode_file(next, in.data, in.nbytes, 0);
    struct verdict want = decode_file(next, in.data, in.nbytes, 1);

    check(got.result == want.result && got.reason == want.reason &&
          got.bit_offset == want.bit_offset && got.out_nbytes == want.out_nbytes);
    check(memcmp(outs[0], outs[1], got.out_nbytes) == 0);
    if (is_lz4 && !got.is_too_large)
        compare_with_liblz4(in.data, in.nbytes, &got);
    test_guard_free(&in);
    return 0;
}
