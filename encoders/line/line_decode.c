/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_decode.c: decodes streams of lines (LINES.md) on the CPU, group by group.
 *
 * It first reads all codes of a group, then decodes its lines in one loop (line_loop.h) that may
 * read and write past a line.  Lines too near the end of stream or output go through buffers.
 */
#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/line/line.h"
#include "encoders/line/line_loop.h"
#include "encoders/line/line_shape.h"
#include "encoders/little_endian.h"
#include "encoders/outcome.h"

/* So many groups are less than WHARF_POLL_IN_NBYTES with their records. */
enum { POLL_NGROUPS = 3 };

struct reader {
    struct wharf_line_shape shape;
    struct wharf_line_group group;
    uint8_t numbers[WHARF_LINE_MAX_NLINES];     /* each line's code, of this group */
    uint16_t starts[WHARF_LINE_MAX_NLINES + 1]; /* where its content begins, from `at` */
    wharf_line_loop_fn *loop;
    const uint8_t *in;
    uint64_t in_nbytes;
    uint8_t *out;
    uint64_t at; /* where the group's lines begin */
    struct wharf_line_failure failure;
};

static bool fail(struct reader *r, uint32_t reason, uint64_t bit_offset)
{
    r->failure = (struct wharf_line_failure){WHARF_BAD_DATA, reason, bit_offset};
    return false;
}

/* ---- a group's index ------------------------------------------------------------------------ */

static bool read_head(struct reader *r, uint64_t number)
{
    uint64_t head_at = r->shape.heads_at + number * WHARF_LINE_HEAD_NBYTES;

    memcpy(r->group.palette, r->in + head_at, WHARF_LINE_HEAD_NBYTES);
    uint32_t width = r->group.palette[WHARF_LINE_PALETTE_AT_WIDTH];
    if (!wharf_line_is_width(r->shape.type, width))
        return fail(r, WHARF_REASON_LINE_PALETTE, 8 * (head_at + WHARF_LINE_PALETTE_AT_WIDTH));
    if (width != r->group.width)
        wharf_line_codes_fill(&r->shape, width, r->group.codes);
    r->group.width = width;
    return true;
}

/* The group's codes, one in a byte each. */
static void read_codes(struct reader *r, const uint8_t *codes)
{
    uint8_t *numbers = r->numbers;

    if (r->shape.code_nbits == 8) {
        memcpy(numbers, codes, r->shape.group_nlines);
        return;
    }
    for (uint32_t i = 0; i < r->shape.group_nlines; i += 8) {
        uint32_t nibbles = wharf_load_le32(codes + i / 2);
        for (uint32_t k = 0; k < 8; k++)
            numbers[i + k] = nibbles >> 4 * k & 15;
    }
}

/* Computes where lines begin.  ORs all errors together, and searches for the first only if any. */
static bool place_lines(struct reader *r, uint32_t n_lines, uint64_t codes_at)
{
    const struct wharf_line_code *codes = r->group.codes;
    bool has_slots = r->shape.layout == WHARF_LINE_SLOTS;
    uint32_t sum = 0, wrong = 0;

    for (uint32_t i = 0; i < n_lines; i++) {
        const struct wharf_line_code *code = &codes[r->numbers[i]];
        r->starts[i] = (uint16_t)sum;
        sum += has_slots ? r->shape.line_nbytes : code->nbytes;
        wrong |= code->scheme == WHARF_LINE_IS_INVALID;
    }
    r->starts[n_lines] = (uint16_t)sum;
    for (uint32_t i = n_lines; i < r->shape.group_nlines; i++)
        wrong |= r->numbers[i] != WHARF_LINE_CODE_ZEROS;
    if (!wrong)
        return true;
    for (uint32_t i = 0;; i++)
        if (i < n_lines ? codes[r->numbers[i]].scheme == WHARF_LINE_IS_INVALID
                        : r->numbers[i] != WHARF_LINE_CODE_ZEROS)
            return fail(r, WHARF_REASON_LINE_CODE,
                        8 * codes_at + (uint64_t)i * r->shape.code_nbits);
}

static bool read_record(struct reader *r, uint64_t number, uint32_t n_lines)
{
    uint64_t record_at = WHARF_LINE_HEADER_NBYTES + number * r->shape.record_nbytes;

    if (r->shape.layout == WHARF_LINE_PACKED &&
        (uint64_t)WHARF_LINE_UNIT_NBYTES * wharf_load_le32(r->in + record_at) !=
            r->at - r->shape.data_at)
        return fail(r, WHARF_REASON_LINE_OFFSET, 8 * record_at);
    if (r->shape.head_nbytes != 0 && !read_head(r, number))
        return false;
    read_codes(r, r->in + record_at + r->shape.codes_at);
    return place_lines(r, n_lines, record_at + r->shape.codes_at);
}

