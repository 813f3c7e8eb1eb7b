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

#include <stdbool.h>
#include <stddef.h>

struct wharf_ini_line {
    const char *section;  /* "" before the first one */
    const char *argument; /* "" if the section has none */
    const char *key;      /* NULL for the line that begins a section */
    const char *value;
    unsigned number;
};

/* The callbacks of a reader. */
struct wharf_ini_reader {
    /* Called for each section and setting in turn.  If it returns false for a section, that is
     * skipped. */
    bool (*take)(void *context, const struct wharf_ini_line *line);
    /* Called for a malformed line. */
    void (*wrong)(void *context, unsigned number, const char *what);
    void *context;
};

/* Reads the text of a whole file, which need not end with a zero byte. */
void wharf_ini_parse(const char *text, size_t text_nbytes, const struct wharf_ini_reader *reader);

#endif
