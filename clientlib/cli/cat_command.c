/* SPDX-License-Identifier: Apache-2.0 */
/* wharf cat: whatever compressed files there are, to standard output, as zcat does. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "clientlib/cli/bgzf_pipe.h"
#include "clientlib/cli/commands.h"
#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/load.h"
#include "clientlib/cli/progress.h"
#include "clientlib/cli/stream_pipe.h"
#include "clientlib/cli/whole_decode.h"
#include "encoders/source_kind.h"

/* What source_kind.h may ask for: a gzip header's fixed part and its extra field. */
enum { DETECT_NBYTES = 66 << 10 };

/* Recognises the input, which can then be read from its start. */
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

/* One stream that goes through one decoder. */
static int cat_stream(struct wharf_cli_task *task, enum wharf_inflate_format format,
                      uint64_t offset)
{
    const struct wharf_cli_whole whole = {
        .codec = format == WHARF_INFLATE_ZLIB ? WHARF_CODEC_ZLIB : WHARF_CODEC_GZIP,
        .max_output_nbytes = WHARF_CLI_WHOLE_DEFAULT_NBYTES,
    };
    uint64_t end;
    int status = task->options->engine > WHARF_ENGINE_CPU
                     ? wharf_cli_whole_decode(task, &whole, offset, &end)
                     : wharf_cli_stream_pipe(task, format, offset, &end);

    return status == WHARF_CLI_GOOD ? wharf_cli_mention_rest(task, end) : status;
}

static int cat_bgzf(struct wharf_cli_task *task)
{
    uint64_t end;
    bool go_on;
    int status = wharf_cli_bgzf_pipe(task, 0, &end, &go_on);

    if (status != WHARF_CLI_GOOD)
        return status;
    return go_on ? cat_stream(task, WHARF_INFLATE_GZIP, end) : wharf_cli_mention_rest(task, end);
}

/* Neither of the kinds that we know: the first bytes are wrong, or there are none. */
static int tell_unknown(struct wharf_cli_task *task, uint32_t reason)
{
    if (reason == WHARF_REASON_INPUT_TRUNCATED)
        wharf_cli_say("%s: is empty: not even the beginning of a compressed file",
                      task->input->name);
    else
        wharf_cli_say("%s: is not gzip, BGZF, zlib or a wharf container; for a raw Deflate stream "
                      "see `wharf decode`",
                      task->input->name);
    wharf_cli_tally_outcome(task->tally, task->input->name, WHARF_BAD_DATA, reason, 0);
    return WHARF_CLI_BAD_DATA;
}

static int cat_kind(struct wharf_cli_task *task, enum wharf_source_kind kind)
{
    switch (kind) {
    case WHARF_SOURCE_CONTAINER:
        return wharf_cli_container_pipe(task, (struct wharf_cli_range){0, UINT64_MAX});
    case WHARF_SOURCE_BGZF:
        return cat_bgzf(task);
    case WHARF_SOURCE_GZIP:
        return cat_stream(task, WHARF_INFLATE_GZIP, 0);
    case WHARF_SOURCE_ZLIB:
        return cat_stream(task, WHARF_INFLATE_ZLIB, 0);
    case WHARF_SOURCE_EMPTY:
        return tell_unknown(task, WHARF_REASON_INPUT_TRUNCATED);
    default:
        return tell_unknown(task, WHARF_REASON_GZIP_MAGIC);
    }
}

static int cat_input(struct wharf_cli_task *task)
{
    uint8_t *buf = malloc(DETECT_NBYTES);
    enum wharf_source_kind kind;
    int status;

    if (!buf)
        return wharf_cli_task_error(task, "cannot decode", -ENOMEM);
    status = detect(task, buf, &kind);
    free(buf);
    return status == WHARF_CLI_GOOD ? cat_kind(task, kind) : status;
}

/* One file.  Failures are in the tally: the next file follows all the same. */
static void cat_file(struct wharf_cli_task *task, const char *path)
{
    struct wharf_cli_input input;
    uint64_t total;
    int r = wharf_cli_input_open(&input, path);

    if (r < 0) {
        wharf_cli_tally_error(task->tally, path, r);
        return;
    }
    if (isatty(input.fd)) {
        wharf_cli_say("%s: compressed data is not read from a terminal", input.name);
        wharf_cli_tally_error(task->tally, input.name, -EINVAL);
        wharf_cli_input_close(&input);
        return;
    }
    if (wharf_cli_output_is_input(task->output, &input.status)) {
        wharf_cli_tally_error(task->tally, input.name, -EINVAL);
        wharf_cli_input_close(&input);
        return;
    }
    total = input.is_seekable ? input.nbytes : 0;
    task->input = &input;
    wharf_cli_progress_start(input.name, total, task->options->quiet);
    cat_input(task);
    wharf_cli_progress_end();
    wharf_cli_input_close(&input);
}

static void close_output(struct wharf_cli_task *task)
{
    int r = task->output->failed ? 0 : wharf_cli_output_commit(task->output, NULL);

    if (r < 0)
        wharf_cli_task_write_error(task, r);
}

static int run(int argc, char **argv)
{
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = argc};
    struct wharf_cli_tally tally;
    struct wharf_cli_output output;
    struct wharf_cli_service service;
    struct wharf_cli_task task = {&options, &tally, NULL, &output, &service};
    int status = wharf_cli_parse(&wharf_cli_cat, argc, argv, NULL, &options, &operands);

    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_usual(&options, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    wharf_cli_tally_init(&tally);
    wharf_cli_output_open(&output, "-", false);
    for (int i = 0; i < operands.n && !output.failed; i++)
        cat_file(&task, argv[operands.first + i]);
    if (operands.n == 0)
        cat_file(&task, "-");
    close_output(&task);
    wharf_cli_service_close(&service);
    if (options.report)
        wharf_cli_tally_report(&tally);
    return tally.status;
}

const struct wharf_cli_command wharf_cli_cat = {
    .name = "cat",
    .summary = "decompress files to standard output, as zcat does",
    .usage = "[OPTION...] [FILE...]",
    .help = "Decompresses gzip (all members), BGZF, zlib and wharf containers to standard\n"
            "output, one FILE after another; without FILE, or for -, standard input.\n"
            "BGZF and containers are decoded by all cores, or by a daemon.\n\n",
    .run = run,
};
