/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_window.cuh: the groups of 128 bytes of rle1 at once.
 *
 * 1. Link.  Every lane has four bytes.  Where numbers end (the bytes below 128) is known without
 *    knowing where groups begin, and by a scan the place of the k-th end.  So for every byte it is
 *    known where the next group would begin, if one began here.
 * 2. Chase.  From the first group the links lead to all others, at a load each.  Lane i keeps
 *    group i.
 * 3. Spread.  A scan of the groups' lengths says where their values go; then 32 values at a time,
 *    one a lane, whatever group they belong to.
 *
 * What is not as it should be (a number of more than 64 bits, a value that is not of the type, a
 * lack of room or of input) stops it: nothing of the window counts then, and somebody else judges.
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_WINDOW_CUH
#define WHARF_KERNELS_RLE1_RLE1_WINDOW_CUH

#include "kernels/rle1/rle1_careful.cuh"

namespace wharf
{
namespace rle1
{

constexpr uint32_t WINDOW_NBYTES = 128;
static_assert(WINDOW_NBYTES == 4 * WARP_LANES);
/* Instead of a place, which is 128 at most. */
constexpr uint32_t NO_PLACE = 255;

struct window {
    uint32_t words[WINDOW_NBYTES / 4];
    uint8_t ends[WINDOW_NBYTES];   /* where the k-th number ends: its last byte */
    uint16_t links[WINDOW_NBYTES]; /* of a group that begins here: struct link */
};

/*
 * Of a group that lies in the window: the place behind it, and the rank of its last number's end.
 * Of one that does not: NO_PLACE, and how many numbers end before its second byte.
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

WHARF_DEVICE uint32_t byte_at(const window &w, uint32_t place)
{
    return load(reinterpret_cast<const uint8_t *>(w.words) + place);
}

/* Where the stream stands between two windows.  The same in all lanes. */
struct stream {
    input_source source;
    uint32_t at;        /* bytes of the input that are done with */
    uint32_t n_pending; /* literals that the group at hand still has; 0: a group begins here */
    uint32_t group_at;  /* if there are any: where their group begins, and its output */
    uint32_t group_position;
};

/* ---- link --------------------------------------------------------------------------------- */

/* One lane.  This lane's four bytes of the window, 0 past the end. */
WHARF_DEVICE uint32_t own_word(const stream &st)
{
    uint32_t first = st.source.begin + st.at + 4 * lane_id();
    uint32_t i = first >> 2;
    return funnel_right(st.source.load_word(i), st.source.load_word(i + 1), 8 * (first & 3));
}

/* One lane.  The lower four bits: whether byte j of the word ends a number.  Of `n` bytes. */
WHARF_DEVICE uint32_t ends_of(uint32_t word, uint32_t n)
{
    uint32_t tops = (~word & low_bits(0x80808080, n < 4 ? 8 * n : 32)) >> 7;
    return (tops | tops >> 7 | tops >> 14 | tops >> 21) & 15;
}

/* One lane.  The link of a group that begins at byte j of this lane's; before it `rank` numbers
 * end, and with it and the next byte those of the bits from j on. */
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

/* collective.  Fills the window from where the stream stands, `avail` bytes of it.  Returns how
 * many numbers end in it. */
WHARF_DEVICE uint32_t fill(window &w, const stream &st, uint32_t avail)
{
    uint32_t lane = lane_id();
    uint32_t word = own_word(st);
    uint32_t bits = ends_of(word, avail > 4 * lane ? avail - 4 * lane : 0);
    uint32_t rank = inclusive_add(popc(bits));
    uint32_t n_ends = shfl(rank, 31);
    uint32_t above = shfl_down(bits, 1);
    rank -= popc(bits);
    bits |= (lane < 31 ? above : 0) << 4;
    syncwarp(); /* the last window's reads, before these writes */
    store(&w.words[lane], word);
    WHARF_UNROLL
    for (unsigned j = 0; j < 4; j++)
        if (bits >> j & 1)
            store(&w.ends[rank + popc(bits & low_bits(0xffffffff, j))], (uint8_t)(4 * lane + j));
    syncwarp();
    WHARF_UNROLL
    for (unsigned j = 0; j < 4; j++) {
        uint32_t before = rank + popc(bits & low_bits(0xffffffff, j));
        link l = link_of(w, word >> 8 * j & 255, before, bits >> j, n_ends);
        store(&w.links[4 * lane + j], l.packed());
    }
    syncwarp();
    return n_ends;
}

/* ---- chase -------------------------------------------------------------------------------- */

/* What lane i holds of group i. */
struct group {
    uint32_t n; /* its values; 0: no such group */
    uint32_t is_run;
    uint32_t first; /* of literals, where they begin */
    uint32_t rank;  /* of literals, that of the first one's end; of a run, its delta */
    uint64_t base;  /* of a run */
};

/* What the groups of a window are together.  The same in all lanes. */
struct chain {
    uint32_t n_groups;
    uint32_t nbytes;    /* of the window that they take */
    uint32_t n_pending; /* literals of the last one that are behind the window */
    bool is_cut;        /* the last one began here, and is literals of which some are pending */
};

/* One lane.  The number that is at places first to last; `is_bad` is set if it has over 64 bits. */
WHARF_DEVICE uint64_t number_at(const window &w, uint32_t first, uint32_t last, bool &is_bad)
{
    uint32_t b = byte_at(w, first);
    uint64_t u = b & 0x7f;
    uint32_t n = last - first + 1;
    if (n > 10) {
        is_bad = true;
        n = 10;
    }
    for (uint32_t k = 1; k < n; k++) {
        b = byte_at(w, first + k);
        u |= (uint64_t)(b & 0x7f) << 7 * k;
    }
    is_bad |= n == 10 && b > 1;
    return u;
}

/* One lane.  A group that begins at a place; of one that the window cuts off, the numbers in it. */
WHARF_DEVICE group group_at(const window &w, uint32_t place, uint32_t n_ends, bool is_signed,
                            bool &is_bad)
{
    uint32_t control = byte_at(w, place);
    link l;
    l.unpack(load(&w.links[place]));
    if (control < 128) {
        uint64_t u = number_at(w, place + 2, l.place - 1, is_bad);
        return {control + RUN_MIN, 1, 0, byte_at(w, place + 1), rle::value_of(u, is_signed)};
    }
    if (l.place == NO_PLACE)
        return {n_ends - l.rank, 0, place + 1, l.rank, 0};
    uint32_t n = 256 - control;
    return {n, 0, place + 1, l.rank + 1 - n, 0};
}

/*
 * collective.  Follows the links from where the stream stands.  Lane i gets where group i begins;
 * if literals are pending, these are group 0, and have no beginning.
 */
WHARF_DEVICE chain chase(const window &w, const stream &st, uint32_t avail, uint32_t n_ends,
                         uint32_t &place)
{
    chain c = {0, 0, 0, false};
    if (st.n_pending) {
        uint32_t n = st.n_pending < n_ends ? st.n_pending : n_ends;
        c.n_groups = n > 0;
        c.n_pending = st.n_pending - n;
        c.nbytes = n ? (uint32_t)load(&w.ends[n - 1]) + 1 : 0;
        if (c.n_pending)
            return c;
    }
    place = 0;
    while (c.n_groups < WARP_LANES && c.nbytes < avail) {
        link l;
        l.unpack(load(&w.links[c.nbytes]));
        uint32_t control = byte_at(w, c.nbytes);
        if (l.place == NO_PLACE && (control < 128 || l.rank >= n_ends))
            break;
        if (lane_id() == c.n_groups)
            place = c.nbytes;
        c.n_groups++;
        if (l.place == NO_PLACE) {
            c.is_cut = true;
            c.n_pending = 256 - control - (n_ends - l.rank);
            c.nbytes = (uint32_t)load(&w.ends[n_ends - 1]) + 1;
            break;
        }
        c.nbytes = l.place;
    }
    return c;
}

/* ---- spread ------------------------------------------------------------------------------- */

/* What another lane needs to know of a group: 30 bits, of which 13 are the offset of its first
 * value, at most 31 * 130. */
WHARF_DEVICE uint32_t pack_group(const group &g, uint32_t offset)
{
    return offset | g.is_run << 13 | g.rank << 14 | g.first << 22;
}

/* One lane.  Value `k` of a group; its excess is or-ed to `excess`. */
template <typename T>
WHARF_DEVICE uint64_t value_in(const window &w, uint32_t packed, uint64_t base, uint32_t k,
                               bool is_signed, uint64_t &all, bool &is_bad)
{
    uint32_t rank = packed >> 14 & 255;
    if (packed >> 13 & 1) {
        int32_t delta = (int8_t)rank;
        return base + (uint64_t)((int64_t)delta * k);
    }
    uint32_t first = packed >> 22;
    if (k > 0)
        first = load(&w.ends[rank + k - 1]) + 1;
    uint64_t u = number_at(w, first, load(&w.ends[rank + k]), is_bad);
    all |= u;
    return rle::value_of(u, is_signed);
}

/* collective.  Stores the values of all groups, `n` in all, which there is room for.  Returns
 * whether all are good. */
template <typename T>
WHARF_DEVICE bool spread(const window &w, const group &g, uint32_t offset, uint32_t n, uint8_t *out,
                         bool is_signed)
{
    uint32_t lane = lane_id();
    uint32_t packed = pack_group(g, offset);
    uint32_t n_begun = 0;
    uint64_t all = 0;
    bool is_bad = false;
    for (uint32_t first = 0; first < n; first += WARP_LANES) {
        uint32_t in_round = offset - first;
        bool begins = g.n > 0 && in_round < WARP_LANES;
        uint32_t begins_at = reduce_or(begins ? 1u << in_round : 0);
        uint32_t owner = n_begun + popc(begins_at & ((2u << lane) - 1)) - 1;
        n_begun += popc(begins_at);
        uint32_t theirs = shfl(packed, owner);
        uint64_t base =
            sizeof(T) == 8 ? shfl(g.base, owner) : (uint64_t)shfl((uint32_t)g.base, owner);
        uint32_t i = first + lane;
        if (i < n) {
            uint64_t v = value_in<T>(w, theirs, base, i - (theirs & 8191), is_signed, all, is_bad);
            rle::store_value<T>(out + i * sizeof(T), v);
        }
    }
    return !any_lane(is_bad || rle::exceeds<T>(all));
}

/* One lane.  Whether a run is of values of the type. */
template <typename T>
WHARF_DEVICE bool is_good_run(const group &g, bool is_signed)
{
    uint64_t step = (uint64_t)(int64_t)(int8_t)g.rank;
    return !rle::exceeds<T>(rle::excess_of<T>(g.base, is_signed) |
                            rle::excess_of<T>(g.base + (g.n - 1) * step, is_signed));
}

/* collective.  Decodes what is in the window that begins where the stream stands, at least a byte.
 * False: nothing has changed, but for output behind the position. */
template <typename T>
WHARF_DEVICE bool decode_window(window &w, stream &st, output_stream &out, bool is_signed)
{
    uint32_t left = st.source.end - st.source.begin - st.at;
    uint32_t avail = left < WINDOW_NBYTES ? left : WINDOW_NBYTES;
    uint32_t n_ends = fill(w, st, avail);
    uint32_t place = 0;
    chain c = chase(w, st, avail, n_ends, place);
    if (c.nbytes == 0)
        return false;
    group g = {0, 0, 0, 0, 0};
    bool is_bad = false;
    if (lane_id() == 0 && st.n_pending)
        g = {st.n_pending < n_ends ? st.n_pending : n_ends, 0, 0, 0, 0};
    else if (lane_id() < c.n_groups)
        g = group_at(w, place, n_ends, is_signed, is_bad);
    is_bad |= g.is_run && !is_good_run<T>(g, is_signed);
    uint32_t offset = inclusive_add(g.n);
    uint32_t n = shfl(offset, 31);
    offset -= g.n;
    if (any_lane(is_bad) || n > rle::room_of<T>(out) ||
        !spread<T>(w, g, offset, n, out.out + out.position, is_signed))
        return false;
    if (c.is_cut) {
        st.group_at = st.at + shfl(place, c.n_groups - 1);
        st.group_position = out.position + shfl(offset, c.n_groups - 1) * (uint32_t)sizeof(T);
    }
    st.at += c.nbytes;
    st.n_pending = c.n_pending;
    out.position += n * (uint32_t)sizeof(T);
    return true;
}

} // namespace rle1
} // namespace wharf

#endif
