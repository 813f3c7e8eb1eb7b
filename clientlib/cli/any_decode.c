/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/any_decode.h"

#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/bgzf_pipe.h"
#include "clientlib/cli/cpu_format.h"
#include "clientlib/cli/salvage.h"
#include "clientlib/cli/stream_pipe.h"
#include "clientlib/cli/whole_decode.h"
#include "clientlib/cli/zstd_file.h"
#include "encoders/deflate/inflate_stream.h"

/* As much as source_kind.h may ask for: a gzip header's fixed part and its extra field. */
enum { DETECT_NBYTES = 66 << 10 };

/* ---- recognising ------------------------------------------------------------------------- */

static int detect(struct wharf_cli_task *task, uint8_t *buf, enum wharf_source_kind *ret_kind)
{
    size_t nbytes = 0;
    int64_t n = 1;
    int r;

    for (;;) {
        *ret_kind = wharf_source_detect(buf, nbytes, n == 0);
        if (*ret_kind != WHARF_SOURCE_MORE || n == 0)
            break;
        n = wharf_cli_input_read_some(task->input, nbytes, buf + nbytes, DETECT_NBYTES - nbytes);
        if (n < 0)
            return wharf_cli_task_read_error(task, (int)n);
        nbytes += (size_t)n;
    }
    r = wharf_cli_input_unread(task->input, 0, buf, nbytes);
    return r < 0 ? wharf_cli_task_error(task, "cannot decode", r) : WHARF_CLI_GOOD;
}

int wharf_cli_any_detect(struct wharf_cli_task *task, enum wharf_source_kind *ret_kind)
{
    const struct wharf_cli_cpu_format *format;
    uint8_t *buf;
    int status;

    if (wharf_cli_input_is_terminal(task->input)) {
        wharf_cli_say("%s: compressed data is not read from a terminal", task->input->name);
        return wharf_cli_tally_error(task->tally, task->input->name, -EINVAL);
    }
    buf = malloc(DETECT_NBYTES);
    if (!buf)
        return wharf_cli_task_error(task, "cannot decode", -ENOMEM);
    status = detect(task, buf, ret_kind);
    free(buf);
    format = task->options->codec ? wharf_cli_cpu_format_of_name(task->options->codec)
                                  : wharf_cli_cpu_format_of_path(task->input->name);
    if (status == WHARF_CLI_GOOD && format && *ret_kind != WHARF_SOURCE_EMPTY)
        *ret_kind = format->kind;
    return status;
}

bool wharf_cli_any_is_spent(const struct wharf_cli_task *task, enum wharf_source_kind kind)
{
    return kind == WHARF_SOURCE_EMPTY && task->input->was_read;
}

static void say_unknown(struct wharf_cli_task *task, enum wharf_source_kind kind)
{
    uint8_t first[WHARF_FOREIGN_MAX_NBYTES];
    const struct wharf_foreign_kind *foreign = NULL;
    int64_t n = 0;

    if (kind == WHARF_SOURCE_EMPTY) {
        wharf_cli_say("%s: is empty: not even the beginning of a compressed file",
                      task->input->name);
        return;
    }
    n = wharf_cli_input_read_at(task->input, 0, first, sizeof(first));
    if (n > 0)
        foreign = wharf_foreign_detect(first, (size_t)n);
    if (foreign)
        wharf_cli_say("%s: is %s, which wharf does not read: %s does", task->input->name,
                      foreign->name, foreign->program);
    else
        wharf_cli_say(
            "%s: is not gzip, BGZF, zlib, zstd, LZ4 frames, framed Snappy or a wharf container; "
            "Brotli needs --codec brotli, and for raw streams there is `wharf decode`%s",
            task->input->name,
            task->options->offers_salvage && !task->output->is_sink
                ? "; --salvage searches it for what lies behind a damaged beginning"
                : "");
}

int wharf_cli_any_tell_unknown(struct wharf_cli_task *task, enum wharf_source_kind kind)
{
    uint32_t reason =
        kind == WHARF_SOURCE_EMPTY ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_GZIP_MAGIC;

    say_unknown(task, kind);
    wharf_cli_tally_outcome(task->tally, task->input->name, WHARF_BAD_DATA, reason, 0);
    return WHARF_CLI_BAD_DATA;
}

bool wharf_cli_any_is_foreign(struct wharf_cli_task *task)
{
    uint8_t first[WHARF_FOREIGN_MAX_NBYTES];
    int64_t n = wharf_cli_input_read_at(task->input, 0, first, sizeof(first));

    return n > 0 && wharf_foreign_detect(first, (size_t)n);
}

/* ---- decoding ---------------------------------------------------------------------------- */

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
