/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_zstd.c: filter 32015, zstd.  A chunk is one zstd frame, whose header usually has its decoded
 * size.  Otherwise the headers of its blocks give an upper bound.
 */
#include <inttypes.h>

#include "clientlib/hdf5/hdf5_decode.h"
#include "clientlib/hdf5/hdf5_errors.h"
#include "clientlib/wharf.h"
#include "encoders/wharf_codec.h"
#include "encoders/zstd/zstd_scan.h"
#include "proto/wharf_result.h"

/* A block of 128 KiB takes at least 4 bytes. */
enum { MAX_RATIO = 32768 };

static bool measure_blocks(struct wharf_hdf5_chunk *chunk)
{
    struct wharf_zstd_scan scan = {0};
    enum wharf_zstd_scan_state state = WHARF_ZSTD_SCAN_GOES_ON;

    while (state == WHARF_ZSTD_SCAN_GOES_ON && scan.nbytes < chunk->in_nbytes)
        state = wharf_zstd_scan_step(&scan, chunk->in + scan.nbytes,
                                     chunk->in_nbytes - (size_t)scan.nbytes);
    if (state != WHARF_ZSTD_SCAN_FRAME)
        return wharf_hdf5_fail("a chunk of %zu bytes is no whole zstd frame", chunk->in_nbytes);
    chunk->out_nbytes = (size_t)wharf_zstd_scan_most(&scan);
    return true;
}

static bool measure(struct wharf_hdf5_chunk *chunk)
{
    struct wharf_zstd_frame frame;
    enum wharf_reason reason = wharf_zstd_read_frame(chunk->in, chunk->in_nbytes, &frame);

    if (reason)
        return wharf_hdf5_fail("%s at bit 0 of a chunk of %zu bytes", wharf_reason_string(reason),
                               chunk->in_nbytes);
    if (!frame.has_content_size)
        return measure_blocks(chunk);
    if (frame.content_nbytes / MAX_RATIO > chunk->in_nbytes)
        return wharf_hdf5_fail("a chunk of %zu bytes cannot hold the %" PRIu64 " that it says",
                               chunk->in_nbytes, frame.content_nbytes);
    chunk->out_nbytes = (size_t)frame.content_nbytes;
    return true;
}

static bool decode(struct wharf_hdf5_chunk *chunk)
{
    return wharf_hdf5_decode(chunk, &(struct wharf_hdf5_stream){
                                        .codec = WHARF_CODEC_ZSTD,
                                        .nbytes = chunk->in_nbytes,
                                        .out = chunk->out,
                                        .out_nbytes = chunk->out_nbytes,
                                        .ret_out_nbytes = &chunk->out_nbytes,
                                    });
}

const struct wharf_hdf5_filter wharf_hdf5_filter = {32015, "zstd (wharf)", measure, decode};
