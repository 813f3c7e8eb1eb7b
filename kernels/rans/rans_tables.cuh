/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_tables.cuh: tables of one distribution of bytes, built and shared by all warps of a block.
 *
 * One warp loads the whole packed model at once and computes each symbol's range.  Then every lane
 * of the block finds the symbols of its own slots by bisection, so the time does not depend on the
 * model.
 */
#ifndef WHARF_KERNELS_RANS_RANS_TABLES_CUH
#define WHARF_KERNELS_RANS_RANS_TABLES_CUH

#include "kernels/rans/rans_spread.cuh"

namespace wharf
{
namespace rans
{

/* Words that a packed model, which may begin at any bit of the first, lies in. */
constexpr unsigned PACKED_MODEL_NWORDS = 5 * WARP_LANES;
static_assert(32 * (PACKED_MODEL_NWORDS - 2) >=
              MAX_BYTE_BLOCKS * WHARF_RANS_WIDTH_NBITS + 256 * WHARF_RANS_MAX_WIDTH);

/* Shared memory of a block, aligned to 16 bytes. */
struct block_ranges {
    uint32_t firsts[256];     /* the slots before each symbol's */
    uint32_t ranges[256 + 1]; /* as bucket_tables has them */
    uint32_t packed[PACKED_MODEL_NWORDS];
    uint32_t last;  /* symbol that has slots */
    uint32_t total; /* slots from here on are nobody's; 0: the model is bad */
};

/* One lane.  Word i of the input, if it is wholly input; another one if not. */
WHARF_DEVICE uint32_t inner_word(const stream &in, uint32_t i)
{
    uint32_t last = in.source.end / 4 - 1;
    return load_nc(reinterpret_cast<const uint32_t *>(in.source.aligned) + (i < last ? i : last));
}

/* collective.  n bits, up to 31, of the packed model in `r` from bit `at` on. */
WHARF_DEVICE uint32_t packed_bits(const stream &in, const block_ranges &r, uint32_t at, uint32_t n)
{
    at += 8 * ((in.source.begin + WHARF_RANS_HEADER_NBYTES) % 4);
    uint32_t i = at / 32;
    /* As far as a model can be good. */
    i = i < PACKED_MODEL_NWORDS - 2 ? i : PACKED_MODEL_NWORDS - 2;
    return low_bits(funnel_right(load(&r.packed[i]), load(&r.packed[i + 1]), at % 32), n);
}

/* One lane.  Eight symbols' slots. */
struct eight_symbols {
    uint32_t frequency[8];
};

/* collective.  Those of symbols 8 * lane_id() and on; false by rule 2, but for their sum. */
WHARF_DEVICE bool read_eight(const stream &in, const block_ranges &r, eight_symbols &s)
{
    uint32_t n_blocks = blocks_of(in), block = lane_id() / 4, n = 0, width = 0;
    if (block < n_blocks) {
        width = packed_bits(in, r, block * WHARF_RANS_WIDTH_NBITS, WHARF_RANS_WIDTH_NBITS);
        n = width * block_nsymbols(in, block);
    }
    uint32_t behind = n_blocks * WHARF_RANS_WIDTH_NBITS + inclusive_add(lane_id() % 4 ? 0 : n);
    uint32_t at = behind - n + 8 * (lane_id() % 4) * width;
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++) {
        bool exists = 8 * lane_id() + i < in.alphabet;
        s.frequency[i] = packed_bits(in, r, at + i * width, exists ? width : 0);
    }
    return !any_lane(width > WHARF_RANS_MAX_WIDTH) &&
           (uniform(shfl(behind, WARP_LANES - 1)) + 7) / 8 == in.model_nbytes;
}

/* A lane's words of a packed model. */
struct model_words {
    uint32_t v[PACKED_MODEL_NWORDS / WARP_LANES];

