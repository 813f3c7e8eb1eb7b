/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_file.h: the index that stands beside a gzip or zlib file, or that an option names.
 */
#ifndef WHARF_CLI_INDEX_FILE_H
#define WHARF_CLI_INDEX_FILE_H

#include "clientlib/cli/input_file.h"
#include "encoders/gzip_index/gzip_index.h"

/* Whether inputs of this kind can have an index: files that are read from their beginning. */
bool wharf_cli_index_is_for(const struct wharf_cli_input *input);

/* Says which file the input is.  0 or -errno. */
int wharf_cli_index_identify(const struct wharf_cli_input *input,
                             struct wharf_gzip_identity *ret_identity);

/*
 * Reads the index at `path`; NULL: the one beside the input, if there is one.  Returns 0 with
 * *ret_index, which the caller deinits, and *ret_file, which file that is; -ENOENT: there is none;
 * or what is wrong with it, which has been said unless is_quiet: -EBADMSG, -EPROTONOSUPPORT,
 * -ESTALE when it is of another file or another version of it, or -errno.
 */
int wharf_cli_index_load(const struct wharf_cli_input *input, const char *path, bool is_quiet,
                         struct stat *ret_file, struct wharf_gzip_index *ret_index);

#endif
