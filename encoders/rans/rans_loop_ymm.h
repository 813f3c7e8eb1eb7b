/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_loop_ymm.h: what is the same in both forms for AVX2.  A form's file defines before, inlined,
 *
 *   load_eight     the entries of a packed table at 8 places
 *   load_pairs     those of buckets, as rans_gather_ymm.h says
 *
 * and LOOP_NAME and N_WALKS.
 */
#include "encoders/rans/rans_gather_ymm.h"

struct lanes {
    __m256i quarter[4];
    __m256i seen; /* what slots gave, all together: view.bad has the bit that tells */
};

/* All ones for coders that need a word. */
struct takes {
    __m256i quarter[4];
};

/*
 * For a mask of 8 coders, the bytes of the words that they take, as each has them: 14 and 15 are of
 * the first that is read, since words are read downwards.  The others take zeros.
 */
static const uint64_t takers[256][2] = {
#define RANK(m, i) (uint64_t)(2 * (7 - __builtin_popcount((m) & ((1u << (i)) - 1))))
#define PLACE(m, i) ((m) >> (i)&1 ? RANK(m, i) | (RANK(m, i) + 1) << 8 : 0x8080u) << 16 * ((i) % 4)
#define ROW(m)                                                                                     \
    {                                                                                              \
        PLACE(m, 0) | PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3),                                     \
            PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7)                                  \
    }
#define ROWS4(m) ROW(m), ROW((m) + 1), ROW((m) + 2), ROW((m) + 3)
#define ROWS16(m) ROWS4(m), ROWS4((m) + 4), ROWS4((m) + 8), ROWS4((m) + 12)
#define ROWS64(m) ROWS16(m), ROWS16((m) + 16), ROWS16((m) + 32), ROWS16((m) + 48)
    ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};

LANES_INLINE __m256i load_256(const void *p)
{
    return _mm256_loadu_si256((const __m256i_u *)p);
}

LANES_INLINE struct lanes lanes_load(const uint32_t *states)
{
    return (struct lanes){
        {load_256(states), load_256(states + 8), load_256(states + 16), load_256(states + 24)},
        _mm256_setzero_si256()};
}

LANES_INLINE void lanes_store(const struct lanes *lanes, uint32_t *states)
{
    for (int i = 0; i < 4; i++)
        _mm256_storeu_si256((__m256i_u *)(states + 8 * i), lanes->quarter[i]);
}

LANES_INLINE bool lanes_are_bad(const struct view *view, const struct lanes *lanes)
{
    return !_mm256_testz_si256(lanes->seen, _mm256_set1_epi32((int)view->bad));
}

/* The mask of the elements that are all ones; the others are zero. */
LANES_INLINE uint32_t elements_of(__m256i ones)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(ones));
}

LANES_INLINE uint32_t mask_of(struct takes takes)
{
    uint32_t mask = 0;

    for (int i = 0; i < 4; i++)
        mask |= elements_of(takes.quarter[i]) << 8 * i;
    return mask;
}

LANES_INLINE struct takes takes_of(uint32_t mask)
{
    const __m256i bits = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    struct takes takes;

    for (int i = 0; i < 4; i++)
        takes.quarter[i] = _mm256_cmpeq_epi32(
            _mm256_and_si256(_mm256_set1_epi32((int)(mask >> 8 * i)), bits), bits);
    return takes;
}

LANES_INLINE __m256i find_slots(const struct view *view, __m256i states)
{
    return _mm256_and_si256(states, _mm256_set1_epi32((1 << view->n_bits) - 1));
}

LANES_INLINE __m256i find_quotients(const struct view *view, __m256i states)
{
    return _mm256_srlv_epi32(states, _mm256_set1_epi32((int)view->n_bits));
}

/* The symbols of a quarter, in the lowest bytes, whose states go on. */
LANES_INLINE __m256i decode_packed(const struct view *view, __m256i *states, __m256i *seen)
{
    __m256i packed = load_eight(view->packed, find_slots(view, *states));
    __m256i place = _mm256_and_si256(_mm256_srli_epi32(packed, 8), _mm256_set1_epi32(0xfff));
    __m256i f = _mm256_srli_epi32(packed, 20);

    *seen = _mm256_or_si256(*seen, packed);
    *states = _mm256_add_epi32(_mm256_mullo_epi32(f, find_quotients(view, *states)), place);
    return _mm256_and_si256(packed, _mm256_set1_epi32(0xff));
}

