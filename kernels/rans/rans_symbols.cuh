/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_symbols.cuh: the fast loop of chains (rans_chains.cuh) for 16-bit symbols or several
 * distributions, with a registered model, where no window, end of words or last symbol is near.
 *
 * Each symbol's distribution is known beforehand: the indexes of a batch are in shared memory, and
 * those of the next batch are being loaded, to registers.  A look-up is two dependent loads.  If
 * the first-level cache can hold all slots, they are a slot's symbol and the symbol's range.
 * Otherwise they are a bucket and a window (encoders/rans/rans_window.h), rarely a second window;
 * the cache holds those that are used often.
 */
#ifndef WHARF_KERNELS_RANS_RANS_SYMBOLS_CUH
#define WHARF_KERNELS_RANS_RANS_SYMBOLS_CUH

#include "kernels/rans/rans_chains.cuh"

namespace wharf
{
namespace rans
{

/* What chains store: symbols of 16 bits at even addresses. */
template <lookup KIND>
WHARF_DEVICE bool has_aligned_symbols(const model &m, const uint8_t *out)
{
    return !has_symbol_size<KIND>() ||
           (reinterpret_cast<uintptr_t>(out) & (m.symbol_nbytes - 1)) == 0;
}

/* Where a registered model's slots are looked up. */
enum class symbols_by { SLOTS, WINDOWS };

/* What changes where nothing is near. */
template <unsigned CHAINS>
struct symbol_chains {
    uint32_t state[CHAINS];
    word_feed feed[CHAINS];
    uint64_t indexes[CHAINS]; /* this lane's eight of the batch that comes next */
    uint8_t *to[CHAINS];      /* this lane's symbol of the group that comes next */
};

/* What does not.  The same in all lanes. */
struct symbol_setting {
    const wharf_rans_window *windows; /* of a registered model: these, */
    const uint32_t *scales;
    const uint16_t *buckets;
    const uint32_t *totals;
    uint32_t stride;
    const uint16_t *slots; /* or these */
    const uint32_t *ranges;
    uint32_t alphabet;
    uint32_t n_bits, last_distribution;
    bool is_full;
    bool has_words; /* symbols of 16 bits */
};

/* One lane.  This lane's eight of the indexes of a batch from `group` on, all of which are there:
 * and so are header and states, before and behind them. */
WHARF_DEVICE uint64_t load_batch_indexes(const stream &in, uint32_t group)
{
    uint32_t at = in.source.begin + in.indexes_at + WARP_LANES * group + 8 * lane_id();
    const uint64_t *p = reinterpret_cast<const uint64_t *>(in.source.aligned + at / 8 * 8);
    unsigned skew = 8 * (at % 8);
    uint64_t v = load_nc(p);
    return skew ? v >> skew | load_nc(p + 1) << (64 - skew) : v;
}

template <symbols_by BY>
WHARF_DEVICE symbol_setting make_symbol_setting(const model &m)
{
    symbol_setting v = {};
    v.n_bits = uniform(m.n_bits);
    v.last_distribution = uniform(m.n_distributions) - 1;
    v.is_full = uniform(m.is_full) != 0;
    v.has_words = uniform(m.symbol_nbytes) == 2;
    if (BY == symbols_by::WINDOWS) {
        v.windows = uniform_global(image_part<wharf_rans_window>(m, m.windows_at));
        v.scales = uniform_global(image_part<uint32_t>(m, m.scales_at));
        v.buckets = uniform_global(image_part<uint16_t>(m, m.buckets_at));
        v.totals = uniform_global(image_part<uint32_t>(m, m.totals_at));
        v.stride = uniform(m.windows_stride);
    }
    if (BY == symbols_by::SLOTS) {
        v.slots = uniform_global(image_part<uint16_t>(m, m.slots_at));
        v.ranges = uniform_global(image_part<uint32_t>(m, m.ranges_at));
        v.alphabet = uniform(m.alphabet);
    }
    return v;
}

/* One lane.  The edges of a window. */
WHARF_DEVICE u32x4 load_edges(const symbol_setting &v, uint32_t window)
{
    return load_nc(reinterpret_cast<const u32x4 *>(v.windows[window].edges));
}

/*
 * One lane.  A slot in the window that it is in, whose edges these are.  In the high half of a word
 * is an edge that compares as it is with the slot at the same place.
 */
WHARF_DEVICE found find_in_window(const symbol_setting &v, uint32_t window, const u32x4 &e,
                                  uint32_t slot)
{
    uint32_t high = slot << 16;
    bool b1 = e.x < high, b3 = e.y < high, b5 = e.z < high;
    uint32_t here = b5 ? e.w : b3 ? e.z : b1 ? e.y : e.x;
    uint32_t before = b5 ? e.z : b3 ? e.y : e.x;
    uint32_t number = b5 ? 6 : b3 ? 4 : b1 ? 2 : 0; /* of the edge in the low half of `here` */
    bool is_above = here << 16 < high || !b1;
    /* The edge before the symbol, and its own. */
    uint32_t edges = is_above ? here : funnel_right(before, here, 16);
    uint32_t symbol = load_nc(&v.windows[window].symbols[number - !is_above]);
    uint32_t place = (slot - edges - 1) & 0xffff;
    uint32_t less_1 = ((edges >> 16) - edges - 1) & 0xffff;
    return {symbol, less_1 + 1, place, 0, 0};
}

/* collective.  All chains' slots, in all of their distributions. */
template <symbols_by BY, unsigned CHAINS>
struct symbol_finder;

template <unsigned CHAINS>
struct symbol_finder<symbols_by::SLOTS, CHAINS> {
    static WHARF_DEVICE_MEMBER void find(const symbol_setting &v,
                                         const uint32_t distributions[CHAINS],
                                         const uint32_t slots[CHAINS], found f[CHAINS])
    {
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            f[k].symbol = load_nc(v.slots + (distributions[k] << v.n_bits | slots[k]));
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            uint32_t range = load_nc(v.ranges + (distributions[k] * v.alphabet + f[k].symbol));
            uint32_t less_1 = range & 0xffff;
            f[k].frequency = less_1 + 1;
            f[k].place = slots[k] - (range >> 16);
            /* A slot that is nobody's has a symbol in whose range it is not. */
            f[k].nobodys = f[k].place | (less_1 - f[k].place);
        }
    }
};

template <unsigned CHAINS>
struct symbol_finder<symbols_by::WINDOWS, CHAINS> {
    static WHARF_DEVICE_MEMBER void find(const symbol_setting &v,
                                         const uint32_t distributions[CHAINS],
                                         const uint32_t slots[CHAINS], found f[CHAINS])
    {
        uint32_t scales[CHAINS], windows[CHAINS];
        u32x4 edges[CHAINS];
        bool is_behind[CHAINS];
        bool any = false;
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            scales[k] = load_nc(v.scales + distributions[k]);
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            uint32_t first = scales[k] & ((1u << WHARF_RANS_SCALE_SHIFT) - 1);
            windows[k] =
                load_nc(v.buckets + (first + (slots[k] >> (scales[k] >> WHARF_RANS_SCALE_SHIFT))));
        }
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            windows[k] += distributions[k] * v.stride;
            edges[k] = load_edges(v, windows[k]);
        }
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            is_behind[k] = edges[k].w >> 16 < slots[k];
            any |= is_behind[k];
        }
        while (any_lane(any)) {
            any = false;
            WHARF_UNROLL
            for (unsigned k = 0; k < CHAINS; k++)
                if (is_behind[k]) {
                    windows[k]++;
                    edges[k] = load_edges(v, windows[k]);
                    is_behind[k] = edges[k].w >> 16 < slots[k];
                    any |= is_behind[k];
                }
        }
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            f[k] = find_in_window(v, windows[k], edges[k], slots[k]);
        if (!v.is_full) {
            WHARF_UNROLL
            for (unsigned k = 0; k < CHAINS; k++)
                f[k].nobodys = slots[k] >= load_nc(v.totals + distributions[k]) ? 1u << 31 : 0;
        }
    }
};

