/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_file.h: files of rans, wharf's own and those of the paper's program (rans_recoil.h).
 */
#ifndef WHARF_CLI_RANS_FILE_H
#define WHARF_CLI_RANS_FILE_H

#include "clientlib/cli/task.h"
#include "encoders/rans/rans_recoil.h"
#include "encoders/rans/rans_stream.h"

/* A whole file in memory. */
struct wharf_cli_rans_bytes {
    uint8_t *data;
    size_t nbytes;
};

/* All of a task's input.  The exit status; what is wrong was said. */
int wharf_cli_rans_read_input(struct wharf_cli_task *task, struct wharf_cli_rans_bytes *ret_bytes);

/* The same of another file, which may not be the task's output either. */
int wharf_cli_rans_read_file(struct wharf_cli_task *task, const char *path,
                             struct wharf_cli_rans_bytes *ret_bytes);

void wharf_cli_rans_bytes_deinit(struct wharf_cli_rans_bytes *bytes);

/* A stream of either kind, taken apart. */
struct wharf_cli_rans_stream {
    bool is_recoil; /* a body alone: `parts` has nothing else */
    struct wharf_rans_stream parts;
    const uint8_t *in; /* what parts points into */
    size_t in_nbytes;
    uint8_t *changed; /* a body without splits that overlap, or NULL */
};

/* Recognises wharf's own stream by its header, and takes anything else for one of the paper's
 * program.  The exit status; what is wrong was said. */
int wharf_cli_rans_stream_open(struct wharf_cli_task *task,
                               const struct wharf_cli_rans_bytes *bytes,
                               struct wharf_cli_rans_stream *ret_stream);
void wharf_cli_rans_stream_close(struct wharf_cli_rans_stream *stream);

#endif
