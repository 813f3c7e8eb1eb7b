/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_encode.cuh: encodes bdi, fpc, cpack, best and palette, packed or in slots, with one warp.
 * The bytes equal those of encoders/line/line_encode.c.
 *
 * The warp encodes group after group.  It loads the group into shared memory and passes over it
 * once, 512 bytes a step: it moves them to registers, finds each line's form, and writes that
 * behind the content made so far, in the same shared memory.  Finally it stores the content, 16
 * bytes a lane.
 *
 * Invariant: content is never longer than its input, so it never overwrites input that is still to
 * be read.
 *
 * Each byte of the input is used once, and nothing that was stored is read back.  How memory is
 * accessed is a template's argument: line_plain_memory for the memory of a kernel's own caller;
 * epoch_encode.cuh has one for memory that others may be writing.
 */
#ifndef WHARF_KERNELS_LINE_LINE_ENCODE_CUH
#define WHARF_KERNELS_LINE_LINE_ENCODE_CUH

#include "kernels/input_stream.cuh"
#include "kernels/line/line_form.cuh"

namespace wharf
{

/* The input of one step. */
constexpr uint32_t LINE_STEP_NBYTES = 16 * WARP_LANES;

/* Palette's: ranks of exponents, and of all values of a group, a nibble each. */
template <uint32_t CODEC, uint32_t TYPE>
struct line_palette_shared {
};

template <uint32_t TYPE>
struct line_palette_shared<WHARF_CODEC_PALETTE, TYPE> {
    line_ranks ranks;
    uint32_t nibbles[line_n_fours<TYPE>() / 2][WHARF_LINE_GROUP_NBYTES / 16];
};

/* TYPE is palette's. */
template <uint32_t CODEC, uint32_t TYPE = WHARF_LINE_BF16>
struct line_encode_shared {
    u32x4 group[WHARF_LINE_GROUP_NBYTES / 16]; /* input, and in front of it content */
    uint32_t codes[WHARF_LINE_MAX_NLINES / 4]; /* a byte each */
    line_palette_shared<CODEC, TYPE> palette;
};

/* An encode job.  The same in all lanes. */
struct line_encode_job {
    const uint8_t *in; /* any alignment */
    uint32_t in_nbytes;
    uint8_t *out; /* aligned as the memory's functions want it */
    uint32_t out_avail;
    uint32_t shift;
    uint32_t layout;
};

/* Memory that nobody else writes while the kernel runs; `out` is aligned to 16. */
struct line_plain_memory {
    /* One lane.  Number i of the source's quads, which is within the input. */
    WHARF_DEVICE_MEMBER u32x4 load_inner(const u32x4 *p) const { return load_nc(p); }
    /* One lane.  Any one, with zeros outside the input. */
    WHARF_DEVICE_MEMBER u32x4 load_quad(const input_source &source, uint32_t i) const
    {
        return source.load_quad(i);
    }
    /* One lane.  A word of the stream, at a multiple of 4 from its beginning. */
    WHARF_DEVICE_MEMBER void store_word(uint8_t *to, uint32_t word) const
    {
        store(reinterpret_cast<uint32_t *>(to), word);
    }
    /* collective.  n quads of shared memory, to a multiple of 16 from the stream's beginning. */
    WHARF_DEVICE_MEMBER void store_quads(uint8_t *to, const u32x4 *from, uint32_t n) const
    {
        for (uint32_t i = lane_id(); i < n; i += WARP_LANES)
            store(reinterpret_cast<u32x4 *>(to) + i, load(&from[i]));
    }
    /* collective.  Whether to give up. */
    WHARF_DEVICE_MEMBER bool is_stopped() const { return false; }
};

template <uint32_t CODEC, uint32_t TYPE, typename Memory>
struct line_writer {
    line_encode_shared<CODEC, TYPE> &s;
    line_shape shape;
    uint32_t width; /* of the group's palette */
    Memory memory;

