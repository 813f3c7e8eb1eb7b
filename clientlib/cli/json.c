/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Least code point that may take so many bytes: shorter ones written longer are not UTF-8. */
static const uint32_t least_point[] = {0, 0, 0x80, 0x800, 0x10000};

/* How many bytes the first byte of a UTF-8 sequence announces; 0: none begins so. */
static int announced_nbytes(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc0 && first < 0xe0)
        return 2;
    if (first >= 0xe0 && first < 0xf0)
        return 3;
    return first >= 0xf0 && first < 0xf8 ? 4 : 0;
}

int wharf_cli_utf8_nbytes(const unsigned char *text)
{
    int nbytes = announced_nbytes(*text);
    uint32_t point = nbytes > 1 ? *text & (0x7fu >> nbytes) : *text;

    for (int i = 1; i < nbytes; i++) {
        if ((text[i] & 0xc0) != 0x80) /* also at the terminating zero */
            return 0;
        point = point << 6 | (text[i] & 0x3f);
    }
    if (nbytes == 0 || point < least_point[nbytes] || point > 0x10ffff ||
        (point >= 0xd800 && point < 0xe000))
        return 0;
    return nbytes;
}

static void write_character(FILE *to, const unsigned char *text, int nbytes)
{
    if (nbytes == 0)
        fputs("\\ufffd", to);
    else if (*text < ' ' || *text == 0x7f)
        fprintf(to, "\\u%04x", *text);
    else if (*text == '"' || *text == '\\')
        fprintf(to, "\\%c", *text);
    else
        fwrite(text, 1, (size_t)nbytes, to);
}

void wharf_cli_json_string(FILE *to, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    if (!text) {
        fputs("null", to);
        return;
    }
    fputc('"', to);
    while (*at) {
        int nbytes = wharf_cli_utf8_nbytes(at);

        write_character(to, at, nbytes);
        at += nbytes ? nbytes : 1;
    }
    fputc('"', to);
}

void wharf_cli_json_number(FILE *to, double value)
{
    char text[32];

    if (!isfinite(value)) {
        fputs("null", to);
        return;
    }
    /* 15 digits are right for most numbers, 17 for all. */
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    fputs(text, to);
}
