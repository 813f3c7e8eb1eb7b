/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd: the CPU engine's forms against the reference, in every member of the outcome and every byte
 * of the output, the stream decoder likewise, and all against libzstd's streaming call.
 *
 * The input is the source; its length chooses the room for the output.  Whoever runs the target has
 * put something untouchable behind it.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "encoders/codec.h"
#include "encoders/zstd/zstd_loops.h"
#include "encoders/zstd/zstd_stream.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { MAX_OUT_NBYTES = 3 << 17, REFERENCE_VERSION = 10507 };

/* With the largest room, libzstd's verdict is asked for. */
static const size_t rooms[] = {MAX_OUT_NBYTES, 0,    MAX_OUT_NBYTES, 100,     MAX_OUT_NBYTES,
                               1000,           4099, MAX_OUT_NBYTES, 1 << 17, MAX_OUT_NBYTES};
enum { N_ROOMS = sizeof(rooms) / sizeof(rooms[0]) };

static void check(int good)
{
    if (!good)
        abort();
}

/*
 * What libzstd may find good although it is not.  Whether it does depends on its version, on the
 * processor and on how much room it is given (encoders/zstd/zstd_format.h).
 */
static int may_overlook(uint32_t reason)
{
    switch (reason) {
    case WHARF_REASON_ZSTD_STREAMS:
    case WHARF_REASON_ZSTD_CONTENT_SIZE:
    case WHARF_REASON_ZSTD_BLOCK:
    case WHARF_REASON_ZSTD_BLOCK_SIZE:
    case WHARF_REASON_OUTPUT_FULL:  /* of a frame that is longer than the first ones */
    case WHARF_REASON_ZSTD_OFFSET:  /* before the window */
    case WHARF_REASON_ZSTD_TABLE:   /* that goes on behind its block */
    case WHARF_REASON_ZSTD_WINDOW:  /* of a whole frame, which it decodes without one */
    case WHARF_REASON_ZSTD_VERSION: /* if it was built so */
        return 1;
    case WHARF_REASON_ZSTD_SEQUENCES_HEADER:
    case WHARF_REASON_ZSTD_TREE:
    case WHARF_REASON_ZSTD_SEQUENCES: /* bits that the last of them lacks */
        return ZSTD_versionNumber() < REFERENCE_VERSION;
    default:
        return 0;
    }
}

/*
 * 1: good; 0: bad, or there is not enough of it.  *ret_nbytes are written.  The last byte comes by
 * itself: a frame that is there as a whole it decodes by its other call, which finds other things
 * good.
 */
static int ask_libzstd(const uint8_t *data, size_t nbytes, uint8_t *out, size_t *ret_nbytes)
{
    static ZSTD_DCtx *context;
    ZSTD_inBuffer in = {data, nbytes ? nbytes - 1 : 0, 0};
    ZSTD_outBuffer to = {out, MAX_OUT_NBYTES, 0};
    size_t hint = 1;

    if (!context) {
        context = ZSTD_createDCtx();
        check(context && !ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 27)));
    }
    ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
    for (;;) {
        size_t in_before = in.pos, in_size_before = in.size, out_before = to.pos;
        hint = ZSTD_decompressStream(context, &to, &in);
        if (ZSTD_isError(hint))
            return 0;
        if (in.pos == nbytes - 1)
            in.size = nbytes;
        if ((in.pos == nbytes && hint == 0) ||
            (in.pos == in_before && to.pos == out_before && in.size == in_size_before))
            break;
    }
    *ret_nbytes = to.pos;
    return hint == 0 && in.pos == nbytes;
}

static void compare_with_libzstd(const uint8_t *data, size_t nbytes,
                                 const struct wharf_outcome *outcome, const uint8_t *out)
{
    static uint8_t expected[MAX_OUT_NBYTES];
    size_t expected_nbytes = 0;
    int is_good = ask_libzstd(data, nbytes, expected, &expected_nbytes);

    if (outcome->result == WHARF_OK) {
        /* Before 1.5.5 it refused compressed blocks of two bytes, and empty ones. */
        check(is_good || ZSTD_versionNumber() < REFERENCE_VERSION);
        if (is_good)
            check(expected_nbytes == outcome->out_nbytes &&
                  (expected_nbytes == 0 || memcmp(expected, out, expected_nbytes) == 0));
    } else if (is_good) {
        check(may_overlook(outcome->reason));
    }
}

/* What the one-shot decode had room for, in pieces of the source. */
static void compare_with_stream(const uint8_t *data, size_t nbytes,
                                const struct wharf_outcome *outcome, const uint8_t *out)
{
    struct test_stream stream = test_stream_decode(wharf_zstd_stream_new(WHARF_ZSTD_ALL_FRAMES),
                                                   data, nbytes, 5000, nbytes + 1);

    check(stream.outcome.result == outcome->result && stream.outcome.reason == outcome->reason &&
          stream.outcome.bit_offset == outcome->bit_offset);
    check(stream.out_nbytes <= MAX_OUT_NBYTES &&
          (stream.out_nbytes == 0 || memcmp(stream.out, out, stream.out_nbytes) == 0));
    if (outcome->result == WHARF_OK)
        check(stream.out_nbytes == outcome->out_nbytes && stream.verified == stream.out_nbytes &&
              stream.outcome.in_nbytes == outcome->in_nbytes);
    test_stream_free(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const char *const forms[] = {"plain", NULL};
    enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };
    static uint8_t want_out[MAX_OUT_NBYTES];
    /* Kept: mapping them takes ten times as long as decoding. */
    static struct test_guard outs[N_FORMS][N_ROOMS];
    const struct wharf_codec_ops *ops = wharf_codec_find(WHARF_CODEC_ZSTD)->ops;
    size_t room = rooms[nbytes % N_ROOMS];
    struct wharf_outcome got, want;

    ops->decode_reference(data, nbytes, want_out, room, NULL, &want);
    for (unsigned i = 0; i < N_FORMS; i++) {
        struct test_guard *out = &outs[i][nbytes % N_ROOMS];
        if (!out->data)
            *out = test_guard_new(room, TEST_GUARD_END);
        check(wharf_zstd_loops_force(forms[i]) == 0);
        if (want.out_nbytes)
            memset(out->data, 0xa5, want.out_nbytes);
        ops->decode(data, nbytes, out->data, out->nbytes, NULL, &got);
        check(test_outcome_same(&got, &want));
        if (want.result == WHARF_OK && want.out_nbytes)
            check(memcmp(out->data, want_out, want.out_nbytes) == 0);
    }
    if (room == MAX_OUT_NBYTES)
        compare_with_libzstd(data, nbytes, &want, want_out);
    if (room == MAX_OUT_NBYTES && want.reason != WHARF_REASON_OUTPUT_FULL)
        compare_with_stream(data, nbytes, &want, want_out);
    return 0;
}
