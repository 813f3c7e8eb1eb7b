/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_walk.h: goes through the parts of a file by their headers, without decoding any.
 *
 * The input can seek.  Failures to read it are told and give an exit status; what is wrong with the
 * file ends the walk, and is left to whoever decodes it.
 */
#ifndef WHARF_CLI_FILE_WALK_H
#define WHARF_CLI_FILE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/cli/task.h"
#include "encoders/gzip/bgzf.h"
#include "encoders/zstd/zstd_scan.h"

/*
 * Calls `each` for every block of BGZF.  Every byte is read once, however small blocks are.
 * *ret_is_whole: they reach to the end of the file.  Returns the exit status.
 */
int wharf_cli_walk_bgzf(struct wharf_cli_task *task,
                        void (*each)(void *context, const struct wharf_bgzf_piece *block),
                        void *context, bool *ret_is_whole);

/*
 * Calls `each` for every frame of zstd, with where it begins, and for no skippable one, such as a
 * seek table, for which nothing vouches.
 */
int wharf_cli_walk_zstd(struct wharf_cli_task *task,
                        void (*each)(void *context, const struct wharf_zstd_scan *scan,
                                     uint64_t offset),
                        void *context, bool *ret_is_whole);

#endif
