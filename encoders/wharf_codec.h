/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_codec.h: the list of codecs.
 *
 * One codec is one row here, one folder in encoders/ and one folder in kernels/.  Everything
 * that goes over all codecs (the public enumeration below, the host and device tables, tests,
 * fuzz targets and benchmarks) is generated from this list, so adding a codec touches nothing
 * else; kernels/KERNELS.md is the recipe.
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
    X(GZIP, gzip, 3, "gzip, RFC 1952, all members, CRC-32 and length verified")

enum wharf_codec {
#define X(ID, name, number, summary) WHARF_CODEC_##ID = (number),
    WHARF_CODEC_LIST(X)
#undef X
};

#endif
