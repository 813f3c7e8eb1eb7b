/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_pipe.h: unpacks a wharf container, chunks in parallel, in bounded memory.
 *
 * Output is written in order and only once it was verified.  Memory: a slot holds chunks with
 * about 1 MiB of output, or one chunk if it is larger (16 MiB at most), and their compressed
 * bytes; pipeline.h says how many slots there are.
 */
#ifndef WHARF_CLI_CONTAINER_PIPE_H
#define WHARF_CLI_CONTAINER_PIPE_H

#include "clientlib/cli/task.h"

/* A part of the output; all of it: {0, UINT64_MAX, NULL}. */
struct wharf_cli_range {
    uint64_t offset;
    uint64_t nbytes;   /* UINT64_MAX: to the end */
    const char *index; /* of a gzip or zlib file: the index to use, or NULL */
    bool is_direct;    /* codecs of lines: read only the lines of the range, unverified */
};

/*
 * Unpacks the input, which begins with a container, and writes the range of its output.  A range
 * that is not all within the output is a failure.  Returns the exit status.
 */
int wharf_cli_container_pipe(struct wharf_cli_task *task, struct wharf_cli_range range);

#endif
