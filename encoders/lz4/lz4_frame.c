/* SPDX-License-Identifier: Apache-2.0 */
/* lz4_frame.c: splits files of LZ4 frames into pieces (lz4_frame.h). */
#include "encoders/lz4/lz4_frame.h"

#include "encoders/little_endian.h"
#include "encoders/wharf_codec.h"
#include "encoders/xxh32.h"
#include "proto/wharf_result.h"

enum {
    MAGIC_NBYTES = 4,
    SIZE_NBYTES = 4,
    CHECK_NBYTES = 4,
    SKIPPABLE_HEADER_NBYTES = MAGIC_NBYTES + SIZE_NBYTES,

    /* FLG */
    VERSION_SHIFT = 6,
    VERSION = 1,
    INDEPENDENT = 1 << 5,
    BLOCK_CHECKS = 1 << 4,
    CONTENT_SIZE = 1 << 3,
    CONTENT_CHECK = 1 << 2,
    FLG_RESERVED = 1 << 1,
    DICTIONARY = 1 << 0,

    /* BD */
    BLOCK_SIZE_SHIFT = 4,
    BD_RESERVED = 0x8f,
    BLOCK_SIZE_MIN = 4, /* of 1 << (8 + 2 * 4) bytes */
};
#define STORED 0x80000000u

static uint64_t load_le64(const uint8_t *p)
{
    return wharf_load_le32(p) | (uint64_t)wharf_load_le32(p + 4) << 32;
}

/* ---- between frames ------------------------------------------------------------------------ */

static size_t header_nbytes(unsigned flags)
{
    return MAGIC_NBYTES + 2 + (flags & CONTENT_SIZE ? 8 : 0) + (flags & DICTIONARY ? 4 : 0) + 1;
}

/* A header of nbytes, all of which are there: why it is none that can be read, or NONE. */
static uint32_t flaw_of_header(const uint8_t *in, size_t nbytes, uint32_t *ret_result)
{
    unsigned flags = in[MAGIC_NBYTES], sizes = in[MAGIC_NBYTES + 1];
    const uint8_t *check = in + nbytes - 1;

    *ret_result = WHARF_BAD_DATA;
    if (*check != (wharf_xxh32(in + MAGIC_NBYTES, nbytes - MAGIC_NBYTES - 1) >> 8 & 0xff))
        return WHARF_REASON_LZ4_FRAME_HEADER;
    *ret_result = WHARF_UNSUPPORTED;
    if (flags & FLG_RESERVED || sizes & BD_RESERVED || sizes >> BLOCK_SIZE_SHIFT < BLOCK_SIZE_MIN)
        return WHARF_REASON_LZ4_FRAME_RESERVED;
    return flags & DICTIONARY ? WHARF_REASON_LZ4_FRAME_DICTIONARY : WHARF_REASON_NONE;
}

static void begin(struct wharf_frame_splitter *splitter, bool is_legacy, uint64_t nbytes,
                  const struct wharf_frame_header *frame, struct wharf_frame_piece *ret_piece)
{
    splitter->is_inside = true;
    splitter->is_legacy = is_legacy;
    splitter->frame = *frame;
    *ret_piece =
        (struct wharf_frame_piece){.kind = WHARF_FRAME_BEGIN, .nbytes = nbytes, .frame = *frame};
}

static void begin_frame(struct wharf_frame_splitter *splitter, const uint8_t *in, size_t in_nbytes,
                        bool at_end, struct wharf_frame_piece *ret_piece)
{
    struct wharf_frame_header frame;
    uint32_t reason, result;
    unsigned flags;

    if (!wharf_frame_has(MAGIC_NBYTES + 2, in_nbytes, at_end, ret_piece))
        return;
    flags = in[MAGIC_NBYTES];
    if (flags >> VERSION_SHIFT != VERSION) {
        wharf_frame_bad(ret_piece, WHARF_UNSUPPORTED, WHARF_REASON_LZ4_FRAME_VERSION);
        return;
    }
    if (!wharf_frame_has(header_nbytes(flags), in_nbytes, at_end, ret_piece))
        return;
    reason = flaw_of_header(in, header_nbytes(flags), &result);
    if (reason != WHARF_REASON_NONE) {
        wharf_frame_bad(ret_piece, result, reason);
        return;
    }
    frame = (struct wharf_frame_header){
        .content_nbytes =
            flags & CONTENT_SIZE ? load_le64(in + MAGIC_NBYTES + 2) : WHARF_FRAME_SIZE_UNKNOWN,
        .block_max_nbytes = 1u << (8 + 2 * (in[MAGIC_NBYTES + 1] >> BLOCK_SIZE_SHIFT)),
        .is_linked = !(flags & INDEPENDENT),
        .has_block_checks = flags & BLOCK_CHECKS,
        .has_content_check = flags & CONTENT_CHECK,
    };
    begin(splitter, false, header_nbytes(flags), &frame, ret_piece);
}

