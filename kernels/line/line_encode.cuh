/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_encode.cuh: bdi, fpc, cpack, best and palette, packed or in slots, by a warp: the bytes that
 * encoders/line/line_encode.c gives.
 *
 * Group after group: the input comes to shared memory, all lanes find each line's code, a scan says
 * where lines begin, and all lanes put their parts of the content where they belong in shared
 * memory, from where it goes out 16 bytes a lane.
 */
#ifndef WHARF_KERNELS_LINE_LINE_ENCODE_CUH
#define WHARF_KERNELS_LINE_LINE_ENCODE_CUH

#include "kernels/input_stream.cuh"
#include "kernels/line/line_find_palette.cuh"

namespace wharf
{

struct line_encode_shared {
    u32x4 raw[WHARF_LINE_GROUP_NBYTES / 16];
    u32x4 content[WHARF_LINE_GROUP_NBYTES / 16 + 1];
    uint32_t codes[WHARF_LINE_MAX_NLINES];
    uint32_t starts[WHARF_LINE_MAX_NLINES];
    line_ranks ranks; /* palette's */
};

/* What is to be encoded.  The same in all lanes. */
struct line_encode_job {
    const uint8_t *in; /* any alignment; read as a constant while the kernel runs */
    uint32_t in_nbytes;
    uint8_t *out; /* aligned to 16 */
    uint32_t out_avail;
    uint32_t shift;
    uint32_t layout;
    uint32_t type; /* palette's */
};

/* One lane.  The code of the smallest content with so many pairs; the raw code if there is none. */
template <uint32_t CODEC>
WHARF_DEVICE uint32_t line_code_of_fpc(const line_shape &shape, uint32_t n_pairs)
{
    uint32_t raw = (1u << shape.code_nbits) - 1;
    if (CODEC == WHARF_CODEC_BEST && shape.shift == WHARF_LINE_MIN_SHIFT)
        return n_pairs <= 2 ? 8 : n_pairs <= 5 ? 9 : n_pairs <= 8 ? 10 : n_pairs <= 10 ? 11 : raw;
    uint32_t most = shape.shift == WHARF_LINE_MAX_SHIFT   ? 62
                    : shape.shift == WHARF_LINE_MIN_SHIFT ? 14
                                                          : 30;
    return n_pairs > most ? raw : n_pairs + (CODEC == WHARF_CODEC_BEST ? 7 : 0);
}

template <uint32_t CODEC>
WHARF_DEVICE uint32_t line_code_of_cpack(const line_shape &shape, uint32_t n_words,
                                         uint32_t n_bytes)
{
    bool is_short = shape.shift == WHARF_LINE_MIN_SHIFT;
    uint32_t step = is_short ? 4 : 1, radix = shape.line_nbytes() / 4 / step + 1;
    if (CODEC == WHARF_CODEC_BEST && is_short)
        return n_words <= 1 ? 12 : n_words <= 3 ? 11 + n_words : 15;
    uint32_t code = n_words * radix + (n_bytes + step - 1) / step;
    return CODEC != WHARF_CODEC_BEST ? code
                                     : code + 7 + (shape.shift == WHARF_LINE_MAX_SHIFT ? 62 : 30);
}

template <uint32_t CODEC>
struct line_writer {
    line_encode_shared &s;
    line_shape shape;
    uint32_t width; /* of the group's palette */

    WHARF_DEVICE_MEMBER uint32_t raw_code() const { return (1u << shape.code_nbits) - 1; }

    /* One lane.  Its piece of the 512 bytes from `base` on. */
    WHARF_DEVICE_MEMBER line_piece load_piece(uint32_t base) const
    {
        uint32_t n_lanes = shape.line_nbytes() / 16, lane = lane_id();
        u32x4 quad = load(&s.raw[base / 16 + lane]);
        line_piece piece = {{quad.x, quad.y, quad.z, quad.w}, 0, lane & (n_lanes - 1)};
        piece.team = ((1u << n_lanes) - 1) << (lane - piece.place);
        return piece;
    }

