/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_reference.c: the reference decoder of lines, one value at a time, in the order of LINES.md.
 * It shares only the header's reader with the other decoders.
 */
#include "encoders/decode_poll.h"
#include "encoders/line/line.h"
#include "encoders/line/line_shape.h"
#include "encoders/outcome.h"

#include <string.h>

struct verifier {
    struct wharf_line_shape shape;
    const uint8_t *in;
    uint64_t in_nbytes;
    uint8_t *out;
    uint64_t at;         /* where the next line's content begins */
    uint64_t first, end; /* which bytes of the output are wanted */
    bool is_range;       /* others are not looked at */
    uint32_t reason;     /* NONE while all is good */
    uint64_t bit_offset; /* of the reason */
    uint32_t width;      /* of the group's palette */
    uint8_t palette[WHARF_LINE_HEAD_NBYTES];
    uint8_t codes[WHARF_LINE_MAX_NLINES];
};

static bool fail(struct verifier *verifier, uint32_t reason, uint64_t bit_offset)
{
    verifier->reason = reason;
    verifier->bit_offset = bit_offset;
    return false;
}

/* `n` bits, at most 8, from bit `at` of the bytes on. */
static uint32_t get_bits(const uint8_t *bytes, uint32_t at, uint32_t n)
{
    uint32_t value = 0;

    for (uint32_t i = 0; i < n; i++)
        value |= (bytes[(at + i) / 8] >> (at + i) % 8 & 1u) << i;
    return value;
}

