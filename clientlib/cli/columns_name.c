/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/columns_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/number.h"

enum { NUMBER_NBYTES = sizeof("#4294967295") };

static const char *by_number(uint32_t number, char text[NUMBER_NBYTES])
{
    snprintf(text, NUMBER_NBYTES, "#%" PRIu32, number);
    return text;
}

/* What a type is called within its parent. */
static const char *own_name(const struct wharf_orc_file *file, uint32_t at,
                            char text[NUMBER_NBYTES])
{
    return file->types[at].name ? file->types[at].name : by_number(at, text);
}

/* False: there is no room for it. */
static bool put_before(const char *first, char **begin, const char *text)
{
    size_t room = (size_t)(*begin - first), nbytes = strnlen(text, room + 1);

    if (nbytes > room)
        return false;
    *begin -= nbytes;
    memcpy(*begin, text, nbytes);
    return true;
}

char *wharf_cli_column_name(const struct wharf_orc_file *file, uint32_t number)
{
    char name[WHARF_CLI_COLUMN_NAME_NBYTES + 1], digits[NUMBER_NBYTES];
    char *end = name + WHARF_CLI_COLUMN_NAME_NBYTES, *begin = end;
    unsigned depth = 0;

    *end = 0;
    for (uint32_t at = number; file->types[at].parent != WHARF_ORC_NOWHERE;
         at = file->types[at].parent)
        if (++depth > WHARF_ORC_MAX_DEPTH || (depth > 1 && !put_before(name, &begin, ".")) ||
            !put_before(name, &begin, own_name(file, at, digits)))
            return strdup(by_number(number, digits));
    return strdup(begin);
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