static void begin_any(struct wharf_frame_splitter *splitter, const uint8_t *in, size_t in_nbytes,
                      bool at_end, struct wharf_frame_piece *ret_piece)
{
    static const struct wharf_frame_header legacy = {
        .content_nbytes = WHARF_FRAME_SIZE_UNKNOWN,
        .block_max_nbytes = WHARF_LZ4_LEGACY_BLOCK_NBYTES,
    };
    uint32_t magic;

    if (in_nbytes == 0 && at_end) {
        *ret_piece = (struct wharf_frame_piece){.kind = WHARF_FRAME_END};
        return;
    }
    if (!wharf_frame_has(MAGIC_NBYTES, in_nbytes, at_end, ret_piece))
        return;
    magic = wharf_load_le32(in);
    if (magic == WHARF_LZ4_FRAME_MAGIC) {
        begin_frame(splitter, in, in_nbytes, at_end, ret_piece);
    } else if (magic == WHARF_LZ4_LEGACY_MAGIC) {
        begin(splitter, true, MAGIC_NBYTES, &legacy, ret_piece);
    } else if ((magic & WHARF_SKIPPABLE_MASK) != WHARF_SKIPPABLE_MAGIC) {
        wharf_frame_bad(ret_piece, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_MAGIC);
    } else if (wharf_frame_has(SKIPPABLE_HEADER_NBYTES, in_nbytes, at_end, ret_piece)) {
        *ret_piece = (struct wharf_frame_piece){
            .kind = WHARF_FRAME_SKIP,
            .nbytes = SKIPPABLE_HEADER_NBYTES + (uint64_t)wharf_load_le32(in + MAGIC_NBYTES),
        };
    }
}

/* ---- within a frame ------------------------------------------------------------------------ */

static void finish(struct wharf_frame_splitter *splitter, const uint8_t *in, size_t in_nbytes,
                   bool at_end, struct wharf_frame_piece *ret_piece)
{
    bool has_check = splitter->frame.has_content_check;
    uint64_t nbytes = SIZE_NBYTES + (has_check ? CHECK_NBYTES : 0);

    if (!wharf_frame_has(nbytes, in_nbytes, at_end, ret_piece))
        return;
    splitter->is_inside = false;
    *ret_piece = (struct wharf_frame_piece){.kind = WHARF_FRAME_FINISH, .nbytes = nbytes};
    if (has_check) {
        ret_piece->check = WHARF_FRAME_CHECK_XXH32_OUT;
        ret_piece->check_offset = SIZE_NBYTES;
        ret_piece->check_value = wharf_load_le32(in + SIZE_NBYTES);
    }
}

/* A block whose data is of data_nbytes. */
static void take_block(const struct wharf_frame_splitter *splitter, uint32_t codec,
                       uint32_t data_nbytes, const uint8_t *in, size_t in_nbytes, bool at_end,
                       struct wharf_frame_piece *ret_piece)
{
    const struct wharf_frame_header *frame = &splitter->frame;
    uint64_t nbytes =
        SIZE_NBYTES + (uint64_t)data_nbytes + (frame->has_block_checks ? CHECK_NBYTES : 0);

    if (!splitter->wants_headers && !wharf_frame_has(nbytes, in_nbytes, at_end, ret_piece))
        return;
    *ret_piece = (struct wharf_frame_piece){
        .kind = WHARF_FRAME_BLOCK,
        .nbytes = nbytes,
        .data_offset = SIZE_NBYTES,
        .data_nbytes = data_nbytes,
        .codec = codec,
        .out_max_nbytes = codec == WHARF_CODEC_STORED ? data_nbytes : frame->block_max_nbytes,
        .is_exact = codec == WHARF_CODEC_STORED,
    };
    if (frame->has_block_checks) {
        ret_piece->check = WHARF_FRAME_CHECK_XXH32_IN;
        ret_piece->check_offset = SIZE_NBYTES + data_nbytes;
        if (!splitter->wants_headers)
            ret_piece->check_value = wharf_load_le32(in + SIZE_NBYTES + data_nbytes);
    }
}

static void next_block(struct wharf_frame_splitter *splitter, const uint8_t *in, size_t in_nbytes,
                       bool at_end, struct wharf_frame_piece *ret_piece)
{
    const struct wharf_frame_header *frame = &splitter->frame;
    uint32_t size;

    if (!wharf_frame_has(SIZE_NBYTES, in_nbytes, at_end, ret_piece))
        return;
    size = wharf_load_le32(in);
    if (size == 0)
        finish(splitter, in, in_nbytes, at_end, ret_piece);
    else if ((size & ~STORED) > frame->block_max_nbytes)
        wharf_frame_bad(ret_piece, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_BLOCK_SIZE);
    else
        take_block(splitter, size & STORED ? WHARF_CODEC_STORED : WHARF_CODEC_LZ4, size & ~STORED,
                   in, in_nbytes, at_end, ret_piece);
}

static void next_legacy_block(struct wharf_frame_splitter *splitter, const uint8_t *in,
                              size_t in_nbytes, bool at_end, struct wharf_frame_piece *ret_piece)
{
    bool is_over = in_nbytes == 0 && at_end;

    if (!is_over && !wharf_frame_has(SIZE_NBYTES, in_nbytes, at_end, ret_piece))
        return;
    if (is_over || wharf_load_le32(in) > WHARF_LZ4_LEGACY_DATA_NBYTES) {
        splitter->is_inside = false;
        *ret_piece = (struct wharf_frame_piece){.kind = WHARF_FRAME_FINISH};
        return;
    }
    take_block(splitter, WHARF_CODEC_LZ4, wharf_load_le32(in), in, in_nbytes, at_end, ret_piece);
}

void wharf_lz4_frame_next(struct wharf_frame_splitter *splitter, const uint8_t *in,
                          size_t in_nbytes, bool at_end, struct wharf_frame_piece *ret_piece)
{
    if (!splitter->is_inside)
        begin_any(splitter, in, in_nbytes, at_end, ret_piece);
    else if (splitter->is_legacy)
        next_legacy_block(splitter, in, in_nbytes, at_end, ret_piece);
    else
        next_block(splitter, in, in_nbytes, at_end, ret_piece);
}
