/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_kinds.cuh: a group of lines of 128 bytes, decoded kind by kind.
 *
 * Problem: neighbouring lines use different schemes.  A warp that decodes four lines at a time in
 * order diverges into the code of every scheme among the four, and each lane interprets its line's
 * code again.
 *
 * Idea: sort by kind.  First, each lane reads one line's code and writes a record of what the lanes
 * of that line need.  Then the warp decodes all lines of one kind, four at a time, before those of
 * the next.  The code for a kind has constant sizes, and no lane waits for another kind.
 *
 * Alignment: for lines of 128 bytes, every content of bdi has an even size.  In a stream of bdi all
 * contents therefore begin at even places, and deltas of two bytes are aligned.
 */
#ifndef WHARF_KERNELS_LINE_LINE_KINDS_CUH
#define WHARF_KERNELS_LINE_LINE_KINDS_CUH

#include "kernels/line/line_quad_bf16.cuh"

namespace wharf
{

/* The ways to decode a line.  Those of bdi have their variant's number. */
enum line_kind : uint32_t {
    LINE_KIND_CONSTANT = 0, /* the same 8 bytes throughout: zeros, and bdi's REPEAT */
    LINE_KIND_RAW = 8,
    LINE_KIND_FPC = 9,
    LINE_KIND_CPACK = 10,
    LINE_KIND_PALETTE_3 = 11, /* of bf16, with indexes of 3 bits */
    LINE_KIND_PALETTE_4 = 12,
    LINE_N_KINDS,
    LINE_KIND_NONE = LINE_N_KINDS, /* no line: nothing is made of it */
};

/* What the lanes of a line need to decode it, in shared memory. */
struct alignas(16) line_record {
    uint32_t base_lo; /* palette: escapes of the quads before each one, a nibble each */
    uint32_t a;       /* bases of 8 bytes: their high word; of 2 bytes: bits 0 to 31 as in b;
                         palette: a nibble for each quad, 1: it has several escapes */
    uint32_t b;       /* a bit for each value, 1: the base is added; of 2 bytes: bits 32 to 63;
                         fpc: patterns; cpack: words of the dictionary; palette: where
                        content begins */
    uint32_t places;  /* where deltas or content begin; above 16 bits: where the output does */
};

/* The 8 lanes that decode a line. */
struct line_team {
    const uint8_t *content; /* the group's, in shared memory, aligned to 16 */
    uint32_t place;         /* of the lane in its line */
};

/* One lane.  `bit`, 0 or 1, times the base, plus a signed delta.  A product is cheaper than a
 * select, which would use the same busy pipe as all other instructions here. */
WHARF_DEVICE line_pair line_add_long(const line_record &r, uint32_t bit, int32_t delta)
{
    uint64_t sum = (uint64_t)(bit & 1) * r.base_lo + (uint64_t)(int64_t)delta;
    return {(uint32_t)sum, (uint32_t)(sum >> 32) + (bit & 1) * r.a};
}

WHARF_DEVICE const uint32_t *line_content_words(const line_team &team)
{
    return reinterpret_cast<const uint32_t *>(team.content);
}

/* One lane.  Delta number i, of 1 byte, of the deltas from `at` on. */
WHARF_DEVICE int32_t line_delta(const line_team &team, uint32_t at, uint32_t i)
{
    return load(reinterpret_cast<const int8_t *>(team.content) + at + i);
}

/* One lane.  N deltas of 2 bytes, 2 or 4.  If all places are even, no delta spans two words. */
template <bool IS_EVEN, unsigned N>
WHARF_DEVICE void line_deltas_of_2(const line_team &team, uint32_t at, int32_t d[N])
{
    if (IS_EVEN) {
        WHARF_UNROLL
        for (uint32_t i = 0; i < N; i++)
            d[i] = load(reinterpret_cast<const int16_t *>(team.content + at + 2 * i));
        return;
    }
    line_pair words = N == 2 ? line_pair{line_word(line_content_words(team), at), 0}
                             : line_words_2(line_content_words(team), at);
    WHARF_UNROLL
    for (uint32_t i = 0; i < N; i++) {
        uint32_t word = i < 2 ? words.lo : words.hi;
        d[i] = i % 2 ? (int32_t)word >> 16 : (int16_t)word;
    }
}

/* One lane.  Values of 8 bytes with deltas of 1, 2 or 4. */
template <bool IS_EVEN, unsigned DELTA_NBYTES>
WHARF_DEVICE u32x4 line_quad_of_8(const line_team &team, const line_record &r)
{
    uint32_t at = (r.places & 0xffff) + 2 * DELTA_NBYTES * team.place;
    uint32_t bits = r.b >> 2 * team.place;
    int32_t d[2];
    if (DELTA_NBYTES == 4) {
        line_pair words = line_words_2(line_content_words(team), at);
        d[0] = (int32_t)words.lo;
        d[1] = (int32_t)words.hi;
    } else if (DELTA_NBYTES == 2) {
        line_deltas_of_2<IS_EVEN, 2>(team, at, d);
    } else {
        d[0] = line_delta(team, at, 0);
        d[1] = line_delta(team, at, 1);
    }
    line_pair v = line_add_long(r, bits, d[0]), w = line_add_long(r, bits >> 1, d[1]);
    return {v.lo, v.hi, w.lo, w.hi};
}

/* One lane.  Values of 4 bytes with deltas of 1 or 2. */
template <bool IS_EVEN, unsigned DELTA_NBYTES>
WHARF_DEVICE u32x4 line_quad_of_4(const line_team &team, const line_record &r)
{
    uint32_t at = (r.places & 0xffff) + 4 * DELTA_NBYTES * team.place;
    uint32_t bits = r.b >> 4 * team.place, v[4];
    int32_t d[4];
    if (DELTA_NBYTES == 2)
        line_deltas_of_2<IS_EVEN, 4>(team, at, d);
    WHARF_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        if (DELTA_NBYTES == 1)
            d[i] = line_delta(team, at, i);
        v[i] = (bits >> i & 1) * r.base_lo + (uint32_t)d[i];
    }
    return {v[0], v[1], v[2], v[3]};
}