/* Numbers of the distribution that each symbol has, times `stride`. */
LANES_INLINE __m256i scale_indexes(const struct view *view, uint64_t number, uint32_t stride)
{
    __m256i indexes =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)(view->indexes + number)));

    return _mm256_mullo_epi32(indexes, _mm256_set1_epi32((int)stride));
}

/* Symbols of slots, and their ranges. */
LANES_INLINE __m256i look_up(const struct view *view, struct lookup lookup, __m256i slots,
                             uint64_t number, __m256i *ranges)
{
    __m256i slots_at = slots;
    __m256i ranges_at = _mm256_setzero_si256();
    __m256i symbols;

    if (lookup.is_indexed) {
        slots_at = _mm256_add_epi32(slots, scale_indexes(view, number, 1u << view->n_bits));
        ranges_at = scale_indexes(view, number, view->alphabet);
    }
    symbols =
        _mm256_and_si256(gather_8_halves(view->slot_symbols, slots_at), _mm256_set1_epi32(0xffff));
    *ranges = gather_8(view->ranges, _mm256_add_epi32(ranges_at, symbols));
    return symbols;
}

/* The same of their buckets' middle slots. */
LANES_INLINE __m256i look_up_buckets(const struct view *view, __m256i slots, __m256i *ranges)
{
    __m256i at = _mm256_srlv_epi32(slots, _mm256_set1_epi32((int)view->bucket_nbits));
    struct pairs pairs = load_pairs(view->buckets->of, at);
    __m256 a = _mm256_castsi256_ps(pairs.a);
    __m256 b = _mm256_castsi256_ps(pairs.b);

    /* Shuffles are within halves of 128 bits. */
    *ranges = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
}

/* A quarter gone on: all ones where a slot is not in the range that was found for it. */
struct step {
    __m256i symbols;
    __m256i states;
    __m256i beyond;
};

LANES_INLINE struct step decode_quarter(const struct view *view, struct lookup lookup,
                                        __m256i states, uint64_t number)
{
    __m256i slots = find_slots(view, states);
    __m256i quotients = find_quotients(view, states);
    __m256i ranges;
    __m256i symbols = lookup.is_bucketed ? look_up_buckets(view, slots, &ranges)
                                         : look_up(view, lookup, slots, number, &ranges);
    __m256i less_1 = _mm256_and_si256(ranges, _mm256_set1_epi32(0xffff));
    /* Modulo 2^16: of a slot before its range, that is behind it too. */
    __m256i places = _mm256_sub_epi16(slots, _mm256_srli_epi32(ranges, 16));

    return (struct step){symbols,
                         _mm256_add_epi32(_mm256_mullo_epi32(less_1, quotients),
                                          _mm256_add_epi32(quotients, places)),
                         _mm256_cmpgt_epi32(places, less_1)};
}

/* All four quarters; those where buckets did not do once more, by slots. */
LANES_INLINE void decode_quarters(const struct view *view, struct lookup lookup,
                                  struct lanes *lanes, uint64_t number, __m256i *symbols)
{
    struct step steps[4];
    __m256i any = _mm256_setzero_si256();

#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        steps[i] = decode_quarter(view, lookup, lanes->quarter[i], number + 8 * i);
        any = _mm256_or_si256(any, steps[i].beyond);
    }
    if (!lookup.is_bucketed) {
        lanes->seen = _mm256_or_si256(lanes->seen, any);
    } else if (__builtin_expect(!_mm256_testz_si256(any, any), 0)) {
        lookup.is_bucketed = false;
#pragma GCC unroll 4
        for (uint32_t i = 0; i < 4; i++) {
            if (_mm256_testz_si256(steps[i].beyond, steps[i].beyond))
                continue;
            steps[i] = decode_quarter(view, lookup, lanes->quarter[i], number + 8 * i);
            lanes->seen = _mm256_or_si256(lanes->seen, steps[i].beyond);
        }
    }
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        symbols[i] = steps[i].symbols;
        lanes->quarter[i] = steps[i].states;
    }
}

