/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_format.h: constants of gzip (RFC 1952), and the rules by which a stream is judged, in the
 * order in which things are looked at.  The Deflate data in it is judged as
 * encoders/deflate/deflate_format.h says.
 *
 * MEMBERS.  A stream is one member or more, one behind the other; its output is theirs joined.
 * The first must be there: an empty source is INPUT_TRUNCATED at bit 0.  After a complete member
 * the two next bytes decide: if they are 1f 8b, or 1f is the source's last byte, another member
 * starts there and must be good; anything else is left alone, and in_nbytes does not count it.  So:
 *   - zero padding (tapes, block devices) is left alone, as gzip does without a word;
 *   - other bytes are left alone, which gzip does with a warning ("trailing garbage ignored");
 *     a member behind zero padding counts among them, and so does one lone byte other than 1f
 *     (gzip 1.12 calls any lone byte other than zero an unexpected end of file);
 *   - a member that is cut off anywhere, behind its first byte 1f already, is INPUT_TRUNCATED:
 *     no cut of a source of several members but those between members makes a good source;
 *   - 1f 8b with a method other than 8 is a bad member: GZIP_METHOD.
 * BGZF is gzip: its end-of-file block is an empty member.
 *
 * HEADER.  All at the member's first bit.
 *   1. Two bytes: INPUT_TRUNCATED when they are not both there; not 1f 8b: GZIP_MAGIC.
 *   2. Two more, method and flags: INPUT_TRUNCATED; method not 8: GZIP_METHOD; one of the three
 *      high flag bits set: GZIP_FLAGS.
 *   3. Six more (MTIME, XFL, OS), which may hold anything: INPUT_TRUNCATED.
 *   4. With flag FEXTRA two bytes, XLEN, and so many more: INPUT_TRUNCATED.  They may hold
 *      anything.
 *   5. With FNAME, then with FCOMMENT, bytes up to and with a zero: INPUT_TRUNCATED.
 *   6. With FHCRC two bytes: INPUT_TRUNCATED; not the low half of the CRC-32 of the header's bytes
 *      before them: GZIP_HEADER_CRC.
 *   Flag FTEXT means nothing here.
 *
 * DATA.  Each member starts with an empty window: distances count from its own first byte of
 * output.  OUTPUT_FULL is about the output of all members together.
 *
 * TRAILER.  All at the trailer's first bit.
 *   1. Four bytes: INPUT_TRUNCATED; not the CRC-32 of the member's output: GZIP_CHECKSUM.
 *   2. Four more, looked at only when the first four were right: INPUT_TRUNCATED; not the number
 *      of bytes of the member's output modulo 2^32: GZIP_LENGTH.
 */
#ifndef WHARF_ENCODERS_GZIP_GZIP_FORMAT_H
#define WHARF_ENCODERS_GZIP_GZIP_FORMAT_H

#define WHARF_GZIP_MAGIC_0 0x1f
#define WHARF_GZIP_MAGIC_1 0x8b
#define WHARF_GZIP_METHOD_DEFLATE 8

#define WHARF_GZIP_FLAG_HCRC 0x02
#define WHARF_GZIP_FLAG_EXTRA 0x04
#define WHARF_GZIP_FLAG_NAME 0x08
#define WHARF_GZIP_FLAG_COMMENT 0x10
#define WHARF_GZIP_FLAGS_RESERVED 0xe0

/* Magic 2, method 1, flags 1, MTIME 4, XFL 1, OS 1. */
#define WHARF_GZIP_FIXED_HEADER_NBYTES 10
/* CRC-32 4, ISIZE 4. */
#define WHARF_GZIP_TRAILER_NBYTES 8

/* As for Deflate: the wrapping bytes give no output. */
#define WHARF_GZIP_MAX_RATIO 1032
#define WHARF_GZIP_MAX_CONSTANT 0

#endif
