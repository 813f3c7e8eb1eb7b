/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_work.h: decodes columns of an ORC file into files, several columns and stripes at a time.
 *
 * A column gets two files: its values, and its nulls if there are any.  Both get their names when
 * the column is decoded to its end; after a failure the other columns go on.
 */
#ifndef WHARF_CLI_COLUMNS_WORK_H
#define WHARF_CLI_COLUMNS_WORK_H

#include "clientlib/cli/task.h"
#include "encoders/orc/orc_column.h"

#define WHARF_CLI_NULLS_SUFFIX ".nulls"

/* A column that was asked for. */
struct wharf_cli_column {
    struct wharf_orc_column column;
    char *name;
    char *values_path;
    char *nulls_path;
};

struct wharf_cli_columns {
    struct wharf_cli_task *task; /* its input is the file */
    const struct wharf_orc_file *file;
    const struct wharf_cli_column *columns;
    size_t n_columns;
    bool is_raw; /* no headers of NumPy's */
};

/* Where the bytes of an ORC file come from: struct wharf_orc_source's read. */
int wharf_cli_columns_read(void *input, uint64_t offset, void *buf, size_t nbytes);

/* Decodes all of them.  Returns the exit status; failures are said and noted. */
int wharf_cli_columns_decode(const struct wharf_cli_columns *columns);

#endif
