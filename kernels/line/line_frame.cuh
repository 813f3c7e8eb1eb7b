/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_frame.cuh: a stream of lines (encoders/line/LINES.md), decoded by a warp.
 *
 * The warp decodes group after group.  Each lane reads the codes of 128 bytes of output.  A scan of
 * the lines' sizes finds where each line's content begins.  All lanes copy the group's content to
 * shared memory, 16 bytes each at a time, and then decode it, 16 bytes of output each at a time,
 * 512 for the warp.  Meanwhile the loads of the next group's codes are in flight.
 */
#ifndef WHARF_KERNELS_LINE_LINE_FRAME_CUH
#define WHARF_KERNELS_LINE_LINE_FRAME_CUH

#include "kernels/input_stream.cuh"
#include "kernels/line/line_quad.cuh"

namespace wharf
{

/* A group's content, the bytes before it in its first quad, and those that lanes read behind it. */
constexpr uint32_t LINE_CONTENT_NBYTES = 16 + WHARF_LINE_GROUP_NBYTES + 48;
constexpr uint32_t LINE_CONTENT_NQUADS = LINE_CONTENT_NBYTES / 16;

/* The bytes of output whose codes one lane reads. */
constexpr uint32_t LINE_LANE_NBYTES = WHARF_LINE_GROUP_NBYTES / WARP_LANES;

template <uint32_t CODEC>
struct line_shared {
    static constexpr uint32_t N_CODES = line_has_nibbles(CODEC) ? 16 : 256;

    u32x4 content[LINE_CONTENT_NQUADS];
    line_step steps[LINE_N_STEPS];
    line_code codes[N_CODES];
    uint32_t lines[WHARF_LINE_MAX_NLINES]; /* content's begin, and above 16 bits the code */
};

/* What is wrong with a stream's beginning, or NONE. */
struct line_failure {
    uint32_t result;
    uint32_t reason;
    uint32_t bit_offset;
};

WHARF_DEVICE line_failure bad_line_member(uint32_t at)
{
    return {WHARF_BAD_DATA, WHARF_REASON_LINE_HEADER, 8 * at};
}

/* collective.  Byte `at` of a header; lane i holds byte i. */
WHARF_DEVICE uint32_t line_member(uint32_t byte, uint32_t at)
{
    return reduce_or(lane_id() == at ? byte : 0);
}

/* collective.  Reads the header and checks that the index and all heads lie within the input. */
template <uint32_t CODEC>
WHARF_DEVICE line_failure read_line_header(const chunk_job &job, line_shape &shape)
{
    constexpr uint32_t N_TYPES = CODEC == WHARF_CODEC_PALETTE ? WHARF_LINE_N_TYPES : 1;
    uint32_t lane = lane_id();
    shape.set(CODEC, WHARF_LINE_MIN_SHIFT, 0, 0, 0);
    if (uniform(job.in_nbytes) < WHARF_LINE_HEADER_NBYTES)
        return {WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 0};
    uint32_t byte = lane < WHARF_LINE_HEADER_NBYTES ? load_nc(job.in + lane) : 0;
    uint32_t shift = line_member(byte, WHARF_LINE_AT_SHIFT);
    uint32_t layout = line_member(byte, WHARF_LINE_AT_LAYOUT);
    uint32_t type = line_member(byte, WHARF_LINE_AT_TYPE);
    bool is_reserved = lane >= WHARF_LINE_AT_RESERVED && lane < WHARF_LINE_AT_RAW;
    bool is_low = lane >= WHARF_LINE_AT_RAW && lane < WHARF_LINE_AT_RAW + 4;
    bool is_high = lane >= WHARF_LINE_AT_RAW + 4 && lane < WHARF_LINE_HEADER_NBYTES;
    uint32_t low = reduce_or(is_low ? byte << 8 * (lane & 3) : 0);
    uint32_t high = reduce_or(is_high ? byte << 8 * (lane & 3) : 0);
    if (line_member(byte, 0) != WHARF_LINE_VERSION)
        return {WHARF_UNSUPPORTED, WHARF_REASON_LINE_VERSION, 0};
    if (line_member(byte, WHARF_LINE_AT_CODEC) != CODEC)
        return bad_line_member(WHARF_LINE_AT_CODEC);
    if (shift < WHARF_LINE_MIN_SHIFT || shift > WHARF_LINE_MAX_SHIFT)
        return bad_line_member(WHARF_LINE_AT_SHIFT);
    if (layout >= WHARF_LINE_N_LAYOUTS)
        return bad_line_member(WHARF_LINE_AT_LAYOUT);
    if (type >= N_TYPES)
        return bad_line_member(WHARF_LINE_AT_TYPE);
    if (any_lane(is_reserved && byte != 0))
        return bad_line_member(WHARF_LINE_AT_RESERVED);
    if (high > WHARF_LINE_MAX_RAW_NBYTES >> 32 ||
        (high == WHARF_LINE_MAX_RAW_NBYTES >> 32 && low > (uint32_t)WHARF_LINE_MAX_RAW_NBYTES))
        return bad_line_member(WHARF_LINE_AT_RAW);
    if (high != 0 || low > uniform(job.out_avail))
        return {WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 8 * WHARF_LINE_AT_RAW};
    shape.set(CODEC, shift, layout, type, low);
    if (uniform(job.in_nbytes) < shape.data_at)
        return {WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED,
                8 * shape.find_cut(uniform(job.in_nbytes))};
    return {WHARF_OK, WHARF_REASON_NONE, 0};
}

/* A lane's part of a group's record. */
struct line_record {
    uint32_t codes;  /* this lane's, from bit 0 on */
    uint32_t offset; /* of the group's content, in units; nothing with slots */
};

/* The state that all groups share. */
template <uint32_t CODEC>
struct line_reader {
    using shared = line_shared<CODEC>;