/* One lane.  Values of 2 bytes with deltas of 1. */
WHARF_DEVICE u32x4 line_quad_of_2(const line_team &team, const line_record &r)
{
    uint32_t at = (r.places & 0xffff) + 8 * team.place;
    uint32_t bits = (team.place < 4 ? r.a : r.b) >> 8 * (team.place & 3), v[4];
    line_pair d = line_words_2(line_content_words(team), at);
    v[0] = signed_perm(d.lo, d.hi, 0x9180);
    v[1] = signed_perm(d.lo, d.hi, 0xb3a2);
    v[2] = signed_perm(d.lo, d.hi, 0xd5c4);
    v[3] = signed_perm(d.lo, d.hi, 0xf7e6);
    /* After a shift by 2 i, bits 2 i and 2 i + 1 are at bits 0 and 16: multiplied by the base, they
     * put it into either half. */
    uint32_t spread = (bits & 255) * 0x8001;
    WHARF_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        v[i] = add_halves(v[i], (spread >> 2 * i & 0x10001) * r.base_lo);
    return {v[0], v[1], v[2], v[3]};
}

/* One lane.  16 bytes of a raw line. */
WHARF_DEVICE u32x4 line_quad_of_raw(const line_team &team, const line_record &r)
{
    return line_words_4(line_content_words(team), (r.places & 0xffff) + 16 * team.place);
}

/* ---- fpc ------------------------------------------------------------------------------------ */

/*
 * One lane.  The record of a line of fpc, whose code gives `n_pairs`.  `base_lo` and `a` receive,
 * one byte a segment, the number of byte pairs before the segment.  *ret_ok: the segments take no
 * more than the code gives.
 */
