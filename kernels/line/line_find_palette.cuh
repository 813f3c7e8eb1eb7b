/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_find_palette.cuh: makes a group's palette and its lines' indexes, the same as
 * encoders/line/line_compress_palette.c.
 *
 * A lane splits the 8 or 16 values of its 16 bytes, four at a time, into words of exponents and
 * words of fields.  A table in shared memory maps each exponent to its rank by frequency.  A lane
 * keeps its ranks as nibbles in one or two words; from these it counts escapes and makes indexes
 * for either width.
 */
#ifndef WHARF_KERNELS_LINE_LINE_FIND_PALETTE_CUH
#define WHARF_KERNELS_LINE_LINE_FIND_PALETTE_CUH

#include "kernels/line/line_put.cuh"

namespace wharf
{

constexpr uint32_t LINE_N_EXPONENTS = 256;
constexpr uint32_t LINE_MAX_NPALETTE = 15;
constexpr uint32_t LINE_NO_RANK = 15;

/* In shared memory: how often each exponent occurs, and its rank among the most frequent ones. */
struct line_ranks {
    uint32_t counts[LINE_N_EXPONENTS];
    uint32_t ranks[LINE_N_EXPONENTS / 4]; /* a byte each */
};

/* The number of groups of four values in 16 bytes. */
template <uint32_t TYPE>
WHARF_CONSTEXPR unsigned line_n_fours()
{
    return TYPE <= WHARF_LINE_F16 ? 2 : 4;
}

/* Four values each: exponents and fields in bytes; low bytes of f16. */
struct line_numbers {
    uint32_t exponents[4];
    uint32_t fields[4];
    uint32_t lows[2];
};

/* Rotates each byte left by one bit. */
WHARF_DEVICE uint32_t line_rotate_bytes(uint32_t v)
{
    return (v << 1 & 0xfefefefeu) | (v >> 7 & 0x01010101u);
}

template <uint32_t TYPE>
WHARF_DEVICE line_numbers line_take_apart(const line_piece &piece)
{
    const uint32_t *w = piece.words;
    line_numbers numbers = {};
    WHARF_UNROLL
    for (unsigned k = 0; k < line_n_fours<TYPE>(); k++) {
        if (TYPE == WHARF_LINE_BF16) {
            uint32_t a = (w[2 * k] << 1 & 0xfffefffeu) | (w[2 * k] >> 15 & 0x00010001u);
            uint32_t b = (w[2 * k + 1] << 1 & 0xfffefffeu) | (w[2 * k + 1] >> 15 & 0x00010001u);
            numbers.exponents[k] = byte_perm(a, b, 0x7531);
            numbers.fields[k] = byte_perm(a, b, 0x6420);
            continue;
        }
        uint32_t upper = w[k];
        if (TYPE == WHARF_LINE_F16) {
            numbers.lows[k % 2] = byte_perm(w[2 * k % 4], w[(2 * k + 1) % 4], 0x6420);
            upper = byte_perm(w[2 * k % 4], w[(2 * k + 1) % 4], 0x7531);
        }
        constexpr uint32_t F = TYPE == WHARF_LINE_E4M3 ? 4 : 3;
        upper = line_rotate_bytes(upper);
        numbers.exponents[k] = upper >> F & 0x01010101u * (255u >> F);
        numbers.fields[k] = upper & 0x01010101u * ((1u << F) - 1);
    }
    return numbers;
}

/* collective.  Sets all counts to 0. */
WHARF_DEVICE void line_clear_counts(line_ranks &ranks)
{
    for (uint32_t i = lane_id(); i < LINE_N_EXPONENTS; i += WARP_LANES)
        store(&ranks.counts[i], 0u);
    syncwarp();
}

/* One lane. */
template <uint32_t TYPE>
WHARF_DEVICE void line_count_exponents(line_ranks &ranks, const line_piece &piece)
{
    line_numbers numbers = line_take_apart<TYPE>(piece);
    WHARF_UNROLL
    for (unsigned k = 0; k < line_n_fours<TYPE>(); k++)
        WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++)
        atomic_add(&ranks.counts[numbers.exponents[k] >> 8 * i & 255], 1);
}

/* One lane.  The sort key of an exponent in a palette, which is in descending order of keys. */
WHARF_DEVICE uint32_t line_exponent_key(uint32_t exponent, uint32_t count)
{
    /* Of equally frequent exponents the lowest comes first. */
    return count != 0 ? count << 8 | (LINE_N_EXPONENTS - 1 - exponent) : 0;
}

