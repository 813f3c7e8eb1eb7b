/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_format.h: the rans codec's stream, and the rules by which it is verified, in the order in
 * which things are looked at.
 *
 * A stream is a header, a model unless a registered one is used, indexes if the model has several
 * distributions, and a *body*: a Recoil stream ("Recoil: Parallel rANS Decoding with
 * Decoder-Adaptive Scalability", ICPP 2023), byte for byte as the paper's program writes it.
 * All is little-endian; nothing is aligned to anything.
 *
 *   byte 0 (1)  version, 1
 *        1 (1)  probability bits n, 8 to 16
 *        2 (1)  bytes a symbol, 1 or 2
 *        3 (1)  flags, 0
 *        4 (2)  distributions D - 1
 *        6 (2)  alphabet A - 1
 *        8 (4)  bytes of the model, 0 if it is registered
 *       12 (4)  bytes of the indexes, 0 if D is 1: one a symbol
 *       16      model, indexes, body
 *
 * PARAMETER.  0: symbols are bytes.  1: they are 16 bits, little-endian.
 *
 * MODEL.  D distributions of the symbols 0 to A - 1.  A frequency f is in units of 2^-n.  Symbols
 * are taken in blocks of 32, the last one of what is left.  First the widths of all blocks, 5 bits
 * each, distribution by distribution; then the frequencies, each in as many bits as its block's
 * width says; then 0 to 7 bits to a byte's end.  Bits are taken least significant first, as in
 * Deflate.  So frequency number i is found without reading those before it, from the sum of the
 * widths alone.
 *
 * REGISTERED.  What is registered is such a header, without indexes, and its model; nothing
 * follows.  It may have 2^24 slots, D * 2^n, and as many ranges, D * A; one that stands in its
 * stream 65536.  Decoders are then given its tables with the stream (rans_image.h), and need not
 * look at it again.
 *
 * BODY.  Words of 16 bits; its fields are packed most significant bit first; `len` stands for a
 * field that holds a length less 1, and signed fields are a sign bit (1 is negative) and a
 * magnitude.  N symbols are coded by 32 coders: symbol i by coder i mod 32, in group i / 32.
 *
 *   1. the 32 final states, coder 0 first, 32 bits each, the high half first
 *   2. splits M: 4 bits len, then len bits          3. symbols N: 5 bits len, then len bits
 *   if M > 1:
 *   4. 5 bits len    5. for s = 1 to M - 1: cut(s) - (M - s) * ceil(W / M), signed, 1 + len bits
 *   6. 5 bits len    7. for s = 1 to M - 1: group(s) - s * ceil(ceil(N / 32) / M), 1 + len bits
 *   8. for s = 1 to M - 1: 4 bits len, then for each coder its start - group(s), len bits
 *   always:
 *   9. 1 to 16 bits to a word's end
 *  10. for s = 1 to M - 1: 32 states of 16 bits
 *  11. W words of 16 bits
 *
 * READ ME FIRST: directions.  The encoder goes from the last symbol to the first and writes words
 * upwards; the decoder goes from group 0 on, and reads the words from number W - 1 *downwards*;
 * within a group, coder 0 takes its word first.  A decoder that begins at split s begins with word
 * cut(s) and goes down.  A coder's `start` is the group after which it takes its first word there:
 * its state is then the 16 bits of item 10, and its first own symbol is in the group after.  From
 * the group that follows the largest start on, all coders of the split run: the groups up to there,
 * the *window* of the split, are delivered by who decodes what is before it.
 *
 * DECODING.  A state x is 32 bits, at least 2^16.  slot = x mod 2^n is in the range [F, F + f) of
 * one symbol, where F is the sum of the frequencies before it; x becomes f * (x >> n) + slot - F,
 * and if that is below 2^16, x becomes x << 16 | next word.  f >= 1 and x >= 2^16 >= 2^n keep it at
 * least 1 before and at least 2^16 after; f * ((x >> n) + 1) <= 2^32 keeps it in 32 bits.
 *
 * SPLITS ARE NOT BELIEVED.  The symbols are those of one decoder that starts at the final states
 * and runs through.  Whoever passes a split's window, whether the split is used or not, compares:
 * each coder takes a word after its start, with the split's state; none takes one between cut(s)
 * and its start; the first word is number cut(s).  Then the split's decoder goes through the very
 * states of the one that runs through, so how many splits are used changes neither bytes nor
 * verdict.
 *
 * VERIFIED, each BAD_DATA unless said, in this order; but what 3 says of indexes comes behind 4,
 * and then what is marked with a star, which needs the setting or the model's tables:
 *   1. header not there: INPUT_TRUNCATED at bit 0.  Another version: UNSUPPORTED, RANS_VERSION
 *      at 0.  A field out of range, or sizes that contradict D: RANS_HEADER at 0.
 *    * Symbols of another size than the setting says; with a registered model, a shape that is not
 *      the model's, or a model besides: the same.
 *   2. model or indexes cut off: INPUT_TRUNCATED, at their first bit.
 *    * No model at all, a width over 17, frequencies that are more or fewer bytes than they need,
 *      or sum up to 0 or to more than 2^n: RANS_MODEL, at the model's first bit.  A sum below 2^n
 *      is allowed: the slots above it are nobody's.
 *   3. body: fields or words cut off, or half a word at its end: INPUT_TRUNCATED at the body's
 *      first bit.  M of 0, N over 2^31, a number of indexes that is not N, or an index that is not
 *      below D: RANS_HEADER at the body's first bit.
 *   4. splits: a cut outside the words or not below the one before; a window that does not begin
 *      behind the one before, or does not end before the last group's end: RANS_SPLIT, at the
 *      body's first bit.
 *   5. N symbols are more than the destination holds: OUTPUT_TOO_SMALL, OUTPUT_FULL, at the body's
 *      first bit.
 *   6. a final state below 2^16: RANS_STATE, at the body's first bit.
 *   7. group by group, in each in this order: a slot that is nobody's, RANS_SYMBOL; a split that is
 *      not what is found there, RANS_SPLIT; no word left, INPUT_TRUNCATED.  All at the end of the
 *      word that would be read next when the group begins.
 *   8. words left after the last group: RANS_WORDS_LEFT, at the end of the next; then a coder whose
 *      state is not 2^16, with which encoders begin: RANS_STATE, at the first word.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_FORMAT_H
#define WHARF_ENCODERS_RANS_RANS_FORMAT_H

#define WHARF_RANS_VERSION 1
#define WHARF_RANS_HEADER_NBYTES 16

#define WHARF_RANS_MIN_NBITS 8
#define WHARF_RANS_MAX_NBITS 16
#define WHARF_RANS_MAX_DISTRIBUTIONS 256
#define WHARF_RANS_MAX_ALPHABET 65536

/* Packed frequencies. */
#define WHARF_RANS_BLOCK_NSYMBOLS 32
#define WHARF_RANS_WIDTH_NBITS 5
#define WHARF_RANS_MAX_WIDTH 17 /* the frequency 2^16 */

/* The coder. */
#define WHARF_RANS_N_LANES 32
#define WHARF_RANS_LOW (1u << 16) /* states are at least this; encoders begin with it */
#define WHARF_RANS_WORD_NBITS 16
#define WHARF_RANS_WORD_NBYTES 2

/* The body's fields. */
#define WHARF_RANS_STATES_NBYTES (WHARF_RANS_N_LANES * 4)
#define WHARF_RANS_MAX_SPLITS 65535
#define WHARF_RANS_MAX_SYMBOLS (1u << 31)
/* A split's 32 states of 16 bits. */
#define WHARF_RANS_SPLIT_STATES_NBYTES (WHARF_RANS_N_LANES * 2)

/* A symbol whose frequency is 2^n takes no bits at all: only N bounds the output. */
#define WHARF_RANS_MAX_RATIO 1
#define WHARF_RANS_MAX_CONSTANT 0xffffffffu

#endif