    line_shape shape;
    chunk_job job;
    input_source source;
    uint32_t at; /* where the group's content begins in the input */

    /* How many lines a lane reads the codes of: 4, 2 or 1. */
    WHARF_DEVICE_MEMBER uint32_t n_own() const { return LINE_LANE_NBYTES >> shape.shift; }

    WHARF_DEVICE_MEMBER uint32_t record_at(uint32_t group) const
    {
        return WHARF_LINE_HEADER_NBYTES + group * shape.record_nbytes;
    }

    /* One lane.  Loads a group's record; behind the last group, an empty one. */
    WHARF_DEVICE_MEMBER line_record load_record(uint32_t group) const
    {
        line_record record = {0, 0};
        if (group >= shape.n_groups)
            return record;
        uint32_t nbits = n_own() * shape.code_nbits, bit = nbits * lane_id();
        const uint8_t *codes = job.in + record_at(group) + shape.codes_at + bit / 8;
        record.codes = load_nc(codes);
        if (nbits > 8)
            record.codes |= (uint32_t)load_nc(codes + 1) << 8;
        record.codes = record.codes >> (bit & 7) & ((1u << nbits) - 1);
        if (shape.layout == WHARF_LINE_PACKED)
            for (unsigned i = 0; i < WHARF_LINE_OFFSET_NBYTES; i++)
                record.offset |= (uint32_t)load_nc(job.in + record_at(group) + i) << 8 * i;
        return record;
    }

    /* collective.  Loads a group's palette; its width is unchecked. */
    WHARF_DEVICE_MEMBER line_palette load_palette(uint32_t group) const
    {
        uint32_t lane = lane_id(), byte = 0;
        if (lane < WHARF_LINE_HEAD_NBYTES)
            byte = load_nc(job.in + shape.heads_at + group * WHARF_LINE_HEAD_NBYTES + lane);
        uint32_t placed = byte << 8 * (lane & 3);
        return {{reduce_or(lane / 4 == 0 ? placed : 0), reduce_or(lane / 4 == 1 ? placed : 0),
                 reduce_or(lane / 4 == 2 ? placed : 0), reduce_or(lane / 4 == 3 ? placed : 0)},
                line_member(byte, WHARF_LINE_PALETTE_AT_WIDTH)};
    }

    WHARF_DEVICE_MEMBER bool is_width(uint32_t width) const
    {
        return width == 3 || (width == 4 && shape.type != WHARF_LINE_E4M3);
    }

    /* collective.  Fills the table of codes' meanings. */
    WHARF_DEVICE_MEMBER void fill_codes(shared &s, uint32_t width) const
    {
        uint32_t n = 1u << shape.code_nbits;
        syncwarp(); /* nobody reads the last group's any more */
        for (uint32_t i = lane_id(); i < n; i += WARP_LANES)
            store(&s.codes[i].word, explain_line_code<CODEC>(shape, width, i).word);
        syncwarp();
    }

