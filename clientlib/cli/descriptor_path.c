/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor_path.c: recognises names under /dev and /proc that stand for a descriptor. */
#include "clientlib/cli/descriptor_path.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/number.h"

static const struct {
    const char *path;
    int fd;
} names[] = {
    {"-", STDOUT_FILENO},
    {"/dev/stdout", STDOUT_FILENO},
    {"/dev/stderr", STDERR_FILENO},
};

/* A number follows. */
static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

int wharf_cli_descriptor_of(const char *path)
{
    int64_t number;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(path, names[i].path) == 0)
            return names[i].fd;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        size_t nbytes = strlen(folders[i]);

        if (strncmp(path, folders[i], nbytes) == 0 &&
            wharf_cli_parse_number(path + nbytes, 0, INT_MAX, &number))
            return (int)number;
    }
    return -1;
}
