/* SPDX-License-Identifier: Apache-2.0 */
/* task.c: a command's work from one input to its output (task.h). */
#include "clientlib/cli/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "clientlib/cli/progress.h"

/* What somebody can do about it. */
static const char *advice(const struct wharf_cli_fault *fault)
{
    if (fault->advice)
        return fault->advice;
    switch (fault->result) {
    case WHARF_OUTPUT_TOO_SMALL:
        return "wharf decode --max-output SIZE allows more output";
    case WHARF_QUOTA:
    case WHARF_NO_MEMORY:
    case WHARF_DEVICE_FAULT:
    case WHARF_INTERNAL:
        return "--embedded decodes it in this process";
    default:
        break;
    }
    switch (fault->reason) {
    case WHARF_REASON_INPUT_TRUNCATED:
        return "it is cut off: get the rest of it, or all of it again";
    case WHARF_REASON_CONTAINER_TRUNCATED:
        return "get the rest of it, or all of it again";
    case WHARF_REASON_ZLIB_DICTIONARY:
    case WHARF_REASON_ZSTD_DICTIONARY:
        return "wharf cannot be given a preset dictionary";
    case WHARF_REASON_CONTAINER_VERSION:
    case WHARF_REASON_CONTAINER_CODEC:
        return "a newer version of wharf may read it";
    /* Bytes that no checksum vouches for. */
    case WHARF_REASON_RANS_VERSION:
    case WHARF_REASON_LINE_VERSION:
    case WHARF_REASON_BLOSC_VERSION:
    case WHARF_REASON_LZ4_FRAME_VERSION:
        return "a newer version of wharf may read it, unless it is damaged";
    case WHARF_REASON_ZSTD_VERSION:
        return "zstd may read it, if it was built for old formats; or it is damaged";
    case WHARF_REASON_ZSTD_WINDOW:
        return "zstd --memory=SIZE may read it; or it is damaged";
    case WHARF_REASON_LZ4_FRAME_DICTIONARY:
        return "wharf cannot be given a dictionary";
    default:
        return "it is damaged: get it again";
    }
}

/* A limit of the daemon's has no place in the input. */
static void say_limit(const struct wharf_cli_task *task, const struct wharf_cli_fault *fault,
                      const char *chunk)
{
    char text[192];
    const char *limit =
        task->service ? wharf_cli_service_limit(task->service, fault->reason, text, sizeof(text))
                      : NULL;

    wharf_cli_say("%s: %s%s: %s", task->input->name, wharf_result_string(fault->result), chunk,
                  limit ? limit : advice(fault));
}

/* Whether there is more to be had of the input than what was verified, and this is not it. */
static bool has_salvage(const struct wharf_cli_task *task, const struct wharf_cli_fault *fault)
{
    return task->options->offers_salvage && !task->options->salvage && !task->output->is_sink &&
           wharf_cli_status_of(fault->result) == WHARF_CLI_BAD_DATA;
}

static void say_place(const struct wharf_cli_task *task, const struct wharf_cli_fault *fault)
{
    char chunk[48] = "";

    if (fault->chunk != WHARF_CLI_NO_CHUNK)
        snprintf(chunk, sizeof(chunk), " in chunk %" PRIu64, fault->chunk);
    if (fault->reason == WHARF_REASON_NONE || fault->result == WHARF_QUOTA) {
        say_limit(task, fault, chunk);
        return;
    }
    wharf_cli_say("%s: %s%s at byte %" PRIu64 " bit %u: %s; %s%s", task->input->name,
                  wharf_result_string(fault->result), chunk, fault->bit_offset / 8,
                  (unsigned)(fault->bit_offset % 8), wharf_reason_string(fault->reason),
                  advice(fault),
                  has_salvage(task, fault) ? "; --salvage writes all that decodes" : "");
}

static void say_output(const struct wharf_cli_task *task, uint64_t n_unverified)
{
    const struct wharf_cli_output *output = task->output;

    if (output->is_sink)
        return;
    if (output->is_file && !wharf_cli_task_keeps(task))
        wharf_cli_say("%s: not written", output->name);
    else if (n_unverified)
        wharf_cli_say("%s: has %" PRIu64 " bytes, of which the last %" PRIu64
                      " could not be verified",
                      output->name, output->nbytes, n_unverified);
    else if (output->nbytes)
        wharf_cli_say("%s: has %" PRIu64 " bytes from before, all verified", output->name,
                      output->nbytes);
    else
        wharf_cli_say("%s: nothing was written", output->name);
}

void wharf_cli_task_note_fault(struct wharf_cli_task *task, const struct wharf_cli_fault *fault,
                               bool is_said)
{
    if (is_said)
        say_place(task, fault);
    wharf_cli_tally_outcome(task->tally, task->input->name, fault->result, fault->reason,
                            fault->bit_offset);
}

int wharf_cli_task_fault(struct wharf_cli_task *task, const struct wharf_cli_fault *fault,
                         uint64_t n_unverified)
{
    say_place(task, fault);
    say_output(task, n_unverified);
    wharf_cli_tally_outcome(task->tally, task->input->name, fault->result, fault->reason,
                            fault->bit_offset);
    return wharf_cli_status_of(fault->result);
}