    /*
     * collective.  Stores where each line's content begins in s.lines, counted from `skew`, and the
     * sum of their extents in *sum.  Returns the bit offset of the first invalid code from the
     * first code on, or all ones if all are valid.
     */
    WHARF_DEVICE_MEMBER uint32_t place_lines(shared &s, line_record record, uint32_t n_lines,
                                             uint32_t skew, uint32_t *sum) const
    {
        uint32_t first = n_own() * lane_id(), wrong = ~0u, own = 0;
        uint32_t nbits = shape.code_nbits, starts[4];
        WHARF_UNROLL
        for (uint32_t k = 0; k < 4; k++) {
            starts[k] = own;
            if (k >= n_own())
                continue;
            uint32_t number = record.codes >> k * nbits & ((1u << nbits) - 1);
            line_code code = {load(&s.codes[number].word)};
            bool is_there = first + k < n_lines;
            if (is_there ? code.scheme() == WHARF_LINE_IS_INVALID : number != 0)
                wrong = line_least(wrong, (first + k) * nbits);
            own += shape.layout == WHARF_LINE_SLOTS ? (is_there ? shape.line_nbytes() : 0)
                                                    : code.nbytes();
        }
        uint32_t before = exclusive_add(own);
        *sum = from_lane<WARP_LANES - 1>(before + own);
        syncwarp(); /* nobody reads the last group's any more */
        WHARF_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (k < n_own())
                store(&s.lines[first + k], (skew + before + starts[k]) |
                                               (record.codes >> k * nbits & ((1u << nbits) - 1))
                                                   << 16);
        syncwarp();
        return reduce_min(wrong);
    }

    /* One lane.  With slots: whether quad number i contains bytes of a line's content. */
    WHARF_DEVICE_MEMBER bool is_in_quad(shared &s, uint32_t i, uint32_t skew,
                                        uint32_t n_lines) const
    {
        uint32_t from = 16 * i > skew ? 16 * i - skew : 0, to = 16 * i + 15 - skew;
        uint32_t first = from >> shape.shift, last = to >> shape.shift;
        line_code code = {0};
        if (first < n_lines)
            code = {load(&s.codes[load(&s.lines[first]) >> 16].word)};
        if ((from & (shape.line_nbytes() - 1)) < code.nbytes())
            return true;
        if (last == first || last >= n_lines)
            return false;
        code = {load(&s.codes[load(&s.lines[last]) >> 16].word)};
        return code.nbytes() > 0;
    }

    /* collective.  Copies the group's first `n_quads` quads to shared memory. */
    WHARF_DEVICE_MEMBER void load_content(shared &s, uint32_t n_quads, uint32_t skew,
                                          uint32_t n_lines) const
    {
        uint32_t first = (source.begin + at) / 16;
        for (uint32_t i = lane_id(); i < n_quads; i += 4 * WARP_LANES) {
            u32x4 quads[4];
            WHARF_UNROLL
            for (unsigned k = 0; k < 4; k++) {
                uint32_t number = i + k * WARP_LANES;
                quads[k] = {0, 0, 0, 0};
                if (number < n_quads &&
                    (shape.layout == WHARF_LINE_PACKED || is_in_quad(s, number, skew, n_lines)))
                    quads[k] = source.load_quad(first + number);
            }
            WHARF_UNROLL
            for (unsigned k = 0; k < 4; k++)
                if (i + k * WARP_LANES < n_quads)
                    store(&s.content[i + k * WARP_LANES], quads[k]);
        }
        syncwarp();
    }

    /* One lane.  Stores 16 bytes of output at `to`, as far as they lie within the output. */
    WHARF_DEVICE_MEMBER void store_quad(uint32_t to, u32x4 quad) const
    {
        uint8_t *out = job.out + to;
        if (to + 16 <= shape.raw_nbytes && (reinterpret_cast<uintptr_t>(out) & 15) == 0) {
            store(reinterpret_cast<u32x4 *>(out), quad);
            return;
        }
        uint32_t words[4] = {quad.x, quad.y, quad.z, quad.w};
        WHARF_UNROLL
        for (unsigned i = 0; i < 16; i++)
            if (to + i < shape.raw_nbytes)
                store_byte(out + i, words[i / 4] >> 8 * (i % 4));
    }

    /*
     * collective.  Decodes all lines of the group, whose output begins at `done`.  Returns ~0, or
     * for the first bad line twice its number, plus 1 if its content is complete but contradicts
     * its code.
     */
    template <uint32_t TYPE>
    WHARF_DEVICE_MEMBER uint32_t decode_lines(shared &s, const line_palette &palette, uint32_t done,
                                              uint32_t n_lines, uint32_t skew) const
    {
        const uint32_t *words = &s.content[0].x;
        uint32_t wrong = ~0u, n_nbytes = n_lines << shape.shift;
        for (uint32_t base = 0; base < n_nbytes; base += 16 * WARP_LANES) {
            uint32_t place = base + 16 * lane_id(), number = place >> shape.shift;
            uint32_t line = number < n_lines ? load(&s.lines[number]) : skew;
            line_code code = {load(&s.codes[line >> 16].word)};
            uint32_t begin = line & 0xffff;
            bool is_bad;
            u32x4 quad = line_quad<CODEC, TYPE>(words, s.steps, shape, palette, code, begin,
                                                place & (shape.line_nbytes() - 1), &is_bad);
            if (number >= n_lines)
                continue;
            uint32_t extent =
                shape.layout == WHARF_LINE_SLOTS ? shape.line_nbytes() : code.nbytes();
            if (at + (begin - skew) + extent > job.in_nbytes)
                wrong = line_least(wrong, 2 * number);
            else if (is_bad)
                wrong = line_least(wrong, 2 * number + 1);
            else
                store_quad(done + place, quad);
        }
        return reduce_min(wrong);
    }