WHARF_DEVICE line_record make_fpc_record(const line_team &team, uint32_t begin, uint32_t n_pairs,
                                         uint32_t line, bool *ret_ok)
{
    uint32_t patterns = line_word(line_content_words(team), begin) & 0xffffff, sum = 0;
    uint32_t before[2] = {0, 0};
    WHARF_UNROLL
    for (uint32_t i = 0; i < 8; i++) {
        before[i / 4] |= sum << 8 * (i % 4);
        sum += line_fpc_npairs(patterns >> 3 * i & 7);
    }
    *ret_ok = sum <= n_pairs;
    uint32_t segments = begin + line_fpc_head_nbytes(WHARF_LINE_MAX_SHIFT);
    return {before[0], before[1], patterns, segments | line << 23};
}

/* One lane.  Decodes a segment.  Lanes with different patterns do not diverge. */
WHARF_DEVICE u32x4 line_quad_of_fpc(const line_team &team, const line_step *steps,
                                    const line_record &r)
{
    uint32_t before = (team.place < 4 ? r.base_lo : r.a) >> 8 * (team.place & 3) & 255;
    uint32_t pattern = r.b >> 3 * team.place & 7;
    u32x4 all = line_words_4(line_content_words(team), (r.places & 0xffff) + 2 * before);
    uint32_t kept = pattern == WHARF_LINE_FPC_ZEROS ? 0 : ~0u;
    u32x4 w = line_fpc_words({all.x & kept, all.y & kept}, load(steps + LINE_FPC_STEPS + pattern));
    bool is_raw = pattern == WHARF_LINE_FPC_RAW;
    return {is_raw ? all.x : w.x, is_raw ? all.y : w.y, is_raw ? all.z : w.z, is_raw ? all.w : w.w};
}

/* ---- cpack ---------------------------------------------------------------------------------- */

/*
 * One lane.  The record of a line of cpack.  `base_lo` and `a` receive, one byte for each 16 bytes
 * of output, the number of low bytes before theirs.  *ret_ok: there are no more low bytes than the
 * code gives, and all sources are in the dictionary.
 */
WHARF_DEVICE line_record make_cpack_record(const line_team &team, uint32_t begin, line_code code,
                                           uint32_t line, bool *ret_ok)
{
    u32x4 all = line_words_4(line_content_words(team), begin);
    uint32_t nibbles[4] = {all.x, all.y, all.z, all.w}, before[2] = {0, 0}, sum = 0, wrong = 0;
    /* Adding 7 - n to a nibble, n from the code, sets its top bit if the source exceeds n. */
    uint32_t lack = (7 - code.variant()) * 0x11111111u;
    WHARF_UNROLL
    for (uint32_t i = 0; i < 8; i++) {
        before[i / 4] |= sum << 8 * (i % 4);
        sum += popc(nibbles[i / 2] >> 16 * (i % 2) & 0x8888);
        wrong |= ((nibbles[i / 2] & 0x77777777u) + lack) & 0x88888888u;
    }
    *ret_ok = sum <= code.given() && wrong == 0;
    return {before[0], before[1], code.variant(), begin | line << 23};
}

/* collective.  Each lane of a line brings one word, zero or one of the dictionary, for all of them.
 */
WHARF_DEVICE u32x4 line_quad_of_cpack(const line_team &team, const line_record &r)
{
    const uint32_t *words = line_content_words(team);
    uint32_t before = (team.place < 4 ? r.base_lo : r.a) >> 8 * (team.place & 3) & 255;
    uint32_t at = r.places & 0xffff, dictionary_at = at + WHARF_LINE_MAX_NBYTES / 8, v[4];
    uint32_t nibbles = line_word(words, at + 2 * team.place);
    uint32_t bytes = line_word(words, dictionary_at + 4 * r.b + before), own = 0;
    if (team.place > 0 && team.place <= WHARF_LINE_CPACK_MAX_NWORDS)
        own = line_word(words, dictionary_at + 4 * team.place - 4);
    WHARF_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t has_byte = nibbles >> (4 * i + 3) & 1;
        uint32_t word = shfl_in<8>(own, nibbles >> 4 * i); /* its low three bits are the source */
        v[i] = byte_perm(word, bytes, 0x3210 + 4 * has_byte);
        bytes >>= 8 * has_byte;
    }
    return {v[0], v[1], v[2], v[3]};
}