/* collective.  Turns counts into ranks.  Lane i returns the exponent of rank i, or 0. */
WHARF_DEVICE uint32_t line_rank_exponents(line_ranks &ranks)
{
    constexpr unsigned N_OWN = LINE_N_EXPONENTS / WARP_LANES;
    uint32_t lane = lane_id(), exponent = 0, own = 0, n = 0, keys[N_OWN];
    uint8_t *bytes = reinterpret_cast<uint8_t *>(ranks.ranks);
    syncwarp();
    WHARF_UNROLL
    for (unsigned k = 0; k < N_OWN; k++) {
        uint32_t e = WARP_LANES * k + lane;
        keys[k] = line_exponent_key(e, load(&ranks.counts[e]));
        n += popc(ballot(keys[k] != 0));
    }
    for (uint32_t i = lane; i < LINE_N_EXPONENTS / 4; i += WARP_LANES)
        store(&ranks.ranks[i], LINE_NO_RANK * 0x01010101u);
    syncwarp();
    if (n <= WARP_LANES) { /* one for each lane: nearly always */
        uint32_t before = 0;
        WHARF_UNROLL
        for (unsigned k = 0; k < N_OWN; k++) {
            uint32_t have = ballot(keys[k] != 0);
            if (keys[k] != 0)
                store(&ranks.counts[before + popc(have & lanemask_lt())], keys[k]);
            before += popc(have);
        }
        syncwarp();
        own = lane < n ? load(&ranks.counts[lane]) : 0;
    }
    for (uint32_t rank = 0; rank < LINE_MAX_NPALETTE && rank < n; rank++) {
        if (n > WARP_LANES) {
            own = 0;
            WHARF_UNROLL
            for (unsigned k = 0; k < N_OWN; k++)
                own = keys[k] > own ? keys[k] : own;
        }
        uint32_t most = reduce_max(own), e = LINE_N_EXPONENTS - 1 - (most & 255);
        exponent = lane == rank ? e : exponent;
        own = own == most ? 0 : own;
        if (n > WARP_LANES) {
            WHARF_UNROLL
            for (unsigned k = 0; k < N_OWN; k++)
                keys[k] = keys[k] == most ? 0 : keys[k];
        }
    }
    if (lane < LINE_MAX_NPALETTE && lane < n)
        bytes[exponent] = (uint8_t)lane;
    syncwarp();
    return exponent;
}

/* A lane's ranks, a nibble each. */
struct line_nibbles {
    uint32_t of[2];
};

template <uint32_t TYPE>
WHARF_DEVICE line_nibbles line_look_up_ranks(const line_ranks &ranks, const line_numbers &numbers)
{
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(ranks.ranks);
    line_nibbles nibbles = {{0, 0}};
    WHARF_UNROLL
    for (unsigned k = 0; k < line_n_fours<TYPE>(); k++)
        WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++)
        nibbles.of[k / 2] |= (uint32_t)load(&bytes[numbers.exponents[k] >> 8 * i & 255])
                             << (16 * (k % 2) + 4 * i);
    return nibbles;
}

/* One lane.  Sets the lowest bit of each of eight nibbles that is an escape. */
WHARF_DEVICE uint32_t line_escapes_of_eight(uint32_t nibbles, uint32_t width)
{
    uint32_t low = nibbles & nibbles >> 1 & nibbles >> 2;
    return (width == 3 ? low | nibbles >> 3 : low & nibbles >> 3) & 0x11111111u;
}

/* One lane.  The number of its values that are escapes with indexes of `width` bits. */
template <uint32_t TYPE>
WHARF_DEVICE uint32_t line_count_escapes(line_nibbles nibbles, uint32_t width)
{
    uint32_t n = popc(line_escapes_of_eight(nibbles.of[0], width));
    return line_n_fours<TYPE>() == 2 ? n : n + popc(line_escapes_of_eight(nibbles.of[1], width));
}

/* One lane.  Packs eight ranks as indexes of `width` bits. */
WHARF_DEVICE uint32_t line_pack_ranks(uint32_t nibbles, uint32_t width)
{
    if (width == 4)
        return nibbles;
    uint32_t high = nibbles & 0x88888888u; /* 7 and more are an escape */
    uint32_t v = (nibbles | (high - (high >> 3))) & 0x77777777u;
    v = (v & 0x07070707u) | (v >> 1 & 0x38383838u);
    v = (v & 0x003f003fu) | (v >> 2 & 0x0fc00fc0u);
    return (v & 0xfff) | (v >> 4 & 0xfff000u);
}

