/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: writes numbers and strings as JSON. */
#include "clientlib/cli/json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/utf8.h"

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
        int nbytes = wharf_utf8_nbytes(at);

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