static uint64_t get_bytes(const uint8_t *bytes, uint32_t n)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < n; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static void put_bytes(uint8_t *bytes, uint32_t n, uint64_t value)
{
    for (uint32_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

/* The low `n_bits` bits as a signed number. */
static uint64_t sign_extend(uint64_t value, uint32_t n_bits)
{
    uint64_t sign = UINT64_C(1) << (n_bits - 1);

    return (value & (2 * sign - 1)) >= sign ? value - 2 * sign : value;
}

/* ---- a line of each scheme: into `line`; false where it contradicts its code ---------------- */

static bool read_bdi(const uint8_t *content, uint32_t variant, uint32_t line_nbytes, uint8_t *line)
{
    static const uint32_t bases[] = {0, 8, 8, 8, 8, 4, 4, 2};
    static const uint32_t deltas[] = {0, 0, 1, 2, 4, 1, 2, 1};
    uint32_t b = bases[variant], d = deltas[variant], n = line_nbytes / b;

    if (d == 0) {
        for (uint32_t i = 0; i < line_nbytes; i++)
            line[i] = content[i % 8];
        return true;
    }
    const uint8_t *base = content + (n + 7) / 8;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t delta = sign_extend(get_bytes(base + b + i * d, d), 8 * d);
        bool is_from_zero = get_bits(content, i, 1) == 1;
        put_bytes(line + i * b, b, is_from_zero ? delta : get_bytes(base, b) + delta);
    }
    return true;
}

static uint32_t read_fpc_word(const uint8_t *segment, uint32_t pattern, uint32_t i)
{
    switch (pattern) {
    case WHARF_LINE_FPC_ZEROS:
        return 0;
    case WHARF_LINE_FPC_SIGNED_4:
        return (uint32_t)sign_extend(get_bits(segment, 4 * i, 4), 4);
    case WHARF_LINE_FPC_SIGNED_8:
        return (uint32_t)sign_extend(segment[i], 8);
    case WHARF_LINE_FPC_SIGNED_16:
        return (uint32_t)sign_extend(get_bytes(segment + 2 * i, 2), 16);
    case WHARF_LINE_FPC_HIGH_HALF:
        return (uint32_t)get_bytes(segment + 2 * i, 2) << 16;
    case WHARF_LINE_FPC_TWO_BYTES:
        return ((uint32_t)sign_extend(segment[2 * i], 8) & 0xffff) |
               (uint32_t)sign_extend(segment[2 * i + 1], 8) << 16;
    case WHARF_LINE_FPC_REPEATED:
        return segment[i] * 0x01010101u;
    default:
        return (uint32_t)get_bytes(segment + 4 * i, 4);
    }
}

static bool read_fpc(const uint8_t *content, uint32_t n_pairs, uint32_t line_nbytes, uint8_t *line)
{
    static const uint32_t nbytes[8] = {0, 2, 4, 8, 8, 8, 4, 16};
    uint32_t n_segments = line_nbytes / 16, head_nbytes = (3 * n_segments + 7) / 8;
    uint32_t patterns[8], sum = 0;

    for (uint32_t s = 0; s < n_segments; s++) {
        patterns[s] = get_bits(content, 3 * s, 3);
        sum += nbytes[patterns[s]];
    }
    if (sum > 2 * n_pairs)
        return false;
    content += head_nbytes;
    for (uint32_t s = 0; s < n_segments; content += nbytes[patterns[s]], s++)
        for (uint32_t i = 0; i < 4; i++)
            put_bytes(line + 16 * s + 4 * i, 4, read_fpc_word(content, patterns[s], i));
    return true;
}

static bool read_cpack(const uint8_t *content, uint32_t n_words, uint32_t n_bytes,
                       uint32_t line_nbytes, uint8_t *line)
{
    const uint8_t *dictionary = content + line_nbytes / 8;
    const uint8_t *bytes = dictionary + 4 * (size_t)n_words;
    uint32_t n_taken = 0;

    for (uint32_t i = 0; i < line_nbytes / 4; i++) {
        uint32_t nibble = get_bits(content, 4 * i, 4), source = nibble & 7;
        if (source > n_words)
            return false;
        uint64_t word = source == 0 ? 0 : get_bytes(dictionary + 4 * (source - 1), 4);
        if (nibble & WHARF_LINE_CPACK_HAS_BYTE) {
            if (n_taken == n_bytes)
                return false;
            word = (word & ~UINT64_C(255)) | bytes[n_taken++];
        }
        put_bytes(line + 4 * i, 4, word);
    }
    return true;
}

/* A value is its upper part, rotated so that its sign is the lowest bit of the field, and for f16 a
 * low byte. */
static bool read_palette(const struct verifier *verifier, const uint8_t *content,
                         uint32_t n_escapes, uint8_t *line)
{
    static const uint32_t exponent_nbits[] = {8, 5, 4, 5}, field_nbits[] = {8, 3, 4, 3};
    uint32_t type = verifier->shape.type, e = exponent_nbits[type], f = field_nbits[type];
    bool has_low = type == WHARF_LINE_F16;
    uint32_t n = verifier->shape.line_nbytes / (type <= WHARF_LINE_F16 ? 2 : 1);
    const uint8_t *fields = content + (has_low ? n : 0);
    const uint8_t *indexes = fields + (size_t)n * f / 8;
    const uint8_t *escapes = indexes + (size_t)n * verifier->width / 8;
    uint32_t escape = (1u << verifier->width) - 1, n_taken = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = get_bits(indexes, i * verifier->width, verifier->width);
        if (index == escape && n_taken == n_escapes)
            return false;
        uint32_t exponent = index == escape ? escapes[n_taken++] : verifier->palette[index];
        uint32_t upper = (exponent & ((1u << e) - 1)) << f | get_bits(fields, i * f, f);
        upper = upper >> 1 | (upper & 1) << (e + f - 1);
        if (has_low)
            put_bytes(line + 2 * (size_t)i, 2, upper << 8 | content[i]);
        else
            put_bytes(line + (size_t)i * (e + f) / 8, (e + f) / 8, upper);
    }
    return true;
}

/* ---- codes ---------------------------------------------------------------------------------- */

/* cpack's codes count dictionary words and low bytes, these by fours in lines of 32 bytes. */
static struct wharf_line_code explain_cpack(uint32_t code, uint32_t line_nbytes)
{
    uint32_t step = line_nbytes == 32 ? 4 : 1, radix = line_nbytes / 4 / step + 1;
    uint32_t n_words = code / radix, n_bytes = code % radix * step;

    if (n_words > 4)
        return (struct wharf_line_code){0};
    return (struct wharf_line_code){WHARF_LINE_IS_CPACK, (uint8_t)n_words, (uint8_t)n_bytes,
                                    (uint8_t)(line_nbytes / 8 + 4 * n_words + n_bytes)};
}