/* collective.  Group number j of a batch; returns `nobodys`, with the highest bit set if a slot
 * was. */
template <symbols_by BY, unsigned CHAINS>
WHARF_DEVICE uint32_t symbol_group(const symbol_setting &v, const index_buffers<CHAINS> &indexes,
                                   symbol_chains<CHAINS> &c, uint32_t j, uint32_t nobodys)
{
    uint32_t takers[CHAINS], words[CHAINS], distributions[CHAINS], slots[CHAINS];
    found f[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        uint32_t d = 0;
        if (v.last_distribution > 0)
            d = load(&indexes.of[k][WARP_LANES * j + lane_id()]);
        distributions[k] = d < v.last_distribution ? d : v.last_distribution;
        slots[k] = c.state[k] & ((1u << v.n_bits) - 1);
    }
    symbol_finder<BY, CHAINS>::find(v, distributions, slots, f);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        nobodys |= f[k].nobodys;
        c.state[k] = f[k].frequency * (c.state[k] >> v.n_bits) + f[k].place;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        takers[k] = ballot(c.state[k] < WHARF_RANS_LOW);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        words[k] = c.feed[k].behind.load_before(popc(takers[k] & lanemask_lt()));
        c.feed[k].behind.move(-(int)popc(takers[k]));
        if (v.has_words)
            store(reinterpret_cast<uint16_t *>(c.to[k]), (uint16_t)f[k].symbol);
        else
            store_byte(c.to[k], f[k].symbol);
        c.to[k] += v.has_words ? 2 * WARP_LANES : WARP_LANES;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        c.state[k] = c.state[k] < WHARF_RANS_LOW ? c.state[k] << 16 | words[k] : c.state[k];
    return nobodys;
}