/* ---- a group's lines ------------------------------------------------------------------------ */

/* The number of lines from which the loop can read and write past their ends. */
static uint32_t count_free_lines(const struct reader *r, uint32_t n_lines)
{
    uint64_t left = r->in_nbytes - r->at;
    uint32_t n = n_lines;

    while (n > 0 && r->starts[n - 1] + (uint64_t)WHARF_LINE_READ_NBYTES > left)
        n--;
    return n;
}

/* A line near an end of source or output, from its byte `from` on. */
static bool read_edge_line(struct reader *r, uint32_t i, uint64_t from, uint8_t *out,
                           uint64_t out_nbytes)
{
    const struct wharf_line_code *code = &r->group.codes[r->numbers[i]];
    uint64_t begin = r->at + r->starts[i], extent = r->starts[i + 1] - r->starts[i];
    uint8_t content[WHARF_LINE_READ_NBYTES];
    uint8_t line[WHARF_LINE_MAX_NBYTES];
    uint16_t start = 0;

    /* In a range, nothing has verified where the first line begins. */
    if (begin > r->in_nbytes || extent > r->in_nbytes - begin)
        return fail(r, WHARF_REASON_INPUT_TRUNCATED, 8 * begin);
    memcpy(content, r->in + begin, code->nbytes);
    memset(content + code->nbytes, 0, sizeof(content) - code->nbytes);
    if (r->loop(&r->group, &r->numbers[i], &start, 1, content, line) == 0)
        return fail(r, WHARF_REASON_LINE_CONTENT, 8 * begin);
    memcpy(out, line + from, (size_t)out_nbytes);
    return true;
}

static bool read_lines(struct reader *r, uint8_t *out, uint32_t n_lines, uint64_t out_nbytes)
{
    uint32_t n_free = count_free_lines(r, n_lines), line_nbytes = r->shape.line_nbytes;
    uint32_t n_whole = (uint32_t)(out_nbytes / line_nbytes);

    if (n_free > n_whole)
        n_free = n_whole;
    uint32_t n_good = r->loop(&r->group, r->numbers, r->starts, n_free, r->in + r->at, out);
    if (n_good < n_free)
        return fail(r, WHARF_REASON_LINE_CONTENT, 8 * (r->at + r->starts[n_good]));
    for (uint32_t i = n_free; i < n_lines; i++) {
        uint64_t left = out_nbytes - (uint64_t)i * line_nbytes;
        if (!read_edge_line(r, i, 0, out + (size_t)i * line_nbytes,
                            left < line_nbytes ? left : line_nbytes))
            return false;
    }
    return true;
}

/* Moves `at` behind the group's lines and their filling. */
static bool end_group(struct reader *r, uint32_t n_lines)
{
    uint64_t end = r->at + r->starts[n_lines];
    uint64_t filled = (end + WHARF_LINE_UNIT_NBYTES - 1) & -(uint64_t)WHARF_LINE_UNIT_NBYTES;
    if (filled > r->in_nbytes)
        return fail(r, WHARF_REASON_INPUT_TRUNCATED, 8 * end);
    r->at = filled;
    return true;
}

/* How much output a group has. */
static uint64_t group_nbytes(const struct reader *r, uint64_t number)
{
    uint64_t left = r->shape.raw_nbytes - number * WHARF_LINE_GROUP_NBYTES;

    return left < WHARF_LINE_GROUP_NBYTES ? left : WHARF_LINE_GROUP_NBYTES;
}

static uint32_t count_lines(const struct reader *r, uint64_t out_nbytes)
{
    return (uint32_t)((out_nbytes + r->shape.line_nbytes - 1) / r->shape.line_nbytes);
}

static bool read_group(struct reader *r, uint64_t number)
{
    uint64_t out_nbytes = group_nbytes(r, number);
    uint32_t n_lines = count_lines(r, out_nbytes);

    return read_record(r, number, n_lines) &&
           read_lines(r, r->out + number * WHARF_LINE_GROUP_NBYTES, n_lines, out_nbytes) &&
           end_group(r, n_lines);
}

/* Reads the header. */
static bool begin(struct reader *r, uint32_t codec, const uint8_t *in, uint64_t in_nbytes,
                  uint64_t out_avail)
{
    r->shape.raw_nbytes = 0;
    r->failure = wharf_line_shape_read(&r->shape, codec, in, in_nbytes, out_avail);
    if (r->failure.reason != WHARF_REASON_NONE)
        return false;
    r->in = in;
    r->in_nbytes = in_nbytes;
    r->at = r->shape.data_at;
    r->loop = wharf_line_loop();
    r->group.line_nbytes = r->shape.line_nbytes;
    r->group.type = r->shape.type;
    r->group.width = 0;
    if (r->shape.head_nbytes == 0)
        wharf_line_codes_fill(&r->shape, 0, r->group.codes);
    return true;
}

