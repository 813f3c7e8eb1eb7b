/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_format.h: the layout of ORC files, as far as wharf reads them: integer, byte and boolean
 * columns.
 *
 * Source: the ORC specification v1; the messages are those of its orc.proto.
 *
 *   file    = "ORC", stripe, stripe, ..., metadata, footer, postscript, postscript's size (1 byte)
 *   stripe  = index streams, data streams, stripe footer
 *
 * The footer lists the stripes in file order; they do not overlap.
 *
 * The postscript and its size are never compressed.  Metadata, footer, stripe footers and streams
 * are each divided into blocks, unless the compression is 0.  A block is a little-endian header of
 * 3 bytes and content.  The header is twice the content's size, plus 1 if the content is stored
 * plain.  Other content is raw Deflate, Snappy, LZ4 or zstd (encoders/deflate, snappy, lz4, zstd)
 * and decodes to at most the block size of the postscript.
 *
 * Types form a tree, listed in pre-order: type 0 is the root, usually a structure, and each type
 * has a higher number than its parent.  The number of a type is also the number of its column.  The
 * stripe footer lists streams in the order in which they are in the stripe, without gaps.
 *
 * Wharf reads two streams of a column:
 *
 *   PRESENT  encoders/boolrle: for each row in which the column's parent has a value, one bit:
 *            whether the column has one too.  Without this stream it has one in all these rows.
 *   DATA     boolean: encoders/boolrle.  tinyint: encoders/byterle.  smallint, int and bigint:
 *            encoders/rle1, or rle2 if the column's encoding in the stripe footer is DIRECT_V2; the
 *            types are signed.  The stream may be missing if there are no values.
 *
 * Wharf refuses what it does not support: LZO, Brotli and other compressions, other encodings,
 * major versions from 1 on, encrypted files, and columns in lists, maps and unions.
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
    /* The size has 23 bits of a block's header. */
    WHARF_ORC_MAX_BLOCK_NBYTES = (1 << 23) - 1,
    /* Applies if the postscript gives none. */
    WHARF_ORC_DEFAULT_BLOCK_NBYTES = 256 << 10,
    WHARF_ORC_MAX_POSTSCRIPT_NBYTES = 255,
    /* Wharf's own limits, above what writers produce. */
    WHARF_ORC_MAX_FOOTER_NBYTES = 64 << 20,
    WHARF_ORC_MAX_DEPTH = 32,
};

#endif