static struct wharf_line_code explain_fpc(uint32_t n_pairs, uint32_t line_nbytes)
{
    uint32_t nbytes = (3 * (line_nbytes / 16) + 7) / 8 + 2 * n_pairs;

    if (nbytes >= line_nbytes)
        return (struct wharf_line_code){0};
    return (struct wharf_line_code){WHARF_LINE_IS_FPC, 0, (uint8_t)n_pairs, (uint8_t)nbytes};
}

static struct wharf_line_code explain_bdi(uint32_t code, uint32_t line_nbytes)
{
    static const uint8_t nbytes[3][8] = {
        {0, 8, 13, 17, 25, 13, 21, 20},
        {0, 8, 17, 25, 41, 22, 38, 38},
        {0, 8, 26, 42, 74, 40, 72, 74},
    };

    if (code > 7)
        return (struct wharf_line_code){0};
    return (struct wharf_line_code){WHARF_LINE_IS_BDI, (uint8_t)code, 0,
                                    nbytes[line_nbytes / 64][code]};
}

static struct wharf_line_code explain_best(uint32_t code, uint32_t line_nbytes)
{
    uint32_t fpc_most = line_nbytes == 128 ? 62 : 30;

    if (code <= 7)
        return explain_bdi(code, line_nbytes);
    if (line_nbytes == 32) {
        static const uint8_t npairs[] = {2, 5, 8, 10};
        return code < 12 ? explain_fpc(npairs[code - 8], 32)
                         : explain_cpack(3 * (code - 11) + 2, 32);
    }
    return code - 7 <= fpc_most ? explain_fpc(code - 7, line_nbytes)
                                : explain_cpack(code - 7 - fpc_most, line_nbytes);
}

static struct wharf_line_code explain_palette(const struct verifier *verifier, uint32_t code)
{
    static const uint32_t value_nbits[] = {8, 11, 4, 3};
    uint32_t n = verifier->shape.line_nbytes / (verifier->shape.type <= WHARF_LINE_F16 ? 2 : 1);
    uint32_t nbytes = n * (value_nbits[verifier->shape.type] + verifier->width) / 8 + code - 1;

    if (nbytes >= verifier->shape.line_nbytes)
        return (struct wharf_line_code){0};
    return (struct wharf_line_code){WHARF_LINE_IS_PALETTE, 0, (uint8_t)(code - 1), (uint8_t)nbytes};
}

static struct wharf_line_code explain(const struct verifier *verifier, uint32_t code)
{
    const struct wharf_line_shape *shape = &verifier->shape;
    uint32_t line_nbytes = shape->line_nbytes;

    if (code == 0)
        return (struct wharf_line_code){WHARF_LINE_IS_ZEROS, 0, 0, 0};
    if (code == (1u << shape->code_nbits) - 1)
        return (struct wharf_line_code){WHARF_LINE_IS_RAW, 0, 0, (uint8_t)line_nbytes};
    switch (shape->codec) {
    case WHARF_CODEC_BDI:
        return explain_bdi(code, line_nbytes);
    case WHARF_CODEC_FPC:
        return explain_fpc(code, line_nbytes);
    case WHARF_CODEC_CPACK:
        return explain_cpack(code, line_nbytes);
    case WHARF_CODEC_BEST:
        return explain_best(code, line_nbytes);
    default:
        return explain_palette(verifier, code);
    }
}

/* ---- groups --------------------------------------------------------------------------------- */

static bool read_line(struct verifier *verifier, const uint8_t *content,
                      struct wharf_line_code code, uint8_t *line)
{
    uint32_t line_nbytes = verifier->shape.line_nbytes;

    switch (code.scheme) {
    case WHARF_LINE_IS_ZEROS:
        memset(line, 0, line_nbytes);
        return true;
    case WHARF_LINE_IS_RAW:
        memcpy(line, content, line_nbytes);
        return true;
    case WHARF_LINE_IS_BDI:
        return read_bdi(content, code.variant, line_nbytes, line);
    case WHARF_LINE_IS_FPC:
        return read_fpc(content, code.n_given, line_nbytes, line);
    case WHARF_LINE_IS_CPACK:
        return read_cpack(content, code.variant, code.n_given, line_nbytes, line);
    default:
        return read_palette(verifier, content, code.n_given, line);
    }
}

