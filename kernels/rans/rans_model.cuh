/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_model.cuh: a model's tables, built by the warp from its packed form, and looking up in them.
 *
 * One distribution of bytes has its tables in shared memory:
 *   n up to a limit         by slot, symbol, frequency and the slot's place in its range in 32 bits
 *   more                    by BUCKET_NBITS bits of the slot the symbol that its first slot belongs
 *                           to, and by symbol the range: slots near a bucket's end belong to one of
 *                           the next symbols
 * Other models have in scratch each symbol's first slot, where slots are found by halving.
 */
#ifndef WHARF_KERNELS_RANS_RANS_MODEL_CUH
#define WHARF_KERNELS_RANS_RANS_MODEL_CUH

#include "kernels/rans/rans_stream.cuh"

namespace wharf
{
namespace rans
{

/* For a table of each warp's own, and for one of a block: 4 and 8 KiB. */
constexpr unsigned WARP_PACKED_NBITS = 10;
constexpr unsigned BLOCK_PACKED_NBITS = 11;
constexpr unsigned BUCKET_NBITS = 11;

struct bucket_tables {
    uint32_t ranges[256]; /* frequency - 1 in the high half, first slot in the low half */
    uint8_t buckets[1 << BUCKET_NBITS];
};

struct distribution_table {
    uint32_t totals[WHARF_RANS_MAX_DISTRIBUTIONS]; /* slots from here on are nobody's */
    uint32_t ends[WHARF_RANS_MAX_DISTRIBUTIONS];   /* one more than the last symbol with a slot */
};

/* Shared memory of a model. */
template <unsigned PACKED>
union model_tables {
    uint32_t packed[1 << PACKED];
    bucket_tables bucket;
    distribution_table distributions;
};

/* Which of them a model has. */
enum class lookup { PACKED, BUCKET, GENERAL };

/* The same in all lanes. */
struct model {
    uint32_t *packed;
    bucket_tables *bucket;
    distribution_table *distributions;
    uint16_t *firsts; /* in scratch: of distribution d from d * alphabet on */
    uint32_t n_bits, alphabet, n_distributions, symbol_nbytes;
    bool is_full;   /* no slot is nobody's */
    uint32_t total; /* of the last distribution: slots from here on are nobody's */
    lookup kind;
};

/* ---- the packed form ------------------------------------------------------------------------ */

/* One lane.  n bits (at most 17) from bit `at` of the packed model on, least significant first. */
WHARF_DEVICE uint32_t model_bits(const stream &in, uint32_t at, uint32_t n)
{
    at += 8 * WHARF_RANS_HEADER_NBYTES + in.source.skew_nbits();
    return low_bits(
        funnel_right(in.source.load_word(at / 32), in.source.load_word(at / 32 + 1), at % 32), n);
}

WHARF_DEVICE uint32_t blocks_of(const stream &in)
{
    return ceil_div(in.alphabet, WHARF_RANS_BLOCK_NSYMBOLS);
}

WHARF_DEVICE uint32_t block_nsymbols(const stream &in, uint32_t block)
{
    uint32_t left = in.alphabet - block * WHARF_RANS_BLOCK_NSYMBOLS;
    return left < WHARF_RANS_BLOCK_NSYMBOLS ? left : WHARF_RANS_BLOCK_NSYMBOLS;
}

/* collective.  Whether the widths are allowed, and the packed form is as large as they say. */
WHARF_DEVICE bool widths_are_good(const stream &in)
{
    uint32_t n_blocks = blocks_of(in);
    uint32_t n_widths = n_blocks * in.n_distributions;
    uint32_t n_bits = 0;
    bool good = true;
    if (n_widths * WHARF_RANS_WIDTH_NBITS > 8 * (uint64_t)in.model_nbytes)
        return false;
    for (uint32_t i = lane_id(); i < n_widths; i += WARP_LANES) {
        uint32_t width = model_bits(in, i * WHARF_RANS_WIDTH_NBITS, WHARF_RANS_WIDTH_NBITS);
        good &= width <= WHARF_RANS_MAX_WIDTH;
        n_bits += width * block_nsymbols(in, i % n_blocks);
    }
    n_bits = reduce_add(n_bits) + n_widths * WHARF_RANS_WIDTH_NBITS;
    return !any_lane(!good) && (n_bits + 7) / 8 == in.model_nbytes;
}

/* ---- building ------------------------------------------------------------------------------ */

/* A block's symbol that is this lane's. */
struct entry {
    uint32_t distribution, symbol, frequency, first;
    bool exists; /* the block may be of fewer than 32 */
};

/* collective.  Enters a block into the tables, in the form that they have before finish_tables. */
WHARF_DEVICE void enter_block(const model &m, const entry &e)
{
    bool owns = e.exists && e.frequency > 0;
    if (m.kind == lookup::PACKED) {
        /* In the first slot of each range: larger for later symbols, and never 0. */
        if (owns)
            store(&m.packed[e.first], e.symbol << 23 | e.frequency << 11 | e.first);
    } else if (m.kind == lookup::BUCKET) {
        unsigned shift = m.n_bits - BUCKET_NBITS;
        uint32_t bucket = owns ? (e.first + (1u << shift) - 1) >> shift : 0xffffffffu;
        /* Several symbols may begin before the same bucket: it begins with the last one. */
        uint32_t same = match_any(bucket);
        if (bucket < 1u << BUCKET_NBITS && same >> lane_id() == 1)
            store(&m.bucket->buckets[bucket], (uint8_t)e.symbol);
        /* A symbol without slots has one that nobody comes to: slot 0's symbol owns its bucket. */
        if (e.exists)
            store(&m.bucket->ranges[e.symbol], owns ? (e.frequency - 1) << 16 | e.first : 0u);
    } else if (e.exists) {
        store(m.firsts + e.distribution * m.alphabet + e.symbol, (uint16_t)e.first);
    }
}

/* collective.  One distribution; `at` is the bit at which its frequencies begin, and then end. */
WHARF_DEVICE bool enter_distribution(const stream &in, model &m, uint32_t distribution,
                                     uint32_t &at)
{
    uint32_t n_blocks = blocks_of(in);
    uint32_t total = 0;
    uint32_t end = 0;
    for (uint32_t block = 0; block < n_blocks; block++) {
        uint32_t width = model_bits(in, (distribution * n_blocks + block) * WHARF_RANS_WIDTH_NBITS,
                                    WHARF_RANS_WIDTH_NBITS);
        uint32_t n = block_nsymbols(in, block);
        entry e = {distribution, block * WARP_LANES + lane_id(), 0, 0, lane_id() < n};
        if (e.exists)
            e.frequency = model_bits(in, at + lane_id() * width, width);
        uint32_t sum = inclusive_add(e.frequency);
        e.first = total + sum - e.frequency;
        total += shfl(sum, WARP_LANES - 1);
        if (total > 1u << m.n_bits)
            return false;
        uint32_t owners = ballot(e.frequency > 0);
        if (owners)
            end = block * WARP_LANES + WARP_LANES - clz(owners);
        enter_block(m, e);
        syncwarp(); /* a later block may enter the same bucket */
        at += n * width;
    }
    m.is_full &= total == 1u << m.n_bits;
    m.total = total;
    if (m.kind == lookup::GENERAL && lane_id() == 0) {
        store(&m.distributions->totals[distribution], total);
        store(&m.distributions->ends[distribution], end);
    }
    return total > 0;
}

/* collective.  Every slot, or bucket, gets what the last one before it was given. */
WHARF_DEVICE void finish_packed(const model &m)
{
    uint32_t carry = 0;
    for (uint32_t slot = lane_id(); slot < 1u << m.n_bits; slot += WARP_LANES) {
        uint32_t v = inclusive_max(load(&m.packed[slot]));
        v = v > carry ? v : carry;
        carry = shfl(v, WARP_LANES - 1);
        uint32_t frequency = v >> 11 & 0xfff;
        uint32_t place = slot - (v & 0x7ff);
        store(&m.packed[slot], place < frequency ? v >> 23 | frequency << 8 | place << 20 : 0u);
    }
}

WHARF_DEVICE void finish_buckets(const model &m)
{
    uint32_t carry = 0;
    for (uint32_t i = lane_id(); i < 1u << BUCKET_NBITS; i += WARP_LANES) {
        uint32_t v = inclusive_max(load(&m.bucket->buckets[i]));
        v = v > carry ? v : carry;
        carry = shfl(v, WARP_LANES - 1);
        store(&m.bucket->buckets[i], (uint8_t)v);
    }
}

/* collective.  The tables of a stream's model: false by rule 2. */
template <unsigned PACKED>
WHARF_DEVICE bool make_model(const stream &in, model_tables<PACKED> &tables, uint8_t *scratch,
                             model &m)
{
    uint32_t at = blocks_of(in) * in.n_distributions * WHARF_RANS_WIDTH_NBITS;
    m.packed = tables.packed;
    m.bucket = &tables.bucket;
    m.distributions = &tables.distributions;
    m.firsts = reinterpret_cast<uint16_t *>(scratch);
    m.n_bits = in.n_bits;
    m.alphabet = in.alphabet;
    m.n_distributions = in.n_distributions;
    m.symbol_nbytes = in.symbol_nbytes;
    m.is_full = true;
    m.total = 0;
    m.kind = in.n_distributions > 1 || in.symbol_nbytes > 1 ? lookup::GENERAL
             : in.n_bits <= PACKED                          ? lookup::PACKED
                                                            : lookup::BUCKET;
    if (!widths_are_good(in))
        return false;
    for (uint32_t i = lane_id(); i < sizeof(tables) / 4; i += WARP_LANES)
        store(&tables.packed[i], 0u);
    syncwarp();
    for (uint32_t d = 0; d < in.n_distributions; d++)
        if (!enter_distribution(in, m, d, at))
            return false;
    if (m.kind == lookup::PACKED)
        finish_packed(m);
    else if (m.kind == lookup::BUCKET)
        finish_buckets(m);
    syncwarp();
    return true;
}

/* ---- looking up ---------------------------------------------------------------------------- */

/* What a slot stands for.  Of the symbol only the bits that symbols have mean something. */
struct found {
    uint32_t symbol, frequency, place;
};

WHARF_DEVICE found find_packed(const model &m, uint32_t slot)
{
    uint32_t v = load(&m.packed[slot]);
    return {v, v >> 8 & 0xfff, v >> 20};
}

/* A slot that is somebody's. */
WHARF_DEVICE found find_in_bucket(const model &m, uint32_t slot)
{
    uint32_t symbol = load(&m.bucket->buckets[slot >> (m.n_bits - BUCKET_NBITS)]);
    uint32_t range = load(&m.bucket->ranges[symbol]);
    while (slot - (range & 0xffff) > range >> 16) {
        symbol++;
        range = load(&m.bucket->ranges[symbol & 0xff]);
    }
    return {symbol, (range >> 16) + 1, slot - (range & 0xffff)};
}

/* A slot that is somebody's: of the last symbol whose range begins at it or before. */
WHARF_DEVICE found find_by_halving(const model &m, uint32_t distribution, uint32_t slot)
{
    const uint16_t *firsts = m.firsts + distribution * m.alphabet;
    uint32_t low = 0;
    uint32_t high = load(&m.distributions->ends[distribution]);
    uint32_t end = high;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        bool before = load(firsts + middle) <= slot;
        low = before ? middle : low;
        high = before ? high : middle;
    }
    uint32_t first = load(firsts + low);
    uint32_t next =
        low + 1 < end ? load(firsts + low + 1) : load(&m.distributions->totals[distribution]);
    return {low, next - first, slot - first};
}

/* One lane.  A slot of a distribution; frequency 0 when it is nobody's. */
template <lookup KIND>
WHARF_DEVICE found find(const model &m, const stream &in, uint32_t number, uint32_t slot)
{
    if (KIND == lookup::PACKED)
        return find_packed(m, slot);
    if (KIND == lookup::BUCKET)
        return m.is_full || slot < m.total ? find_in_bucket(m, slot) : found{0, 0, 0};
    uint32_t distribution = m.n_distributions > 1 ? byte_at(in, in.indexes_at + number) : 0;
    /* Checked before; but the bound that counts is the tables' own. */
    distribution &= WHARF_RANS_MAX_DISTRIBUTIONS - 1;
    return slot < load(&m.distributions->totals[distribution])
               ? find_by_halving(m, distribution, slot)
               : found{0, 0, 0};
}

} // namespace rans
} // namespace wharf

#endif
