/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_pipe.h: unpacks a wharf container with chunks decoded in parallel, in bounded memory.
 *
 * Output is written in order, and only after it is verified.  A slot holds compressed chunks and
 * about 1 MiB of their output, or one chunk if that is larger (16 MiB at most).  pipeline.h says
 * how many slots there are.
 */
#ifndef WHARF_CLI_CONTAINER_PIPE_H
#define WHARF_CLI_CONTAINER_PIPE_H

#include "clientlib/cli/task.h"

/* A part of the output.  All of it is {0, UINT64_MAX, NULL}. */
struct wharf_cli_range {
    uint64_t offset;
    uint64_t nbytes;   /* UINT64_MAX: to the end */
    const char *index; /* the index to use for a gzip or zlib file, or NULL */
    bool is_direct;    /* codecs of lines: read only the range's lines, unverified */
};

/*
 * Unpacks an input that begins with a container, and writes the range of its output.  A range that
 * is not within the output is a failure.  Returns the exit status.
 */
int wharf_cli_container_pipe(struct wharf_cli_task *task, struct wharf_cli_range range);

#endif
