/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_format.h: constants of gzip (RFC 1952), and the rules for errors, in the order in which
 * decoders check them.  Deflate data follows encoders/deflate/deflate_format.h.
 *
 * MEMBERS.  A stream is one or more members, one after the other; its output is theirs joined.  The
 * first must exist: an empty source is INPUT_TRUNCATED at bit 0.  After a complete member, the next
 * two bytes decide.  If they are 1f 8b, or 1f is the source's last byte, another member begins
 * there and must be good.  Anything else is ignored, and in_nbytes does not count it.  So:
 *   - Zero padding (tapes, block devices) is ignored, as gzip does silently.
 *   - Other bytes are ignored, which gzip does with a warning ("trailing garbage ignored").  A
 *     member after zero padding is among them, and so is a lone byte other than 1f.  (gzip 1.12
 *     calls any lone byte other than zero an unexpected end of file.)
 *   - A member that is cut off anywhere, even after its first byte 1f, is INPUT_TRUNCATED.  So a
 *     source that was cut is good only if it was cut between members.
 *   - 1f 8b with a method other than 8 is a bad member: GZIP_METHOD.
 * BGZF is gzip: its end-of-file marker is an empty member.
 *
 * HEADER.  All errors are at the member's first bit.
 *   1. Two bytes: INPUT_TRUNCATED if they are not both there; not 1f 8b: GZIP_MAGIC.
 *   2. Two more, method and flags: INPUT_TRUNCATED; method not 8: GZIP_METHOD; one of the three
 *      high flag bits set: GZIP_FLAGS.
 *   3. Six more (MTIME, XFL, OS), of any value: INPUT_TRUNCATED.
 *   4. With the flag FEXTRA, two bytes, XLEN, and as many more, of any value: INPUT_TRUNCATED.
 *   5. With FNAME, and then with FCOMMENT, bytes up to and including a zero: INPUT_TRUNCATED.
 *   6. With FHCRC, two bytes: INPUT_TRUNCATED; not the low half of the CRC-32 of the header's bytes
 *      before them: GZIP_HEADER_CRC.
 *   The flag FTEXT is ignored.
 *
 * DATA.  Each member starts with an empty window: distances reach back to its own first byte of
 * output at most.  OUTPUT_FULL is about the output of all members together.
 *
 * TRAILER.  All errors are at the trailer's first bit.
 *   1. Four bytes: INPUT_TRUNCATED; not the CRC-32 of the member's output: GZIP_CHECKSUM.
 *   2. Four more, checked only if the first four are right: INPUT_TRUNCATED; not the size of the
 *      member's output modulo 2^32: GZIP_LENGTH.
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

/* As for Deflate: header and trailer give no output. */
#define WHARF_GZIP_MAX_RATIO 1032
#define WHARF_GZIP_MAX_CONSTANT 0

#endif