/* ---- palette, bf16 --------------------------------------------------------------------------- */

/* One lane.  The record of a palette's line.  *ret_ok: it has no more escapes than the code gives.
 */
template <unsigned WIDTH>
WHARF_DEVICE line_record make_bf16_record(const line_team &team, uint32_t begin, uint32_t given,
                                          uint32_t line, bool *ret_ok)
{
    line_bf16_escapes found = count_bf16_escapes<WIDTH>(line_content_words(team), begin);
    *ret_ok = found.sum <= given;
    return {found.before, found.several, begin, line << 23};
}

/* ---- any line ------------------------------------------------------------------------------- */

/*
 * One lane.  Makes a line's record.  *ret_kind: a bdi variant or a line_kind.  *ret_ok: no byte
 * that it read contradicts the code; if not, the record is that of a line of zeros.  Reads at most
 * 24 bytes behind `begin`.
 */
template <uint32_t CODEC>
WHARF_DEVICE line_record make_line_record(const line_team &team, line_code code, uint32_t begin,
                                          uint32_t line, uint32_t *ret_kind, bool *ret_ok)
{
    uint32_t scheme = code.scheme(), variant = code.variant();
    bool is_bdi = line_has_bdi(CODEC) && scheme == WHARF_LINE_IS_BDI;
    line_record r = {0, 0, 0, begin | line << 23};
    *ret_kind = scheme == WHARF_LINE_IS_RAW       ? (uint32_t)LINE_KIND_RAW
                : scheme == WHARF_LINE_IS_FPC     ? (uint32_t)LINE_KIND_FPC
                : scheme == WHARF_LINE_IS_CPACK   ? (uint32_t)LINE_KIND_CPACK
                : scheme != WHARF_LINE_IS_PALETTE ? (uint32_t)LINE_KIND_CONSTANT
                : variant == 3                    ? (uint32_t)LINE_KIND_PALETTE_3
                                                  : (uint32_t)LINE_KIND_PALETTE_4;
    if (line_has_bdi(CODEC)) {
        bool is_repeat = is_bdi && variant == WHARF_LINE_BDI_REPEAT;
        uint32_t base_shift = LINE_BDI_BASE_SHIFTS >> 4 * (is_bdi ? variant : 0) & 15;
        uint32_t base_at = begin + (is_repeat ? 0 : 16u >> base_shift);
        const uint32_t *words = line_content_words(team);
        line_pair base = line_words_2(words, base_at), mask = line_words_2(words, begin);
        r.base_lo = is_bdi ? base.lo : 0;
        r.a = is_bdi ? base.hi : 0;
        r.b = ~mask.lo;
        if (is_bdi && !is_repeat) {
            *ret_kind = variant;
            r.places = (base_at + (1u << base_shift)) | line << 23;
            if (base_shift == 1)
                r = {base.lo & 0xffff, ~mask.lo, ~mask.hi, r.places};
        }
    }
    *ret_ok = true;
    if (line_has_fpc(CODEC) && *ret_kind == LINE_KIND_FPC)
        r = make_fpc_record(team, begin, code.given(), line, ret_ok);
    if (line_has_cpack(CODEC) && *ret_kind == LINE_KIND_CPACK)
        r = make_cpack_record(team, begin, code, line, ret_ok);
    if (CODEC == WHARF_CODEC_PALETTE && *ret_kind == LINE_KIND_PALETTE_3)
        r = make_bf16_record<3>(team, begin, code.given(), line, ret_ok);
    if (CODEC == WHARF_CODEC_PALETTE && *ret_kind == LINE_KIND_PALETTE_4)
        r = make_bf16_record<4>(team, begin, code.given(), line, ret_ok);
    if (!*ret_ok) {
        r = {0, 0, 0, line << 23};
        *ret_kind = LINE_KIND_CONSTANT;
    }
    return r;
}