    /* collective.  The line's code, by all lanes that have a piece of it. */
    WHARF_DEVICE_MEMBER uint32_t choose_code(const line_piece &piece) const
    {
        uint32_t best = raw_code(), best_nbytes = shape.line_nbytes();
        auto offer = [&](uint32_t code) {
            uint32_t nbytes = explain_line_code<CODEC>(shape, width, code).nbytes();
            if (nbytes < best_nbytes || (nbytes == best_nbytes && code < best)) {
                best = code;
                best_nbytes = nbytes;
            }
        };
        uint32_t all = piece.words[0] | piece.words[1] | piece.words[2] | piece.words[3];
        bool is_zero = (ballot(all != 0) & piece.team) == 0;
        if (line_has_bdi(CODEC)) {
            uint32_t variant = line_find_bdi(piece, shape.shift);
            if (variant != 0)
                offer(variant);
        }
        if (line_has_fpc(CODEC)) {
            uint32_t n_pairs = line_sum(line_fpc_npairs(line_find_pattern(piece)), piece);
            if (n_pairs != 0)
                offer(line_code_of_fpc<CODEC>(shape, n_pairs));
        }
        if (line_has_cpack(CODEC)) {
            line_cpack_fit fit = line_find_cpack(piece);
            uint32_t n_bytes = line_sum(popc(fit.nibbles & 0x8888), piece);
            if (fit.fits && !is_zero)
                offer(line_code_of_cpack<CODEC>(shape, fit.n_words, n_bytes));
        }
        if (CODEC == WHARF_CODEC_PALETTE) {
            uint32_t n = line_count_escapes(s.ranks, piece, shape.type, width);
            uint32_t code = line_sum(n, piece) + 1;
            if (code < WHARF_LINE_NIBBLE_RAW &&
                explain_line_code<CODEC>(shape, width, code).scheme() != WHARF_LINE_IS_INVALID)
                offer(code);
        }
        return is_zero ? (uint32_t)WHARF_LINE_CODE_ZEROS : best;
    }

    /* One lane.  `n_bits` bits, at most 32, from bit `at` of the group's content on, where all are
     * 0. */
    WHARF_DEVICE_MEMBER void put_bits(uint32_t at, uint32_t value, uint32_t n_bits) const
    {
        uint32_t *words = &s.content[0].x + at / 32;
        uint32_t skew = at & 31;
        if (n_bits == 0)
            return;
        atomic_or(words, value << skew);
        if (skew + n_bits > 32)
            atomic_or(words + 1, value >> (32 - skew));
    }

    WHARF_DEVICE_MEMBER void put_word(uint32_t at, uint32_t value, uint32_t n_bytes) const
    {
        put_bits(8 * at, value, 8 * n_bytes);
    }

    template <uint32_t BASE, uint32_t DELTA>
    WHARF_DEVICE_MEMBER void put_bdi(const line_piece &piece, bool is_mine, uint32_t at) const
    {
        constexpr uint32_t N = 16 >> BASE, DELTA_NBITS = 8 << DELTA;
        if (!any_lane(is_mine))
            return;
        line_bdi_fit fit = line_fit_bdi<BASE, DELTA>(piece);
        if (!is_mine)
            return;
        uint32_t mask_nbytes = ((shape.line_nbytes() >> BASE) + 7) / 8;
        put_bits(8 * at + N * piece.place, fit.near, N);
        at += mask_nbytes;
        if (piece.place == 0) {
            uint64_t base = (uint64_t)fit.base;
            put_word(at, BASE == 1 ? (uint32_t)base & 0xffff : (uint32_t)base, BASE == 1 ? 2 : 4);
            if (BASE == 3)
                put_word(at + 4, (uint32_t)(base >> 32), 4);
        }
        at += (1u << BASE) + (N << DELTA) * piece.place;
        WHARF_UNROLL
        for (unsigned i = 0; i < N; i++) {
            int64_t v = line_value<BASE>(piece, i);
            uint32_t delta = (uint32_t)(fit.near >> i & 1 ? v : v - fit.base);
            if (DELTA < 2)
                delta &= (1u << (DELTA_NBITS & 31)) - 1;
            put_bits(8 * at + DELTA_NBITS * i, delta, DELTA_NBITS);
        }
    }