/* The wanted bytes of a line whose first one is number `done` of the output. */
static void give_wanted(struct verifier *verifier, uint64_t done, const uint8_t *line)
{
    for (uint64_t i = 0; i < verifier->shape.line_nbytes; i++)
        if (done + i >= verifier->first && done + i < verifier->end)
            verifier->out[done + i - verifier->first] = line[i];
}

static bool verify_line(struct verifier *verifier, uint64_t number, uint32_t code_number)
{
    const struct wharf_line_shape *shape = &verifier->shape;
    struct wharf_line_code code = explain(verifier, code_number);
    uint8_t content[WHARF_LINE_MAX_NBYTES], line[WHARF_LINE_MAX_NBYTES];
    uint64_t done = number * shape->line_nbytes, left = shape->raw_nbytes - done;
    uint64_t extent = shape->layout == WHARF_LINE_SLOTS ? shape->line_nbytes : code.nbytes;

    if (verifier->is_range && done + shape->line_nbytes <= verifier->first) {
        verifier->at += extent;
        return true;
    }
    if (verifier->at > verifier->in_nbytes || extent > verifier->in_nbytes - verifier->at)
        return fail(verifier, WHARF_REASON_INPUT_TRUNCATED, 8 * verifier->at);
    memcpy(content, verifier->in + verifier->at, code.nbytes);
    if (!read_line(verifier, content, code, line))
        return fail(verifier, WHARF_REASON_LINE_CONTENT, 8 * verifier->at);
    if (verifier->is_range)
        give_wanted(verifier, done, line);
    else
        memcpy(verifier->out + done, line, left < shape->line_nbytes ? left : shape->line_nbytes);
    verifier->at += extent;
    return true;
}

static bool verify_codes(struct verifier *verifier, uint64_t codes_at, uint64_t n_lines)
{
    const struct wharf_line_shape *shape = &verifier->shape;
    uint8_t bytes[WHARF_LINE_MAX_NLINES];

    memcpy(bytes, verifier->in + codes_at, (size_t)(shape->record_nbytes - shape->codes_at));
    for (uint32_t i = 0; i < shape->group_nlines; i++) {
        uint32_t code = get_bits(bytes, i * shape->code_nbits, shape->code_nbits);
        bool is_valid = i < n_lines ? explain(verifier, code).scheme != WHARF_LINE_IS_INVALID
                                    : code == WHARF_LINE_CODE_ZEROS;
        if (!is_valid)
            return fail(verifier, WHARF_REASON_LINE_CODE,
                        8 * codes_at + (uint64_t)i * shape->code_nbits);
        verifier->codes[i] = (uint8_t)code;
    }
    return true;
}

static bool verify_group(struct verifier *verifier, uint64_t group)
{
    const struct wharf_line_shape *shape = &verifier->shape;
    uint64_t record_at = WHARF_LINE_HEADER_NBYTES + group * shape->record_nbytes;
    uint64_t head_at = shape->heads_at + group * WHARF_LINE_HEAD_NBYTES;
    uint64_t first = group * shape->group_nlines;
    uint64_t n_lines = shape->n_lines - first;

    if (n_lines > shape->group_nlines)
        n_lines = shape->group_nlines;
    if (shape->layout == WHARF_LINE_PACKED &&
        16 * get_bytes(verifier->in + record_at, 4) != verifier->at - shape->data_at)
        return fail(verifier, WHARF_REASON_LINE_OFFSET, 8 * record_at);
    if (shape->codec == WHARF_CODEC_PALETTE) {
        memcpy(verifier->palette, verifier->in + head_at, WHARF_LINE_HEAD_NBYTES);
        verifier->width = verifier->palette[15];
        if (verifier->width != 3 && (verifier->width != 4 || shape->type == WHARF_LINE_E4M3))
            return fail(verifier, WHARF_REASON_LINE_PALETTE, 8 * (head_at + 15));
    }
    if (!verify_codes(verifier, record_at + shape->codes_at, n_lines))
        return false;
    for (uint32_t i = 0; i < n_lines; i++) {
        if (verifier->is_range && (first + i) * shape->line_nbytes >= verifier->end)
            return true;
        if (!verify_line(verifier, first + i, verifier->codes[i]))
            return false;
    }
    if (verifier->is_range && (first + n_lines) * shape->line_nbytes >= verifier->end)
        return true;
    uint64_t filled = (verifier->at + 15) / 16 * 16;
    if (filled > verifier->in_nbytes)
        return fail(verifier, WHARF_REASON_INPUT_TRUNCATED, 8 * verifier->at);
    verifier->at = filled;
    return true;
}

