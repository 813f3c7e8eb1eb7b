/* SPDX-License-Identifier: Apache-2.0 */
/* json.h: numbers and strings of any bytes as JSON. */
#ifndef WHARF_CLI_JSON_H
#define WHARF_CLI_JSON_H

#include <stdio.h>

/* Writes a number, or null for what is none. */
void wharf_cli_json_number(FILE *to, double value);

/* Writes `text` with its quotes, or null for NULL.  Bytes that are not UTF-8 become U+FFFD. */
void wharf_cli_json_string(FILE *to, const char *text);

#endif
