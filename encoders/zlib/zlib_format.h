/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_format.h: constants of the zlib format (RFC 1950), and the rules by which a stream is
 * judged, in the order in which things are looked at.  The Deflate data in it is judged as
 * encoders/deflate/deflate_format.h says.
 *
 * HEADER.  All at bit 0.
 *   1. Two bytes, CMF and FLG: INPUT_TRUNCATED when they are not both there.
 *   2. CMF * 256 + FLG no multiple of 31: ZLIB_HEADER.
 *   3. Method, CMF's low four bits, not 8: ZLIB_METHOD.
 *   4. Window, CMF's high four bits, over 7: ZLIB_WINDOW.  A smaller one is good and means nothing.
 *   5. FLG has the dictionary bit: four more bytes, INPUT_TRUNCATED when they are not there; then
 *      UNSUPPORTED, ZLIB_DICTIONARY.
 *
 * DATA.  The window starts empty; distances count from the first byte of output.
 *
 * TRAILER.  Four bytes, at the first of them: INPUT_TRUNCATED when they are not all there;
 * ZLIB_CHECKSUM when they are not the Adler-32 of the output, most significant byte first.
 * Bytes behind the trailer are left alone.
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

/* As for Deflate: the wrapping bytes give no output. */
#define WHARF_ZLIB_MAX_RATIO 1032
#define WHARF_ZLIB_MAX_CONSTANT 0

#endif
