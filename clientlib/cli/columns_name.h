/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_name.h: what the columns of an ORC file are called, and the files that they become.
 *
 * A column within structures is called by all names on the way to it, joined by dots.  `#7` is the
 * column with the number 7.
 */
#ifndef WHARF_CLI_COLUMNS_NAME_H
#define WHARF_CLI_COLUMNS_NAME_H

#include "encoders/orc/orc_file.h"

/* A longer name is of no use, since a file could not have it. */
enum { WHARF_CLI_COLUMN_NAME_NBYTES = 255 };

/* The column's name, which the caller frees; NULL without memory.  What has no name within its
 * parent, as elements of lists have none, is called by its number.  So is a column whose name would
 * be longer than WHARF_CLI_COLUMN_NAME_NBYTES, or that is deeper than any that is decoded: of a
 * hostile file all names together could be larger than the file by its size. */
char *wharf_cli_column_name(const struct wharf_orc_file *file, uint32_t number);

/* How many columns have this name; the last one's number in *ret_number.  -ENOMEM. */
int wharf_cli_column_find(const struct wharf_orc_file *file, const char *name,
                          uint32_t *ret_number);

/* The file for a column's values: FOLDER/NAME, or FILE.NAME, and `suffix`.  Slashes and whatever
 * else file names are better without stand there as %2F.  The caller frees it; NULL without
 * memory. */
char *wharf_cli_column_path(const char *folder, const char *file, const char *name,
                            const char *suffix);

#endif
