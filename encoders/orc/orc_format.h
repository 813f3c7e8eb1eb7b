/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_format.h: ORC files, as far as wharf reads them: integer, byte and boolean columns.
 *
 * By the ORC specification v1.  The messages are those of orc.proto.
 *
 *   file    = "ORC", stripe, stripe, ..., metadata, footer, postscript, 1 byte: its size
 *   stripe  = streams with indexes, streams with data, stripe footer
 *
 * Postscript and size are stored plain.  Metadata, footer, stripe footers and streams are each cut
 * into blocks, unless the compression is 0.  A block is 3 bytes, little-endian, and what follows
 * them: twice the size of that, and 1 if it is stored plain.  Compressed, it is what
 * encoders/deflate, snappy, lz4 or zstd decode to at most the postscript's block size.
 *
 * Types are a tree: type 0 is the root, commonly a structure, and each has higher numbers than what
 * it is part of.  A column is a type's number.  The stripe footer lists the streams in the order in
 * which they stand in the stripe, from its first byte on.
 *
 * A column has up to two streams here:
 *
 *   PRESENT  encoders/boolrle: for each row whether it has a value; without this stream all have.
 *            A row is here one in which the column's parent has a value.
 *   DATA     boolean: encoders/boolrle.  tinyint: encoders/byterle.  smallint, int and bigint:
 *            encoders/rle1, or rle2 if the column's encoding in the stripe footer is DIRECT_V2,
 * with signed types.  No stream is needed for no values.
 *
 * Wharf refuses what it does not know: LZO, Brotli and other compressions, other encodings, major
 * versions from 1 on, encrypted files, and columns within lists, maps and unions.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_FORMAT_H
#define WHARF_ENCODERS_ORC_ORC_FORMAT_H

#define WHARF_ORC_MAGIC "ORC"

enum wharf_orc_compression {
    WHARF_ORC_NONE = 0,
    WHARF_ORC_ZLIB = 1, /* raw Deflate */
    WHARF_ORC_SNAPPY = 2,
    WHARF_ORC_LZO = 3,
    WHARF_ORC_LZ4 = 4,
    WHARF_ORC_ZSTD = 5,
};

enum wharf_orc_kind {
    WHARF_ORC_BOOLEAN = 0,
    WHARF_ORC_TINYINT = 1,
    WHARF_ORC_SMALLINT = 2,
    WHARF_ORC_INT = 3,
    WHARF_ORC_BIGINT = 4,
    WHARF_ORC_STRUCT = 12,
};

enum wharf_orc_stream_kind {
    WHARF_ORC_PRESENT = 0,
    WHARF_ORC_DATA = 1,
};

enum wharf_orc_encoding {
    WHARF_ORC_DIRECT = 0,
    WHARF_ORC_DIRECT_V2 = 2,
};

enum {
    WHARF_ORC_BLOCK_HEADER_NBYTES = 3,
    /* A block's size has 23 bits. */
    WHARF_ORC_MAX_BLOCK_NBYTES = (1 << 23) - 1,
    /* Where the postscript gives none. */
    WHARF_ORC_DEFAULT_BLOCK_NBYTES = 256 << 10,
    WHARF_ORC_MAX_POSTSCRIPT_NBYTES = 255,
    /* Wharf's own limits, beyond what writers make. */
    WHARF_ORC_MAX_FOOTER_NBYTES = 64 << 20,
    WHARF_ORC_MAX_DEPTH = 32,
};

#endif
