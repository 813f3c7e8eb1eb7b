/* SPDX-License-Identifier: Apache-2.0 */
/* source_kind.c: what a file is, by its first bytes. */
#include "encoders/source_kind.h"

#include <string.h>

#include "encoders/container_format.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/little_endian.h"
#include "encoders/lz4/lz4_frame.h"
#include "encoders/snappy/snappy_frame.h"
#include "encoders/zlib/zlib_format.h"

/* Skippable frames up to so much, in all, are looked behind. */
enum { SKIPPED_MAX_NBYTES = 64 << 10 };

/* First bytes, or those at an offset, of formats that people try. */
static const struct {
    struct wharf_foreign_kind kind;
    uint16_t offset;
    uint8_t magic_nbytes;
    char magic[12];
} foreign_rows[] = {
    {{"a zip archive", "`unzip -p`"}, 0, 4, "PK\x03\x04"},
    {{"an empty zip archive", "`unzip -p`"}, 0, 4, "PK\x05\x06"},
    {{"bzip2 data", "`bzip2 -dc`"}, 0, 3, "BZh"},
    {{"xz data", "`xz -dc`"},
     0,
     6,
     "\xfd"
     "7zXZ"},
    {{"lzip data", "`lzip -dc`"}, 0, 4, "LZIP"},
    {{"lzop data", "`lzop -dc`"}, 0, 9, "\x89LZO\x00\r\n\x1a\n"},
    {{"a 7-Zip archive", "`7z x -so`"}, 0, 6, "7z\xbc\xaf\x27\x1c"},
    {{"a RAR archive", "`unrar p`"}, 0, 4, "Rar!"},
    {{"data of compress(1)", "`gzip -dc`"}, 0, 2, "\x1f\x9d"},
    {{"a Parquet file", "a Parquet reader"}, 0, 4, "PAR1"},
    {{"an ORC file", "an ORC reader"}, 0, 3, "ORC"},
    {{"an HDF5 file", "an HDF5 reader"}, 0, 8, "\x89HDF\r\n\x1a\n"},
    {{"a tar archive that is not compressed", "`tar -xf`"}, 257, 5, "ustar"},
};

const struct wharf_foreign_kind *wharf_foreign_detect(const uint8_t *in, size_t in_nbytes)
{
    for (size_t i = 0; i < sizeof(foreign_rows) / sizeof(foreign_rows[0]); i++) {
        size_t offset = foreign_rows[i].offset;
        size_t nbytes = foreign_rows[i].magic_nbytes;

        if (in_nbytes >= offset + nbytes && memcmp(in + offset, foreign_rows[i].magic, nbytes) == 0)
            return &foreign_rows[i].kind;
    }
    return NULL;
}

/* 1: begins with all of it; 0: does not; -1: with as much of it as there are bytes. */
static int begins_with(const uint8_t *in, size_t in_nbytes, const void *magic, size_t magic_nbytes)
{
    size_t n = in_nbytes < magic_nbytes ? in_nbytes : magic_nbytes;

    if (memcmp(in, magic, n) != 0)
        return 0;
    return n == magic_nbytes ? 1 : -1;
}

/* In the sense of begins_with. */
static int begins_with_zlib(const uint8_t *in, size_t in_nbytes)
{
    if ((in[0] & 0x0f) != WHARF_ZLIB_METHOD_DEFLATE || in[0] >> 4 > WHARF_ZLIB_MAX_WINDOW)
        return 0;
    if (in_nbytes < WHARF_ZLIB_HEADER_NBYTES)
        return -1;
    return (in[0] * 256 + in[1]) % WHARF_ZLIB_HEADER_MODULUS == 0;
}

/* In the sense of begins_with. */
static int begins_with_zstd(const uint8_t *in, size_t in_nbytes)
{
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd};
    static const uint8_t skippable[] = {0x2a, 0x4d, 0x18};

    if ((in[0] & 0xf0) == 0x50)
        return in_nbytes > 1 ? begins_with(in + 1, in_nbytes - 1, skippable, sizeof(skippable))
                             : -1;
    return begins_with(in, in_nbytes, frame, sizeof(frame));
}