    /* One lane.  16 bytes from byte `skew` of two quads on.  All indexes are constants, so the
     * words stay in registers. */
    WHARF_DEVICE_MEMBER static u32x4 join_quads(u32x4 a, u32x4 b, uint32_t skew)
    {
        uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, n = 8 * (skew & 3);
        WHARF_UNROLL
        for (unsigned i = 0; i < 6; i++)
            w[i] = skew & 8 ? w[i + 2] : w[i];
        WHARF_UNROLL
        for (unsigned i = 0; i < 5; i++)
            w[i] = skew & 4 ? w[i + 1] : w[i];
        return {funnel_right(w[0], w[1], n), funnel_right(w[1], w[2], n),
                funnel_right(w[2], w[3], n), funnel_right(w[3], w[4], n)};
    }

    /* collective.  Loads the group at byte `done` of the input into shared memory, with zeros
     * behind the input's end, and clears the codes. */
    WHARF_DEVICE_MEMBER void load_group(const input_source &source, uint32_t done) const
    {
        constexpr unsigned N_ON_THEIR_WAY = 8; /* loads at once */
        uint32_t at = source.begin + done, skew = at & 15, lane = lane_id();
        const u32x4 *from = reinterpret_cast<const u32x4 *>(source.aligned + (at - skew)) + lane;
        static_assert(N_ON_THEIR_WAY * LINE_STEP_NBYTES == WHARF_LINE_GROUP_NBYTES);
        if (uniform(skew == 0 && at + WHARF_LINE_GROUP_NBYTES <= source.end)) {
            u32x4 quads[N_ON_THEIR_WAY];
            WHARF_UNROLL
            for (unsigned k = 0; k < N_ON_THEIR_WAY; k++)
                quads[k] = memory.load_inner(from + k * WARP_LANES);
            WHARF_UNROLL
            for (unsigned k = 0; k < N_ON_THEIR_WAY; k++)
                store(&s.group[k * WARP_LANES + lane], quads[k]);
        } else {
            WHARF_UNROLL_BY(2)
            for (unsigned k = 0; k < N_ON_THEIR_WAY; k++) {
                uint32_t number = at / 16 + k * WARP_LANES + lane;
                u32x4 quad = memory.load_quad(source, number);
                if (skew != 0)
                    quad = join_quads(quad, memory.load_quad(source, number + 1), skew);
                store(&s.group[k * WARP_LANES + lane], quad);
            }
        }
        if (lane < shape.group_nlines() / 4)
            store(&s.codes[lane], 0u);
        syncwarp();
    }

    /* One lane.  Its piece of the step at `base`. */
    WHARF_DEVICE_MEMBER line_piece load_piece(uint32_t base) const
    {
        return make_line_piece(load(&s.group[base / 16 + lane_id()]), shape.shift);
    }

    /* collective.  The same, and writes zeros in its place. */
    WHARF_DEVICE_MEMBER line_piece take_piece(uint32_t base) const
    {
        line_piece piece = load_piece(base);
        store(&s.group[base / 16 + lane_id()], u32x4{0, 0, 0, 0});
        syncwarp();
        return piece;
    }

    WHARF_DEVICE_MEMBER line_nibbles load_nibbles(uint32_t base) const
    {
        uint32_t i = base / 16 + lane_id();
        line_nibbles nibbles = {{load(&s.palette.nibbles[0][i]), 0}};
        if constexpr (line_n_fours<TYPE>() == 4)
            nibbles.of[1] = load(&s.palette.nibbles[1][i]);
        return nibbles;
    }