/* Whether lines of a codec can be of a kind. */
template <uint32_t CODEC>
WHARF_CONSTEXPR bool line_has_kind(uint32_t kind)
{
    return kind == LINE_KIND_FPC     ? line_has_fpc(CODEC)
           : kind == LINE_KIND_CPACK ? line_has_cpack(CODEC)
           : kind == LINE_KIND_PALETTE_3 || kind == LINE_KIND_PALETTE_4
               ? CODEC == WHARF_CODEC_PALETTE
           : kind == LINE_KIND_CONSTANT || kind == LINE_KIND_RAW
               ? true
               : kind != WHARF_LINE_BDI_REPEAT && line_has_bdi(CODEC);
}

/* A group's lines, one kind after another.  `sink(i, quad)` receives quad i of the group from a
 * lane, once. */
template <uint32_t CODEC, typename Sink>
struct line_sorter {
    /* The sizes of bdi's contents are even, and with them all places. */
    static constexpr bool IS_EVEN = CODEC == WHARF_CODEC_BDI;

    const line_step *steps;
    line_team team;
    const u32x4 &palette; /* the group's */
    const Sink &sink;

    template <unsigned WIDTH>
    WHARF_DEVICE_MEMBER u32x4 decode_bf16(const line_record &r)
    {
        return line_quad_of_bf16<WIDTH>(line_content_words(team), palette, r.b, team.place,
                                        r.base_lo >> 4 * team.place & 15,
                                        (r.a >> 4 * team.place & 1) != 0);
    }

    template <uint32_t KIND>
    WHARF_DEVICE_MEMBER u32x4 decode(const line_record &r)
    {
        switch (KIND) {
        case LINE_KIND_CONSTANT:
            return {r.base_lo, r.a, r.base_lo, r.a};
        case LINE_KIND_RAW:
            return line_words_4(line_content_words(team), (r.places & 0xffff) + 16 * team.place);
        case WHARF_LINE_BDI_8_1:
            return line_quad_of_8<IS_EVEN, 1>(team, r);
        case WHARF_LINE_BDI_8_2:
            return line_quad_of_8<IS_EVEN, 2>(team, r);
        case WHARF_LINE_BDI_8_4:
            return line_quad_of_8<IS_EVEN, 4>(team, r);
        case WHARF_LINE_BDI_4_1:
            return line_quad_of_4<IS_EVEN, 1>(team, r);
        case WHARF_LINE_BDI_4_2:
            return line_quad_of_4<IS_EVEN, 2>(team, r);
        case WHARF_LINE_BDI_2_1:
            return line_quad_of_2(team, r);
        case LINE_KIND_FPC:
            return line_quad_of_fpc(team, steps, r);
        case LINE_KIND_PALETTE_3:
            return decode_bf16<3>(r);
        default:
            return decode_bf16<4>(r);
        }
    }

    /* collective.  Decodes n lines of a kind, each by its team of lanes. */
    template <uint32_t KIND>
    WHARF_DEVICE_MEMBER void decode_kind(const line_record *records, uint32_t n)
    {
        WHARF_NO_UNROLL
        for (uint32_t i = lane_id() / 8; i < n; i += WARP_LANES / 8) {
            line_record r = load(records + i);
            sink((r.places >> 20) + team.place, decode<KIND>(r));
        }
    }

    /* collective.  The same of cpack, whose lanes need each other: teams without a line repeat the
     * last one, unused. */
    WHARF_DEVICE_MEMBER void decode_cpack(const line_record *records, uint32_t n)
    {
        WHARF_NO_UNROLL
        for (uint32_t i = 0; i < n; i += WARP_LANES / 8) {
            uint32_t own = i + lane_id() / 8;
            line_record r = load(records + (own < n ? own : n - 1));
            u32x4 quad = line_quad_of_cpack(team, r);
            if (own < n)
                sink((r.places >> 20) + team.place, quad);
        }
    }