/* One lane.  Packs the low `f` bits of four bytes. */
WHARF_DEVICE uint32_t line_pack_fields(uint32_t bytes, uint32_t f)
{
    if (f == 8)
        return bytes;
    uint32_t v = (bytes | bytes >> (8 - f)) & 0x00ff00ffu;
    return (v | v >> (16 - 2 * f)) & ((1u << 4 * f) - 1);
}

/* One lane.  Joins two numbers of nbits bits each, at most 32. */
WHARF_DEVICE line_pair line_join(uint32_t a, uint32_t b, uint32_t nbits)
{
    uint64_t both = (uint64_t)b << nbits | a;
    return {(uint32_t)both, (uint32_t)(both >> 32)};
}

struct line_palette_form {
    uint32_t key;
    uint32_t before; /* escapes of the lanes before it */
    line_nibbles nibbles;
};

/* collective.  Of indexes of `width` bits. */
template <uint32_t TYPE>
WHARF_DEVICE line_palette_form line_find_palette(const line_piece &piece, line_nibbles nibbles,
                                                 uint32_t width, uint32_t shift)
{
    line_sums escapes = line_sum(line_count_escapes<TYPE>(nibbles, width), piece);
    line_code code = palette_line_code(escapes.all + 1, shift, TYPE, width);
    bool has_code = escapes.all + 1 < WHARF_LINE_NIBBLE_RAW && code.scheme() != 0;
    return {has_code ? make_line_key(code.nbytes(), escapes.all + 1) : LINE_NO_KEY, escapes.before,
            nibbles};
}

/* In a kernel that stays, the loop below makes the compiler guard all collectives (KERNELS.md, rule
 * 9) unless it is a function: such a kernel's source defines this. */
#ifdef WHARF_LINE_ESCAPES_APART
#define WHARF_LINE_ESCAPES WHARF_DEVICE_NOINLINE
#else
#define WHARF_LINE_ESCAPES WHARF_DEVICE
#endif

/* One lane.  Writes those of eight exponents that `left` has as escapes, from byte `at` on; returns
 * the byte behind them. */
WHARF_LINE_ESCAPES uint32_t line_put_escapes(uint32_t *to, uint32_t at, uint32_t left,
                                             line_pair exponents)
{
    for (; left != 0; left &= left - 1) {
        uint32_t i = (ffs(left) - 1) / 4;
        uint32_t four = i < 4 ? exponents.lo : exponents.hi;
        line_put_bits(to, 8 * at++, four >> 8 * (i & 3) & 255);
    }
    return at;
}

/* One lane. */
template <uint32_t TYPE>
WHARF_DEVICE void line_put_palette(uint32_t *to, uint32_t at, const line_piece &piece,
                                   const line_palette_form &form, uint32_t width, uint32_t shift)
{
    line_numbers numbers = line_take_apart<TYPE>(piece);
    constexpr unsigned N = 4 * line_n_fours<TYPE>();
    uint32_t f = line_field_nbits(TYPE), n_values = line_n_values(TYPE, 1u << shift);
    if (TYPE == WHARF_LINE_F16) {
        line_put_pair(to, at + 8 * piece.place, {numbers.lows[0], numbers.lows[1]});
        at += n_values;
    }
    uint32_t fields[4];
    WHARF_UNROLL
    for (unsigned k = 0; k < line_n_fours<TYPE>(); k++)
        fields[k] = line_pack_fields(numbers.fields[k], f);
    line_pair packed = line_join(fields[0], fields[1], 4 * f);
    if (N == 16)
        packed = line_join(packed.lo, line_join(fields[2], fields[3], 4 * f).lo, 8 * f);
    line_put_pair(to, at + N * f / 8 * piece.place, packed);
    at += n_values * f / 8;
    packed = {line_pack_ranks(form.nibbles.of[0], width), 0};
    if (N == 16)
        packed = line_join(packed.lo, line_pack_ranks(form.nibbles.of[1], width), 8 * width);
    line_put_pair(to, at + N * width / 8 * piece.place, packed);
    at += n_values * width / 8 + form.before;
    WHARF_UNROLL
    for (unsigned k = 0; k < N / 8; k++) {
        uint32_t left = line_escapes_of_eight(form.nibbles.of[k], width);
        if (left != 0)
            at = line_put_escapes(to, at, left,
                                  {numbers.exponents[2 * k], numbers.exponents[2 * k + 1]});
    }
}

} // namespace wharf

#endif
