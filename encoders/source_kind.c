/* SPDX-License-Identifier: Apache-2.0 */
/* source_kind.c: what a file is, by its first bytes. */
#include "encoders/source_kind.h"

#include <string.h>

#include "encoders/container_format.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/zlib/zlib_format.h"

/* First bytes, or those at an offset, of formats that people try. */
static const struct {
    struct wharf_foreign_kind kind;
    uint16_t offset;
    uint8_t magic_nbytes;
    char magic[12];
} foreign_rows[] = {
    {{"an LZ4 frame", "`lz4 -dc`"}, 0, 4, "\x04\x22\x4d\x18"},
    {{"an LZ4 frame of the old kind", "`lz4 -dc`"}, 0, 4, "\x02\x21\x4c\x18"},
    {{"framed Snappy", "`snzip -dc`"}, 0, 10, "\xff\x06\x00\x00sNaPpY"},
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
    /* The first bytes 89, 1f, those of zlib (x8) and those of zstd rule each other out: the two
     * bytes of a zlib header are no multiple of 31 with 28 b5 or 58 2a. */
    if ((match = begins_with(in, in_nbytes, WHARF_CONTAINER_MAGIC, WHARF_CONTAINER_MAGIC_NBYTES)))
        kind = WHARF_SOURCE_CONTAINER;
    else if ((match = begins_with(in, in_nbytes, gzip_magic, sizeof(gzip_magic))))
        kind = WHARF_SOURCE_GZIP;
    else if ((match = begins_with_zlib(in, in_nbytes)))
        kind = WHARF_SOURCE_ZLIB;
    else if ((match = begins_with_zstd(in, in_nbytes)))
        kind = WHARF_SOURCE_ZSTD;
    if (match < 0 && !at_end)
        return WHARF_SOURCE_MORE;
    return kind == WHARF_SOURCE_GZIP ? gzip_kind(in, in_nbytes, at_end) : kind;
}
