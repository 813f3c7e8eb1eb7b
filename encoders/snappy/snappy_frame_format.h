/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_frame_format.h: files of framed Snappy, by framing_format.txt of Snappy.
 *
 *   file  = stream identifier, { chunk }
 *   chunk = type, 1 byte; size of what follows, 3 bytes, little-endian; data
 *     ff         the stream identifier: "sNaPpY".  It may come again, where files were joined
 *     00         compressed: check, 4 bytes; raw Snappy (snappy_format.h) of at most 65536 bytes of
 * output 01         not compressed: check, 4 bytes; at most 65536 bytes of output 80 to fe   to be
 * passed over; fe is padding 02 to 7f   reserved, and not to be passed over The check is that of
 * the chunk's output: CRC-32C, rotated right by 15 bits, plus a282ead8.
 *
 * What is looked at, in this order, and where an error stands:
 *   at a chunk's first bit: type and size missing [INPUT_TRUNCATED]; no stream identifier first, or
 * one that is not "sNaPpY" [SNAPPY_FRAME_IDENTIFIER]; a reserved type [SNAPPY_FRAME_RESERVED]; a
 * size that the type cannot have [SNAPPY_FRAME_CHUNK_SIZE]; data missing [INPUT_TRUNCATED] where
 * snappy_format.h says, in the data: what is wrong with that; output beyond 65536 bytes
 * [OUTPUT_FULL]; at the first bit behind the end of the raw Snappy: bytes that follow it
 * [INPUT_LEFT] at the check's first bit: a wrong one [SNAPPY_FRAME_CHECKSUM] The format has no end
 * mark: a file that is cut off between two chunks is good.
 */
#ifndef WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_FORMAT_H
#define WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_FORMAT_H

enum {
    WHARF_SNAPPY_FRAME_OUT_NBYTES = 65536,
    /* The length takes up to 5 bytes, and what gives the least output for its size is one literal
     * with a tag and four bytes of length: 6 bytes for each. */
    WHARF_SNAPPY_FRAME_DATA_NBYTES = 5 + 6 * WHARF_SNAPPY_FRAME_OUT_NBYTES,
    /* The largest piece. */
    WHARF_SNAPPY_FRAME_PIECE_MAX_NBYTES = 4 + 4 + WHARF_SNAPPY_FRAME_DATA_NBYTES,
    WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES = 10,
};

#endif