    WHARF_DEVICE_MEMBER void load(const stream &in)
    {
        uint32_t first = (in.source.begin + WHARF_RANS_HEADER_NBYTES) / 4 + lane_id();
        WHARF_UNROLL
        for (unsigned i = 0; i < PACKED_MODEL_NWORDS / WARP_LANES; i++)
            v[i] = inner_word(in, first + WARP_LANES * i);
    }
};

/* collective.  `r`, from the stream's model, of which these are the words. */
WHARF_DEVICE void read_ranges(const stream &in, const model_words &words, block_ranges &r)
{
    WHARF_UNROLL
    for (unsigned i = 0; i < PACKED_MODEL_NWORDS / WARP_LANES; i++)
        store(&r.packed[WARP_LANES * i + lane_id()], words.v[i]);
    syncwarp();
    eight_symbols s;
    bool good = read_eight(in, r, s);
    uint32_t sum = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++)
        sum += s.frequency[i];
    uint32_t behind = inclusive_add(sum);
    uint32_t first = behind - sum, total = shfl(behind, WARP_LANES - 1), last = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++) {
        uint32_t f = s.frequency[i], symbol = 8 * lane_id() + i;
        store(&r.firsts[symbol], first);
        store(&r.ranges[symbol], (f > 0 ? (f - 1) << 16 : 0u) | (first & 0xffff));
        first += f;
        last = f > 0 ? symbol : last;
    }
    last = reduce_max(last);
    if (lane_id() == 0) {
        store(&r.ranges[256], 0u);
        store(&r.last, last);
        store(&r.total, good && total <= 1u << in.n_bits ? total : 0u);
    }
}

/* One lane.  Whose slots below the total are: the last symbol's whose slots begin with it or
 * before; those without slots begin where the next one does.  Of several side by side, since each
 * step waits for the one before. */
template <unsigned N>
WHARF_DEVICE void find_symbols(const block_ranges &r, const uint32_t slots[N], uint32_t symbols[N])
{
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        symbols[k] = 0;
    WHARF_UNROLL
    for (uint32_t half = 128; half > 0; half /= 2)
        WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        symbols[k] += load(&r.firsts[symbols[k] + half]) <= slots[k] ? half : 0;
}

/* ---- filling, by thread number `thread` of a block's THREADS --------------------------------- */

/* This thread's slots of 2^PACKED_NBITS, or as many buckets. */
template <unsigned THREADS>
struct thread_slots {
    static constexpr unsigned N = ((1 << PACKED_NBITS) + THREADS - 1) / THREADS;
};
static_assert(BUCKET_NBITS == PACKED_NBITS);

/* PACKED, n up to 11. */
template <unsigned THREADS>
WHARF_DEVICE void fill_packed(uint32_t *packed, const block_ranges &r, uint32_t n_bits,
                              uint32_t thread)
{
    constexpr unsigned N = thread_slots<THREADS>::N;
    uint32_t slots[N], symbols[N], total = load(&r.total);
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        slots[k] = thread + k * THREADS;
    find_symbols<N>(r, slots, symbols);
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++) {
        uint32_t range = load(&r.ranges[symbols[k]]);
        uint32_t entry = packed_entry(symbols[k], slots[k] - (range & 0xffff), (range >> 16) + 1);
        if (slots[k] < 1u << n_bits)
            store(&packed[slots[k]], slots[k] < total ? entry : PACKED_NOBODYS);
    }
}

/* BUCKET, n from 12 on. */
template <unsigned THREADS>
WHARF_DEVICE void fill_buckets(uint8_t *buckets, const block_ranges &r, uint32_t n_bits,
                               uint32_t thread)
{
    constexpr unsigned N = thread_slots<THREADS>::N;
    uint32_t slots[N], symbols[N], total = load(&r.total);
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++) {
        slots[k] = (thread + k * THREADS) << (n_bits - BUCKET_NBITS);
        slots[k] = slots[k] < total ? slots[k] : total - 1;
    }
    find_symbols<N>(r, slots, symbols);
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        if (thread + k * THREADS < 1u << BUCKET_NBITS)
            store(&buckets[thread + k * THREADS], (uint8_t)symbols[k]);
    if (thread == 0)
        store(&buckets[1 << BUCKET_NBITS], (uint8_t)load(&r.last));
}

