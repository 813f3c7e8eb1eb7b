/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_format.h: constants of the zlib format (RFC 1950), and the rules for errors, in the order in
 * which decoders check them.  Deflate data follows encoders/deflate/deflate_format.h.
 *
 * HEADER.  All errors are at bit 0.
 *   1. Two bytes, CMF and FLG: INPUT_TRUNCATED if they are not both there.
 *   2. CMF * 256 + FLG is no multiple of 31: ZLIB_HEADER.
 *   3. The method, CMF's low four bits, is not 8: ZLIB_METHOD.
 *   4. The window, CMF's high four bits, is above 7: ZLIB_WINDOW.  Smaller ones have no effect.
 *   5. FLG has the dictionary bit: four more bytes, INPUT_TRUNCATED if they are not all there; then
 *      UNSUPPORTED, ZLIB_DICTIONARY.
 *
 * DATA.  The window starts empty: distances reach back to the first byte of output at most.
 *
 * TRAILER.  Four bytes; errors are at the first of them.  INPUT_TRUNCATED if they are not all
 * there; ZLIB_CHECKSUM if they are not the Adler-32 of the output, most significant byte first.
 * Bytes after the trailer are ignored.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_FORMAT_H
#define WHARF_ENCODERS_ZLIB_ZLIB_FORMAT_H

#define WHARF_ZLIB_HEADER_NBYTES 2
#define WHARF_ZLIB_DICTIONARY_NBYTES 4
#define WHARF_ZLIB_TRAILER_NBYTES 4

#define WHARF_ZLIB_HEADER_MODULUS 31
#define WHARF_ZLIB_METHOD_DEFLATE 8
#define WHARF_ZLIB_MAX_WINDOW 7 /* 2^(7 + 8) bytes is 32 KiB */
#define WHARF_ZLIB_FLAG_DICTIONARY 0x20

/* As for Deflate: header and trailer give no output. */
#define WHARF_ZLIB_MAX_RATIO 1032
#define WHARF_ZLIB_MAX_CONSTANT 0

#endif
