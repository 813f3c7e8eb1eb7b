/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_frame_format.h: files of LZ4 frames, by the LZ4 frame format 1.6 (lz4_Frame_format.md of
 * LZ4).
 *
 *   file  = { frame | legacy frame | skippable frame }
 *   frame = 04 22 4d 18, header, { block }, 00 00 00 00, [XXH32 of all output]
 *     header  FLG: bits 6 and 7: version, 1; 5: blocks are independent; 4: blocks have checksums;
 * 3: the content's size follows; 2: a checksum of the output follows the last block; 1: reserved,
 * 0; 0: a dictionary's number follows BD: bits 4 to 6: the largest block: 4 to 7 for 64 KiB, 256
 * KiB, 1 MiB, 4 MiB; all others reserved, 0 [content's size, 8 bytes] [dictionary's number, 4
 * bytes] the second byte of XXH32 of the header, from FLG on block   size, 4 bytes; bit 31: the
 * data is stored.  The data; [XXH32 of the data as it stands here] legacy frame = 02 21 4c 18, {
 * size, 4 bytes, data }    blocks of up to 8 MiB of output; it ends with the file, or before a size
 * that no such block can have skippable frame = 5x 2a 4d 18, size, 4 bytes, so many bytes of
 * anything
 *
 * All numbers are little-endian.  What is looked at, in this order, and where an error stands:
 *   at a frame's first bit: bytes of the header missing [INPUT_TRUNCATED]; another magic number
 *     [LZ4_FRAME_MAGIC]; another version [LZ4_FRAME_VERSION]; the header's checksum
 * [LZ4_FRAME_HEADER]; reserved bits, or a reserved size of blocks [LZ4_FRAME_RESERVED]; a
 * dictionary [LZ4_FRAME_DICTIONARY]. Of a skippable frame: bytes missing [INPUT_TRUNCATED] at a
 * block's first bit, that of its size: the size missing [INPUT_TRUNCATED]; more than the largest
 * block [LZ4_FRAME_BLOCK_SIZE]; data or checksum missing [INPUT_TRUNCATED] at the checksum's first
 * bit: a wrong one [LZ4_FRAME_BLOCK_CHECKSUM] where lz4_format.h says, in the data: what is wrong
 * with that; output beyond the largest block [OUTPUT_FULL] at a block's first bit: more output than
 * the content's size [LZ4_FRAME_CONTENT_SIZE] at the end mark's first bit: the checksum missing
 * [INPUT_TRUNCATED]; less output than the content's size [LZ4_FRAME_CONTENT_SIZE] at the checksum's
 * first bit: a wrong one [LZ4_FRAME_CHECKSUM] An empty file is no file of LZ4 frames.
 */
#ifndef WHARF_ENCODERS_LZ4_LZ4_FRAME_FORMAT_H
#define WHARF_ENCODERS_LZ4_LZ4_FRAME_FORMAT_H

#define WHARF_LZ4_FRAME_MAGIC 0x184d2204u
#define WHARF_LZ4_LEGACY_MAGIC 0x184c2102u
/* Of skippable frames, LZ4's and zstd's, less the low four bits. */
#define WHARF_SKIPPABLE_MAGIC 0x184d2a50u
#define WHARF_SKIPPABLE_MASK 0xfffffff0u

enum {
    WHARF_LZ4_LEGACY_BLOCK_NBYTES = 8 << 20,
    /* What liblz4 makes of a block that does not compress, at most: LZ4_compressBound. */
    WHARF_LZ4_LEGACY_DATA_NBYTES =
        WHARF_LZ4_LEGACY_BLOCK_NBYTES + WHARF_LZ4_LEGACY_BLOCK_NBYTES / 255 + 16,
    /* The largest piece: a legacy block's. */
    WHARF_LZ4_FRAME_PIECE_MAX_NBYTES = 4 + WHARF_LZ4_LEGACY_DATA_NBYTES,
    /* How far back matches reach. */
    WHARF_LZ4_HISTORY_NBYTES = 64 << 10,
};

#endif
