/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_window.cuh: loads 128 bytes of rle1 into shared memory, and finds the groups in them.
 *
 * 1. Link.  Each lane has four bytes.  A number ends at each byte below 128, wherever groups begin,
 *    and a scan gives the place of the k-th such end.  So for each byte, lanes can compute where
 *    the next group would begin if a group began at this byte.
 * 2. Chase.  From the first group, these links lead to all others, at one load each.  Lane i keeps
 *    group i.
 *
 * If all numbers have one byte, no scan is needed: a control byte alone gives the end of its group.
 * Whether this holds is known only afterwards (are_bytes in rle1_values.cuh), since control bytes
 * and deltas may also be 128 or more.
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_WINDOW_CUH
#define WHARF_KERNELS_RLE1_RLE1_WINDOW_CUH

#include "kernels/rle1/rle1_exact.cuh"
#include "kernels/rle_window.cuh"

namespace wharf
{
namespace rle1
{

using rle::byte_at;
using rle::WINDOW_NBYTES;

/* No place: real ones are at most 128. */
constexpr uint32_t NO_PLACE = 255;

struct window : rle::window {
    union {
        uint16_t links[WINDOW_NBYTES + 1];     /* struct link of a group that begins here */
        uint32_t lasts[WINDOW_NBYTES / 4 + 1]; /* its last byte, if all numbers have one */
    };
};

/*
 * For a group that ends within the window: the place after it, and the rank of its last number's
 * end.  For any other group: NO_PLACE, and the number of ends before its second byte.
 */
struct link {
    uint32_t place;
    uint32_t rank;