    /* collective. */
    WHARF_DEVICE_MEMBER void put_bdi_line(const line_piece &piece, uint32_t variant,
                                          uint32_t at) const
    {
        if (variant == WHARF_LINE_BDI_REPEAT && piece.place == 0) {
            put_word(at, piece.words[0], 4);
            put_word(at + 4, piece.words[1], 4);
        }
        put_bdi<3, 0>(piece, variant == WHARF_LINE_BDI_8_1, at);
        put_bdi<3, 1>(piece, variant == WHARF_LINE_BDI_8_2, at);
        put_bdi<3, 2>(piece, variant == WHARF_LINE_BDI_8_4, at);
        put_bdi<2, 0>(piece, variant == WHARF_LINE_BDI_4_1, at);
        put_bdi<2, 1>(piece, variant == WHARF_LINE_BDI_4_2, at);
        put_bdi<1, 0>(piece, variant == WHARF_LINE_BDI_2_1, at);
    }

    /* One lane.  What a word gives in this pattern, in bits. */
    WHARF_DEVICE_MEMBER static uint32_t pattern_bits(uint32_t word, uint32_t pattern)
    {
        switch (pattern) {
        case WHARF_LINE_FPC_SIGNED_4:
            return word & 15;
        case WHARF_LINE_FPC_SIGNED_8:
        case WHARF_LINE_FPC_REPEATED:
            return word & 255;
        case WHARF_LINE_FPC_SIGNED_16:
            return word & 0xffff;
        case WHARF_LINE_FPC_HIGH_HALF:
            return word >> 16;
        case WHARF_LINE_FPC_TWO_BYTES:
            return (word & 255) | (word >> 8 & 0xff00);
        default:
            return word;
        }
    }

    /* collective. */
    WHARF_DEVICE_MEMBER void put_fpc_line(const line_piece &piece, bool is_mine, uint32_t at) const
    {
        uint32_t pattern = line_find_pattern(piece), n_pairs = line_fpc_npairs(pattern);
        uint32_t before = line_add_up(n_pairs, piece.place, 0).before;
        if (!is_mine)
            return;
        put_bits(8 * at + 3 * piece.place, pattern, 3);
        at += line_fpc_head_nbytes(shape.shift) + 2 * before;
        WHARF_UNROLL
        for (unsigned i = 0; i < 4; i++)
            if (n_pairs > 0)
                put_bits(8 * at + 4 * n_pairs * i, pattern_bits(piece.words[i], pattern),
                         4 * n_pairs);
    }

    /* collective.  `n_words` is the code's. */
    WHARF_DEVICE_MEMBER void put_cpack_line(const line_piece &piece, bool is_mine, uint32_t n_words,
                                            uint32_t at) const
    {
        line_cpack_fit fit = line_find_cpack(piece);
        uint32_t before = line_add_up(popc(fit.nibbles & 0x8888), piece.place, 0).before;
        if (!is_mine)
            return;
        put_bits(8 * at + 16 * piece.place, fit.nibbles, 16);
        at += shape.line_nbytes() / 8;
        if (piece.place == 0)
            for (unsigned i = 0; i < WHARF_LINE_CPACK_MAX_NWORDS; i++)
                if (i < n_words)
                    put_word(at + 4 * i, fit.words[i], 4);
        at += 4 * n_words + before;
        WHARF_UNROLL
        for (unsigned i = 0; i < 4; i++)
            if (fit.nibbles >> 4 * i & WHARF_LINE_CPACK_HAS_BYTE)
                put_word(at++, piece.words[i] & 255, 1);
    }

    /* One lane.  Four fields of `n_bits` bits, at number `first` from byte `at` on. */
    WHARF_DEVICE_MEMBER void put_four(uint32_t at, uint32_t first, const uint32_t *fields,
                                      uint32_t n_bits) const
    {
        put_bits(8 * at + first * n_bits,
                 fields[0] | fields[1] << n_bits | fields[2] << 2 * n_bits |
                     fields[3] << 3 * n_bits,
                 4 * n_bits);
    }

