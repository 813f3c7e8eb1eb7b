/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_size.h: how much a compressed stream may decode to, before it is decoded.  These are
 * guesses: files tell what they like.
 */
#ifndef WHARF_CLI_STREAM_SIZE_H
#define WHARF_CLI_STREAM_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes at a stream's end that may tell its size. */
#define WHARF_CLI_STREAM_END_NBYTES 4

/* `end` are the last bytes; NULL: they are not known. */
uint64_t wharf_cli_stream_guess(uint32_t codec, uint64_t in_nbytes, const uint8_t *end);

/*
 * Of a file that a daemon would decode as one job: about how much memory that takes, if the output
 * is discarded where it can be.  0: it is no such file, or a short one, or cannot be told from its
 * first bytes.  Says nothing, and does not wait for pipes.
 */
uint64_t wharf_cli_stream_file_guess(const char *path, bool discards);

#endif