    /* collective.  The records of a kind begin behind those of the kinds before it.  `kinds`: a bit
     * for each kind that there is. */
    template <uint32_t KIND>
    WHARF_DEVICE_MEMBER void place_kind(uint32_t kinds, uint32_t own_kind, uint32_t *n,
                                        uint32_t *before, uint32_t *place)
    {
        n[KIND] = 0;
        if (!line_has_kind<CODEC>(KIND) || (kinds & 1u << KIND) == 0)
            return;
        uint32_t lines = ballot(own_kind == KIND);
        if (own_kind == KIND)
            *place = *before + popc(lines & lanemask_lt());
        n[KIND] = popc(lines);
        *before += n[KIND];
    }

    template <uint32_t KIND>
    WHARF_DEVICE_MEMBER const line_record *decode_all(const line_record *records, uint32_t n)
    {
        if (!line_has_kind<CODEC>(KIND))
            return records;
        if (KIND == LINE_KIND_CPACK)
            decode_cpack(records, n);
        else
            decode_kind<KIND>(records, n);
        return records + n;
    }

    /* collective.  Decodes a group's lines; each lane brings one or none.  `records` has room
     * for 32. Begins and ends with syncwarp(). */
    WHARF_DEVICE_MEMBER void decode_group(line_record *records, const line_record &own,
                                          uint32_t kind)
    {
        uint32_t n[LINE_N_KINDS], before = 0, place = 0;
        uint32_t kinds = reduce_or(1u << kind); /* most groups have few */
        place_kind<LINE_KIND_CONSTANT>(kinds, kind, n, &before, &place);
        place_kind<WHARF_LINE_BDI_8_1>(kinds, kind, n, &before, &place);
        place_kind<WHARF_LINE_BDI_8_2>(kinds, kind, n, &before, &place);
        place_kind<WHARF_LINE_BDI_8_4>(kinds, kind, n, &before, &place);
        place_kind<WHARF_LINE_BDI_4_1>(kinds, kind, n, &before, &place);
        place_kind<WHARF_LINE_BDI_4_2>(kinds, kind, n, &before, &place);
        place_kind<WHARF_LINE_BDI_2_1>(kinds, kind, n, &before, &place);
        place_kind<LINE_KIND_RAW>(kinds, kind, n, &before, &place);
        place_kind<LINE_KIND_FPC>(kinds, kind, n, &before, &place);
        place_kind<LINE_KIND_CPACK>(kinds, kind, n, &before, &place);
        place_kind<LINE_KIND_PALETTE_3>(kinds, kind, n, &before, &place);
        place_kind<LINE_KIND_PALETTE_4>(kinds, kind, n, &before, &place);
        syncwarp();
        if (kind != LINE_KIND_NONE)
            store(records + place, own);
        syncwarp();
        const line_record *next = records;
        next = decode_all<LINE_KIND_CONSTANT>(next, n[LINE_KIND_CONSTANT]);
        next = decode_all<WHARF_LINE_BDI_8_1>(next, n[WHARF_LINE_BDI_8_1]);
        next = decode_all<WHARF_LINE_BDI_8_2>(next, n[WHARF_LINE_BDI_8_2]);
        next = decode_all<WHARF_LINE_BDI_8_4>(next, n[WHARF_LINE_BDI_8_4]);
        next = decode_all<WHARF_LINE_BDI_4_1>(next, n[WHARF_LINE_BDI_4_1]);
        next = decode_all<WHARF_LINE_BDI_4_2>(next, n[WHARF_LINE_BDI_4_2]);
        next = decode_all<WHARF_LINE_BDI_2_1>(next, n[WHARF_LINE_BDI_2_1]);
        next = decode_all<LINE_KIND_RAW>(next, n[LINE_KIND_RAW]);
        next = decode_all<LINE_KIND_FPC>(next, n[LINE_KIND_FPC]);
        next = decode_all<LINE_KIND_CPACK>(next, n[LINE_KIND_CPACK]);
        next = decode_all<LINE_KIND_PALETTE_3>(next, n[LINE_KIND_PALETTE_3]);
        decode_all<LINE_KIND_PALETTE_4>(next, n[LINE_KIND_PALETTE_4]);
        syncwarp();
    }
};

} // namespace wharf

#endif
