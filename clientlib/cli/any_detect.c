/* SPDX-License-Identifier: Apache-2.0 */
/* any_detect.c: detects an input's format, and explains formats that wharf does not read. */
#include "clientlib/cli/any_detect.h"

#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/cpu_format.h"

/* As much as source_kind.h may ask for: a gzip header's fixed part and its extra field. */
enum { DETECT_NBYTES = 66 << 10 };

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
