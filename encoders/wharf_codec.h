/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_codec.h: the list of codecs.
 *
 * One codec is one row here, and in the source a folder of encoders and one of kernels.  Everything
 * that goes over all codecs (the host and device tables, tests, fuzz targets and benchmarks) is
 * made of this list.  `make generate` writes what people read: the enumeration below, for whoever
 * searches for a name, and lists in documents.  The source's page about kernels says how to add
 * one.
 *
 * A row is X(ID, name, number, summary): the enumerator's suffix, the folder's and the command
 * line's name, the pinned number that containers and the ring carry, and one line for people.
 */
#ifndef WHARF_CODEC_H
#define WHARF_CODEC_H

#define WHARF_CODEC_LIST(X)                                                                        \
    X(STORED, stored, 0, "bytes as they are")                                                      \
    X(DEFLATE, deflate, 1, "raw Deflate, RFC 1951")                                                \
    X(ZLIB, zlib, 2, "zlib, RFC 1950, Adler-32 verified")                                          \
    X(GZIP, gzip, 3, "gzip, RFC 1952, all members, CRC-32 and length verified")                    \
    X(RLE1, rle1, 4, "ORC's integer run lengths, version 1")                                       \
    X(RLE2, rle2, 5, "ORC's integer run lengths, version 2")                                       \
    X(BYTERLE, byterle, 6, "ORC's byte run lengths")                                               \
    X(BOOLRLE, boolrle, 7, "ORC's boolean run lengths, a byte for each value")                     \
    X(RANS, rans, 8, "rANS, 32-way interleaved, with Recoil's splits")                             \
    X(LZ4, lz4, 9, "LZ4 blocks, without a frame")                                                  \
    X(SNAPPY, snappy, 10, "Snappy's raw format")                                                   \
    X(BDI, bdi, 11, "lines by base and deltas")                                                    \
    X(FPC, fpc, 12, "lines by frequent patterns")                                                  \
    X(CPACK, cpack, 13, "lines by a dictionary of four words")                                     \
    X(BEST, best, 14, "lines by the best of bdi, fpc and cpack")                                   \
    X(PALETTE, palette, 15, "lines of bf16, f16 or fp8 by a palette of exponents")                 \
    X(ZSTD, zstd, 16, "zstd, RFC 8878, all frames, XXH64 verified")                                \
    X(BLOSC, blosc, 17, "Blosc 1 and 2 chunks, bitshuffle's framing")

/* made by make generate: enumeration */
enum wharf_codec {
    WHARF_CODEC_STORED = 0,   /* bytes as they are */
    WHARF_CODEC_DEFLATE = 1,  /* raw Deflate, RFC 1951 */
    WHARF_CODEC_ZLIB = 2,     /* zlib, RFC 1950, Adler-32 verified */
    WHARF_CODEC_GZIP = 3,     /* gzip, RFC 1952, all members, CRC-32 and length verified */
    WHARF_CODEC_RLE1 = 4,     /* ORC's integer run lengths, version 1 */
    WHARF_CODEC_RLE2 = 5,     /* ORC's integer run lengths, version 2 */
    WHARF_CODEC_BYTERLE = 6,  /* ORC's byte run lengths */
    WHARF_CODEC_BOOLRLE = 7,  /* ORC's boolean run lengths, a byte for each value */
    WHARF_CODEC_RANS = 8,     /* rANS, 32-way interleaved, with Recoil's splits */
    WHARF_CODEC_LZ4 = 9,      /* LZ4 blocks, without a frame */
    WHARF_CODEC_SNAPPY = 10,  /* Snappy's raw format */
    WHARF_CODEC_BDI = 11,     /* lines by base and deltas */
    WHARF_CODEC_FPC = 12,     /* lines by frequent patterns */
    WHARF_CODEC_CPACK = 13,   /* lines by a dictionary of four words */
    WHARF_CODEC_BEST = 14,    /* lines by the best of bdi, fpc and cpack */
    WHARF_CODEC_PALETTE = 15, /* lines of bf16, f16 or fp8 by a palette of exponents */
    WHARF_CODEC_ZSTD = 16,    /* zstd, RFC 8878, all frames, XXH64 verified */
    WHARF_CODEC_BLOSC = 17,   /* Blosc 1 and 2 chunks, bitshuffle's framing */
};
/* end of enumeration */

/*
 * The parameter of rle1 and rle2: the type of the output's values, little-endian.  The stream does
 * not say it.  Signed types mean ORC's signed coding (zigzag), the others its unsigned one.
 */
enum wharf_rle_type {
    WHARF_RLE_U8 = 0,
    WHARF_RLE_U16 = 1,
    WHARF_RLE_U32 = 2,
    WHARF_RLE_U64 = 3,
    WHARF_RLE_I8 = 4,
    WHARF_RLE_I16 = 5,
    WHARF_RLE_I32 = 6,
    WHARF_RLE_I64 = 7,
};

/*
 * Encoders, as jobs that compress name them; 0 is the first of a codec's.  The codecs that are not
 * here have one encoder, 1.  Levels: libdeflate 1 to 12, zlib 1 to 9 (both 6 by default), rans 8 to
 * 16 (bits of its model; 11), in a daemon lz4 1 to 12 (1) and zstd 1 to 22 (3); others have none.
 */
enum wharf_deflate_encoder_number { /* of deflate, zlib and gzip */
                                    WHARF_DEFLATE_BY_LIBDEFLATE = 1,
                                    WHARF_DEFLATE_BY_ZLIB = 2,
};
enum wharf_line_encoder_number { /* of bdi, fpc, cpack and best: the size of a line */
                                 WHARF_LINES_OF_128 = 1,
                                 WHARF_LINES_OF_64 = 2,
                                 WHARF_LINES_OF_32 = 3,
};
/* Of palette, with lines of 128 bytes; of 64: 1 more; of 32: 2. */
enum wharf_palette_encoder_number {
    WHARF_PALETTE_BF16 = 1,
    WHARF_PALETTE_F16 = 4,
    WHARF_PALETTE_E4M3 = 7,
    WHARF_PALETTE_E5M2 = 10,
};
enum wharf_blosc_encoder_number { /* of blosc: what is shuffled, with elements of so many bytes */
                                  WHARF_BLOSC_SHUFFLE_4 = 1,
                                  WHARF_BLOSC_SHUFFLE_2 = 2,
                                  WHARF_BLOSC_SHUFFLE_8 = 3,
                                  WHARF_BLOSC_BITSHUFFLE_4 = 4,
                                  WHARF_BLOSC_BITSHUFFLE_2 = 5,
                                  WHARF_BLOSC_BITSHUFFLE_8 = 6,
                                  WHARF_BLOSC_BYTES = 7,
};

/*
 * The parameter of blosc: 0 for a chunk of Blosc 1 or 2; one of these with the size of an element
 * added, 1 to 255 bytes, for the framing of bitshuffle's HDF5 filter, which does not say it.
 */
enum wharf_blosc_framing {
    WHARF_BLOSC_BITSHUFFLE_LZ4 = 256,
    WHARF_BLOSC_BITSHUFFLE_ZSTD = 512,
};

#endif
