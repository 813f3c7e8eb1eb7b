/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_format.h: constants of zstd (RFC 8878), and the rules for errors, in the
 * order in which things are looked at.
 *
 * What is good is what libzstd 1.5.7 decodes by its streaming call with a window limit of 2^27, but
 * for five things, in which versions, ways of calling it and processors differ, and of which the
 * RFC says that they are errors.  Here they always are:
 *   - a stream of literals of which bits are left, or that takes bits of its neighbour;
 *   - a raw or RLE block that is larger than blocks of its frame may be;
 *   - an output that is not as long as the frame's header says, whatever the last block is;
 *   - a table's description that goes past the end of its block;
 *   - a distance that is larger than the window: what is farther back need not be there.
 *
 * FRAMES.  A stream is one frame or more, one behind the other, to the end of the source; its
 * output is theirs joined.  Skippable frames have none.  All at the frame's first bit:
 *   1. Four bytes: INPUT_TRUNCATED when they are not all there and those that are begin a frame's
 *      magic number; fd 2f b5 1e, or 22 to 27 b5 2f fd: ZSTD_VERSION (formats before 0.8); neither
 *      28 b5 2f fd nor 50 to 5f 2a 4d 18: ZSTD_MAGIC.
 *   2. A skippable frame has four bytes with its size and so many more: INPUT_TRUNCATED.
 *   3. The descriptor, a byte, and as many bytes as it asks for: INPUT_TRUNCATED.
 *   4. The descriptor's reserved bit: ZSTD_RESERVED.  Its unused bit means nothing.
 *   5. A dictionary's number that is not 0: ZSTD_DICTIONARY.
 *   6. A window of more than 2^27 bytes, which for a single segment is the content size:
 *      ZSTD_WINDOW.
 *
 * BLOCKS, up to the one that says that it is the last.  All at the block header's first bit:
 *   1. Three bytes: INPUT_TRUNCATED.
 *   2. Type 3; a block (its bytes, for RLE the one byte and the output) that is larger than the
 *      window or 128 KiB: ZSTD_BLOCK.  A compressed block of no bytes has no output.
 *   3. The block's bytes: INPUT_TRUNCATED.
 *
 * ROOM.  Output goes to where three limits allow it, and the first byte that is past one of them is
 * what is wrong; if it is past several, the first of them counts: 128 KiB or the window for a block
 * [ZSTD_BLOCK_SIZE], the frame's content size, if its header has one [ZSTD_CONTENT_SIZE, at the
 * frame's first bit], the destination [OUTPUT_TOO_SMALL, OUTPUT_FULL].  But for the content size it
 * stands at the header of a raw or RLE block, at the literals section if the literals alone are too
 * many, else at the sequences section.
 *
 * LITERALS SECTION of a compressed block.  At its first bit, which follows the block header:
 *   1. The header's bytes, and for RLE literals the byte; of a section with a tree at least five
 *      bytes must follow in the block whatever it needs; raw or compressed literals that are past
 *      the end of the block; fewer than six for four streams: ZSTD_LITERALS.
 *   2. Literals that go on with a tree that there is not: ZSTD_TREE.
 *   3. ROOM for the literals.
 *   4. The tree, at its own first bit: one that is not good, or behind which nothing is left:
 *      ZSTD_TREE.
 *   5. Of four streams the jump table, at its first bit: it is not there, or the streams are past
 *      the end of the section: ZSTD_STREAMS.
 *   6. The streams one after the other, each at its first bit: empty, or without a last bit that is
 *      set, or not exactly used up by its symbols: ZSTD_STREAMS.
 *
 * SEQUENCES SECTION.  At its first bit:
 *   1. The number of sequences and, unless it is 0, the byte of modes; something behind a number of
 *      0; reserved bits of the modes that are set: ZSTD_SEQUENCES_HEADER.
 *   2. Literal lengths, offsets, match lengths, each at its description's first bit: a table that
 * is missing or not good, a symbol that is none, or a repeated one where there was none before:
 *      ZSTD_TABLE.
 *   3. The bits, at their first: empty, without a last bit that is set, or fewer than the three
 *      first states: ZSTD_SEQUENCES.
 *   4. Each sequence, at the first of the bits: bits are missing [ZSTD_SEQUENCES]; its literals are
 *      [ZSTD_SEQUENCE_LITERALS]; ROOM for its match and all literals that have not been put out
 *      before it; a distance of 0, of more than the window, or to before the frame's first byte
 *      [ZSTD_OFFSET]; the bits for
 *      the next states are missing [ZSTD_SEQUENCES].
 *   5. Bits that are left: ZSTD_SEQUENCES.
 *
 * END OF A FRAME.  Less output than the content size: ZSTD_CONTENT_SIZE at the frame's first bit.
 * If the header says so four bytes, at their first bit: INPUT_TRUNCATED; not the low half of XXH64
 * of the frame's output: ZSTD_CHECKSUM [BAD_CHECKSUM].
 *
 * Results are BAD_DATA, but for OUTPUT_FULL and ZSTD_CHECKSUM as said, and UNSUPPORTED for
 * ZSTD_VERSION, ZSTD_RESERVED, ZSTD_WINDOW and ZSTD_DICTIONARY.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_FORMAT_H