/* In the sense of begins_with. */
static int begins_with_lz4(const uint8_t *in, size_t in_nbytes)
{
    static const uint8_t frame[] = {0x04, 0x22, 0x4d, 0x18};
    static const uint8_t legacy[] = {0x02, 0x21, 0x4c, 0x18};
    int match = begins_with(in, in_nbytes, frame, sizeof(frame));

    return match ? match : begins_with(in, in_nbytes, legacy, sizeof(legacy));
}

/* Of a file that begins with a skippable frame: the first that is none tells. */
static enum wharf_source_kind frames_kind(const uint8_t *in, size_t in_nbytes, bool at_end)
{
    size_t at = 0;

    while (in_nbytes - at >= 8 &&
           (wharf_load_le32(in + at) & WHARF_SKIPPABLE_MASK) == WHARF_SKIPPABLE_MAGIC) {
        uint64_t nbytes = 8 + (uint64_t)wharf_load_le32(in + at + 4);

        if (nbytes > SKIPPED_MAX_NBYTES - at)
            return WHARF_SOURCE_ZSTD;
        if (nbytes > in_nbytes - at)
            return at_end ? WHARF_SOURCE_ZSTD : WHARF_SOURCE_MORE;
        at += (size_t)nbytes;
    }
    if (in_nbytes - at < 8 && !at_end)
        return WHARF_SOURCE_MORE;
    return in_nbytes > at && begins_with_lz4(in + at, in_nbytes - at) ? WHARF_SOURCE_LZ4
                                                                      : WHARF_SOURCE_ZSTD;
}

static enum wharf_source_kind gzip_kind(const uint8_t *in, size_t in_nbytes, bool at_end)
{
    uint32_t block_nbytes;
    int is_bgzf = wharf_bgzf_look(in, in_nbytes, &block_nbytes);

    if (is_bgzf < 0 && !at_end)
        return WHARF_SOURCE_MORE;
    return is_bgzf == 1 ? WHARF_SOURCE_BGZF : WHARF_SOURCE_GZIP;
}

enum wharf_source_kind wharf_source_detect(const uint8_t *in, size_t in_nbytes, bool at_end)
{
    static const uint8_t gzip_magic[] = {WHARF_GZIP_MAGIC_0, WHARF_GZIP_MAGIC_1};
    enum wharf_source_kind kind = WHARF_SOURCE_OTHER;
    int match;

    if (in_nbytes == 0)
        return at_end ? WHARF_SOURCE_EMPTY : WHARF_SOURCE_MORE;
    /* The first bytes 89, 1f, 02, 04, ff, those of zlib (x8) and those of zstd rule each other out:
     * the two bytes of a zlib header are no multiple of 31 with 28 b5 or 58 2a. */
    if ((match = begins_with(in, in_nbytes, WHARF_CONTAINER_MAGIC, WHARF_CONTAINER_MAGIC_NBYTES)))
        kind = WHARF_SOURCE_CONTAINER;
    else if ((match = begins_with(in, in_nbytes, gzip_magic, sizeof(gzip_magic))))
        kind = WHARF_SOURCE_GZIP;
    else if ((match = begins_with_zlib(in, in_nbytes)))
        kind = WHARF_SOURCE_ZLIB;
    else if ((match = begins_with_lz4(in, in_nbytes)))
        kind = WHARF_SOURCE_LZ4;
    else if ((match = begins_with(in, in_nbytes, wharf_snappy_frame_identifier,
                                  WHARF_SNAPPY_FRAME_IDENTIFIER_NBYTES)))
        kind = WHARF_SOURCE_SNAPPY;
    else if ((match = begins_with_zstd(in, in_nbytes)))
        kind = WHARF_SOURCE_ZSTD;
    if (match < 0 && !at_end)
        return WHARF_SOURCE_MORE;
    if (kind == WHARF_SOURCE_ZSTD && match == 1 && (in[0] & 0xf0) == 0x50)
        return frames_kind(in, in_nbytes, at_end);
    return kind == WHARF_SOURCE_GZIP ? gzip_kind(in, in_nbytes, at_end) : kind;
}
