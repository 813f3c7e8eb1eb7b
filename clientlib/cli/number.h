/* SPDX-License-Identifier: Apache-2.0 */
/* number.h: numbers, sizes and ranges as people write them on the command line. */
#ifndef WHARF_CLI_NUMBER_H
#define WHARF_CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* A decimal number from min to max, nothing around it.  *ret_value only on success. */
bool wharf_cli_parse_number(const char *text, int64_t min, int64_t max, int64_t *ret_value);

/* Seconds with up to nine decimals, "0.25", from min_ns to max_ns.  *ret_ns only on success. */
bool wharf_cli_parse_seconds(const char *text, uint64_t min_ns, uint64_t max_ns, uint64_t *ret_ns);

/* A size in bytes: decimal digits, then nothing, K, M, G or T (powers of 1024, also written KiB
 * and so on).  *ret_nbytes only on success. */
bool wharf_cli_parse_size(const char *text, uint64_t *ret_nbytes);

/* OFFSET:LENGTH, both sizes below 2^63, so that their sum is a number too.  "OFFSET:" goes to the
 * end: *ret_nbytes is UINT64_MAX then.  The outputs are written only on success. */
bool wharf_cli_parse_range(const char *text, uint64_t *ret_offset, uint64_t *ret_nbytes);

/* Room for any size as text. */
enum { WHARF_CLI_SIZE_TEXT = 24 };

/* What wharf_cli_parse_size takes, for messages. */
#define WHARF_CLI_SIZE_SYNTAX "a number of bytes, or of units K, M, G or T"

/* A size for people, "1.4 GiB", into text[WHARF_CLI_SIZE_TEXT].  Returns text. */
const char *wharf_cli_size_text(uint64_t nbytes, char *text);

#endif
