/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_format.h: chunks of Blosc 1 and Blosc 2, and the framing of bitshuffle's HDF5 filter; what
 * they hold, and the rules by which they are judged, in the order in which things are looked at.
 *
 * PARAMETER.  0 is a chunk.  256 + T and 512 + T are bitshuffle's framing of elements of T bytes, 1
 * to 255, with LZ4 and zstd inside: that stream does not say it.
 *
 * A CHUNK is a header of 16 bytes, little-endian: version, version of the codec inside, flags, size
 * of an element, then in 4 bytes each the output's size, a block's size and the chunk's.  Where
 * both shuffles are set in the flags 16 more follow: six filters, a codec, its meta, six filters'
 * metas, flags 2, flags 3.  Then come a start for each block, in 4 bytes, a dictionary with its
 * size in 4 bytes if flags 3 have bit 0, and the streams.  A block has one stream, or as many as an
 * element has bytes where bit 4 of the flags is clear and the block is not a shorter last one; of
 * Blosc 1 also only with at most 16 bytes an element and at least 128 elements a block.
 *
 * A stream is its size in 4 bytes, and so many bytes: as they are if they are as many as the
 * stream's part of the block, else by the codec inside.  A size of 0 means zeros; -1 to -255, with
 * a byte behind it that has bit 0 set, means its negative as every byte.
 *
 * HEADER.  All at the chunk's first bit:
 *   1. 16 bytes, of an extended header 32: INPUT_TRUNCATED.  A version that is not 2 to 6:
 *      BLOSC_VERSION.  (The version is looked at when the first 16 bytes are there.)
 *   2. An element of no bytes, negative sizes, a block of no bytes if there is output, a chunk that
 *      is smaller than its header: BLOSC_HEADER.
 *   3. Flags of lazy or instrumented chunks, of blocks of variable length and any that have no
 *      meaning, special values 5 to 7: BLOSC_FLAGS.  Filters other than 0 to 4: BLOSC_FILTER.
 *      Codecs inside other than blosclz, LZ4, Snappy (only without the extended header), zlib and
 *      zstd, unless the chunk is special or a copy: BLOSC_CODEC.
 *   4. A chunk that is larger than the source: INPUT_TRUNCATED.
 *   5. A copy whose size is not that of header and output; special values that do not add up to
 *      the output, or NaNs of other than 4 or 8 bytes; starts that do not fit: BLOSC_HEADER.
 *   6. More output than there is room for: OUTPUT_FULL.
 *   7. A dictionary, which no decoder here takes: BLOSC_FLAGS.  Of chunks that are special or a
 *      copy this is not looked at.
 * A chunk without output ends here, and what it says of its blocks is not looked at.  Special
 * values that have not been initialised are zeros.
 *
 * BLOCKS, in their order; a block's size is at most that of the output.
 *   1. A start from before the streams, or with less than 4 bytes of the chunk behind it:
 *      BLOSC_START at the start's first bit.  Blocks may lie in any order.
 *   2. A block that is no multiple of its streams: BLOSC_START likewise.
 *   3. Each stream, at its size's first bit: the size or the byte behind it missing, fewer bytes in
 *      the chunk than it says, a run of another kind: BLOSC_STREAM.  More bytes in all streams so
 *      far, with their sizes, than the chunk has behind the starts, so that some overlap:
 *      BLOSC_OVERLAP.  So the work is linear in the chunk's size.
 *   4. What the codec inside says, at its place; but output that is more or less than the stream's
 *      part of the block, and bytes behind the end of what is decoded, are BLOSC_STREAM at the
 *      stream's size.
 * Then the filters are undone from the last to the first.  They cannot fail.
 *
 * FILTERS.  1: bytes shuffled, by the size of an element or by the filter's meta if it is not 0. 2:
 * bits shuffled, by the size of an element; in version 2 only where a block's elements are a
 * multiple of 8.  Both leave what is no whole element, and 2 what is no whole eight of them.  3:
 * the exclusive or of each word, of the first block with the word before, of others with that of
 * the first block's output; words are of 1, 2, 4 or 8 bytes as elements are, of 8 if they are a
 * multiple of that, else of 1.  4: truncated precision, of which nothing can be undone.
 *
 * BLOSCLZ: elements that begin with a byte.  Below 32 (of the first byte the low five bits): so
 * many literals and one more follow.  Else a match: high three bits + 2 bytes, and if these are 9,
 * bytes that are added, up to the first that is not 255; low five bits * 256 + the next byte + 1
 * back; if those are all set, the next two bytes, big-endian, + 8192.  A match is never the last.
 * What is wrong stands at the element's first byte: bytes missing, that of the next element after a
 * match among them: INPUT_TRUNCATED; a match from before the output: BLOSC_LZ_OFFSET.
 *
 * BITSHUFFLE'S FRAMING: the output's size in 8 bytes, a block's in 4, big-endian; for each block
 * the size of its stream in 4, big-endian, and the stream, of elements whose bits are shuffled. The
 * last block has what is left of eights of elements; what is left then follows as it is.
 *   1. At the first bit: 12 bytes [INPUT_TRUNCATED]; sizes that are no multiple of an element, or
 * of eight for blocks, or blocks of nothing, or an output of more than 2^62 bytes [BLOSC_HEADER];
 *      OUTPUT_FULL.
 *   2. Streams, at their sizes, as above; a size that is missing is INPUT_TRUNCATED, and the bytes
 *      that follow the last block, at their first bit.
 *
 * Results are BAD_DATA, but OUTPUT_TOO_SMALL for OUTPUT_FULL, and UNSUPPORTED for BLOSC_VERSION,
 * BLOSC_FLAGS, BLOSC_FILTER and BLOSC_CODEC; the codecs inside keep theirs.
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
    /* Flags 3, with the special values in bits 4 to 6.  Bits 1 and 2 mean nothing to a reader. */
    WHARF_BLOSC_HAS_DICTIONARY = 1 << 0,
    WHARF_BLOSC_LAZY = 1 << 3,
    WHARF_BLOSC_SPECIAL_SHIFT = 4,
    WHARF_BLOSC_INSTRUMENTED = 1 << 7,

    /* Where Blosc 1 splits. */
    WHARF_BLOSC_SPLITS_MAX = 16,
    WHARF_BLOSC_SPLIT_LEAST = 128,

    WHARF_BLOSC_PARAMETER_LZ4 = 256,
    WHARF_BLOSC_PARAMETER_ZSTD = 512,
    WHARF_BLOSC_ELEMENT_MAX = 255,
    WHARF_BLOSC_FRAME_NBYTES = 12,

    /* A chunk of one value has up to 2^31 - 1 bytes of output; zstd inside gives no more. */
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