    /* collective. */
    WHARF_DEVICE_MEMBER void put_palette_line(const line_piece &piece, bool is_mine,
                                              uint32_t at) const
    {
        uint32_t type = shape.type, f = line_field_nbits(type);
        uint32_t n_values = line_n_values(type, shape.line_nbytes()), n = line_piece_nvalues(type);
        uint32_t own = line_count_escapes(s.ranks, piece, type, width);
        uint32_t before = line_add_up(own, piece.place, 0).before;
        uint32_t fields_at = at + (type == WHARF_LINE_F16 ? n_values : 0);
        uint32_t indexes_at = fields_at + n_values * f / 8;
        uint32_t escapes_at = indexes_at + n_values * width / 8 + before;
        uint32_t escape = (1u << width) - 1;
        if (!is_mine)
            return;
        WHARF_UNROLL
        for (unsigned first = 0; first < LINE_MAX_PIECE_NVALUES; first += 4) {
            if (first >= n)
                break;
            uint32_t fields[4], indexes[4], lows[4], number = n * piece.place + first;
            WHARF_UNROLL
            for (unsigned i = 0; i < 4; i++) {
                line_number v = line_take_apart(piece, type, first + i);
                fields[i] = v.field;
                lows[i] = v.low;
                indexes[i] = line_least(load(&s.ranks.of[v.exponent]), escape);
                if (indexes[i] == escape)
                    put_word(escapes_at++, v.exponent, 1);
            }
            put_four(fields_at, number, fields, f);
            put_four(indexes_at, number, indexes, width);
            if (type == WHARF_LINE_F16)
                put_four(at, number, lows, 8);
        }
    }

    /* collective.  A piece whose line has this code and begins at byte `at` of the content. */
    WHARF_DEVICE_MEMBER void put_piece(const line_piece &piece, uint32_t number, uint32_t at) const
    {
        line_code code = explain_line_code<CODEC>(shape, width, number);
        uint32_t scheme = code.scheme();
        if (line_has_bdi(CODEC))
            put_bdi_line(piece, scheme == WHARF_LINE_IS_BDI ? code.variant() : 0, at);
        if (line_has_fpc(CODEC) && any_lane(scheme == WHARF_LINE_IS_FPC))
            put_fpc_line(piece, scheme == WHARF_LINE_IS_FPC, at);
        if (line_has_cpack(CODEC) && any_lane(scheme == WHARF_LINE_IS_CPACK))
            put_cpack_line(piece, scheme == WHARF_LINE_IS_CPACK, code.variant(), at);
        if (CODEC == WHARF_CODEC_PALETTE)
            put_palette_line(piece, scheme == WHARF_LINE_IS_PALETTE, at);
        if (scheme == WHARF_LINE_IS_RAW)
            for (unsigned i = 0; i < 4; i++)
                put_word(at + 16 * piece.place + 4 * i, piece.words[i], 4);
    }

    /* One lane.  16 bytes from byte `skew` of two quads on.  Steps of which all indexes are known,
     * so that the words stay in registers. */
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

    /* collective.  The group that begins at byte `done` of the input to shared memory, zeros behind
     * the input's end. */
    WHARF_DEVICE_MEMBER void load_raw(const input_source &source, uint32_t done) const
    {
        constexpr unsigned N_ON_THEIR_WAY = 4; /* loads at once */
        uint32_t at = source.begin + done, skew = at & 15;
        for (uint32_t i = lane_id(); i < WHARF_LINE_GROUP_NBYTES / 16;
             i += N_ON_THEIR_WAY * WARP_LANES) {
            u32x4 quads[N_ON_THEIR_WAY];
            WHARF_UNROLL
            for (unsigned k = 0; k < N_ON_THEIR_WAY; k++) {
                uint32_t number = at / 16 + i + k * WARP_LANES;
                quads[k] = source.load_quad(number);
                if (skew != 0)
                    quads[k] = join_quads(quads[k], source.load_quad(number + 1), skew);
            }
            WHARF_UNROLL
            for (unsigned k = 0; k < N_ON_THEIR_WAY; k++)
                store(&s.raw[i + k * WARP_LANES], quads[k]);
        }
        for (uint32_t i = lane_id(); i < WHARF_LINE_GROUP_NBYTES / 16 + 1; i += WARP_LANES)
            store(&s.content[i], u32x4{0, 0, 0, 0});
        syncwarp();
    }

