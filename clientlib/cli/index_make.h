/* SPDX-License-Identifier: Apache-2.0 */
/* index_make.h: makes the index of an input, which is decoded and verified for it. */
#ifndef WHARF_CLI_INDEX_MAKE_H
#define WHARF_CLI_INDEX_MAKE_H

#include "clientlib/cli/task.h"
#include "encoders/gzip_index/gzip_index.h"

enum wharf_cli_index_format {
    WHARF_CLI_INDEX_WHI = 0,
    WHARF_CLI_INDEX_GZIDX = 1,
    WHARF_CLI_INDEX_GZI = 2,
};

/*
 * Both decode all of the input, write nothing, and return the exit status.  On WHARF_CLI_GOOD the
 * index, which was empty but for its format, has all points.
 *   spacing_nbytes   output between two points, at least
 *   is_gzidx         the first point is that of the first block, as a GZIDX wants it
 */
int wharf_cli_index_make(struct wharf_cli_task *task, uint64_t spacing_nbytes, bool is_gzidx,
                         struct wharf_gzip_index *index);

/* The same with each block of a BGZF file as a point; what is no block behind them is in the
 * last span. */
int wharf_cli_index_make_gzi(struct wharf_cli_task *task, struct wharf_gzip_index *index);

#endif
