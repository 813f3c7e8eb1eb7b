/* SPDX-License-Identifier: Apache-2.0 */
/* Headers alone are read, each once, and lead from one to the next. */
#include "encoders/zstd/zstd_scan.h"

static enum wharf_zstd_scan_state scan_frame(struct wharf_zstd_scan *scan, const uint8_t *in,
                                             size_t in_nbytes)
{
    enum wharf_reason reason = in_nbytes < WHARF_ZSTD_MAGIC_NBYTES
                                   ? WHARF_REASON_INPUT_TRUNCATED
                                   : wharf_zstd_read_frame(in, in_nbytes, &scan->frame);

    if (reason == WHARF_REASON_INPUT_TRUNCATED)
        return WHARF_ZSTD_SCAN_NEEDS;
    if (reason != WHARF_REASON_NONE || scan->frame.dictionary != 0 ||
        scan->frame.window_nbytes > UINT64_C(1) << WHARF_ZSTD_WINDOW_MAX_LOG)
        return WHARF_ZSTD_SCAN_OTHER;
    scan->has_header = true;
    scan->nbytes = scan->frame.header_nbytes;
    return scan->frame.is_skippable ? WHARF_ZSTD_SCAN_FRAME : WHARF_ZSTD_SCAN_GOES_ON;
}

static enum wharf_zstd_scan_state scan_block(struct wharf_zstd_scan *scan, const uint8_t *in,
                                             size_t in_nbytes)
{
    struct wharf_zstd_block block;

    if (in_nbytes < WHARF_ZSTD_BLOCK_HEADER_NBYTES)
        return WHARF_ZSTD_SCAN_NEEDS;
    /* Only the header is read, so what is behind it may be missing. */
    if (wharf_zstd_read_block(in, SIZE_MAX, scan->frame.block_max, &block) != WHARF_REASON_NONE)
        return WHARF_ZSTD_SCAN_OTHER;
    scan->nbytes += WHARF_ZSTD_BLOCK_HEADER_NBYTES + (uint64_t)block.nbytes;
    scan->most_nbytes +=
        block.type == WHARF_ZSTD_COMPRESSED ? scan->frame.block_max : block.out_nbytes;
    if (!block.is_last)
        return WHARF_ZSTD_SCAN_GOES_ON;
    scan->nbytes += scan->frame.has_checksum ? WHARF_ZSTD_CHECKSUM_NBYTES : 0;
    return WHARF_ZSTD_SCAN_FRAME;
}

enum wharf_zstd_scan_state wharf_zstd_scan_step(struct wharf_zstd_scan *scan, const uint8_t *in,
                                                size_t in_nbytes)
{
    return scan->has_header ? scan_block(scan, in, in_nbytes) : scan_frame(scan, in, in_nbytes);
}
