/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.h: a command's work from one input to its output, and how its failures are told.
 *
 * A failure is said in two lines: what is wrong with which input, where and why; and what has
 * become of the output.  All functions here say and note (tally.h) what they are told.
 */
#ifndef WHARF_CLI_TASK_H
#define WHARF_CLI_TASK_H

#include "clientlib/cli/input_file.h"
#include "clientlib/cli/options.h"
#include "clientlib/cli/output_file.h"
#include "clientlib/cli/service.h"
#include "clientlib/cli/tally.h"
#include "encoders/codec.h"

struct wharf_cli_task {
    const struct wharf_cli_options *options;
    struct wharf_cli_tally *tally;
    struct wharf_cli_input *input;
    struct wharf_cli_output *output;
    struct wharf_cli_service *service; /* of those that decode */
    bool counts_input;                 /* progress tells how much was read, not written */
    uint64_t out_before_nbytes;        /* what the tally had of other inputs when this one began */
};

/* A failure in data: `chunk` is its number, or WHARF_CLI_NO_CHUNK. */
struct wharf_cli_fault {
    uint32_t result;
    uint32_t reason;
    uint64_t bit_offset; /* in the input */
    uint64_t chunk;
    const char *advice; /* what somebody can do about it; NULL: what the reason tells */
};
#define WHARF_CLI_NO_CHUNK UINT64_MAX

/*
 * Tells of a failure in data.  n_unverified is how many of the last bytes that were written can
 * be wrong.  Returns the exit status that it gives.
 */
int wharf_cli_task_fault(struct wharf_cli_task *task, const struct wharf_cli_fault *fault,
                         uint64_t n_unverified);

/* The same without a word on the output: the work goes on, and fault->advice tells of it. */
void wharf_cli_task_note_fault(struct wharf_cli_task *task, const struct wharf_cli_fault *fault,
                               bool is_said);

/* Tells of a range that is not all within the output of out_nbytes.  Returns the exit status. */
int wharf_cli_task_range_outside(struct wharf_cli_task *task, uint64_t out_nbytes);

/* Tells of an input that cannot be read, -errno.  Returns WHARF_CLI_FAILED. */
int wharf_cli_task_read_error(struct wharf_cli_task *task, int error);

/* Notes an output that could not be written, -errno; output_file.c has said so.  Returns
 * WHARF_CLI_FAILED. */
int wharf_cli_task_write_error(struct wharf_cli_task *task, int error);

/* Tells of a daemon that failed, -errno, with the library's text.  Returns the exit status. */
int wharf_cli_task_daemon_error(struct wharf_cli_task *task, int error, const char *text);

/* Tells of anything else, -errno, such as missing memory.  Returns WHARF_CLI_FAILED. */
int wharf_cli_task_error(struct wharf_cli_task *task, const char *what, int error);

/* Opens the input; what fails is said and noted.  Returns WHARF_CLI_GOOD or WHARF_CLI_FAILED. */
int wharf_cli_task_open_input(struct wharf_cli_task *task, const char *path);

/*
 * The beginning of a command with one input and one output: opens both, the output only if the
 * input could be opened, and starts clock and progress.  Returns WHARF_CLI_GOOD, or the exit
 * status after saying what is wrong (the command is over then; nothing is to be closed).
 */
int wharf_cli_task_start(struct wharf_cli_task *task, const char *in_path, const char *out_path);

/*
 * The end of such a command: gives the output its name and the input's permissions, or on failure,
 * unless what can be is to be salvaged, removes it; wipes the progress and prints the report if
 * that was asked for.  Closes input and output.  Returns the command's exit status.
 */
int wharf_cli_task_finish(struct wharf_cli_task *task, int status);

/* The same of one input among several, whose tally and report are the command's. */
int wharf_cli_task_begin(struct wharf_cli_task *task, const char *in_path, const char *out_path);
int wharf_cli_task_end(struct wharf_cli_task *task, int status);

/* Whether an output is worth to be kept although something was bad. */
bool wharf_cli_task_keeps(const struct wharf_cli_task *task);

/* Shows progress from now on, of the input, if it is to be shown at all. */
void wharf_cli_task_start_progress(struct wharf_cli_task *task);

/* Writes to the output, adds what was kept to the tally, and shows progress: the input was read up
 * to in_offset.  Returns WHARF_CLI_GOOD or WHARF_CLI_FAILED. */
int wharf_cli_task_write(struct wharf_cli_task *task, uint64_t in_offset, const void *buf,
                         size_t nbytes);

/* Adds output to the tally and shows progress: the input was read up to in_offset. */
void wharf_cli_task_move(struct wharf_cli_task *task, uint64_t in_offset, uint64_t out_nbytes);

#endif