    /* collective.  How many bytes the group's lines take with that width. */
    WHARF_DEVICE_MEMBER uint32_t measure(uint32_t n_lines, uint32_t its_width) const
    {
        uint32_t sum = 0;
        uint32_t before = palette_line_code(1, shape.shift, shape.type, its_width).nbytes();
        for (uint32_t base = 0; base < n_lines << shape.shift; base += 16 * WARP_LANES) {
            line_piece piece = load_piece(base);
            uint32_t own = line_count_escapes(s.ranks, piece, shape.type, its_width);
            uint32_t n = line_sum(own, piece), nbytes = before + n;
            if (nbytes >= shape.line_nbytes() || n + 2 > WHARF_LINE_NIBBLE_RAW)
                nbytes = shape.line_nbytes();
            bool counts = piece.place == 0 && (base + 16 * lane_id()) >> shape.shift < n_lines;
            sum += counts ? nbytes : 0;
        }
        return reduce_add(sum);
    }

    /* collective.  The group's palette, whose head goes to `to`. */
    WHARF_DEVICE_MEMBER void make_palette(uint32_t n_lines, uint8_t *to)
    {
        uint32_t lane = lane_id();
        line_clear_counts(s.ranks);
        for (uint32_t base = 0; base < n_lines << shape.shift; base += 16 * WARP_LANES)
            if ((base + 16 * lane) >> shape.shift < n_lines)
                line_count_exponents(s.ranks, load_piece(base), shape.type);
        uint32_t exponent = line_rank_exponents(s.ranks);
        width = 3;
        if (shape.type != WHARF_LINE_E4M3 && measure(n_lines, 4) < measure(n_lines, 3))
            width = 4;
        if (lane < WHARF_LINE_HEAD_NBYTES)
            store_byte(to + lane, lane == WHARF_LINE_PALETTE_AT_WIDTH ? width
                                  : lane < (1u << width) - 1          ? exponent
                                                                      : 0);
    }

    /* collective.  Codes and places of a group's lines; how many bytes they take. */
    WHARF_DEVICE_MEMBER uint32_t place_lines(uint32_t n_lines) const
    {
        uint32_t lane = lane_id(), sum = 0;
        for (uint32_t base = 0; base < WHARF_LINE_GROUP_NBYTES; base += 16 * WARP_LANES) {
            line_piece piece = load_piece(base);
            uint32_t code = choose_code(piece);
            if (piece.place == 0)
                store(&s.codes[(base + 16 * lane) >> shape.shift], code);
        }
        syncwarp();
        for (uint32_t base = 0; base < shape.group_nlines(); base += WARP_LANES) {
            uint32_t i = base + lane;
            uint32_t code = i < n_lines ? load(&s.codes[i]) : 0;
            uint32_t nbytes = explain_line_code<CODEC>(shape, width, code).nbytes();
            if (shape.layout == WHARF_LINE_SLOTS)
                nbytes = i < n_lines ? shape.line_nbytes() : 0;
            uint32_t end = inclusive_add(nbytes);
            store(&s.starts[i], sum + end - nbytes);
            sum += from_lane<WARP_LANES - 1>(end);
        }
        syncwarp();
        return sum;
    }

    /* collective. */
    WHARF_DEVICE_MEMBER void put_lines(uint32_t n_lines) const
    {
        for (uint32_t base = 0; base < n_lines << shape.shift; base += 16 * WARP_LANES) {
            uint32_t line = (base + 16 * lane_id()) >> shape.shift;
            line_piece piece = load_piece(base);
            put_piece(piece, line < n_lines ? load(&s.codes[line]) : 0, load(&s.starts[line]));
        }
        syncwarp();
    }

