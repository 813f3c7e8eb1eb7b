/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c: the header of a NumPy file. */
#include "clientlib/cli/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 6 bytes of magic, 2 of version, 2 for how much follows: text, filled with blanks to its end. */
void wharf_cli_npy_head(uint8_t head[WHARF_CLI_NPY_NBYTES], const char *type, uint64_t n_values)
{
    static const uint8_t begin[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, WHARF_CLI_NPY_NBYTES - 10,
                                    0};
    char text[WHARF_CLI_NPY_NBYTES];
    int n = snprintf(text, sizeof(text),
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 ",), }", type,
                     n_values);

    memset(head, ' ', WHARF_CLI_NPY_NBYTES);
    memcpy(head, begin, sizeof(begin));
    memcpy(head + sizeof(begin), text, (size_t)n);
    head[WHARF_CLI_NPY_NBYTES - 1] = '\n';
}
