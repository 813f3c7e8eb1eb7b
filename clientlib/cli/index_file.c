/* SPDX-License-Identifier: Apache-2.0 */
/* index_file.c: finds and loads the index of a gzip or zlib file. */
#include "clientlib/cli/index_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clientlib/cli/message.h"
#include "clientlib/index_load.h"

bool wharf_cli_index_is_for(const struct wharf_cli_input *input)
{
    return input->is_seekable && input->base == 0;
}

static struct wharf_indexed_file file_of(const struct wharf_cli_input *input)
{
    return (struct wharf_indexed_file){input->fd, input->nbytes, input->status.st_mtim};
}

int wharf_cli_index_identify(const struct wharf_cli_input *input,
                             struct wharf_gzip_identity *ret_identity)
{
    const struct wharf_indexed_file file = file_of(input);

    return wharf_index_identify(&file, ret_identity);
}

static void say(const char *path, int error)
{
    switch (error) {
    case -EPROTONOSUPPORT:
        wharf_cli_say("%s: is no index, or one of a newer version", path);
        break;
    case -EBADMSG:
        wharf_cli_say("%s: the index is damaged: wharf index -f makes it anew", path);
        break;
    case -ESTALE:
        wharf_cli_say("%s: is the index of another file, or of another version of it: wharf index "
                      "-f makes it anew",
                      path);
        break;
    default:
        wharf_cli_say("%s: cannot read: %s", path, wharf_cli_error_text(error));
    }
}

int wharf_cli_index_load(const struct wharf_cli_input *input, const char *path, bool is_quiet,
                         struct stat *ret_file, struct wharf_gzip_index *ret_index)
{
    const struct wharf_indexed_file file = file_of(input);
    char *beside = NULL;
    int r;

    if (!path && input->fd == STDIN_FILENO)
        return -ENOENT;
    if (!path && asprintf(&beside, "%s%s", input->name, WHARF_INDEX_SUFFIX) < 0)
        return -ENOMEM;
    r = wharf_index_load(&file, path ? path : beside, ret_file, ret_index);
    if (r < 0 && !is_quiet && (path || r != -ENOENT))
        say(path ? path : beside, r);
    free(beside);
    return r;
}
