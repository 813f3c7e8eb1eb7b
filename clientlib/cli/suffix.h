/* SPDX-License-Identifier: Apache-2.0 */
/* suffix.h: what the names of files end in. */
#ifndef WHARF_CLI_SUFFIX_H
#define WHARF_CLI_SUFFIX_H

#include <stdbool.h>

/* Whether the file's own name, without its folder, is longer than the suffix that it ends in. */
bool wharf_cli_has_suffix(const char *path, const char *suffix);

#endif
