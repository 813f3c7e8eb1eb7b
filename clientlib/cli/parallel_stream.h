/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_stream.h: a stream of an input, decoded by several threads of its own.
 */
#ifndef WHARF_CLI_PARALLEL_STREAM_H
#define WHARF_CLI_PARALLEL_STREAM_H

#include "clientlib/cli/task.h"
#include "encoders/inflate_parallel/parallel_inflate.h"

struct wharf_cli_parallel;

/* Whether threads gain something on what the input has from `offset` on. */
bool wharf_cli_parallel_pays(const struct wharf_cli_task *task, uint64_t offset);

/* Begins to decode at `offset`; from now on the input is read by these threads alone.  With
 * wants_points as parallel_inflate.h says.  0 or -errno. */
int wharf_cli_parallel_start(struct wharf_cli_task *task, enum wharf_inflate_format format,
                             uint64_t offset, bool wants_points,
                             struct wharf_cli_parallel **ret_parallel);

/* The stream, for all calls of parallel_inflate.h but _work and _free. */
struct wharf_parallel_inflate *wharf_cli_parallel_stream(struct wharf_cli_parallel *parallel);

/* Ends the threads, wherever they are; the stream is still there, and the input can be read. */
void wharf_cli_parallel_join(struct wharf_cli_parallel *parallel);

/* Joins, and frees all.  Takes NULL. */
void wharf_cli_parallel_free(struct wharf_cli_parallel *parallel);

#endif