void wharf_line_decode_reference(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome)
{
    struct verifier verifier = {.in = in, .in_nbytes = in_nbytes, .out = out};
    struct wharf_line_failure failure =
        wharf_line_shape_read(&verifier.shape, codec, in, in_nbytes, out_avail);
    uint32_t stopped = WHARF_OK;

    if (failure.reason != WHARF_REASON_NONE) {
        wharf_outcome_fail(ret_outcome, failure.result, failure.reason, failure.bit_offset);
        return;
    }
    verifier.at = verifier.shape.data_at;
    for (uint64_t group = 0; group < verifier.shape.n_groups && stopped == WHARF_OK; group++) {
        if (!verify_group(&verifier, group))
            break;
        if (group % 3 == 2)
            stopped = wharf_decode_poll(setting);
    }
    if (stopped != WHARF_OK)
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    else if (verifier.reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, verifier.reason, verifier.bit_offset);
    else
        wharf_outcome_ok(ret_outcome, verifier.at, verifier.shape.raw_nbytes);
}

/* Where the range's first group begins. */
static bool find_group(struct verifier *verifier, uint64_t group)
{
    const struct wharf_line_shape *shape = &verifier->shape;
    uint64_t record_at = WHARF_LINE_HEADER_NBYTES + group * shape->record_nbytes;

    verifier->at = shape->data_at;
    if (group == 0)
        return true;
    if (shape->layout == WHARF_LINE_SLOTS) {
        verifier->at += group * WHARF_LINE_GROUP_NBYTES;
        return verifier->at <= verifier->in_nbytes ||
               fail(verifier, WHARF_REASON_INPUT_TRUNCATED, 8 * verifier->at);
    }
    verifier->at += 16 * get_bytes(verifier->in + record_at, 4);
    return verifier->at <= verifier->in_nbytes ||
           fail(verifier, WHARF_REASON_LINE_OFFSET, 8 * record_at);
}

void wharf_line_decode_range_reference(uint32_t codec, const uint8_t *in, size_t in_nbytes,
                                       uint64_t first, uint8_t *out, size_t out_nbytes,
                                       const struct wharf_codec_setting *setting,
                                       struct wharf_outcome *ret_outcome)
{
    struct verifier verifier = {.in = in, .in_nbytes = in_nbytes, .out = out, .is_range = true};
    struct wharf_line_failure failure =
        wharf_line_shape_read(&verifier.shape, codec, in, in_nbytes, UINT64_MAX);
    uint32_t stopped = WHARF_OK;

    if (failure.reason != WHARF_REASON_NONE) {
        wharf_outcome_fail(ret_outcome, failure.result, failure.reason, failure.bit_offset);
        return;
    }
    if (first > verifier.shape.raw_nbytes || out_nbytes > verifier.shape.raw_nbytes - first) {
        wharf_outcome_fail(ret_outcome, WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING,
                           8 * WHARF_LINE_AT_RAW);
        return;
    }
    verifier.first = first;
    verifier.end = first + out_nbytes;
    verifier.at = verifier.shape.data_at;
    uint64_t group = first / WHARF_LINE_GROUP_NBYTES;
    if (out_nbytes > 0 && find_group(&verifier, group)) {
        for (; group * WHARF_LINE_GROUP_NBYTES < verifier.end && stopped == WHARF_OK; group++) {
            if (!verify_group(&verifier, group))
                break;
            if (group % 3 == 2)
                stopped = wharf_decode_poll(setting);
        }
    }
    if (stopped != WHARF_OK)
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    else if (verifier.reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, verifier.reason, verifier.bit_offset);
    else
        wharf_outcome_ok(ret_outcome, verifier.at, out_nbytes);
}
