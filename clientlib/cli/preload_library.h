/* SPDX-License-Identifier: Apache-2.0 */
/* preload_library.h: where libwharf-preload.so is. */
#ifndef WHARF_CLI_PRELOAD_LIBRARY_H
#define WHARF_CLI_PRELOAD_LIBRARY_H

#include <limits.h>

/* Beside the command, as it is built, or as it is installed: below lib, or Debian's lib/TRIPLET.
 * Returns 0 with its path, or -errno: -ENOENT if it is in none of these. */
int wharf_cli_find_preload_library(char ret_path[PATH_MAX]);

#endif