/* SPREAD, from the same model's PACKED entries. */
template <unsigned THREADS>
WHARF_DEVICE void fill_words(spread_tables &t, const uint32_t *packed, uint32_t n_bits,
                             uint32_t thread)
{
    u32x4 *quads = reinterpret_cast<u32x4 *>(t.words);
    WHARF_UNROLL_BY(4)
    for (uint32_t i = thread; i < (1u << SPREAD_NBITS) / 4; i += THREADS) {
        uint32_t v = load(&packed[4 * i >> (SPREAD_NBITS - n_bits)]);
        store(&quads[i], u32x4{v, v, v, v});
    }
}

/* One lane.  The symbols of 16 slots from `slot` on; of those that are nobody's any. */
WHARF_DEVICE u32x4 symbols_from(const block_ranges &r, uint32_t slot)
{
    uint32_t words[4] = {0, 0, 0, 0};
    uint32_t total = load(&r.total), symbol = 0, end = slot; /* of its range */
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        WHARF_NO_UNROLL
        for (unsigned k = 0; k < 4; k++, slot++) {
            if (slot >= end && slot < total) {
                find_symbols<1>(r, &slot, &symbol);
                uint32_t range = load(&r.ranges[symbol]);
                end = (range & 0xffff) + (range >> 16) + 1;
            }
            words[i] |= symbol << 8 * k;
        }
    }
    return {words[0], words[1], words[2], words[3]};
}

/* RANGED, n from 12 on. */
template <unsigned THREADS>
WHARF_DEVICE void fill_ranged(spread_tables &t, const block_ranges &r, uint32_t n_bits,
                              uint32_t thread)
{
    u32x4 *quads = reinterpret_cast<u32x4 *>(t.ranged.symbols);
    WHARF_NO_UNROLL
    for (uint32_t i = thread; i < (1u << n_bits) / sizeof(u32x4); i += THREADS)
        store(&quads[i], symbols_from(r, (uint32_t)sizeof(u32x4) * i));
    WHARF_UNROLL_BY(4)
    for (uint32_t i = thread; i < 256 * WARP_LANES; i += THREADS)
        store(&t.ranged.ranges[i / WARP_LANES][i % WARP_LANES], load(&r.ranges[i / WARP_LANES]));
}

/* ---- tables of a block ---------------------------------------------------------------------- */

/* 11 KiB, for blocks that have little to look up. */
struct few_tables {
    model_tables<PACKED_NBITS> tables;
    block_ranges ranges;
};

/* 139 KiB, for those that have much. */
struct many_tables {
    spread_tables spread;
    uint32_t packed[1 << PACKED_NBITS];
    block_ranges ranges;
};

/* All lanes of a block.  Tables from what one of its warps stored to `ranges` before. */
template <lookup KIND, unsigned THREADS>
WHARF_DEVICE void fill_tables(few_tables &t, uint32_t n_bits, uint32_t thread)
{
    syncblock();
    if (KIND == lookup::PACKED)
        fill_packed<THREADS>(t.tables.packed, t.ranges, n_bits, thread);
    else
        fill_buckets<THREADS>(t.tables.bucket.buckets, t.ranges, n_bits, thread);
    syncblock();
}

template <lookup KIND, unsigned THREADS>
WHARF_DEVICE void fill_tables(many_tables &t, uint32_t n_bits, uint32_t thread)
{
    syncblock();
    if (KIND == lookup::SPREAD) {
        fill_packed<THREADS>(t.packed, t.ranges, n_bits, thread);
        syncblock();
        fill_words<THREADS>(t.spread, t.packed, n_bits, thread);
    } else {
        fill_ranged<THREADS>(t.spread, t.ranges, n_bits, thread);
    }
    syncblock();
}

/* The model that has them. */
WHARF_DEVICE model model_of(const block_ranges &r, uint32_t n_bits)
{
    model m = {};
    m.n_bits = n_bits;
    m.total = load(&r.total);
    return m;
}

template <lookup KIND>
WHARF_DEVICE model with_tables(few_tables &t, uint32_t n_bits)
{
    model m = with_tables(model_of(t.ranges, n_bits), t.tables);
    m.ranges = t.ranges.ranges;
    return m;
}

template <lookup KIND>
WHARF_DEVICE model with_tables(many_tables &t, uint32_t n_bits)
{
    return with_spread<KIND>(model_of(t.ranges, n_bits), t.spread);
}

} // namespace rans
} // namespace wharf

#endif
