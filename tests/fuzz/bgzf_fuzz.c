/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BGZF: any bytes, taken apart into blocks.  The splitter says the same of a window that grows as
 * of the whole; and decoding block by block, with the way back that bgzf.h describes, gives the
 * bytes and the outcome that decoding all of it as gzip gives.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/gzip/gzip.h"
#include "encoders/source_kind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { OUT_AVAIL = 1 << 20 };
static uint8_t split_out[OUT_AVAIL];
static uint8_t whole_out[OUT_AVAIL];

static void check(int good)
{
    if (!good)
        abort();
}

/* The next piece, from a window that grows as MORE asks; and the same from the whole. */
static struct wharf_bgzf_piece next_piece(struct wharf_bgzf_splitter *splitter, const uint8_t *in,
                                          size_t in_nbytes)
{
    struct wharf_bgzf_splitter twin = *splitter;
    struct wharf_bgzf_piece piece;
    struct wharf_bgzf_piece expected;
    size_t window = 0;

    wharf_bgzf_next(&twin, in, in_nbytes, true, &expected);
    for (;;) {
        wharf_bgzf_next(splitter, in, window, window == in_nbytes, &piece);
        if (piece.kind != WHARF_BGZF_MORE)
            break;
        check(piece.nbytes > window && piece.nbytes <= WHARF_BGZF_MAX_NBYTES);
        window = piece.nbytes < in_nbytes ? piece.nbytes : in_nbytes;
    }
    check(piece.kind == expected.kind && piece.nbytes == expected.nbytes &&
          piece.out_nbytes == expected.out_nbytes && piece.number == expected.number &&
          piece.file_offset == expected.file_offset && piece.out_offset == expected.out_offset);
    check(splitter->n_blocks == twin.n_blocks && splitter->file_offset == twin.file_offset &&
          splitter->out_nbytes == twin.out_nbytes &&
          splitter->ends_with_marker == twin.ends_with_marker);
    return piece;
}

/* Decodes `in` as gzip behind blocks that took `at` bytes and gave out_nbytes. */
static struct wharf_outcome decode_rest(const uint8_t *in, size_t in_nbytes, size_t at,
                                        size_t out_nbytes)
{
    struct wharf_outcome outcome;

    wharf_gzip_decode(in + at, in_nbytes - at, split_out + out_nbytes, OUT_AVAIL - out_nbytes, NULL,
                      &outcome);
    if (outcome.result == WHARF_OK) {
        outcome.in_nbytes += at;
        outcome.out_nbytes += out_nbytes;
    } else {
        outcome.bit_offset += 8 * at;
    }
    return outcome;
}

/* As a program does that has bgzf.h to go by. */
static struct wharf_outcome decode_split(const uint8_t *in, size_t in_nbytes)
{
    struct wharf_bgzf_splitter splitter = {0};
    size_t out_nbytes = 0;
    size_t at = 0;

    for (;;) {
        struct wharf_bgzf_piece piece = next_piece(&splitter, in + at, in_nbytes - at);
        struct wharf_decode_job job;
        struct wharf_outcome outcome;

        if ((piece.kind == WHARF_BGZF_REST || piece.kind == WHARF_BGZF_END) && at > 0)
            return (struct wharf_outcome){.in_nbytes = at, .out_nbytes = out_nbytes};
        if (piece.kind != WHARF_BGZF_BLOCK)
            return decode_rest(in, in_nbytes, at, out_nbytes);
        check(piece.out_nbytes <= WHARF_BGZF_MAX_OUT_NBYTES && piece.nbytes <= in_nbytes - at);
        if (piece.out_nbytes > OUT_AVAIL - out_nbytes)
            return decode_rest(in, in_nbytes, at, out_nbytes);
        job = wharf_bgzf_block_job(&piece, in + at, split_out + out_nbytes);
        wharf_decode_job_run(&job, 0, &outcome);
        if (outcome.result != WHARF_OK)
            return decode_rest(in, in_nbytes, at, out_nbytes);
        at += piece.nbytes;
        out_nbytes += piece.out_nbytes;
    }
}

static void check_kind(const uint8_t *in, size_t in_nbytes)
{
    enum wharf_source_kind kind = wharf_source_detect(in, in_nbytes, true);

    check(kind != WHARF_SOURCE_MORE);
    for (size_t n = 0; n < in_nbytes && n < 32; n++) {
        enum wharf_source_kind early = wharf_source_detect(in, n, false);
        check(early == WHARF_SOURCE_MORE || early == kind);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct wharf_outcome whole;
    struct wharf_outcome split = decode_split(data, nbytes);

    wharf_gzip_decode(data, nbytes, whole_out, OUT_AVAIL, NULL, &whole);
    check(memcmp(&whole, &split, sizeof(whole)) == 0);
    check(memcmp(whole_out, split_out, whole.out_nbytes) == 0);
    check_kind(data, nbytes);
    return 0;
}
