/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_format.h: constants of raw Deflate (RFC 1951), and the exact rules by which a stream
 * is verified.  Plain C and C++, no code: host decoders, device decoders and tests share it.
 *
 * Every engine gives the same outcome for every source, good or bad: the same result, the same
 * reason, the same bit offset.  What is good and what is bad is as zlib 1.2.13 says of the whole
 * source in one call with ample output.  This is the order in which things are looked at; the
 * first that is wrong is the outcome, and nothing behind it is looked at.
 *
 *
 * BITS.  A source is a sequence of 8 * in_nbytes bits, the least significant of each byte first.
 * Fields are read least significant bit first, codes as RFC 1951 section 3.2.1 says.  Bits past
 * the end of the source read as zero, but a field or code that uses even one of them is cut off:
 *
 *   - "field of n bits": when fewer than n bits are left, INPUT_TRUNCATED.
 *   - "code": look it up with zeros past the end; when the code word so found is longer than the
 *     bits left, INPUT_TRUNCATED.  In an incomplete code (rules below) a word that belongs to no
 *     symbol has length 1, so with at least one bit left it is an invalid symbol and with none
 *     left it is truncation.
 *
 * Where an error stands is one bit offset, counted from the first byte of the codec's source (so
 * behind a zlib or gzip header its bytes count), and is that of the whole unit it stands in:
 *
 *   - all errors in a block's header, truncation included: the header's first bit, BFINAL;
 *   - a literal, an end-of-block symbol: its code's first bit;
 *   - a match: its length code's first bit, whichever of its four parts is wrong;
 *   - data of a stored block: the first bit of the data byte that is not there or does not fit.
 *
 *
 * BLOCK HEADER.  All at the offset of BFINAL.
 *
 *   1. Field BFINAL, BTYPE: three bits as one field.  BTYPE 3: DEFLATE_BLOCK_TYPE.
 *   2. BTYPE 0, stored: the bits up to the next byte boundary are skipped, whatever they are.
 *      Field of 32 bits, LEN and NLEN: INPUT_TRUNCATED before DEFLATE_STORED_LENGTH.  LEN may
 *      be 0.
 *   3. BTYPE 1, fixed: nothing more.  Its litlen code has 288 words of which 286 and 287 are
 *      invalid symbols of 8 bits; its distance code has 32 of 5 bits of which 30 and 31 are
 *      invalid.
 *   4. BTYPE 2, dynamic:
 *      a. Field of 14 bits, HLIT, HDIST and HCLEN together.  More than 286 litlen codes or more
 *         than 30 distance codes: DEFLATE_CODE_COUNT.
 *      b. HCLEN + 4 fields of 3 bits, the lengths of the code length code.  Then that code: over-
 *         subscribed, or incomplete, even if by one word only: DEFLATE_PRECODE.  But no length
 *         at all (all zero) is not an error: each length below is then a word of one bit, either
 *         value, that means length 0.  (Such a header ends as truncated or as DEFLATE_NO_END.)
 *      c. HLIT + 257 and HDIST + 1 lengths as one sequence.  For each symbol: the code; for 16,
 *         17, 18 its extra bits (INPUT_TRUNCATED); then DEFLATE_LENGTH_REPEAT for a 16 that comes
 *         first in the sequence, or for a repeat that reaches past the sequence's end.  A repeat
 *         may run from the litlen lengths into the distance lengths.
 *      d. Symbol 256 has length 0: DEFLATE_NO_END.
 *      e. The litlen code over-subscribed, or incomplete: DEFLATE_LITLEN_CODE.  One word of one
 *         bit alone (it is then 256, word 0) is not an error: word 1 is an invalid symbol.
 *      f. The distance code over-subscribed, or incomplete: DEFLATE_DISTANCE_CODE.  Not an error:
 *         one word of one bit alone (any symbol; word 1 is an invalid symbol), and no word at all
 *         (both words of one bit are invalid symbols).
 *
 *
 * BODY, FIXED OR DYNAMIC.  For each unit, in this order:
 *
 *   1. litlen code: INPUT_TRUNCATED; DEFLATE_LITLEN_SYMBOL.
 *   2. A literal: OUTPUT_FULL when the output holds out_avail bytes already.
 *   3. End of block: the next block header follows, or behind the final block the stream's end.
 *   4. A length: its extra bits, INPUT_TRUNCATED; distance code, INPUT_TRUNCATED, then
 *      DEFLATE_DISTANCE_SYMBOL; its extra bits, INPUT_TRUNCATED; the distance more than the
 *      number of bytes that this stream has put out so far, DEFLATE_DISTANCE_TOO_FAR; fewer than
 *      length bytes free in the output, OUTPUT_FULL.
 *
 * Symbol 285 is length 258 and has no extra bits; 284 with its extra bits all ones is 258 too.
 * The window is always 32 KiB: a zlib header that declares a smaller one does not narrow it.
 *
 *
 * BODY, STORED.  Of the LEN bytes as many are taken as are in the source and fit the output.
 * When that is fewer than LEN: INPUT_TRUNCATED if the source is at its end there (also if the
 * output is at its end at the same byte), else OUTPUT_FULL.
 *
 *
 * END.  After the final block the rest of the byte is skipped, whatever it holds, and in_nbytes
 * counts it.  Bytes behind that are left alone.
 */
