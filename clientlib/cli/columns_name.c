/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/columns_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/number.h"

char *wharf_cli_column_name(const struct wharf_orc_file *file, uint32_t number)
{
    char *name = strdup("");

    for (uint32_t at = number; name && file->types[at].parent != WHARF_ORC_NOWHERE;
         at = file->types[at].parent) {
        const char *own = file->types[at].name;
        const char *dot = *name ? "." : "";
        char *longer = NULL;
        int r = own ? asprintf(&longer, "%s%s%s", own, dot, name)
                    : asprintf(&longer, "#%" PRIu32 "%s%s", at, dot, name);
        free(name);
        name = r < 0 ? NULL : longer;
    }
    return name;
}

int wharf_cli_column_find(const struct wharf_orc_file *file, const char *name, uint32_t *ret_number)
{
    int64_t number;
    int n = 0;

    if (name[0] == '#' &&
        wharf_cli_parse_number(name + 1, 0, (int64_t)file->n_types - 1, &number)) {
        *ret_number = (uint32_t)number;
        return 1;
    }
    for (uint32_t i = 1; i < file->n_types; i++) {
        char *own = wharf_cli_column_name(file, i);
        if (!own)
            return -ENOMEM;
        if (strcmp(own, name) == 0) {
            *ret_number = i;
            n++;
        }
        free(own);
    }
    return n;
}

/* Bytes above ASCII are letters of some language. */
static bool is_plain(const char *name, const char *at)
{
    unsigned char c = (unsigned char)*at;

    return c > ' ' && c != '/' && c != '%' && c != 0x7f && !(c == '.' && at == name);
}

/* A name of nothing is %. */
static char *escape(const char *name)
{
    char *text = malloc(3 * strlen(name) + 2);
    char *to = text;

    if (!text)
        return NULL;
    strcpy(text, "%");
    for (const char *at = name; *at; at++) {
        if (is_plain(name, at))
            *to++ = *at;
        else
            to += sprintf(to, "%%%02X", (unsigned char)*at);
        *to = 0;
    }
    return text;
}

char *wharf_cli_column_path(const char *folder, const char *file, const char *name,
                            const char *suffix)
{
    char *escaped = escape(name);
    char *path = NULL;

    if (escaped && asprintf(&path, "%s%s%s%s", folder ? folder : file, folder ? "/" : ".", escaped,
                            suffix) < 0)
        path = NULL;
    free(escaped);
    return path;
}
