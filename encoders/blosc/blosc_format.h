/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_format.h: the layout of Blosc 1 and 2 chunks and of the framing of bitshuffle's HDF5
 * filter, and the rules for errors, in the order in which decoders check them.
 *
 * Sources: README_CHUNK_FORMAT.rst and blosclz.c of c-blosc2, and bshuf_h5filter.c of bitshuffle.
 *
 * PARAMETER.  0 is a chunk.  256 + T and 512 + T are bitshuffle's framing of elements of T bytes, 1
 * to 255, with LZ4 and zstd inside: that stream does not say it.
 *
 * A CHUNK begins with a header of 16 bytes, little-endian: version, version of the codec inside,
 * flags, size of an element (1 byte each); sizes of the output, of a block and of the chunk (4
 * bytes each).  If the flags have both shuffles, 16 more bytes follow: six filters, a codec, its
 * meta, six filters' metas, flags 2, flags 3.  Then come the offset of each block, its start, in 4
 * bytes; a dictionary with its size in 4 bytes, if bit 0 of flags 3 is set; and the streams.  A
 * block has one stream, or one for each byte of an element.  The latter applies if bit 4 of the
 * flags is clear and the block is not a shorter last one.  In Blosc 1, elements must besides have
 * at most 16 bytes and a block at least 128 elements.
 *
 * A stream is its size in 4 bytes, and so many bytes of content.  If that is the size of the
 * stream's part of the block, the content is stored plain, otherwise compressed by the codec
 * inside.  A size of 0 means that all bytes are zero.  A size of -n, with n from 1 to 255, means
 * that all bytes are n; one byte with bit 0 set follows it.
 *
 * HEADER.  All errors are at the chunk's first bit:
 *   1. Fewer than 16 bytes, or 32 for an extended header: INPUT_TRUNCATED.  A version other than 2
 *      to 6: BLOSC_VERSION.  (The version is checked once the first 16 bytes are there.)
 *   2. An element of no bytes, a negative size, a block of no bytes if there is output, a chunk
 *      smaller than its header: BLOSC_HEADER.
 *   3. Flags of lazy or instrumented chunks, of blocks of variable length, or without a meaning;
 *      special values 5 to 7: BLOSC_FLAGS.  Filters other than 0 to 4: BLOSC_FILTER.  A codec other
 *      than blosclz, LZ4, Snappy (only without the extended header), zlib and zstd, unless the
 *      chunk is special or a copy: BLOSC_CODEC.
 *   4. A chunk larger than the source: INPUT_TRUNCATED.
 *   5. A copy whose size is not that of header and output; special values that do not divide the
 *      output, or NaNs of other than 4 or 8 bytes; starts that do not fit: BLOSC_HEADER.
 *   6. More output than there is room for: OUTPUT_FULL.
 *   7. A dictionary, which no decoder here supports: BLOSC_FLAGS.  Not checked for chunks that are
 *      special or a copy.
 * A chunk without output ends here, and its blocks are not checked.  Special values that are not
 * initialised are zeros.
 *
 * BLOCKS, in their order; a block is at most as large as the output.
 *   1. A start before the streams, or with less than 4 bytes of the chunk after it: BLOSC_START at
 *      the start's first bit.  Blocks may be in any order in the chunk.
 *   2. A block that is no multiple of its number of streams: BLOSC_START likewise.
 *   3. Each stream, at its size's first bit.  The size or the byte after it is missing, the chunk
 *      has fewer bytes than it says, or it is a run of another kind: BLOSC_STREAM.  All streams so
 *      far, with their sizes, have more bytes than the chunk has after the starts, so that some
 *      overlap: BLOSC_OVERLAP.  So the work is linear in the chunk's size.
 *   4. An error of the codec inside, at its place.  If its output is smaller or larger than the
 *      stream's part of the block, or bytes follow the end of its stream: BLOSC_STREAM at the size.
 * Then the filters are undone, from the last to the first.  This cannot fail.
 *
 * FILTERS.
 *   1  Shuffles bytes, of elements or, if the filter's meta is not 0, of units of that many bytes.
 *      Bytes after the last whole element stay.
 *   2  Shuffles bits of elements; in version 2 only if the block's elements are a multiple of 8.
 *      Bytes after the last whole eight elements stay.
 *   3  Delta: the exclusive or of each word, in the first block with the word before it, in other
 *      blocks with the word at the same place of the first block's output.  Words have 1, 2, 4 or 8
 *      bytes as elements have; 8 if an element is a multiple of that, else 1.
 *   4  Truncates precision, which cannot be undone.
 *
 * BLOSCLZ is a sequence of elements that begin with a byte b; of the first byte only the low five
 * bits count.  If b is below 32, b + 1 literals follow.  Otherwise it is a match.  Its length is
 * the high three bits + 2; if that is 9, bytes follow that are added, up to the first that is not
 * 255.  Its distance is the low five bits * 256 + the next byte + 1; if all of these bits are set,
 * it is 8192 + the next two bytes, big-endian.  A match is never the last element.  Errors are at
 * the element's first byte: INPUT_TRUNCATED if bytes are missing, the first of the next element
 * after a match included; BLOSC_LZ_OFFSET for a match that begins before the output.
 *
 * BITSHUFFLE'S FRAMING is the size of the output in 8 bytes and of a block in 4, big-endian; for
 * each block the size of its stream in 4 bytes, big-endian, and the stream, of elements whose bits
 * are shuffled.  The last block has the remaining multiple of eight elements; the elements after it
 * are stored plain.
 *   1. At the first bit: fewer than 12 bytes [INPUT_TRUNCATED]; an output that is no multiple of an
 *      element or above 2^62 bytes, a block of 0 bytes or no multiple of eight elements
 *      [BLOSC_HEADER]; OUTPUT_FULL.
 *   2. Streams, at their sizes, as above.  A size that is missing is INPUT_TRUNCATED; so are
 *      missing bytes after the last block, at their first bit.
 *
 * Results are BAD_DATA, except OUTPUT_TOO_SMALL for OUTPUT_FULL, and UNSUPPORTED for BLOSC_VERSION,
 * BLOSC_FLAGS, BLOSC_FILTER and BLOSC_CODEC; errors of the codecs inside keep their results.
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_FORMAT_H
#define WHARF_ENCODERS_BLOSC_BLOSC_FORMAT_H