#ifndef WHARF_ENCODERS_DEFLATE_DEFLATE_FORMAT_H
#define WHARF_ENCODERS_DEFLATE_DEFLATE_FORMAT_H

/* Block types, section 3.2.3. */
#define WHARF_DEFLATE_STORED 0
#define WHARF_DEFLATE_FIXED 1
#define WHARF_DEFLATE_DYNAMIC 2

/* Symbols, section 3.2.5.  Literals are 0 to 255. */
#define WHARF_DEFLATE_END_OF_BLOCK 256
#define WHARF_DEFLATE_FIRST_LENGTH 257
#define WHARF_DEFLATE_N_LITLEN 286         /* of which a dynamic block has 257 or more */
#define WHARF_DEFLATE_N_DISTANCE 30        /* of which a dynamic block has 1 or more */
#define WHARF_DEFLATE_N_LITLEN_FIXED 288   /* words of the fixed code: a complete code needs */
#define WHARF_DEFLATE_N_DISTANCE_FIXED 32  /* the reserved symbols 286, 287, and 30, 31 too */
#define WHARF_DEFLATE_N_PRECODE 19         /* section 3.2.7 */
#define WHARF_DEFLATE_N_LENGTHS (286 + 30) /* most code lengths that one header describes */

/* Longest code words: of litlen and distance codes, and of the code length code (3-bit field). */
#define WHARF_DEFLATE_MAX_CODE_NBITS 15
#define WHARF_DEFLATE_MAX_PRECODE_NBITS 7

#define WHARF_DEFLATE_MIN_MATCH 3
#define WHARF_DEFLATE_MAX_MATCH 258
#define WHARF_DEFLATE_WINDOW_NBYTES 32768

/* Longest match: litlen code 15, extra 5, distance code 15, extra 13. */
#define WHARF_DEFLATE_MAX_MATCH_NBITS (15 + 5 + 15 + 13)

/* Longest dynamic header: 3 + 14 bits, 19 lengths of 3, then 316 lengths of 7 bits each.  Repeats
 * cost up to 7 extra bits but stand for 3 lengths at least, so only a last one that reaches past
 * the end (an error) can add to that. */
#define WHARF_DEFLATE_MAX_HEADER_NBITS (3 + 14 + 19 * 3 + WHARF_DEFLATE_N_LENGTHS * 7 + 7)

/* The most output that input can give: a match of 258 bytes in one bit of length code and one of
 * distance code, 4 in a byte: 4 * 258 for each byte of input. */
#define WHARF_DEFLATE_MAX_RATIO 1032
#define WHARF_DEFLATE_MAX_CONSTANT 0

/* Initializers of tables. */

/* The order in which a header gives the lengths of the code length code. */
#define WHARF_DEFLATE_PRECODE_ORDER 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15

/* Symbols 257 to 285: X(base length, extra bits) each, with commas between. */
#define WHARF_DEFLATE_LENGTH_LIST(X)                                                               \
    X(3, 0), X(4, 0), X(5, 0), X(6, 0), X(7, 0), X(8, 0), X(9, 0), X(10, 0), X(11, 1), X(13, 1),   \
        X(15, 1), X(17, 1), X(19, 2), X(23, 2), X(27, 2), X(31, 2), X(35, 3), X(43, 3), X(51, 3),  \
        X(59, 3), X(67, 4), X(83, 4), X(99, 4), X(115, 4), X(131, 5), X(163, 5), X(195, 5),        \
        X(227, 5), X(258, 0)
#define WHARF_DEFLATE_LENGTH_BASES WHARF_DEFLATE_LENGTH_LIST(WHARF_DEFLATE_BASE)
#define WHARF_DEFLATE_LENGTH_EXTRAS WHARF_DEFLATE_LENGTH_LIST(WHARF_DEFLATE_EXTRA)

/* Distance symbols 0 to 29: X(base distance, extra bits) each, with commas between. */
#define WHARF_DEFLATE_DISTANCE_LIST(X)                                                             \
    X(1, 0), X(2, 0), X(3, 0), X(4, 0), X(5, 1), X(7, 1), X(9, 2), X(13, 2), X(17, 3), X(25, 3),   \
        X(33, 4), X(49, 4), X(65, 5), X(97, 5), X(129, 6), X(193, 6), X(257, 7), X(385, 7),        \
        X(513, 8), X(769, 8), X(1025, 9), X(1537, 9), X(2049, 10), X(3073, 10), X(4097, 11),       \
        X(6145, 11), X(8193, 12), X(12289, 12), X(16385, 13), X(24577, 13)
#define WHARF_DEFLATE_DISTANCE_BASES WHARF_DEFLATE_DISTANCE_LIST(WHARF_DEFLATE_BASE)
#define WHARF_DEFLATE_DISTANCE_EXTRAS WHARF_DEFLATE_DISTANCE_LIST(WHARF_DEFLATE_EXTRA)

#define WHARF_DEFLATE_BASE(base, extra) base
#define WHARF_DEFLATE_EXTRA(base, extra) extra

#endif