/* Whose symbols they are, and what is theirs of shared memory; chains or strands. */
template <unsigned CHAINS>
struct symbol_way {
    const stream &in;
    const word_source &words;
    uint8_t *out;
    uint32_t n_whole; /* groups of 32 symbols */
    chain_buffers<CHAINS> &buffers;
    index_buffers<CHAINS> &indexes;
};

/* collective.  The batch's indexes into shared memory, the next ones on their way: of the last
 * whole groups if there are no more. */
template <unsigned CHAINS>
WHARF_DEVICE void feed_indexes(const symbol_way<CHAINS> &s, symbol_chains<CHAINS> &c,
                               const uint32_t group[CHAINS])
{
    syncwarp(); /* every lane's loads of the indexes that go, before the stores here */
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        uint32_t next = group[k] + BATCH_NGROUPS, most = s.n_whole - BATCH_NGROUPS;
        store(reinterpret_cast<uint64_t *>(s.indexes.of[k]) + lane_id(), c.indexes[k]);
        c.indexes[k] = load_batch_indexes(s.in, next < most ? next : most);
    }
    syncwarp(); /* the stores, before any lane's loads */
}

/* collective.  n batches of all chains, or strands, that are `there`; each fits into the whole
 * groups.  The highest bit is set if a slot of this lane was nobody's. */
template <symbols_by BY, unsigned CHAINS, typename Chains>
WHARF_DEVICE uint32_t go_by_symbols(const symbol_way<CHAINS> &s, const model &m, Chains &there,
                                    uint32_t n)
{
    symbol_setting v = make_symbol_setting<BY>(m);
    uint8_t *out = uniform_global(s.out);
    uint32_t nobodys = 0, nbytes = v.has_words ? 2 : 1;
    symbol_chains<CHAINS> c;
    uint32_t group[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        c.state[k] = there.state[k];
        c.feed[k] = there.feed[k];
        group[k] = there.group[k];
        c.to[k] = out + nbytes * (WARP_LANES * group[k] + lane_id());
        c.indexes[k] = v.last_distribution > 0 ? load_batch_indexes(s.in, group[k]) : 0;
    }
    WHARF_NO_UNROLL
    for (n = uniform(n); n > 0; n--) {
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            c.feed[k].ensure(s.words, s.buffers.words[k]);
        if (v.last_distribution > 0)
            feed_indexes(s, c, group);
        /* Turn by turn: eight in a row are more instructions than a multiprocessor has at hand. */
        WHARF_NO_UNROLL
        for (uint32_t j = 0; j < BATCH_NGROUPS; j++)
            nobodys = symbol_group<BY>(v, s.indexes, c, j, nobodys);
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            group[k] += BATCH_NGROUPS;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        there.state[k] = c.state[k];
        there.feed[k] = c.feed[k];
        there.group[k] = group[k];
    }
    return nobodys;
}

/* collective.  The same of chains; whether all slots were somebody's.  Not inlined, as
 * rans_chains.cuh says: the loop of bytes is what it would harm. */
template <symbols_by BY, unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool symbol_batches(chain_setting<CHAINS> s, chains<CHAINS> &there,
                                          uint32_t n)
{
    const symbol_way<CHAINS> way = {s.in,      s.words,         s.out,
                                    s.n_whole, s.buffers.get(), s.indexes.get()};
    return !any_lane(go_by_symbols<BY>(way, s.whole, there, n) >> 31);
}

template <>
struct free_step<lookup::REGISTERED> {
    template <unsigned CHAINS>
    static WHARF_DEVICE_MEMBER bool go(const chain_setting<CHAINS> &s, chains<CHAINS> &c,
                                       uint32_t n)
    {
        return s.whole.windows_at ? symbol_batches<symbols_by::WINDOWS>(s, c, n)
                                  : symbol_batches<symbols_by::SLOTS>(s, c, n);
    }
};

} // namespace rans
} // namespace wharf

#endif
