/* SPDX-License-Identifier: Apache-2.0 */
/* number.c: parses and prints numbers, sizes and ranges of the command line. */
#include "clientlib/cli/number.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char units[] = "KMGT";

bool wharf_cli_parse_number(const char *text, int64_t min, int64_t max, int64_t *ret_value)
{
    const char *digits = *text == '-' ? text + 1 : text;
    char *end;
    long long value;

    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || *end || value < min || value > max)
        return false;
    *ret_value = value;
    return true;
}

bool wharf_cli_parse_seconds(const char *text, uint64_t min_ns, uint64_t max_ns, uint64_t *ret_ns)
{
    uint64_t ns = 0, unit = 1000000000;
    bool is_number = false;

    for (; *text >= '0' && *text <= '9' && ns <= max_ns; text++, is_number = true)
        ns = 10 * ns + (uint64_t)(*text - '0') * unit;
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9' && unit > 1; text++, is_number = true)
            ns += (uint64_t)(*text - '0') * (unit /= 10);
    if (!is_number || *text || ns < min_ns || ns > max_ns)
        return false;
    *ret_ns = ns;
    return true;
}

/* The unit at *text as a shift, 0 if there is none; moves *text behind it. */
static unsigned take_unit(const char **text)
{
    const char *unit = **text ? strchr(units, **text) : NULL;

    if (!unit)
        return 0;
    ++*text;
    if (strncmp(*text, "iB", 2) == 0)
        *text += 2;
    return 10 * (unsigned)(unit - units + 1);
}

/* A size at *text; moves *text behind it. */
static bool take_size(const char **text, uint64_t *ret_nbytes)
{
    unsigned long long value;
    unsigned shift;
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    value = strtoull(*text, &end, 10);
    if (errno)
        return false;
    *text = end;
    shift = take_unit(text);
    if (value > UINT64_MAX >> shift)
        return false;
    *ret_nbytes = (uint64_t)value << shift;
    return true;
}

bool wharf_cli_parse_size(const char *text, uint64_t *ret_nbytes)
{
    uint64_t nbytes;

    if (!take_size(&text, &nbytes) || *text)
        return false;
    *ret_nbytes = nbytes;
    return true;
}

bool wharf_cli_parse_range(const char *text, uint64_t *ret_offset, uint64_t *ret_nbytes)
{
    uint64_t offset;
    uint64_t nbytes = UINT64_MAX;

    if (!take_size(&text, &offset) || offset > INT64_MAX || *text++ != ':')
        return false;
    if (*text && (!take_size(&text, &nbytes) || nbytes > INT64_MAX || *text))
        return false;
    *ret_offset = offset;
    *ret_nbytes = nbytes;
    return true;
}

const char *wharf_cli_size_text(uint64_t nbytes, char *text)
{
    unsigned unit = 0;
    double value = (double)nbytes;

    if (nbytes < 1024) {
        snprintf(text, WHARF_CLI_SIZE_TEXT, "%u bytes", (unsigned)nbytes);
        return text;
    }
    for (value /= 1024; value >= 1024 && units[unit + 1]; unit++)
        value /= 1024;
    snprintf(text, WHARF_CLI_SIZE_TEXT, "%.1f %ciB", value, units[unit]);
    return text;
}
