/* SPDX-License-Identifier: Apache-2.0 */
/* snappy_frame.c: splits files of framed Snappy into pieces (snappy_frame.h). */
#include "encoders/snappy/snappy_frame.h"

#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"

enum {
    HEADER_NBYTES = 4,
    CHECK_NBYTES = 4,
    LENGTH_NBYTES = 3, /* of a chunk's length field, which is below 2^21 */

    TYPE_COMPRESSED = 0x00,
    TYPE_STORED = 0x01,
    TYPE_FIRST_SKIPPABLE = 0x80,
    TYPE_IDENTIFIER = 0xff,
};

const uint8_t wharf_snappy_frame_identifier[] = {
    TYPE_IDENTIFIER, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y'};

static const struct wharf_frame_header header = {
    .content_nbytes = WHARF_FRAME_SIZE_UNKNOWN,
    .block_max_nbytes = WHARF_SNAPPY_FRAME_OUT_NBYTES,
    .has_block_checks = true,
};

static void take_identifier(struct wharf_frame_splitter *splitter, const uint8_t *in,
                            size_t in_nbytes, bool at_end, struct wharf_frame_piece *ret_piece)
{
    size_t nbytes = in_nbytes < WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES
                        ? in_nbytes
                        : WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES;

    if (memcmp(in, wharf_snappy_frame_identifier, nbytes) != 0) {
        wharf_frame_bad(ret_piece, WHARF_BAD_DATA, WHARF_REASON_SNAPPY_FRAME_IDENTIFIER);
        return;
    }
    if (!wharf_frame_has(WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES, in_nbytes, at_end, ret_piece))
        return;
    splitter->is_inside = true;
    splitter->frame = header;
    *ret_piece = (struct wharf_frame_piece){
        .kind = WHARF_FRAME_BEGIN,
        .nbytes = WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES,
        .frame = header,
    };
}

/*
 * The output's size, which raw Snappy begins with.  If that is more than a chunk may have, returns
 * the most that it may have; the decoder then reports the error.
 */
static uint32_t length_of(const uint8_t *data, size_t nbytes)
{
    uint32_t length = 0;

    for (unsigned i = 0; i < LENGTH_NBYTES && i < nbytes; i++) {
        length |= (uint32_t)(data[i] & 0x7f) << (7 * i);
        if (data[i] < 0x80)
            return length < WHARF_SNAPPY_FRAME_OUT_NBYTES ? length : WHARF_SNAPPY_FRAME_OUT_NBYTES;
    }
    return WHARF_SNAPPY_FRAME_OUT_NBYTES;
}

static void take_block(const struct wharf_frame_splitter *splitter, uint32_t codec, uint32_t size,
                       const uint8_t *in, size_t in_nbytes, bool at_end,
                       struct wharf_frame_piece *ret_piece)
{
    uint32_t most = codec == WHARF_CODEC_STORED ? WHARF_SNAPPY_FRAME_OUT_NBYTES
                                                : WHARF_SNAPPY_FRAME_DATA_NBYTES;
    const uint8_t *data = in + HEADER_NBYTES + CHECK_NBYTES;
    uint32_t wanted = size;

    if (size < CHECK_NBYTES || size - CHECK_NBYTES > most) {
        wharf_frame_bad(ret_piece, WHARF_BAD_DATA, WHARF_REASON_SNAPPY_FRAME_CHUNK_SIZE);
        return;
    }
    if (splitter->wants_headers && size > CHECK_NBYTES + LENGTH_NBYTES)
        wanted = CHECK_NBYTES + LENGTH_NBYTES;
    if (!wharf_frame_has(HEADER_NBYTES + wanted, in_nbytes, at_end, ret_piece))
        return;
    *ret_piece = (struct wharf_frame_piece){
        .kind = WHARF_FRAME_BLOCK,
        .nbytes = HEADER_NBYTES + size,
        .data_offset = HEADER_NBYTES + CHECK_NBYTES,
        .data_nbytes = size - CHECK_NBYTES,
        .codec = codec,
        .out_max_nbytes = codec == WHARF_CODEC_STORED ? size - CHECK_NBYTES
                                                      : length_of(data, size - CHECK_NBYTES),
        .is_exact = true,
        .check = WHARF_FRAME_CHECK_CRC32C_OUT,
        .check_offset = HEADER_NBYTES,
        .check_value = wharf_load_le32(in + HEADER_NBYTES),
    };
}

void wharf_snappy_frame_next(struct wharf_frame_splitter *splitter, const uint8_t *in,
                             size_t in_nbytes, bool at_end, struct wharf_frame_piece *ret_piece)
{
    uint32_t size;
    unsigned type;

    if (in_nbytes == 0 && at_end && splitter->is_inside) {
        *ret_piece = (struct wharf_frame_piece){.kind = WHARF_FRAME_END};
        return;
    }
    if (!wharf_frame_has(HEADER_NBYTES, in_nbytes, at_end, ret_piece))
        return;
    type = in[0];
    size = wharf_load_le32(in) >> 8;
    if (!splitter->is_inside || type == TYPE_IDENTIFIER)
        take_identifier(splitter, in, in_nbytes, at_end, ret_piece);
    else if (type == TYPE_COMPRESSED || type == TYPE_STORED)
        take_block(splitter, type == TYPE_STORED ? WHARF_CODEC_STORED : WHARF_CODEC_SNAPPY, size,
                   in, in_nbytes, at_end, ret_piece);
    else if (type < TYPE_FIRST_SKIPPABLE)
        wharf_frame_bad(ret_piece, WHARF_UNSUPPORTED, WHARF_REASON_SNAPPY_FRAME_RESERVED);
    else
        *ret_piece =
            (struct wharf_frame_piece){.kind = WHARF_FRAME_SKIP, .nbytes = HEADER_NBYTES + size};
}
