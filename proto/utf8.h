/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: which bytes of a name that somebody else gave are characters. */
#ifndef WHARF_UTF8_H
#define WHARF_UTF8_H

/* How many bytes the UTF-8 character at `text` has, which ends with a zero; 0 if none begins there.
 */
int wharf_utf8_nbytes(const unsigned char *text);

#endif