static void set_outcome(const struct reader *r, uint32_t stopped, uint64_t out_nbytes,
                        struct wharf_outcome *ret_outcome)
{
    if (stopped != WHARF_OK)
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    else if (r->failure.reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, r->failure.result, r->failure.reason,
                           r->failure.bit_offset);
    else
        wharf_outcome_ok(ret_outcome, r->at, out_nbytes);
}

void wharf_line_decode(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                       size_t out_avail, const struct wharf_codec_setting *setting,
                       struct wharf_outcome *ret_outcome)
{
    struct reader r;
    uint32_t stopped = WHARF_OK;

    if (begin(&r, codec, in, in_nbytes, out_avail)) {
        r.out = out;
        for (uint64_t i = 0; i < r.shape.n_groups && stopped == WHARF_OK && read_group(&r, i); i++)
            if (i % POLL_NGROUPS == POLL_NGROUPS - 1)
                stopped = wharf_decode_poll(setting);
    }
    set_outcome(&r, stopped, r.shape.raw_nbytes, ret_outcome);
}

/* ---- ranges --------------------------------------------------------------------------------- */

/* The wanted bytes of the output. */
struct range {
    uint64_t first, end;
};

/* Reads the header, and verifies that the output has the range. */
static bool begin_range(struct reader *r, uint32_t codec, const uint8_t *in, uint64_t in_nbytes,
                        const struct range *range)
{
    if (!begin(r, codec, in, in_nbytes, UINT64_MAX))
        return false;
    if (range->end <= r->shape.raw_nbytes)
        return true;
    r->failure = (struct wharf_line_failure){WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING,
                                             8 * WHARF_LINE_AT_RAW};
    return false;
}

/* Finds the first group by its record or its slot, which must lie in the stream. */
static bool go_to_group(struct reader *r, uint64_t number)
{
    uint64_t record_at = WHARF_LINE_HEADER_NBYTES + number * r->shape.record_nbytes;
    uint64_t offset = number * WHARF_LINE_GROUP_NBYTES;

    if (number == 0)
        return true; /* read_record verifies its offset */
    if (r->shape.layout == WHARF_LINE_PACKED)
        offset = (uint64_t)WHARF_LINE_UNIT_NBYTES * wharf_load_le32(r->in + record_at);
    if (offset > r->in_nbytes - r->shape.data_at)
        return r->shape.layout == WHARF_LINE_PACKED
                   ? fail(r, WHARF_REASON_LINE_OFFSET, 8 * record_at)
                   : fail(r, WHARF_REASON_INPUT_TRUNCATED, 8 * (r->shape.data_at + offset));
    r->at = r->shape.data_at + offset;
    return true;
}

/* The range's part of a group. */
static struct range part_of(const struct reader *r, const struct range *range, uint64_t number)
{
    uint64_t done = number * WHARF_LINE_GROUP_NBYTES, end = done + group_nbytes(r, number);

    return (struct range){range->first > done ? range->first - done : 0,
                          (range->end < end ? range->end : end) - done};
}

/* Reads whole lines from line i on with the loop.  Returns how many, or 0 with or without a
 * failure. */
static uint32_t read_free_lines(struct reader *r, uint32_t i, uint32_t n_free,
                                const struct range *part, uint8_t *out)
{
    uint32_t n_whole = (uint32_t)(part->end / r->shape.line_nbytes);
    uint32_t n = n_whole < n_free ? n_whole : n_free;

    if (part->first > (uint64_t)i * r->shape.line_nbytes || n <= i)
        return 0;
    uint32_t n_good = r->loop(&r->group, r->numbers + i, r->starts + i, n - i, r->in + r->at, out);
    if (n_good < n - i)
        fail(r, WHARF_REASON_LINE_CONTENT, 8 * (r->at + r->starts[i + n_good]));
    return n_good;
}

/* Reads the lines that hold a group's part of the range. */
static bool read_part(struct reader *r, const struct range *part, uint8_t *out)
{
    uint32_t line_nbytes = r->shape.line_nbytes, end = count_lines(r, part->end);
    uint32_t n_free = count_free_lines(r, end);

    for (uint32_t i = (uint32_t)(part->first / line_nbytes); i < end;) {
        uint64_t line = (uint64_t)i * line_nbytes;
        uint64_t from = part->first > line ? part->first - line : 0;
        uint64_t to = part->end - line < line_nbytes ? part->end - line : line_nbytes;
        uint32_t n = read_free_lines(r, i, n_free, part, out);

        if (r->failure.reason != WHARF_REASON_NONE)
            return false;
        if (n == 0 && !read_edge_line(r, i, from, out, to - from))
            return false;
        out += n ? (uint64_t)n * line_nbytes : to - from;
        i += n ? n : 1;
    }
    return true;
}