    /* collective.  Ranks all values.  Returns the width that makes the group's lines smaller. */
    WHARF_DEVICE_MEMBER uint32_t choose_width(uint32_t n_lines) const
    {
        constexpr bool HAS_4 = TYPE != WHARF_LINE_E4M3;
        uint32_t before_3 = palette_line_code(1, shape.shift, TYPE, 3).nbytes();
        uint32_t before_4 = palette_line_code(1, shape.shift, TYPE, 4).nbytes();
        uint32_t sum_3 = 0, sum_4 = 0;
        auto size_of = [&](uint32_t before, uint32_t n) {
            bool is_raw = before + n >= shape.line_nbytes() || n + 2 > WHARF_LINE_NIBBLE_RAW;
            return is_raw ? shape.line_nbytes() : before + n;
        };
        for (uint32_t base = 0; base < n_lines << shape.shift; base += LINE_STEP_NBYTES) {
            uint32_t i = base / 16 + lane_id();
            line_piece piece = load_piece(base);
            line_nibbles nibbles =
                line_look_up_ranks<TYPE>(s.palette.ranks, line_take_apart<TYPE>(piece));
            store(&s.palette.nibbles[0][i], nibbles.of[0]);
            if constexpr (line_n_fours<TYPE>() == 4)
                store(&s.palette.nibbles[1][i], nibbles.of[1]);
            if (!HAS_4)
                continue;
            uint32_t own =
                line_count_escapes<TYPE>(nibbles, 3) | line_count_escapes<TYPE>(nibbles, 4) << 16;
            uint32_t all = line_sum(own, piece).all;
            bool counts = piece.place == 0 && i << 4 >> shape.shift < n_lines;
            sum_3 += counts ? size_of(before_3, all & 0xffff) : 0;
            sum_4 += counts ? size_of(before_4, all >> 16) : 0;
        }
        return HAS_4 && reduce_add(sum_4) < reduce_add(sum_3) ? 4 : 3;
    }

    /* collective.  Makes the group's palette and stores its head at `to`. */
    WHARF_DEVICE_MEMBER void make_palette(uint32_t n_lines, uint8_t *to)
    {
        uint32_t lane = lane_id();
        line_clear_counts(s.palette.ranks);
        for (uint32_t base = 0; base < n_lines << shape.shift; base += LINE_STEP_NBYTES)
            if ((base + 16 * lane) >> shape.shift < n_lines)
                line_count_exponents<TYPE>(s.palette.ranks, load_piece(base));
        uint32_t exponent = line_rank_exponents(s.palette.ranks);
        width = choose_width(n_lines);
        if (lane < WHARF_LINE_HEAD_NBYTES)
            store_byte(to + lane, lane == WHARF_LINE_PALETTE_AT_WIDTH ? width
                                  : lane < (1u << width) - 1          ? exponent
                                                                      : 0);
    }

    /* collective.  Makes codes and content of a group's lines.  Returns the content's size. */
    WHARF_DEVICE_MEMBER uint32_t encode_lines(uint32_t n_lines) const
    {
        uint8_t *codes = reinterpret_cast<uint8_t *>(s.codes);
        uint32_t end = 0;
        WHARF_NO_UNROLL
        for (uint32_t base = 0; base < n_lines << shape.shift; base += LINE_STEP_NBYTES) {
            uint32_t line = (base + 16 * lane_id()) >> shape.shift;
            line_piece piece = take_piece(base);
            line_nibbles nibbles = {{0, 0}};
            if constexpr (CODEC == WHARF_CODEC_PALETTE)
                nibbles = load_nibbles(base);
            line_form form = line_find_form<CODEC, TYPE>(piece, shape, nibbles, width);
            uint32_t nbytes = form.key >> 8;
            uint32_t ends = inclusive_add(piece.place == 0 ? nbytes : 0);
            bool is_packed = shape.layout == WHARF_LINE_PACKED;
            line_put_form<CODEC, TYPE>(&s.group[0].x,
                                       is_packed ? end + ends - nbytes : line << shape.shift, piece,
                                       form, shape, width);
            if (piece.place == 0)
                store(&codes[line], (uint8_t)form.key);
            end += from_lane<WARP_LANES - 1>(ends);
        }
        syncwarp();
        return shape.layout == WHARF_LINE_PACKED ? end : n_lines << shape.shift;
    }