    /* collective.  Decodes one group.  Returns NONE and moves `at` behind it, or the failure. */
    WHARF_DEVICE_MEMBER line_failure decode_group(shared &s, uint32_t group, line_record record,
                                                  line_palette &palette)
    {
        uint32_t record_bit = 8 * record_at(group);
        uint32_t first = group * shape.group_nlines(), n_lines = shape.n_lines - first, sum;
        n_lines = line_least(n_lines, shape.group_nlines());
        if (shape.layout == WHARF_LINE_PACKED &&
            uniform(record.offset) != (at - shape.data_at) / WHARF_LINE_UNIT_NBYTES)
            return {WHARF_BAD_DATA, WHARF_REASON_LINE_OFFSET, record_bit};
        if (CODEC == WHARF_CODEC_PALETTE) {
            uint32_t width = palette.width;
            palette = load_palette(group);
            if (!is_width(palette.width))
                return {WHARF_BAD_DATA, WHARF_REASON_LINE_PALETTE,
                        8 * (shape.heads_at + group * WHARF_LINE_HEAD_NBYTES +
                             WHARF_LINE_PALETTE_AT_WIDTH)};
            if (palette.width != width)
                fill_codes(s, palette.width);
        }
        uint32_t skew = (source.begin + at) & 15;
        uint32_t wrong = place_lines(s, record, n_lines, skew, &sum);
        if (wrong != ~0u)
            return {WHARF_BAD_DATA, WHARF_REASON_LINE_CODE,
                    record_bit + 8 * shape.codes_at + wrong};
        load_content(s, (skew + sum + 15) / 16, skew, n_lines);
        uint32_t done = group * WHARF_LINE_GROUP_NBYTES;
        if (CODEC == WHARF_CODEC_PALETTE && shape.type == WHARF_LINE_BF16)
            wrong = decode_lines<WHARF_LINE_BF16>(s, palette, done, n_lines, skew);
        else
            wrong = decode_lines<LINE_ANY_TYPE>(s, palette, done, n_lines, skew);
        if (wrong != ~0u) {
            uint32_t begin = (load(&s.lines[wrong / 2]) & 0xffff) - skew;
            return {WHARF_BAD_DATA,
                    wrong & 1 ? WHARF_REASON_LINE_CONTENT : WHARF_REASON_INPUT_TRUNCATED,
                    8 * (at + begin)};
        }
        uint32_t filled = (at + sum + 15) & ~15u;
        if (filled > uniform(job.in_nbytes))
            return {WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 8 * (at + sum)};
        at = filled;
        return {WHARF_OK, WHARF_REASON_NONE, 0};
    }
};

/* collective. */
template <uint32_t CODEC>
WHARF_DEVICE verdict line_decode(line_shared<CODEC> &s, const chunk_job &job)
{
    constexpr uint32_t GROUPS_PER_LOOK = 16; /* at whether to stop */
    line_reader<CODEC> reader;
    step_counter steps;
    line_palette palette = {{0, 0, 0, 0}, 0};
    steps.init(job);
    reader.job = job;
    reader.source.init(job.in, job.in_nbytes);
    line_failure failure = read_line_header<CODEC>(job, reader.shape);
    if (failure.reason != WHARF_REASON_NONE)
        return bad(failure.result, failure.reason, failure.bit_offset);
    reader.at = reader.shape.data_at;
    for (uint32_t i = lane_id(); i < LINE_N_STEPS; i += WARP_LANES)
        store(&s.steps[i],
              line_step{LINE_STEPS[i][0], LINE_STEPS[i][1], LINE_STEPS[i][2], LINE_STEPS[i][3]});
    reader.fill_codes(s, 3);
    palette.width = 3;
    line_record next = reader.load_record(0);
    for (uint32_t group = 0; group < reader.shape.n_groups; group++) {
        /* A group gives up to 4096 bytes, and at least one. */
        if (!steps.take(1))
            return bad(WHARF_INTERNAL, WHARF_REASON_STEP_BUDGET, 8 * reader.record_at(group));
        if (group % GROUPS_PER_LOOK == GROUPS_PER_LOOK - 1 && is_stopped(job.stop))
            return stopped();
        line_record record = next;
        next = reader.load_record(group + 1);
        failure = reader.decode_group(s, group, record, palette);
        if (failure.reason != WHARF_REASON_NONE)
            return bad(failure.result, failure.reason, failure.bit_offset);
    }
    return good(reader.at, reader.shape.raw_nbytes);
}

} // namespace wharf

#endif