enum {
    WHARF_BLOSC_VERSION_1 = 2, /* the last of Blosc 1 */
    WHARF_BLOSC_VERSION_MAX = 6,

    WHARF_BLOSC_HEADER_NBYTES = 16,
    WHARF_BLOSC_EXTENDED_NBYTES = 32,
    WHARF_BLOSC_N_FILTERS = 6,

    /* Flags. */
    WHARF_BLOSC_SHUFFLED = 1 << 0,
    WHARF_BLOSC_COPY = 1 << 1,
    WHARF_BLOSC_BITS_SHUFFLED = 1 << 2,
    WHARF_BLOSC_DELTA = 1 << 3,
    WHARF_BLOSC_NOT_SPLIT = 1 << 4,
    WHARF_BLOSC_CODEC_SHIFT = 5,
    /* Flags 3; bits 4 to 6 are the special value.  A reader ignores bits 1 and 2. */
    WHARF_BLOSC_HAS_DICTIONARY = 1 << 0,
    WHARF_BLOSC_LAZY = 1 << 3,
    WHARF_BLOSC_SPECIAL_SHIFT = 4,
    WHARF_BLOSC_INSTRUMENTED = 1 << 7,

    /* The limits of splitting in Blosc 1. */
    WHARF_BLOSC_SPLITS_MAX = 16,
    WHARF_BLOSC_SPLIT_LEAST = 128,

    WHARF_BLOSC_PARAMETER_LZ4 = 256,
    WHARF_BLOSC_PARAMETER_ZSTD = 512,
    WHARF_BLOSC_ELEMENT_MAX = 255,
    WHARF_BLOSC_FRAME_NBYTES = 12,

    /* A chunk of one value has up to 2^31 - 1 bytes of output.  The highest ratio is that of zstd
     * inside. */
    WHARF_BLOSC_MAX_RATIO = 32768,
    WHARF_BLOSC_MAX_CONSTANT = 0x7fffffff,
};

enum wharf_blosc_inside {
    WHARF_BLOSC_BLOSCLZ = 0,
    WHARF_BLOSC_LZ4 = 1,
    WHARF_BLOSC_SNAPPY = 2,
    WHARF_BLOSC_ZLIB = 3,
    WHARF_BLOSC_ZSTD = 4,
    WHARF_BLOSC_N_INSIDE = 5,
};

enum wharf_blosc_filter {
    WHARF_BLOSC_FILTER_NONE = 0,
    WHARF_BLOSC_FILTER_SHUFFLE = 1,
    WHARF_BLOSC_FILTER_BITSHUFFLE = 2,
    WHARF_BLOSC_FILTER_DELTA = 3,
    WHARF_BLOSC_FILTER_TRUNCATE = 4,
};

enum wharf_blosc_special {
    WHARF_BLOSC_NOT_SPECIAL = 0,
    WHARF_BLOSC_ZEROS = 1,
    WHARF_BLOSC_NANS = 2,
    WHARF_BLOSC_VALUES = 3,
    WHARF_BLOSC_UNINITIALISED = 4,
};

#endif
