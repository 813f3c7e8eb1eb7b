/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini.h: the syntax of the configuration file.
 *
 *     # a comment, as is a line that begins with ;
 *     [section]
 *     key = value          both without the blanks around them; a value may be empty
 *     [section argument]
 */
#ifndef WHARF_DAEMON_BASE_INI_H
#define WHARF_DAEMON_BASE_INI_H

#include <stddef.h>

struct wharf_ini_line {
    const char *section;  /* "" before the first one */
    const char *argument; /* "" if the section has none */
    const char *key;      /* NULL for the line that begins a section */
    const char *value;
    unsigned number;
};

/* Called for each section and setting in turn.  Returns NULL, or what is wrong: a string that
 * lives until the next call. */
typedef const char *wharf_ini_fn(void *context, const struct wharf_ini_line *line);

/*
 * Reads a whole file's text, which need not end with a zero byte.  Returns 0, or -EINVAL with
 * "line N: ..." in `message` at the first thing that is wrong.
 */
int wharf_ini_parse(const char *text, size_t text_nbytes, wharf_ini_fn *take, void *context,
                    char *message, size_t message_nbytes);

#endif
