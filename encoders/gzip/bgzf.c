/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf.c: splits BGZF into blocks (SAM specification, section 4.1).
 *
 * The size of a block comes from its header, which is not protected by a checksum.  So it is only a
 * hint, which the caller verifies by decoding: see READ ME FIRST in bgzf.h.
 */
#include "encoders/gzip/bgzf.h"

#include <string.h>

#include "encoders/gzip/gzip_format.h"
#include "encoders/gzip/gzip_header.h"
#include "encoders/little_endian.h"

const uint8_t wharf_bgzf_marker[WHARF_BGZF_MARKER_NBYTES] = {
    0x1f, 0x8b, 0x08, 0x04, 0, 0, 0, 0, 0, 0xff, 6, 0, 'B', 'C',
    2,    0,    27,   0,    3, 0, 0, 0, 0, 0,    0, 0, 0,   0,
};

enum {
    EXTRA_START = WHARF_GZIP_FIXED_HEADER_NBYTES + 2, /* after XLEN */
    SUBFIELD_HEADER_NBYTES = 4,                       /* two letters, 16 bits of length */
    MIN_DEFLATE_NBYTES = 2,                           /* an empty fixed block: 10 bits */
};

/* Whether the bytes so far can be the beginning of a gzip member with an extra field. */
static bool can_have_extra_field(const uint8_t *in, size_t in_nbytes)
{
    static const uint8_t start[] = {WHARF_GZIP_MAGIC_0, WHARF_GZIP_MAGIC_1,
                                    WHARF_GZIP_METHOD_DEFLATE};
    size_t n = in_nbytes < sizeof(start) ? in_nbytes : sizeof(start);

    if (n > 0 && memcmp(in, start, n) != 0)
        return false;
    return in_nbytes <= sizeof(start) || (in[sizeof(start)] & WHARF_GZIP_FLAG_EXTRA);
}

/* Finds "BC" among the subfields.  False if it is missing or the subfields are malformed. */
static bool find_block_size(const uint8_t *extra, size_t extra_nbytes, uint32_t *ret_nbytes)
{
    size_t at = 0;

    while (extra_nbytes - at >= SUBFIELD_HEADER_NBYTES) {
        const uint8_t *subfield = extra + at;
        size_t nbytes = wharf_load_le16(subfield + 2);

        at += SUBFIELD_HEADER_NBYTES;
        if (nbytes > extra_nbytes - at)
            return false;
        if (subfield[0] == 'B' && subfield[1] == 'C' && nbytes == 2) {
            *ret_nbytes = wharf_load_le16(subfield + SUBFIELD_HEADER_NBYTES) + 1;
            return true;
        }
        at += nbytes;
    }
    return false;
}

/* As wharf_bgzf_look.  After -1, *ret_nbytes is the number of bytes needed to know more. */
static int look(const uint8_t *in, size_t in_nbytes, uint32_t *ret_nbytes)
{
    size_t extra_nbytes;

    if (!can_have_extra_field(in, in_nbytes))
        return 0;
    *ret_nbytes = EXTRA_START;
    if (in_nbytes < EXTRA_START)
        return -1;
    extra_nbytes = wharf_load_le16(in + WHARF_GZIP_FIXED_HEADER_NBYTES);
    /* BSIZE could not hold the block's size. */
    if (EXTRA_START + extra_nbytes > WHARF_BGZF_MAX_NBYTES)
        return 0;
    *ret_nbytes = (uint32_t)(EXTRA_START + extra_nbytes);
    if (in_nbytes < *ret_nbytes)
        return -1;
    if (!find_block_size(in + EXTRA_START, extra_nbytes, ret_nbytes))
        return 0;
    return *ret_nbytes >=
           EXTRA_START + extra_nbytes + MIN_DEFLATE_NBYTES + WHARF_GZIP_TRAILER_NBYTES;
}

int wharf_bgzf_look(const uint8_t *in, size_t in_nbytes, uint32_t *ret_nbytes)
{
    uint32_t nbytes;
    int is_block = look(in, in_nbytes, &nbytes);

    if (is_block == 1)
        *ret_nbytes = nbytes;
    return is_block;
}

/* What begins here if no block does.  A lone byte 1f, the last of the file, counts as a gzip
 * member. */
static uint32_t kind_without_block(const uint8_t *in, size_t in_nbytes)
{
    if (in_nbytes == 0)
        return WHARF_BGZF_END;
    return wharf_gzip_member_follows(in, in_nbytes) ? WHARF_BGZF_STREAM : WHARF_BGZF_REST;
}

static bool is_promise_possible(uint32_t nbytes, uint32_t out_nbytes)
{
    return out_nbytes <= WHARF_BGZF_MAX_OUT_NBYTES &&
           out_nbytes <= (uint64_t)nbytes * WHARF_GZIP_MAX_RATIO;
}

static uint32_t classify(const uint8_t *in, size_t in_nbytes, bool at_end,
                         struct wharf_bgzf_piece *piece)
{
    uint32_t nbytes = 0;
    uint32_t out_nbytes;
    int is_block = look(in, in_nbytes, &nbytes);

    if (is_block == 0)
        return kind_without_block(in, in_nbytes);
    if (is_block < 0 || in_nbytes < nbytes) {
        if (at_end)
            return kind_without_block(in, in_nbytes);
        piece->nbytes = nbytes;
        return WHARF_BGZF_MORE;
    }
    out_nbytes = wharf_load_le32(in + nbytes - 4);
    if (!is_promise_possible(nbytes, out_nbytes))
        return WHARF_BGZF_STREAM;
    piece->nbytes = nbytes;
    piece->out_nbytes = out_nbytes;
    return WHARF_BGZF_BLOCK;
}

void wharf_bgzf_next(struct wharf_bgzf_splitter *splitter, const uint8_t *in, size_t in_nbytes,
                     bool at_end, struct wharf_bgzf_piece *ret_piece)
{
    *ret_piece = (struct wharf_bgzf_piece){
        .number = splitter->n_blocks,
        .file_offset = splitter->file_offset,
        .out_offset = splitter->out_nbytes,
    };
    ret_piece->kind = classify(in, in_nbytes, at_end, ret_piece);
    if (ret_piece->kind != WHARF_BGZF_BLOCK)
        return;
    splitter->n_blocks++;
    splitter->file_offset += ret_piece->nbytes;
    splitter->out_nbytes += ret_piece->out_nbytes;
    splitter->ends_with_marker = ret_piece->nbytes == WHARF_BGZF_MARKER_NBYTES &&
                                 memcmp(in, wharf_bgzf_marker, WHARF_BGZF_MARKER_NBYTES) == 0;
}

struct wharf_decode_job wharf_bgzf_block_job(const struct wharf_bgzf_piece *block,
                                             const uint8_t *in, uint8_t *out)
{
    return (struct wharf_decode_job){
        .codec = WHARF_CODEC_GZIP,
        .flags = WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT,
        .in = in,
        .in_nbytes = block->nbytes,
        .out = out,
        .out_avail = block->out_nbytes,
    };
}
