/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_frame_format.h: files of framed Snappy.
 *
 * Source: framing_format.txt of Snappy.
 *
 *   file  = stream identifier, { chunk }
 *   chunk = type (1 byte), size of the rest (3 bytes, little-endian), data
 *     ff        stream identifier: "sNaPpY".  May occur again, where files were joined
 *     00        compressed: check (4 bytes), raw Snappy (snappy_format.h) of at most 65536 bytes of
 *               output
 *     01        not compressed: check (4 bytes), at most 65536 bytes of output
 *     80 to fe  skipped; fe is padding
 *     02 to 7f  reserved: an error
 *
 * The check is that of the chunk's output: CRC-32C, rotated right by 15 bits, plus a282ead8.
 *
 * Checks, in this order, and where an error is:
 *   At a chunk's first bit: type or size missing [INPUT_TRUNCATED]; a first chunk that is no stream
 *     identifier, or one that is not "sNaPpY" [SNAPPY_FRAME_IDENTIFIER]; a reserved type
 *     [SNAPPY_FRAME_RESERVED]; a size that the type cannot have [SNAPPY_FRAME_CHUNK_SIZE]; data
 *     missing [INPUT_TRUNCATED].
 *   In the data, where snappy_format.h says: its errors; more than 65536 bytes of output
 *     [OUTPUT_FULL].
 *   At the first bit after the end of the raw Snappy: more bytes of data [INPUT_LEFT].
 *   At the check's first bit: a wrong check [SNAPPY_FRAME_CHECKSUM].
 * The format has no end mark: a file that was cut between two chunks is good.
 */
#ifndef WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_FORMAT_H
#define WHARF_ENCODERS_SNAPPY_SNAPPY_FRAME_FORMAT_H

enum {
    WHARF_SNAPPY_FRAME_OUT_NBYTES = 65536,
    /* The most data a chunk can have: 5 bytes of length, and the worst elements: one literal each,
     * with a tag and four bytes of length, which take 6 bytes for each byte of output. */
    WHARF_SNAPPY_FRAME_DATA_NBYTES = 5 + 6 * WHARF_SNAPPY_FRAME_OUT_NBYTES,
    /* The largest piece. */
    WHARF_SNAPPY_FRAME_PIECE_MAX_NBYTES = 4 + 4 + WHARF_SNAPPY_FRAME_DATA_NBYTES,
    WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES = 10,
};

#endif
