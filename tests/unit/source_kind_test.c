/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/container_format.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/source_kind.h"

struct source {
    const void *in;
    size_t in_nbytes;
    enum wharf_source_kind kind;
    size_t n_enough; /* so many bytes tell */
};

static const struct source sources[] = {
    {WHARF_CONTAINER_MAGIC, 8, WHARF_SOURCE_CONTAINER, 8},
    {"\x89WHR\r\n\x1a\x0d", 8, WHARF_SOURCE_OTHER, 8},
    {"\x89WHR\n\x1a\n\0", 8, WHARF_SOURCE_OTHER, 5}, /* what text mode makes of it */
    {"\x89PNG\r\n\x1a\n", 8, WHARF_SOURCE_OTHER, 2},
    {"\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0", 20, WHARF_SOURCE_GZIP, 4},
    {"\x1f\x8b\x08\4\0\0\0\0\0\3\0\0\3\0\0\0\0\0\0\0\0\0", 22, WHARF_SOURCE_GZIP, 12},
    {"\x1f\x8b\x07\4\0\0\0\0", 8, WHARF_SOURCE_GZIP, 3},
    {"\x1f\x9d\x90", 3, WHARF_SOURCE_OTHER, 2}, /* compress(1) */
    {"\x78\x9c\3\0\0\0\0\1", 8, WHARF_SOURCE_ZLIB, 2},
    {"\x78\x01\1\0\0", 5, WHARF_SOURCE_ZLIB, 2},
    {"\x08\x1d", 2, WHARF_SOURCE_ZLIB, 2},         /* the smallest window */
    {"\x78\xbb\0\0\0\0", 6, WHARF_SOURCE_ZLIB, 2}, /* with a dictionary: the decoder says so */
    {"\x78\x9d", 2, WHARF_SOURCE_OTHER, 2},
    {"\x88\x1c", 2, WHARF_SOURCE_OTHER, 1}, /* a window of 64 KiB */
    {"\x28\xb5\x2f\xfd\x20", 5, WHARF_SOURCE_ZSTD, 4},
    /* Behind skippable frames the first that is none tells. */
    {"\x50\x2a\x4d\x18\0\0\0\0\x28\xb5\x2f\xfd\x20\0\0\0", 16, WHARF_SOURCE_ZSTD, 16},
    {"\x5f\x2a\x4d\x18\0\0\0\0\x04\x22\x4d\x18\x64\x40\xa7\0", 16, WHARF_SOURCE_LZ4, 16},
    {"\x5f\x2a\x4d\x18\1\0\0\0x\x02\x21\x4c\x18\0\0\0\0", 17, WHARF_SOURCE_LZ4, 17},
    {"\x50\x2a\x4d\x18\0\0\2\0", 8, WHARF_SOURCE_ZSTD, 8}, /* too long to be looked behind */
    {"\x04\x22\x4d\x18\x64", 5, WHARF_SOURCE_LZ4, 4},
    {"\x04\x22\x4d\x19", 4, WHARF_SOURCE_OTHER, 4},
    {"\x02\x21\x4c\x18", 4, WHARF_SOURCE_LZ4, 4},
    {"\xff\6\0\0sNaPpY", 10, WHARF_SOURCE_SNAPPY, 10},
    {"\xff\6\0\0sNaPp?", 10, WHARF_SOURCE_OTHER, 10},
    {"\x28\xb5\x2f\xfc", 4, WHARF_SOURCE_OTHER, 4},
    {"PAR1", 4, WHARF_SOURCE_OTHER, 2},
    {"plain text", 10, WHARF_SOURCE_OTHER, 1},
    {"\0\0\0", 3, WHARF_SOURCE_OTHER, 1},
};

/* With fewer bytes MORE is the answer, and at the end of the file what they begin. */
Test(source_kind, is_told_from_as_few_bytes_as_possible)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        const struct source *source = &sources[i];
        for (size_t n = 0; n <= source->in_nbytes; n++) {
            enum wharf_source_kind kind = wharf_source_detect(source->in, n, false);
            cr_assert_eq(kind, n < source->n_enough ? WHARF_SOURCE_MORE : source->kind,
                         "source %zu, %zu bytes: %d", i, n, kind);
            cr_assert_neq(wharf_source_detect(source->in, n, true), WHARF_SOURCE_MORE);
        }
        cr_assert_eq(wharf_source_detect(source->in, source->in_nbytes, true), source->kind);
    }
}

/* 18 bytes tell BGZF as everyone writes it. */
Test(source_kind, bgzf_is_told_from_gzip)
{
    for (size_t n = 1; n <= sizeof(wharf_bgzf_marker); n++) {
        cr_assert_eq(wharf_source_detect(wharf_bgzf_marker, n, false),
                     n < 18 ? WHARF_SOURCE_MORE : WHARF_SOURCE_BGZF);
        if (n >= 2)
            cr_assert_eq(wharf_source_detect(wharf_bgzf_marker, n, true),
                         n < 18 ? WHARF_SOURCE_GZIP : WHARF_SOURCE_BGZF);
    }
}

/* So that the decoder, not the detector, says what is missing. */
Test(source_kind, cut_off_files_are_what_they_begin)
{
    cr_assert_eq(wharf_source_detect(NULL, 0, true), WHARF_SOURCE_EMPTY);
    cr_assert_eq(wharf_source_detect(NULL, 0, false), WHARF_SOURCE_MORE);
    for (size_t n = 1; n < 8; n++)
        cr_assert_eq(wharf_source_detect((const uint8_t *)WHARF_CONTAINER_MAGIC, n, true),
                     WHARF_SOURCE_CONTAINER);
    cr_assert_eq(wharf_source_detect((const uint8_t *)"\x1f", 1, true), WHARF_SOURCE_GZIP);
    cr_assert_eq(wharf_source_detect((const uint8_t *)"\x78", 1, true), WHARF_SOURCE_ZLIB);
}
