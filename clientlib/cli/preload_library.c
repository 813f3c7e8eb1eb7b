/* SPDX-License-Identifier: Apache-2.0 */
/* preload_library.c: finds libwharf-preload.so. */
#include "clientlib/cli/preload_library.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int wharf_cli_find_preload_library(char ret_path[PATH_MAX])
{
    static const char *const places[] = {"", "../lib/wharf/", "../lib/*/wharf/"};
    char self[PATH_MAX], pattern[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    glob_t found;

    if (n < 0)
        return -errno;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(pattern, sizeof(pattern), "%s/%slibwharf-preload.so", self, places[i]);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        char *whole = realpath(found.gl_pathv[0], ret_path);
        globfree(&found);
        if (whole)
            return 0;
    }
    return -ENOENT;
}