/* 32 symbols, in order, to their 1 or 2 bytes each. */
LANES_INLINE void store_symbols(const __m256i *symbols, struct lookup lookup, uint8_t *out)
{
    __m256i low = _mm256_packus_epi32(symbols[0], symbols[1]);
    __m256i high = _mm256_packus_epi32(symbols[2], symbols[3]);

    if (lookup.symbol_nbytes == 2) {
        _mm256_storeu_si256((__m256i_u *)out, _mm256_permute4x64_epi64(low, 0xd8));
        _mm256_storeu_si256((__m256i_u *)(out + 32), _mm256_permute4x64_epi64(high, 0xd8));
    } else {
        /* Packing works in halves of 128 bits: the fours of symbols come out as 0 2 4 6 1 3 5 7. */
        __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);

        _mm256_storeu_si256((__m256i_u *)out,
                            _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
    }
}

/* Nothing is looked up ahead: that would take more registers than there are. */
struct found {
    char nothing;
};

LANES_INLINE struct found lanes_look_up(const struct view *view, struct lookup lookup,
                                        const struct lanes *lanes)
{
    (void)view, (void)lookup, (void)lanes;
    return (struct found){0};
}

LANES_INLINE struct takes lanes_decode(const struct view *view, struct lookup lookup,
                                       struct lanes *lanes, struct found found, uint32_t group)
{
    uint64_t number = (uint64_t)group * WHARF_RANS_N_LANES;
    __m256i symbols[4];
    struct takes takes;
    (void)found;

    if (!lookup.is_packed)
        decode_quarters(view, lookup, lanes, number, symbols);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; i++) {
        if (lookup.is_packed)
            symbols[i] = decode_packed(view, &lanes->quarter[i], &lanes->seen);
        takes.quarter[i] =
            _mm256_cmpeq_epi32(_mm256_srli_epi32(lanes->quarter[i], 16), _mm256_setzero_si256());
    }
    store_symbols(symbols, lookup, view->out + number * lookup.symbol_nbytes);
    return takes;
}

/* States of coders that take a word are moved by 16 bits, and what the others take is zero. */
LANES_INLINE const uint8_t *lanes_take(struct lanes *lanes, struct takes takes,
                                       const uint8_t *place)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        uint32_t mask = elements_of(takes.quarter[i]);
        __m128i order = _mm_loadu_si128((const __m128i_u *)takers[mask]);
        __m128i words = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i_u *)(place - 16)), order);
        __m256i by = _mm256_and_si256(takes.quarter[i], _mm256_set1_epi32(16));

        lanes->quarter[i] =
            _mm256_or_si256(_mm256_sllv_epi32(lanes->quarter[i], by), _mm256_cvtepu16_epi32(words));
        place -= 2 * __builtin_popcount(mask);
    }
    return place;
}

LANES_INLINE uint32_t lanes_match(const struct lanes *lanes, const uint16_t *states)
{
    uint32_t matches = 0;

    for (int i = 0; i < 4; i++) {
        __m256i wanted =
            _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(states + 8 * i)));

        matches |= elements_of(_mm256_cmpeq_epi32(lanes->quarter[i], wanted)) << 8 * i;
    }
    return matches;
}

LANES_INLINE uint32_t start_masks(const uint32_t *starts, uint32_t group, uint32_t *ret_later)
{
    uint32_t now = 0;
    uint32_t later = 0;

    /* Groups are below 2^26, so comparing them as signed does no harm. */
    for (int i = 0; i < 4; i++) {
        __m256i start = load_256(starts + 8 * i);
        __m256i this = _mm256_set1_epi32((int)group);

        now |= elements_of(_mm256_cmpeq_epi32(start, this)) << 8 * i;
        later |= elements_of(_mm256_cmpgt_epi32(start, this)) << 8 * i;
    }
    *ret_later = later;
    return now;
}

#include "encoders/rans/rans_loop_body.h"