#define WHARF_ENCODERS_ZSTD_ZSTD_FORMAT_H

#define WHARF_ZSTD_MAGIC 0xfd2fb528u
/* 1 to 7 less than it, those of formats 0.2 to 0.7; and that of 0.1. */
#define WHARF_ZSTD_OLD_MAGIC_FIRST 0xfd2fb522u
#define WHARF_ZSTD_OLDEST_MAGIC 0x1eb52ffdu
#define WHARF_ZSTD_SKIPPABLE_MAGIC 0x184d2a50u
#define WHARF_ZSTD_SKIPPABLE_MASK 0xfffffff0u

enum {
    WHARF_ZSTD_MAGIC_NBYTES = 4,
    WHARF_ZSTD_SKIPPABLE_HEADER_NBYTES = 8,
    /* Magic, descriptor, window, dictionary, content size. */
    WHARF_ZSTD_FRAME_HEADER_MAX_NBYTES = 4 + 1 + 1 + 4 + 8,
    WHARF_ZSTD_BLOCK_HEADER_NBYTES = 3,
    WHARF_ZSTD_CHECKSUM_NBYTES = 4,

    WHARF_ZSTD_WINDOW_MAX_LOG = 27,
    WHARF_ZSTD_BLOCK_MAX_NBYTES = 128 << 10,

    WHARF_ZSTD_N_LITERAL_LENGTHS = 36,
    WHARF_ZSTD_N_OFFSETS = 32,
    WHARF_ZSTD_N_MATCH_LENGTHS = 53,
    /* States of a table, as a power of two: least, and most of each kind. */
    WHARF_ZSTD_MIN_LOG = 5,
    WHARF_ZSTD_LITERAL_LENGTH_LOG = 9,
    WHARF_ZSTD_OFFSET_LOG = 8,
    WHARF_ZSTD_MATCH_LENGTH_LOG = 9,
    WHARF_ZSTD_WEIGHT_LOG = 6,

    /* The RFC says 11; libzstd takes 12. */
    WHARF_ZSTD_TREE_MAX_NBITS = 12,
    WHARF_ZSTD_MIN_LITERALS_OF_FOUR = 6,
    WHARF_ZSTD_JUMP_TABLE_NBYTES = 6,
    WHARF_ZSTD_MIN_TREE_SECTION = 5,

    /* A block of RLE takes four bytes and gives 128 KiB. */
    WHARF_ZSTD_MAX_RATIO = 32768,
    WHARF_ZSTD_MAX_CONSTANT = 0,
};

#endif
