/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/utf8.h"

#include <stdint.h>

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

int wharf_utf8_nbytes(const unsigned char *text)
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
