/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: which bytes of a name that somebody else gave are characters. */
#ifndef WHARF_UTF8_H
#define WHARF_UTF8_H

/* The number of bytes of the character at `text`, zero-terminated UTF-8; 0 if it is malformed. */
int wharf_utf8_nbytes(const unsigned char *text);

#endif
