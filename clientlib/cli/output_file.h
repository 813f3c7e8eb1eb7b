/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_file.h: where a command's output goes, all of it or none.
 *
 * A file is written without a name (O_TMPFILE), in the folder where it will stand, and gets its
 * name when it is complete: whatever happens before, a kill -9 too, leaves nothing behind and an
 * older file as it was.  Where the file system cannot do that, it has a temporary name
 * (.NAME.XXXXXXXX), which failures and signals remove.  An existing file is replaced only if that
 * was asked for.  Pipes, devices and standard output are written straight away.
 *
 * WHARF_CLI_MAX_OUTPUTS are open at a time at most.  All functions say themselves what is wrong,
 * but for _write_at.
 */
#ifndef WHARF_CLI_OUTPUT_FILE_H
#define WHARF_CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "clientlib/cli/output_write.h"
#include "clientlib/cli/signal_files.h"

enum { WHARF_CLI_MAX_OUTPUTS = WHARF_CLI_MAX_SIGNAL_FILES };

/* Opens `path`, which can name a descriptor (descriptor_path.h): "-" is standard output.  0 or
 * -errno; `path` is kept. */
int wharf_cli_output_open(struct wharf_cli_output *ret_output, const char *path, bool may_replace);

/* From now on so many threads may write to it. */
void wharf_cli_output_use_threads(struct wharf_cli_output *output, unsigned n_threads);

/* An output that counts and verifies nothing but that there is some: for what only tests data. */
void wharf_cli_output_open_sink(struct wharf_cli_output *ret_output);

/*
 * Whether the output would replace, or is being appended to, the very file that `input` describes:
 * under another name, by a link of any kind, too.  Says so if it is.
 */
bool wharf_cli_output_is_input(const struct wharf_cli_output *output, const struct stat *input);

/* Whether both would get one name, or are standard output: one of them would be lost. */
bool wharf_cli_output_is_same(const struct wharf_cli_output *a, const struct wharf_cli_output *b);

/*
 * Gives the finished file its name, and owner, permissions and times of `like` (NULL: those of any
 * new file).  0 or -errno; after a failure nothing is left of it.  Closes it either way.
 */
int wharf_cli_output_commit(struct wharf_cli_output *output, const struct stat *like);

/* Removes a file that _commit has named, unless it replaced another one: of two outputs that belong
 * together the second one failed. */
void wharf_cli_output_take_back(const struct wharf_cli_output *output);

/* Closes and removes it. */
void wharf_cli_output_discard(struct wharf_cli_output *output);

#endif