/* The offsets at which the content of the part's lines begins and ends. */
static uint64_t part_begin(const struct reader *r, const struct range *part)
{
    return r->at + r->starts[part->first / r->shape.line_nbytes];
}

static uint64_t part_end(const struct reader *r, const struct range *part)
{
    return r->at + r->starts[count_lines(r, part->end)];
}

void wharf_line_decode_range(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint64_t first,
                             uint8_t *out, size_t out_nbytes,
                             const struct wharf_codec_setting *setting,
                             struct wharf_outcome *ret_outcome)
{
    const struct range range = {first,
                                first > UINT64_MAX - out_nbytes ? UINT64_MAX : first + out_nbytes};
    uint64_t number = first / WHARF_LINE_GROUP_NBYTES;
    uint32_t stopped = WHARF_OK;
    struct reader r;

    if (begin_range(&r, codec, in, in_nbytes, &range) && out_nbytes > 0 &&
        go_to_group(&r, number)) {
        for (;; number++) {
            struct range part = part_of(&r, &range, number);
            uint32_t n_lines = count_lines(&r, group_nbytes(&r, number));

            if (!read_record(&r, number, n_lines) || !read_part(&r, &part, out))
                break;
            out += part.end - part.first;
            if ((number + 1) * WHARF_LINE_GROUP_NBYTES >= range.end) {
                r.at = part_end(&r, &part);
                break;
            }
            if (!end_group(&r, n_lines))
                break;
            if (number % POLL_NGROUPS == POLL_NGROUPS - 1 &&
                (stopped = wharf_decode_poll(setting)) != WHARF_OK)
                break;
        }
    }
    set_outcome(&r, stopped, out_nbytes, ret_outcome);
}

/* ---- the parts of a stream that a range takes ----------------------------------------------- */

/* The content of the range's lines, as far as the records are consistent. */
static bool find_content(struct reader *r, const struct range *range, uint64_t *ret_offset,
                         uint64_t *ret_nbytes)
{
    uint64_t number = range->first / WHARF_LINE_GROUP_NBYTES, begin_at = 0, end_at = 0;

    if (!go_to_group(r, number))
        return false;
    for (bool is_first = true;; is_first = false, number++) {
        struct range part = part_of(r, range, number);
        uint32_t n_lines = count_lines(r, group_nbytes(r, number));

        if (!read_record(r, number, n_lines))
            break;
        if (is_first)
            begin_at = part_begin(r, &part);
        end_at = part_end(r, &part);
        if ((number + 1) * WHARF_LINE_GROUP_NBYTES >= range->end || !end_group(r, n_lines))
            break;
    }
    end_at = end_at < r->in_nbytes ? end_at : r->in_nbytes;
    *ret_offset = begin_at;
    *ret_nbytes = end_at > begin_at ? end_at - begin_at : 0;
    return *ret_nbytes > 0;
}

bool wharf_line_parts_next(struct wharf_line_parts *parts, const uint8_t *in, uint64_t *ret_offset,
                           uint64_t *ret_nbytes)
{
    const struct range range = {parts->first, parts->first > UINT64_MAX - parts->out_nbytes
                                                  ? UINT64_MAX
                                                  : parts->first + parts->out_nbytes};
    uint64_t group = parts->first / WHARF_LINE_GROUP_NBYTES;
    struct reader r;

    if (parts->n_given == 0) {
        parts->n_given++;
        *ret_offset = 0;
        *ret_nbytes = parts->in_nbytes < WHARF_LINE_HEADER_NBYTES ? parts->in_nbytes
                                                                  : WHARF_LINE_HEADER_NBYTES;
        return *ret_nbytes > 0;
    }
    if (!begin_range(&r, parts->codec, in, parts->in_nbytes, &range) || parts->out_nbytes == 0)
        return false;
    uint64_t n_groups = (range.end - 1) / WHARF_LINE_GROUP_NBYTES - group + 1;
    switch (parts->n_given++) {
    case 1:
        *ret_offset = WHARF_LINE_HEADER_NBYTES + group * r.shape.record_nbytes;
        *ret_nbytes = n_groups * r.shape.record_nbytes;
        return true;
    case 2:
        *ret_offset = r.shape.heads_at + group * WHARF_LINE_HEAD_NBYTES;
        *ret_nbytes = n_groups * WHARF_LINE_HEAD_NBYTES;
        if (r.shape.head_nbytes > 0)
            return true;
        parts->n_given++;
        /* fall through */
    case 3:
        return find_content(&r, &range, ret_offset, ret_nbytes);
    default:
        return false;
    }
}
