/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h: the head of a file in NumPy's format, version 1.0: one array of one dimension. */
#ifndef WHARF_CLI_NPY_H
#define WHARF_CLI_NPY_H

#include <stdint.h>

/* A multiple of 64, so that values behind it are aligned. */
enum { WHARF_CLI_NPY_NBYTES = 128 };

/* `type` as NumPy writes it: "<i8", "|b1". */
void wharf_cli_npy_head(uint8_t head[WHARF_CLI_NPY_NBYTES], const char *type, uint64_t n_values);

#endif
