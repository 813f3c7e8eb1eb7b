/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_format.h: blocks of LZ4, without the frame that files have around them.
 *
 *   block    = sequence, sequence, ...   to the last byte of the source
 *   sequence = token, literal length bytes, literals, offset, match length bytes
 *   token      high four bits: how many literals; 15: and the length bytes' sum
 *              low four bits: the match's length less 4; 15: and the length bytes' sum
 *   length bytes: up to the first that is not 255
 *   offset     two bytes, little-endian: how far back the match begins
 *
 * The last sequence ends with its literals; its token's low bits mean nothing.  If there is a match
 * in the block, the last literals are at least 5, and the last match begins at least 12 bytes
 * before the end of the output.  The format has no checksum, and does not say how long it is: all
 * of the source is the block, of which an empty one has a token of 0.
 *
 * In frames (lz4_frame_format.h) matches may reach back into blocks before, if the frame's header
 * says so: then what stands before the first output byte is that output, history_nbytes of the
 * setting.
 *
 * The only parameter is 0.  What is wrong with a sequence stands at its token, and is looked for in
 * this order: the token missing, length bytes missing, literals missing [INPUT_TRUNCATED]; literals
 * for which there is no room [OUTPUT_TOO_SMALL, OUTPUT_FULL]; in the last sequence, the last two
 * rules above broken [LZ4_END]; the offset missing [INPUT_TRUNCATED]; one of 0, or from before the
 * first output byte [LZ4_OFFSET]; length bytes missing [INPUT_TRUNCATED]; a match for which there
 * is no room [OUTPUT_FULL].
 *
 * liblz4's decoder agrees where it is told the right size of the output, but takes an offset of 0,
 * and of blocks without output only the one byte 0.
 */
#ifndef WHARF_ENCODERS_LZ4_LZ4_FORMAT_H
#define WHARF_ENCODERS_LZ4_LZ4_FORMAT_H

enum {
    WHARF_LZ4_MORE = 15, /* length bytes follow */
    WHARF_LZ4_MATCH_MIN = 4,
    WHARF_LZ4_LAST_LITERALS = 5,
    WHARF_LZ4_LAST_MATCH = 12,

    /* A length byte gives 255, and the rest of a sequence less. */
    WHARF_LZ4_MAX_RATIO = 255,
    WHARF_LZ4_MAX_CONSTANT = 0,
};

#endif
