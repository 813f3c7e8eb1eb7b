/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_values.cuh: writes the values of a window's groups to the output.
 *
 * Idea: a scan of the groups' lengths gives the place of each group's values.  Then lanes work on
 * values, 32 at a time, whatever group a value belongs to, so that short groups cost no more than
 * long ones.
 *
 * INVARIANT: a window counts as a whole or not at all.  Anything unusual discards it: a number of
 * more than 64 bits, a value outside its type, too little room or input.  The exact path then
 * decodes from the window's start and finds the reason.
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_VALUES_CUH
#define WHARF_KERNELS_RLE1_RLE1_VALUES_CUH

#include "kernels/rle1/rle1_window.cuh"

namespace wharf
{
namespace rle1
{

/* ---- groups ------------------------------------------------------------------------------- */

/* One lane.  The group that begins at a place.  If the window cuts it off, its n counts the numbers
 * in the window. */
template <typename T>
WHARF_DEVICE group group_at(const window &w, uint32_t place, uint32_t n_ends, bool is_signed,
                            bool &is_bad)
{
    uint32_t control = byte_at(w, place);
    link l;
    l.unpack(load(&w.links[place]));
    if (control < 128) {
        uint64_t u = rle::number_at<T>(w, place + 2, l.place - 1, is_bad);
        is_bad |= rle::exceeds<T>(u);
        return {control + RUN_MIN, 1, 0, byte_at(w, place + 1), rle::value_of(u, is_signed)};
    }
    if (l.place == NO_PLACE)
        return {n_ends - l.rank, 0, place + 1, l.rank, 0};
    uint32_t n = 256 - control;
    return {n, 0, place + 1, l.rank + 1 - n, 0};
}

/* One lane.  The same if all numbers have one byte. */
WHARF_DEVICE group group_of_bytes_at(const window &w, uint32_t place, uint32_t avail,
                                     bool is_signed)
{
    uint32_t control = byte_at(w, place);
    if (control < 128)
        return {control + RUN_MIN, 1, place + 2, byte_at(w, place + 1),
                rle::value_of(byte_at(w, place + 2), is_signed)};
    uint32_t n = 256 - control;
    uint32_t n_inside = avail - place - 1;
    return {n < n_inside ? n : n_inside, 0, place + 1, 0, 0};
}

/*
 * collective.  Whether all numbers of a chain have one byte, as assumed.  Of a chain's bytes, only
 * control bytes and deltas may be 128 or more; so there must be as many such bytes as of these.
 */
WHARF_DEVICE bool are_bytes(const group &g, uint32_t word, uint32_t nbytes, bool begins_here)
{
    uint32_t lane = lane_id();
    uint32_t mine = rle::low_bytes(word & rle::TOPS, nbytes > 4 * lane ? nbytes - 4 * lane : 0);
    uint32_t own = begins_here && (g.is_run ? g.rank >= 128 : 1);
    return reduce_add(popc(mine) - own) == 0;
}

/* One lane.  Whether all values of a run are within the type. */
template <typename T>
WHARF_DEVICE bool is_good_run(const group &g, bool is_signed)
{
    uint64_t step = (uint64_t)(int64_t)(int8_t)g.rank;
    return !rle::exceeds<T>(rle::excess_of<T>(g.base, is_signed) |
                            rle::excess_of<T>(g.base + (g.n - 1) * step, is_signed));
}

/* ---- spread ------------------------------------------------------------------------------- */

/*
 * Packs what other lanes need of a group: the offset of its first value (at most 31 * 130) in 13
 * bits, one bit for a run, the place of its first number in 7, and the rank or delta in the upper
 * 8.
 */
WHARF_DEVICE uint32_t pack_group(const group &g, uint32_t offset)
{
    return offset | g.is_run << 13 | g.first << 14 | g.rank << 24;
}

/* One lane.  Literal k of a group. */
template <typename T>
WHARF_DEVICE uint64_t literal_in(const window &w, uint32_t packed, uint32_t k, bool &is_bad)
{
    uint32_t rank = packed >> 24;
    uint32_t first = packed >> 14 & 127;
    if (k > 0)
        first = load(&w.ends[rank + k - 1]) + 1;
    return rle::number_at<T>(w, first, load(&w.ends[rank + k]), is_bad);
}

/* collective.  Stores the values of all groups, n in all, for which there is room.  Returns whether
 * all are good. */
template <typename T, bool OF_BYTES>
WHARF_DEVICE bool spread(const window &w, const group &g, uint32_t offset, uint32_t n, uint8_t *out,
                         bool is_signed)
{
    uint32_t packed = pack_group(g, offset);
    uint64_t all = 0;
    bool is_bad = false;
    rle::value_sink<T> sink;
    sink.init(out);
    rle::share_values(g.n > 0 ? offset : 0xffffffff, n, [&](uint32_t i, uint32_t owner) {
        uint32_t theirs = shfl(packed, owner);
        uint64_t base = OF_BYTES ? 0 : rle::shfl_value<T>(g.base, owner);
        uint32_t k = i - (theirs & 8191);
        bool is_run = theirs >> 13 & 1;
        if (i >= n)
            return;
        if (OF_BYTES)
            base = rle::value_of(byte_at(w, (theirs >> 14 & 127) + (is_run ? 0 : k)), is_signed);
        if (!OF_BYTES && !is_run) {
            uint64_t u = literal_in<T>(w, theirs, k, is_bad);
            all |= u;
            sink.put(i, rle::value_of(u, is_signed));
            return;
        }
        int32_t delta = (int32_t)theirs >> 24;
        sink.put(i, base + (uint64_t)(int64_t)(delta * (int32_t)k));
    });
    return OF_BYTES || !any_lane(is_bad || rle::exceeds<T>(all));
}

/* ---- windows ------------------------------------------------------------------------------ */

/* collective.  Stores the values of a chain and moves the stream past it.  False as for
 * decode_window. */
template <typename T, bool OF_BYTES>
WHARF_DEVICE bool put_groups(const window &w, stream &st, output_stream &out, const chain &c,
                             const group &g, uint32_t place, bool is_bad, bool is_signed)
{
    is_bad |= g.is_run && !is_good_run<T>(g, is_signed);
    uint32_t offset = inclusive_add(g.n);
    uint32_t n = shfl(offset, 31);
    offset -= g.n;
    if (any_lane(is_bad) || n > rle::room_of<T>(out) ||
        !spread<T, OF_BYTES>(w, g, offset, n, out.out + out.position, is_signed))
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

/* collective.  Decodes a window with numbers of any size. */
template <typename T>
WHARF_DEVICE bool decode_any(window &w, stream &st, output_stream &out, uint32_t word,
                             uint32_t avail, bool is_signed)
{
    uint32_t n_ends = fill(w, word, avail);
    uint32_t place = 0;
    chain c = find_groups(w, st, avail, n_ends, place);
    if (c.nbytes == 0)
        return false;
    group g = {0, 0, 0, 0, 0};
    bool is_bad = false;
    if (lane_id() == 0 && st.n_pending)
        g = {st.n_pending < n_ends ? st.n_pending : n_ends, 0, 0, 0, 0};
    else if (lane_id() < c.n_groups)
        g = group_at<T>(w, place, n_ends, is_signed, is_bad);
    /* Few bytes do not end a number, at most one a group: the next window may have numbers of one
     * byte only. */
    st.has_long = avail - n_ends > c.n_groups;
    return put_groups<T, false>(w, st, out, c, g, place, is_bad, is_signed);
}

/*
 * collective.  Decodes a window whose numbers are assumed to have one byte.  If not all have, sets
 * has_long of the stream and returns false, with nothing else changed.
 */
template <typename T>
WHARF_DEVICE bool decode_bytes(window &w, stream &st, output_stream &out, uint32_t word,
                               uint32_t avail, bool is_signed)
{
    uint32_t place = 0;
    fill_bytes(w, word);
    chain c = find_groups_of_bytes(w, st, avail, place);
    group g = {0, 0, 0, 0, 0};
    bool is_pending = lane_id() == 0 && st.n_pending;
    if (is_pending)
        g = {c.nbytes < st.n_pending ? c.nbytes : st.n_pending, 0, 0, 0, 0};
    else if (lane_id() < c.n_groups)
        g = group_of_bytes_at(w, place, avail, is_signed);
    st.has_long =
        c.nbytes == 0 || !are_bytes(g, word, c.nbytes, !is_pending && lane_id() < c.n_groups);
    return !st.has_long && put_groups<T, true>(w, st, out, c, g, place, false, is_signed);
}

/*
 * collective.  Decodes the window at the stream's position, which has at least one byte.  False:
 * nothing has changed, except for output after the position.
 */
template <typename T>
WHARF_DEVICE bool decode_window(window &w, stream &st, output_stream &out, bool is_signed)
{
    uint32_t left = st.source.end - st.source.begin - st.at;
    uint32_t avail = left < WINDOW_NBYTES ? left : WINDOW_NBYTES;
    uint32_t word = rle::own_word(st.source, st.at, left);
    if (!st.has_long) {
        bool is_good = decode_bytes<T>(w, st, out, word, avail, is_signed);
        if (!st.has_long)
            return is_good;
    }
    return decode_any<T>(w, st, out, word, avail, is_signed);
}

} // namespace rle1
} // namespace wharf

#endif
