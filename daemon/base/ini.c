/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini.c: parses the syntax of the configuration file; config_read.c knows the settings.
 */
#include "daemon/base/ini.h"

#include <string.h>

/* Holds a key and a path of PATH_MAX. */
#define MAX_LINE_NBYTES 4352

struct parser {
    const struct wharf_ini_reader *reader;
    unsigned number;
    bool is_skipping; /* the present section is unwanted or unknown */
    char section[MAX_LINE_NBYTES];
    char *argument;
    char line[MAX_LINE_NBYTES];
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Removes blanks at both ends, in place. */
static char *trim(char *text)
{
    size_t n = strlen(text);

    while (n > 0 && is_blank(text[n - 1]))
        n--;
    text[n] = 0;
    while (is_blank(*text))
        text++;
    return text;
}

/* Each of the following returns an error message for a malformed line, or NULL. */

static const char *take_section(struct parser *parser, char *text)
{
    size_t n = strlen(text);

    parser->is_skipping = true;
    if (text[n - 1] != ']')
        return "a section's line ends with ]";
    text[n - 1] = 0;
    char *name = trim(text + 1);
    if (!*name)
        return "a section needs a name";
    memmove(parser->section, name, strlen(name) + 1);
    char *end = parser->section + strcspn(parser->section, " \t");
    parser->argument = end;
    if (*end) {
        *end = 0;
        parser->argument = trim(end + 1);
    }
    struct wharf_ini_line line = {parser->section, parser->argument, NULL, NULL, parser->number};
    parser->is_skipping = !parser->reader->take(parser->reader->context, &line);
    return NULL;
}

static const char *take_setting(struct parser *parser, char *text)
{
    char *equals = strchr(text, '=');

    if (!equals)
        return "expected `key = value` or `[section]`";
    *equals = 0;
    char *key = trim(text);
    if (!*key)
        return "there is no key before the =";
    struct wharf_ini_line line = {parser->section, parser->argument, key, trim(equals + 1),
                                  parser->number};
    if (!parser->is_skipping)
        parser->reader->take(parser->reader->context, &line);
    return NULL;
}

static const char *take_line(struct parser *parser, const char *start, size_t nbytes)
{
    if (nbytes >= sizeof(parser->line))
        return "the line is too long";
    if (memchr(start, 0, nbytes))
        return "the line holds a zero byte";
    memcpy(parser->line, start, nbytes);
    parser->line[nbytes] = 0;
    char *text = trim(parser->line);
    if (!*text || *text == '#' || *text == ';')
        return NULL;
    return *text == '[' ? take_section(parser, text) : take_setting(parser, text);
}

void wharf_ini_parse(const char *text, size_t text_nbytes, const struct wharf_ini_reader *reader)
{
    struct parser parser = {.reader = reader, .argument = parser.section};

    while (text_nbytes > 0) {
        const char *end = memchr(text, '\n', text_nbytes);
        size_t nbytes = end ? (size_t)(end - text) : text_nbytes;
        size_t step = end ? nbytes + 1 : nbytes;
        parser.number++;
        const char *wrong = take_line(&parser, text, nbytes);
        if (wrong)
            reader->wrong(reader->context, parser.number, wrong);
        text += step;
        text_nbytes -= step;
    }
}
