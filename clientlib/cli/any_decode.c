/* SPDX-License-Identifier: Apache-2.0 */
/* any_decode.c: decodes an input of any format (any_decode.h). */
#include "clientlib/cli/any_decode.h"

#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/bgzf_pipe.h"
#include "clientlib/cli/cpu_decode.h"
#include "clientlib/cli/salvage.h"
#include "clientlib/cli/stream_pipe.h"
#include "clientlib/cli/whole_decode.h"
#include "clientlib/cli/zstd_file.h"
#include "encoders/deflate/inflate_stream.h"

/* One stream that goes through one decoder. */
static int decode_stream(struct wharf_cli_task *task, enum wharf_inflate_format format,
                         uint64_t offset)
{
    const struct wharf_cli_whole whole = {
        .codec = format == WHARF_INFLATE_ZLIB ? WHARF_CODEC_ZLIB : WHARF_CODEC_GZIP,
        .max_output_nbytes = WHARF_CLI_WHOLE_DEFAULT_NBYTES,
    };
    uint64_t end;
    int status = task->options->engine > WHARF_ENGINE_CPU
                     ? wharf_cli_whole_decode(task, &whole, offset, &end)
                     : wharf_cli_inflate_pipe(task, format, offset, &end);

    return status == WHARF_CLI_GOOD ? wharf_cli_mention_rest(task, end) : status;
}

static int decode_zstd(struct wharf_cli_task *task, struct wharf_cli_range range)
{
    const struct wharf_cli_whole whole = {
        .codec = WHARF_CODEC_ZSTD,
        .max_output_nbytes = WHARF_CLI_WHOLE_DEFAULT_NBYTES,
    };
    uint64_t end;

    return task->options->engine > WHARF_ENGINE_CPU ? wharf_cli_whole_decode(task, &whole, 0, &end)
                                                    : wharf_cli_zstd_decode(task, range);
}

/* Blocks end with a certain one.  Without it what is no block is a bad one, and the blocks behind
 * it are lost with it: more than a remark's worth. */
static int tell_bad_block(struct wharf_cli_task *task, uint64_t offset)
{
    struct wharf_cli_fault fault = {
        .result = WHARF_BAD_DATA,
        .reason = WHARF_REASON_GZIP_MAGIC,
        .bit_offset = 8 * offset,
        .chunk = WHARF_CLI_NO_CHUNK,
    };
    bool has_bytes;
    int status = wharf_cli_look_at_rest(task, offset, &has_bytes);

    if (has_bytes)
        return wharf_cli_task_fault(task, &fault, 0);
    if (status == WHARF_CLI_GOOD)
        wharf_cli_bgzf_mention_no_marker(task);
    return status;
}

static int decode_bgzf(struct wharf_cli_task *task)
{
    enum wharf_cli_bgzf_next next;
    uint64_t end;
    int status = wharf_cli_bgzf_pipe(task, 0, &end, &next);

    if (status != WHARF_CLI_GOOD || wharf_cli_output_is_full(task->output))
        return status;
    if (next == WHARF_CLI_BGZF_GZIP)
        return decode_stream(task, WHARF_INFLATE_GZIP, end);
    return next == WHARF_CLI_BGZF_OTHER ? tell_bad_block(task, end)
                                        : wharf_cli_mention_rest(task, end);
}

/* Without an index all output is decoded from the first byte on, and the range kept. */
static int decode_range(struct wharf_cli_task *task, struct wharf_cli_range range,
                        enum wharf_source_kind kind)
{
    const struct wharf_cli_cpu_format *format = wharf_cli_cpu_format_find(kind);
    uint64_t passed;
    int status;

    wharf_cli_output_keep(task->output, range.offset, range.nbytes);
    if (format)
        status = wharf_cli_cpu_format_decode(task, format, NULL);
    else if (kind == WHARF_SOURCE_BGZF)
        status = decode_bgzf(task);
    else if (kind == WHARF_SOURCE_ZSTD)
        status = decode_zstd(task, range);
    else
        status = decode_stream(
            task, kind == WHARF_SOURCE_ZLIB ? WHARF_INFLATE_ZLIB : WHARF_INFLATE_GZIP, 0);
    if (status == WHARF_CLI_GOOD && wharf_cli_output_lacks(task->output, &passed))
        return wharf_cli_task_range_outside(task, passed);
    return status;
}

static int decode_kind(struct wharf_cli_task *task, struct wharf_cli_range range,
                       enum wharf_source_kind kind)
{
    switch (kind) {
    case WHARF_SOURCE_BGZF:
    case WHARF_SOURCE_GZIP:
    case WHARF_SOURCE_ZLIB:
    case WHARF_SOURCE_ZSTD:
    case WHARF_SOURCE_LZ4:
    case WHARF_SOURCE_SNAPPY:
    case WHARF_SOURCE_BROTLI:
        return decode_range(task, range, kind);
    case WHARF_SOURCE_CONTAINER:
        return wharf_cli_container_pipe(task, range);
    default:
        return wharf_cli_any_tell_unknown(task, kind);
    }
}

int wharf_cli_any_decode(struct wharf_cli_task *task, struct wharf_cli_range range)
{
    enum wharf_source_kind kind;
    int status = wharf_cli_any_detect(task, &kind);

    if (status != WHARF_CLI_GOOD || wharf_cli_any_is_spent(task, kind))
        return status;
    if (task->options->salvage)
        return wharf_cli_salvage(task, range, kind);
    return decode_kind(task, range, kind);
}