    /* collective.  Stores the group's record at `to`. */
    WHARF_DEVICE_MEMBER void store_record(uint8_t *to, uint32_t offset) const
    {
        uint32_t i = lane_id();
        if (shape.codes_at != 0) {
            if (i == 0)
                memory.store_word(to, offset);
            to += 4;
        }
        if (i >= (shape.record_nbytes - shape.codes_at) / 4)
            return;
        if (shape.code_nbits == 8) {
            memory.store_word(to + 4 * i, load(&s.codes[i]));
            return;
        }
        uint32_t a = load(&s.codes[2 * i]), b = load(&s.codes[2 * i + 1]);
        memory.store_word(to + 4 * i, byte_perm(a | a >> 4, b | b >> 4, 0x6420));
    }
};

/* collective.  Stores the header, and zeros up to the first record and behind the last. */
WHARF_DEVICE void store_line_header(const line_encode_job &job, const line_shape &shape,
                                    uint32_t codec)
{
    uint32_t lane = lane_id(), byte = 0;
    uint32_t index_end = WHARF_LINE_HEADER_NBYTES + shape.n_groups * shape.record_nbytes;
    byte = lane == 0                             ? (uint32_t)WHARF_LINE_VERSION
           : lane == WHARF_LINE_AT_CODEC         ? codec
           : lane == WHARF_LINE_AT_SHIFT         ? shape.shift
           : lane == WHARF_LINE_AT_LAYOUT        ? shape.layout
           : lane == WHARF_LINE_AT_TYPE          ? shape.type
           : lane >= WHARF_LINE_AT_RAW + 4       ? 0
           : lane >= (uint32_t)WHARF_LINE_AT_RAW ? shape.raw_nbytes >> 8 * (lane & 3)
                                                 : 0;
    if (lane < WHARF_LINE_HEADER_NBYTES)
        store_byte(job.out + lane, byte);
    if (index_end + lane < shape.heads_at)
        store_byte(job.out + index_end + lane, 0);
}

/*
 * collective.  Encodes a chunk.  Returns the stream's size, or 0 if it exceeds out_avail or the
 * memory says to stop.  TYPE is palette's type of values, and 0 for other codecs.
 */
template <uint32_t CODEC, uint32_t TYPE, typename Memory = line_plain_memory>
WHARF_DEVICE uint32_t line_encode(line_encode_shared<CODEC, TYPE> &s, const line_encode_job &job,
                                  const Memory &memory = {})
{
    line_writer<CODEC, TYPE, Memory> writer = {s, line_shape{}, 3, memory};
    input_source source;
    source.init(job.in, job.in_nbytes);
    writer.shape.set(CODEC, uniform(job.shift), uniform(job.layout), TYPE, uniform(job.in_nbytes));
    const line_shape &shape = writer.shape;
    uint32_t out_avail = uniform(job.out_avail);
    if (shape.data_at > out_avail)
        return 0;
    store_line_header(job, shape, CODEC);
    uint32_t at = shape.data_at;
    for (uint32_t group = 0; group < shape.n_groups; group++) {
        uint32_t n_lines =
            line_least(shape.n_lines - group * shape.group_nlines(), shape.group_nlines());
        writer.load_group(source, group * WHARF_LINE_GROUP_NBYTES);
        if constexpr (CODEC == WHARF_CODEC_PALETTE)
            writer.make_palette(n_lines, job.out + shape.heads_at + group * WHARF_LINE_HEAD_NBYTES);
        uint32_t n_quads = (writer.encode_lines(n_lines) + 15) / 16;
        if (16 * n_quads > out_avail - at || memory.is_stopped())
            return 0;
        writer.store_record(job.out + WHARF_LINE_HEADER_NBYTES + group * shape.record_nbytes,
                            (at - shape.data_at) / WHARF_LINE_UNIT_NBYTES);
        memory.store_quads(job.out + at, s.group, n_quads);
        syncwarp(); /* before the next group */
        at += 16 * n_quads;
    }
    return at;
}

} // namespace wharf

#endif
