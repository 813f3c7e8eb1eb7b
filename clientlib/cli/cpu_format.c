/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_format.c: the table of file formats that only the CPU reads. */
#include "clientlib/cli/cpu_format.h"

#include <string.h>

#include "clientlib/cli/brotli_stream.h"
#include "clientlib/cli/suffix.h"
#include "encoders/lz4/lz4_frame.h"
#include "encoders/snappy/snappy_frame.h"
#include "encoders/wharf_codec.h"

static const struct wharf_cli_cpu_format formats[] = {
    {
        .kind = WHARF_SOURCE_LZ4,
        .name = "lz4",
        .title = "LZ4 frames",
        .codecs = UINT64_C(1) << WHARF_CODEC_LZ4,
        .check = "xxh32",
        .next = wharf_lz4_frame_next,
    },
    {
        .kind = WHARF_SOURCE_SNAPPY,
        .name = "snappy",
        .title = "framed Snappy",
        .codecs = UINT64_C(1) << WHARF_CODEC_SNAPPY,
        .check = "crc32c",
        .next = wharf_snappy_frame_next,
    },
    {
        .kind = WHARF_SOURCE_BROTLI,
        .name = "brotli",
        .title = "Brotli",
        .suffix = ".br",
        .new_stream = wharf_cli_brotli_stream_new,
    },
};
enum { N_FORMATS = sizeof(formats) / sizeof(formats[0]) };

const struct wharf_cli_cpu_format *wharf_cli_cpu_format_find(enum wharf_source_kind kind)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (formats[i].kind == kind)
            return &formats[i];
    return NULL;
}

const struct wharf_cli_cpu_format *wharf_cli_cpu_format_of_path(const char *path)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (formats[i].suffix && wharf_cli_has_suffix(path, formats[i].suffix))
            return &formats[i];
    return NULL;
}

const struct wharf_cli_cpu_format *wharf_cli_cpu_format_of_name(const char *name)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (formats[i].suffix && strcmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}
