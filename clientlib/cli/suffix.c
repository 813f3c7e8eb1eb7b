/* SPDX-License-Identifier: Apache-2.0 */
/* suffix.c: compares the ends of file names. */
#include "clientlib/cli/suffix.h"

#include <string.h>

bool wharf_cli_has_suffix(const char *path, const char *suffix)
{
    size_t nbytes = strlen(path);
    size_t suffix_nbytes = strlen(suffix);

    return nbytes > suffix_nbytes && path[nbytes - suffix_nbytes - 1] != '/' &&
           strcmp(path + nbytes - suffix_nbytes, suffix) == 0;
}