    WHARF_DEVICE_MEMBER uint16_t packed() const { return (uint16_t)(place | rank << 8); }
    WHARF_DEVICE_MEMBER void unpack(uint32_t v)
    {
        place = v & 255;
        rank = v >> 8;
    }
};

/* The position in the stream between two windows.  The same in all lanes. */
struct stream {
    input_source source;
    uint32_t at;        /* bytes of input before the window */
    uint32_t n_pending; /* literals left of the current group; 0: a group begins here */
    uint32_t group_at;  /* if some are left: where their group and its output begin */
    uint32_t group_position;
    bool has_long; /* the last window had numbers of several bytes */
};

/* The groups of a window, in sequence.  The same in all lanes. */
struct chain {
    uint32_t n_groups;
    uint32_t nbytes;    /* bytes of the window that they take */
    uint32_t n_pending; /* literals of the last group that are after the window */
    bool is_cut; /* the last group began in this window, and some of its literals are pending */
};

/* Lane i holds group i. */
struct group {
    uint32_t n; /* number of values; 0: no such group */
    uint32_t is_run;
    uint32_t first; /* place of its first number */
    uint32_t rank;  /* of literals: the rank of the first one's end; of a run: its delta */
    uint64_t base;  /* of a run: its first value */
};

/* ---- link --------------------------------------------------------------------------------- */

/* One lane.  The link of a group that begins at this lane's byte j.  `rank` numbers end before byte
 * j; the bits of `bits` say whether bytes j, j + 1, ... end numbers. */
WHARF_DEVICE link link_of(const window &w, uint32_t control, uint32_t rank, uint32_t bits,
                          uint32_t n_ends)
{
    uint32_t behind_control = rank + (bits & 1);
    uint32_t last =
        control < 128 ? behind_control + (bits >> 1 & 1) : behind_control + 255 - control;
    if (last >= n_ends)
        return {NO_PLACE, behind_control};
    return {(uint32_t)load(&w.ends[last]) + 1, last};
}

/* collective.  Fills the window, of `avail` bytes, from each lane's word.  Returns the number of
 * ends in it. */
WHARF_DEVICE uint32_t fill(window &w, uint32_t word, uint32_t avail)
{
    rle::own_ends own = rle::fill(w, word, avail);
    WHARF_UNROLL
    for (unsigned j = 0; j < 4; j++) {
        link l = link_of(w, word >> 8 * j & 255, own.before(j), own.bits >> j, own.n);
        store(&w.links[4 * lane_id() + j], l.packed());
    }
    if (lane_id() == 0)
        store(&w.links[WINDOW_NBYTES], (uint16_t)NO_PLACE);
    syncwarp();
    return own.n;
}

/* collective.  The same if all numbers are assumed to have one byte. */
WHARF_DEVICE void fill_bytes(window &w, uint32_t word)
{
    uint32_t lane = lane_id();
    uint32_t tops = word & rle::TOPS;
    uint32_t literals = (tops << 1) - (tops >> 7);
    /* A run ends with its third byte.  256 - c literals end that many bytes after the control byte
     * c, which is the complement of c's lower seven bits plus 1.  The four sums of a word are below
     * 256, so that no carry occurs. */
    uint32_t steps = ((~word & 0x7f7f7f7f) & literals) + 0x02020202 - (literals & 0x01010101);
    syncwarp(); /* orders the last window's reads before these writes */
    store(&w.words[lane], word);
    store(&w.lasts[lane], steps + 0x03020100 + 0x04040404 * lane);
    if (lane == 0)
        store(&w.lasts[WINDOW_NBYTES / 4], 0xffffffffu);
    syncwarp();
}

/* ---- chase -------------------------------------------------------------------------------- */

/* collective.  Makes pending literals that end in the window group 0, without a control byte.  The
 * first n of them take nbytes_of(n) bytes. */
template <typename Nbytes>
WHARF_DEVICE chain chain_of_pending(const stream &st, uint32_t n_ends, Nbytes nbytes_of)
{
    uint32_t n = st.n_pending < n_ends ? st.n_pending : n_ends;
    return {n > 0 ? 1u : 0u, n > 0 ? nbytes_of(n) : 0, st.n_pending - n, false};
}

/* collective.  Appends the groups that end within the window. */
template <typename Next>
WHARF_DEVICE void follow(chain &c, uint32_t &place, uint32_t avail, Next next)
{
    c.n_groups += rle::chase(c.nbytes, avail, c.n_groups, WARP_LANES - c.n_groups, place, next);
}

/* collective.  If the chain stops before the window's end at literals, of which inside(place) are
 * in the window, appends these as the last group. */
template <typename Inside>
WHARF_DEVICE void take_cut(const window &w, chain &c, uint32_t &place, uint32_t avail,
                           Inside inside)
{
    if (c.n_groups == WARP_LANES || c.nbytes >= avail)
        return;
    uint32_t control = byte_at(w, c.nbytes);
    uint32_t n = inside(c.nbytes);
    if (control < 128 || n == 0)
        return;
    place = lane_id() == c.n_groups ? c.nbytes : place;
    c.n_groups++;
    c.is_cut = true;
    c.n_pending = 256 - control - n;
}

/* collective.  Finds the groups of the window, at most 32. */
WHARF_DEVICE chain find_groups(const window &w, const stream &st, uint32_t avail, uint32_t n_ends,
                               uint32_t &place)
{
    chain c = chain_of_pending(st, n_ends,
                               [&](uint32_t n) { return (uint32_t)load(&w.ends[n - 1]) + 1; });
    if (c.n_pending)
        return c;
    /* NO_PLACE is above any place, and so ends the chase. */
    follow(c, place, avail, [&](uint32_t at) { return (uint32_t)load(&w.links[at]) & 255; });
    take_cut(w, c, place, avail,
             [&](uint32_t at) { return n_ends - ((uint32_t)load(&w.links[at]) >> 8); });
    if (c.is_cut)
        c.nbytes = (uint32_t)load(&w.ends[n_ends - 1]) + 1;
    return c;
}

WHARF_DEVICE chain find_groups_of_bytes(const window &w, const stream &st, uint32_t avail,
                                        uint32_t &place)
{
    chain c = chain_of_pending(st, avail, [](uint32_t n) { return n; });
    if (c.n_pending)
        return c;
    const uint8_t *lasts = reinterpret_cast<const uint8_t *>(w.lasts);
    follow(c, place, avail, [=](uint32_t at) { return (uint32_t)load(lasts + at) + 1; });
    take_cut(w, c, place, avail, [=](uint32_t at) { return avail - at - 1; });
    c.nbytes = c.is_cut ? avail : c.nbytes;
    return c;
}

} // namespace rle1
} // namespace wharf

#endif