int wharf_cli_task_read_error(struct wharf_cli_task *task, int error)
{
    wharf_cli_input_say_error(task->input, error);
    return wharf_cli_tally_error(task->tally, task->input->name, error);
}

int wharf_cli_task_write_error(struct wharf_cli_task *task, int error)
{
    return wharf_cli_tally_error(task->tally, task->output->name, error);
}

int wharf_cli_task_daemon_error(struct wharf_cli_task *task, int error, const char *text)
{
    int status = wharf_cli_service_say_error(task->service, error, text);

    say_output(task, 0);
    return wharf_cli_tally_failure(task->tally, task->input->name, error, status);
}

int wharf_cli_task_error(struct wharf_cli_task *task, const char *what, int error)
{
    wharf_cli_say("%s: %s: %s", task->input->name, what, wharf_cli_error_text(error));
    return wharf_cli_tally_error(task->tally, task->input->name, error);
}

int wharf_cli_task_range_outside(struct wharf_cli_task *task, uint64_t out_nbytes)
{
    wharf_cli_say("%s: the range is not within it: it unpacks to %" PRIu64 " bytes",
                  task->input->name, out_nbytes);
    wharf_cli_tally_outcome(task->tally, task->input->name, WHARF_BAD_REQUEST,
                            WHARF_REASON_REQUEST_RANGE, 0);
    return WHARF_CLI_USAGE;
}

/* Nobody else draws on the terminal: a pager at the end of a pipe would. */
static bool shows_progress(const struct wharf_cli_task *task)
{
    return task->options->progress ||
           (!task->options->quiet && !task->output->is_watched && isatty(STDERR_FILENO));
}

void wharf_cli_task_start_progress(struct wharf_cli_task *task)
{
    const struct wharf_cli_input *input = task->input;

    task->out_before_nbytes = task->tally->out_nbytes;
    wharf_cli_progress_start(input->name, input->is_seekable ? input->nbytes : 0,
                             shows_progress(task));
}

int wharf_cli_task_open_input(struct wharf_cli_task *task, const char *path)
{
    int r = wharf_cli_input_open(task->input, path);

    return r < 0 ? wharf_cli_tally_error(task->tally, path, r) : WHARF_CLI_GOOD;
}

int wharf_cli_task_begin(struct wharf_cli_task *task, const char *in_path, const char *out_path)
{
    int status = wharf_cli_task_open_input(task, in_path);
    int r;

    if (status != WHARF_CLI_GOOD)
        return status;
    r = wharf_cli_output_open(task->output, out_path, task->options->force);
    if (r == 0 && wharf_cli_output_is_input(task->output, &task->input->status)) {
        wharf_cli_output_discard(task->output);
        r = -EINVAL;
    }
    if (r < 0) {
        wharf_cli_input_close(task->input);
        return wharf_cli_tally_error(task->tally, out_path, r);
    }
    wharf_cli_output_use_threads(task->output, task->options->n_threads);
    wharf_cli_task_start_progress(task);
    return WHARF_CLI_GOOD;
}

bool wharf_cli_task_keeps(const struct wharf_cli_task *task)
{
    return task->options->salvage && task->output->nbytes && !task->output->failed;
}

int wharf_cli_task_end(struct wharf_cli_task *task, int status)
{
    wharf_cli_progress_end();
    if (status != WHARF_CLI_GOOD && !wharf_cli_task_keeps(task)) {
        wharf_cli_output_discard(task->output);
    } else {
        int r = wharf_cli_output_commit(task->output, &task->input->status);

        if (r < 0)
            status = wharf_cli_task_write_error(task, r);
    }
    wharf_cli_input_close(task->input);
    return status;
}

int wharf_cli_task_start(struct wharf_cli_task *task, const char *in_path, const char *out_path)
{
    int status;

    wharf_cli_tally_init(task->tally);
    status = wharf_cli_task_begin(task, in_path, out_path);
    if (status != WHARF_CLI_GOOD && task->options->report)
        wharf_cli_tally_report(task->tally);
    return status;
}

int wharf_cli_task_finish(struct wharf_cli_task *task, int status)
{
    status = wharf_cli_task_end(task, status);
    if (task->options->report)
        wharf_cli_tally_report(task->tally);
    return status;
}

int wharf_cli_task_write(struct wharf_cli_task *task, uint64_t in_offset, const void *buf,
                         size_t nbytes)
{
    uint64_t before = task->output->nbytes;
    int r = wharf_cli_output_write(task->output, buf, nbytes);

    if (r < 0)
        return wharf_cli_task_write_error(task, r);
    wharf_cli_task_move(task, in_offset, task->output->nbytes - before);
    return WHARF_CLI_GOOD;
}

void wharf_cli_task_move(struct wharf_cli_task *task, uint64_t in_offset, uint64_t out_nbytes)
{
    task->tally->out_nbytes += out_nbytes;
    wharf_cli_progress_move(in_offset, task->counts_input
                                           ? in_offset
                                           : task->tally->out_nbytes - task->out_before_nbytes);
}