    /* collective.  The group's record, at `to`. */
    WHARF_DEVICE_MEMBER void store_record(uint8_t *to, uint32_t offset) const
    {
        uint32_t n = shape.record_nbytes - shape.codes_at;
        for (uint32_t i = lane_id(); i < n; i += WARP_LANES) {
            uint32_t byte = shape.code_nbits == 8
                                ? load(&s.codes[i])
                                : load(&s.codes[2 * i]) | load(&s.codes[2 * i + 1]) << 4;
            store_byte(to + shape.codes_at + i, byte);
        }
        if (shape.codes_at != 0 && lane_id() < WHARF_LINE_OFFSET_NBYTES)
            store_byte(to + lane_id(), offset >> 8 * lane_id());
    }

    /* collective.  The codes of lines that the group lacks. */
    WHARF_DEVICE_MEMBER void clear_codes(uint32_t n_lines) const
    {
        for (uint32_t i = lane_id(); i < shape.group_nlines(); i += WARP_LANES)
            if (i >= n_lines)
                store(&s.codes[i], 0u);
        syncwarp();
    }
};

/* collective.  The header, and zeros to the first record's place and behind the last. */
WHARF_DEVICE void store_line_header(const line_encode_job &job, const line_shape &shape,
                                    uint32_t codec)
{
    uint32_t lane = lane_id(), byte = 0;
    uint32_t index_end = WHARF_LINE_HEADER_NBYTES + shape.n_groups * shape.record_nbytes;
    byte = lane == 0                             ? (uint32_t)WHARF_LINE_VERSION
           : lane == WHARF_LINE_AT_CODEC         ? codec
           : lane == WHARF_LINE_AT_SHIFT         ? shape.shift
           : lane == WHARF_LINE_AT_LAYOUT        ? shape.layout
           : lane == WHARF_LINE_AT_TYPE          ? job.type
           : lane >= WHARF_LINE_AT_RAW + 4       ? 0
           : lane >= (uint32_t)WHARF_LINE_AT_RAW ? shape.raw_nbytes >> 8 * (lane & 3)
                                                 : 0;
    if (lane < WHARF_LINE_HEADER_NBYTES)
        store_byte(job.out + lane, byte);
    if (index_end + lane < shape.heads_at)
        store_byte(job.out + index_end + lane, 0);
}

/*
 * collective.  Returns how many bytes the stream has, or 0 when out_avail is less.
 */
template <uint32_t CODEC>
WHARF_DEVICE uint32_t line_encode(line_encode_shared &s, const line_encode_job &job)
{
    line_writer<CODEC> writer = {s, line_shape{}, 3};
    input_source source;
    source.init(job.in, job.in_nbytes);
    writer.shape.set(CODEC, uniform(job.shift), uniform(job.layout), uniform(job.type),
                     uniform(job.in_nbytes));
    const line_shape &shape = writer.shape;
    if (shape.data_at > uniform(job.out_avail))
        return 0;
    store_line_header(job, shape, CODEC);
    uint32_t at = shape.data_at;
    for (uint32_t group = 0; group < shape.n_groups; group++) {
        uint32_t n_lines =
            line_least(shape.n_lines - group * shape.group_nlines(), shape.group_nlines());
        writer.load_raw(source, group * WHARF_LINE_GROUP_NBYTES);
        if (CODEC == WHARF_CODEC_PALETTE)
            writer.make_palette(n_lines, job.out + shape.heads_at + group * WHARF_LINE_HEAD_NBYTES);
        uint32_t n_quads = (writer.place_lines(n_lines) + 15) / 16;
        if (16 * n_quads > uniform(job.out_avail) - at)
            return 0;
        writer.clear_codes(n_lines);
        writer.put_lines(n_lines);
        writer.store_record(job.out + WHARF_LINE_HEADER_NBYTES + group * shape.record_nbytes,
                            (at - shape.data_at) / WHARF_LINE_UNIT_NBYTES);
        for (uint32_t i = lane_id(); i < n_quads; i += WARP_LANES)
            store(reinterpret_cast<u32x4 *>(job.out + at) + i, load(&s.content[i]));
        syncwarp(); /* before the next group's content */
        at += 16 * n_quads;
    }
    return at;
}

} // namespace wharf

#endif
