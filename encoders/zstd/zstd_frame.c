/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_frame.c: reads and verifies headers of frames, blocks and literals: RFC 8878, sections 3.1.1
 * and 3.1.2.  Nothing here writes or allocates: a header is checked by itself, before anything that
 * it claims is believed.
 */
#include "encoders/zstd/zstd_frame.h"

#include "encoders/little_endian.h"

/* Whether the n bytes (fewer than four) of `start` begin one of the magic numbers. */
static bool begins_magic(uint32_t start, size_t n)
{
    uint32_t mask = (UINT32_C(1) << 8 * n) - 1;

    return start == (WHARF_ZSTD_MAGIC & mask) ||
           (start & WHARF_ZSTD_SKIPPABLE_MASK) ==
               (WHARF_ZSTD_SKIPPABLE_MAGIC & WHARF_ZSTD_SKIPPABLE_MASK & mask);
}

/* Of versions before 0.8, whose formats were others: good data, but not ours to read. */
static bool is_old_magic(uint32_t magic)
{
    return magic == WHARF_ZSTD_OLDEST_MAGIC ||
           (magic >= WHARF_ZSTD_OLD_MAGIC_FIRST && magic < WHARF_ZSTD_MAGIC);
}

static uint64_t load(const uint8_t *p, unsigned nbytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < nbytes; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

static enum wharf_reason read_skippable(const uint8_t *in, size_t in_nbytes,
                                        struct wharf_zstd_frame *ret_frame)
{
    if (in_nbytes < WHARF_ZSTD_SKIPPABLE_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint64_t nbytes = (uint64_t)wharf_load_le32(in + WHARF_ZSTD_MAGIC_NBYTES) +
                      WHARF_ZSTD_SKIPPABLE_HEADER_NBYTES;
    *ret_frame = (struct wharf_zstd_frame){.is_skippable = true, .header_nbytes = nbytes};
    return WHARF_REASON_NONE;
}

/* A window of 2^log and eighths of it: at most 3.75 TiB, which the caller limits. */
static uint64_t window_of(uint8_t byte)
{
    uint64_t base = UINT64_C(1) << (10 + (byte >> 3));

    return base + (base >> 3) * (byte & 7);
}

enum wharf_reason wharf_zstd_read_frame(const uint8_t *in, size_t in_nbytes,
                                        struct wharf_zstd_frame *ret_frame)
{
    static const uint8_t dictionary_nbytes[4] = {0, 1, 2, 4};
    static const uint8_t content_nbytes[4] = {0, 2, 4, 8};
    struct wharf_zstd_frame frame = {.content_nbytes = UINT64_MAX};

    /* A cut is told from something else as soon as the bytes that are there allow it. */
    if (in_nbytes < WHARF_ZSTD_MAGIC_NBYTES)
        return begins_magic((uint32_t)load(in, (unsigned)in_nbytes), in_nbytes)
                   ? WHARF_REASON_INPUT_TRUNCATED
                   : WHARF_REASON_ZSTD_MAGIC;
    uint32_t magic = wharf_load_le32(in);
    if ((magic & WHARF_ZSTD_SKIPPABLE_MASK) == WHARF_ZSTD_SKIPPABLE_MAGIC)
        return read_skippable(in, in_nbytes, ret_frame);
    if (magic != WHARF_ZSTD_MAGIC)
        return is_old_magic(magic) ? WHARF_REASON_ZSTD_VERSION : WHARF_REASON_ZSTD_MAGIC;
    if (in_nbytes == WHARF_ZSTD_MAGIC_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint8_t descriptor = in[4];
    /* A frame of a single segment has no window, but then always a content size, which stands for
     * it: a reader holds all of it. */
    bool is_single = descriptor & 0x20;
    unsigned n_dictionary = dictionary_nbytes[descriptor & 3];
    unsigned n_content = content_nbytes[descriptor >> 6];
    if (is_single && n_content == 0)
        n_content = 1;
    frame.header_nbytes = 5u + !is_single + n_dictionary + n_content;
    if (frame.header_nbytes > in_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (descriptor & 0x08)
        return WHARF_REASON_ZSTD_RESERVED;
    const uint8_t *at = in + 5;
    if (!is_single)
        frame.window_nbytes = window_of(*at++);
    frame.dictionary = (uint32_t)load(at, n_dictionary);
    at += n_dictionary;
    frame.has_checksum = descriptor & 0x04;
    frame.has_content_size = n_content > 0;
    /* What one byte can say is not said with two. */
    if (n_content > 0)
        frame.content_nbytes = load(at, n_content) + (n_content == 2 ? 256 : 0);
    if (is_single)
        frame.window_nbytes = frame.content_nbytes;
    frame.block_max = frame.window_nbytes < WHARF_ZSTD_BLOCK_MAX_NBYTES
                          ? (uint32_t)frame.window_nbytes
                          : WHARF_ZSTD_BLOCK_MAX_NBYTES;
    *ret_frame = frame;
    return WHARF_REASON_NONE;
}

enum wharf_reason wharf_zstd_read_block(const uint8_t *in, size_t in_nbytes, uint32_t block_max,
                                        struct wharf_zstd_block *ret_block)
{
    if (in_nbytes < WHARF_ZSTD_BLOCK_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t header = (uint32_t)load(in, WHARF_ZSTD_BLOCK_HEADER_NBYTES);
    uint32_t type = header >> 1 & 3, size = header >> 3;
    if (type == 3 || size > block_max || (type == WHARF_ZSTD_RLE && block_max == 0))
        return WHARF_REASON_ZSTD_BLOCK;
    /* Nothing to decode: no header of literals is asked of it. */
    if (size == 0 && type == WHARF_ZSTD_COMPRESSED)
        type = WHARF_ZSTD_RAW;
    struct wharf_zstd_block block = {
        .type = (enum wharf_zstd_block_type)type,
        .is_last = header & 1,
        .nbytes = type == WHARF_ZSTD_RLE ? 1 : size,
        .out_nbytes = type == WHARF_ZSTD_COMPRESSED ? 0 : size,
    };
    if (block.nbytes > in_nbytes - WHARF_ZSTD_BLOCK_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    *ret_block = block;
    return WHARF_REASON_NONE;
}

/* Of raw and RLE literals: 5, 12 or 20 bits of number. */
static enum wharf_reason read_plain_literals(const uint8_t *in, size_t in_nbytes, uint8_t first,
                                             struct wharf_zstd_literals *literals)
{
    unsigned form = first >> 2 & 3;

    literals->header_nbytes = form == 1 ? 2 : form == 3 ? 3 : 1;
    if (literals->header_nbytes > in_nbytes)
        return WHARF_REASON_ZSTD_LITERALS;
    uint32_t rest = (uint32_t)load(in + 1, literals->header_nbytes - 1);
    literals->n_literals = (form & 1) ? first >> 4 | rest << 4 : first >> 3;
    literals->nbytes = literals->type == WHARF_ZSTD_LITERALS_RLE ? 1 : literals->n_literals;
    return WHARF_REASON_NONE;
}

/* Of those with a tree: two numbers of 10, 14 or 18 bits. */
static enum wharf_reason read_coded_literals(const uint8_t *in, size_t in_nbytes, uint8_t first,
                                             struct wharf_zstd_literals *literals)
{
    unsigned form = first >> 2 & 3;
    unsigned nbits = form < 2 ? 10 : form == 2 ? 14 : 18;

    if (in_nbytes < WHARF_ZSTD_MIN_TREE_SECTION)
        return WHARF_REASON_ZSTD_LITERALS;
    literals->has_four_streams = form != 0;
    literals->header_nbytes = form < 2 ? 3 : form == 2 ? 4 : 5;
    uint64_t sizes = (first | load(in + 1, literals->header_nbytes - 1) << 8) >> 4;
    literals->n_literals = (uint32_t)sizes & ((UINT32_C(1) << nbits) - 1);
    literals->nbytes = (uint32_t)(sizes >> nbits) & ((UINT32_C(1) << nbits) - 1);
    if (literals->has_four_streams && literals->n_literals < WHARF_ZSTD_MIN_LITERALS_OF_FOUR)
        return WHARF_REASON_ZSTD_LITERALS;
    return WHARF_REASON_NONE;
}

enum wharf_reason wharf_zstd_read_literals(const uint8_t *in, size_t in_nbytes,
                                           struct wharf_zstd_literals *ret_literals)
{
    struct wharf_zstd_literals literals = {.type = WHARF_ZSTD_LITERALS_RAW};
    enum wharf_reason reason;

    if (in_nbytes == 0)
        return WHARF_REASON_ZSTD_LITERALS;
    uint8_t first = in[0];
    literals.type = (enum wharf_zstd_literals_type)(first & 3);
    if (literals.type < WHARF_ZSTD_LITERALS_TREE)
        reason = read_plain_literals(in, in_nbytes, first, &literals);
    else
        reason = read_coded_literals(in, in_nbytes, first, &literals);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (literals.nbytes > in_nbytes - literals.header_nbytes)
        return WHARF_REASON_ZSTD_LITERALS;
    *ret_literals = literals;
    return WHARF_REASON_NONE;
}
