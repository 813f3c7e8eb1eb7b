/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_loop_zmm.h: what is the same in both forms for AVX-512.  A form's file defines before,
 * inlined,
 *
 *   store_bytes     the lowest byte of each element
 *   take_words      the coders of a mask take words downwards from a place on
 *
 * and LOOP_NAME.
 */
#include "encoders/rans/rans_gather_zmm.h"

struct lanes {
    __m512i half[2];
    __m512i seen; /* what slots gave, all together: view.bad has the bit that tells */
};

struct takes {
    __mmask16 half[2];
};

LANES_INLINE struct lanes lanes_load(const uint32_t *states)
{
    return (struct lanes){{_mm512_loadu_si512(states), _mm512_loadu_si512(states + 16)},
                          _mm512_setzero_si512()};
}

LANES_INLINE void lanes_store(const struct lanes *lanes, uint32_t *states)
{
    _mm512_storeu_si512(states, lanes->half[0]);
    _mm512_storeu_si512(states + 16, lanes->half[1]);
}

LANES_INLINE bool lanes_are_bad(const struct view *view, const struct lanes *lanes)
{
    return _mm512_test_epi32_mask(lanes->seen, _mm512_set1_epi32((int)view->bad)) != 0;
}

LANES_INLINE uint32_t mask_of(struct takes takes)
{
    return takes.half[0] | (uint32_t)takes.half[1] << 16;
}

LANES_INLINE struct takes takes_of(uint32_t mask)
{
    return (struct takes){{(__mmask16)mask, (__mmask16)(mask >> 16)}};
}

LANES_INLINE __m512i find_slots(const struct view *view, __m512i states)
{
    return _mm512_and_si512(states, _mm512_set1_epi32((1 << view->n_bits) - 1));
}

LANES_INLINE __m512i find_quotients(const struct view *view, __m512i states)
{
    return _mm512_srlv_epi32(states, _mm512_set1_epi32((int)view->n_bits));
}

/* What each slot gives. */
LANES_INLINE __m512i look_up_packed(const struct view *view, __m512i states)
{
    return gather_16(view->packed, find_slots(view, states));
}

LANES_INLINE __m512i states_behind_packed(const struct view *view, __m512i states, __m512i packed)
{
    __m512i place = _mm512_and_si512(_mm512_srli_epi32(packed, 8), _mm512_set1_epi32(0xfff));
    __m512i f = _mm512_srli_epi32(packed, 20);

    return _mm512_add_epi32(_mm512_mullo_epi32(f, find_quotients(view, states)), place);
}

/* Numbers of the distribution that each symbol has, times `stride`. */
LANES_INLINE __m512i scale_indexes(const struct view *view, uint64_t number, uint32_t stride)
{
    __m512i indexes =
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)(view->indexes + number)));

    return _mm512_mullo_epi32(indexes, _mm512_set1_epi32((int)stride));
}

/* Symbols of slots, and their ranges. */
LANES_INLINE __m512i look_up(const struct view *view, struct lookup lookup, __m512i slots,
                             uint64_t number, __m512i *ranges)
{
    __m512i slots_at = slots;
    __m512i ranges_at = _mm512_setzero_si512();
    __m512i symbols;

    if (lookup.is_indexed) {
        slots_at = _mm512_add_epi32(slots, scale_indexes(view, number, 1u << view->n_bits));
        ranges_at = scale_indexes(view, number, view->alphabet);
    }
    symbols =
        _mm512_and_si512(gather_16_halves(view->slot_symbols, slots_at), _mm512_set1_epi32(0xffff));
    *ranges = gather_16(view->ranges, _mm512_add_epi32(ranges_at, symbols));
    return symbols;
}

/* The same of their buckets' middle slots. */
LANES_INLINE __m512i look_up_buckets(const struct view *view, __m512i slots, __m512i *ranges)
{
    __m512i symbols;

    gather_16_pairs(view->buckets->of,
                    _mm512_srlv_epi32(slots, _mm512_set1_epi32((int)view->bucket_nbits)), ranges,
                    &symbols);
    return symbols;
}

/* Places of slots in ranges, modulo 2^16: of a slot before its range, that is behind it too. */
LANES_INLINE __m512i find_places(__m512i slots, __m512i ranges)
{
    return _mm512_sub_epi16(slots, _mm512_srli_epi32(ranges, 16));
}

LANES_INLINE __m512i find_less_1(__m512i ranges)
{
    return _mm512_and_si512(ranges, _mm512_set1_epi32(0xffff));
}

/* The symbols of a half, whose states go on. */
LANES_INLINE __m512i decode_half(const struct view *view, struct lookup lookup, __m512i *states,
                                 uint64_t number, __m512i *seen)
{
    __m512i slots = find_slots(view, *states);
    __m512i quotients = find_quotients(view, *states);
    __m512i ranges;
    __m512i symbols = lookup.is_bucketed ? look_up_buckets(view, slots, &ranges)
                                         : look_up(view, lookup, slots, number, &ranges);
    __m512i less_1 = find_less_1(ranges);
    __m512i places = find_places(slots, ranges);
    __mmask16 beyond = _mm512_cmpgt_epi32_mask(places, less_1);

    if (lookup.is_bucketed && __builtin_expect(beyond != 0, 0)) {
        symbols = look_up(view, lookup, slots, number, &ranges);
        less_1 = find_less_1(ranges);
        places = find_places(slots, ranges);
        beyond = _mm512_cmpgt_epi32_mask(places, less_1);
    }
    *seen = _mm512_mask_set1_epi32(*seen, beyond, -1);
    *states = _mm512_add_epi32(_mm512_mullo_epi32(less_1, quotients),
                               _mm512_add_epi32(quotients, places));
    return symbols;
}

LANES_INLINE void store_symbols(const struct view *view, struct lookup lookup, uint64_t number,
                                __m512i symbols)
{
    if (lookup.symbol_nbytes == 1)
        store_bytes(view->out + number, symbols);
    else
        _mm256_storeu_si256((__m256i_u *)(view->out + 2 * number), _mm512_cvtepi32_epi16(symbols));
}

/* What both halves' slots give, if the table is packed. */
struct found {
    __m512i half[2];
};

LANES_INLINE struct found lanes_look_up(const struct view *view, struct lookup lookup,
                                        const struct lanes *lanes)
{
    if (!lookup.is_packed)
        return (struct found){{_mm512_setzero_si512(), _mm512_setzero_si512()}};
    return (struct found){
        {look_up_packed(view, lanes->half[0]), look_up_packed(view, lanes->half[1])}};
}

LANES_INLINE struct takes lanes_decode(const struct view *view, struct lookup lookup,
                                       struct lanes *lanes, struct found found, uint32_t group)
{
    const __m512i low = _mm512_set1_epi32(WHARF_RANS_LOW);
    uint64_t number = (uint64_t)group * WHARF_RANS_N_LANES;
    __m512i *states = lanes->half;

    if (lookup.is_packed) {
        /* All bits of all three. */
        lanes->seen = _mm512_ternarylogic_epi32(lanes->seen, found.half[0], found.half[1], 0xfe);
        states[0] = states_behind_packed(view, states[0], found.half[0]);
        states[1] = states_behind_packed(view, states[1], found.half[1]);
    } else {
        found.half[0] = decode_half(view, lookup, &states[0], number, &lanes->seen);
        found.half[1] = decode_half(view, lookup, &states[1], number + 16, &lanes->seen);
    }
    store_symbols(view, lookup, number, found.half[0]);
    store_symbols(view, lookup, number + 16, found.half[1]);
    return (struct takes){
        {_mm512_cmplt_epu32_mask(states[0], low), _mm512_cmplt_epu32_mask(states[1], low)}};
}

LANES_INLINE const uint8_t *lanes_take(struct lanes *lanes, struct takes takes,
                                       const uint8_t *place)
{
    const uint8_t *second = place - 2 * __builtin_popcount(takes.half[0]);

    lanes->half[0] = take_words(lanes->half[0], takes.half[0], place);
    lanes->half[1] = take_words(lanes->half[1], takes.half[1], second);
    return second - 2 * __builtin_popcount(takes.half[1]);
}

LANES_INLINE uint32_t lanes_match(const struct lanes *lanes, const uint16_t *states)
{
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)states));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(states + 16)));

    return _mm512_cmpeq_epi32_mask(lanes->half[0], low) |
           (uint32_t)_mm512_cmpeq_epi32_mask(lanes->half[1], high) << 16;
}

LANES_INLINE uint32_t start_masks(const uint32_t *starts, uint32_t group, uint32_t *ret_later)
{
    __m512i now = _mm512_set1_epi32((int)group);
    __m512i low = _mm512_loadu_si512(starts);
    __m512i high = _mm512_loadu_si512(starts + 16);

    *ret_later = _mm512_cmpgt_epu32_mask(low, now) | (uint32_t)_mm512_cmpgt_epu32_mask(high, now)
                                                         << 16;
    return _mm512_cmpeq_epi32_mask(low, now) | (uint32_t)_mm512_cmpeq_epi32_mask(high, now) << 16;
}

#define N_WALKS 4
#include "encoders/rans/rans_loop_body.h"
