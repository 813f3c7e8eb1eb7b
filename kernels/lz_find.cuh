/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_find.cuh: finds where sequences begin, up to 32 at a time.
 *
 * Idea (pointer doubling): all lanes compute, for each byte of a window of the input, where the
 * next sequence would begin if one began at that byte.  Composing these links gives the second and
 * the fourth sequence from each byte.  From the first sequence, lane n then reaches sequence n in
 * few steps, by the bits of n.
 */
#ifndef WHARF_KERNELS_LZ_FIND_CUH
#define WHARF_KERNELS_LZ_FIND_CUH

#include "kernels/lz_device.cuh"

namespace wharf
{
namespace lz
{

/* The bytes in which the sequences of a batch begin: four for each lane. */
constexpr uint32_t WINDOW_NBYTES = 128;
/* Bytes that the ring can hold from the window's first byte on. */
constexpr uint32_t RING_NBYTES = input::MAX_ENSURE_NBITS / 8;

/* For each byte of the window, the place that it leads to, one byte each.  WINDOW_NBYTES: no
 * sequence in the window, or none wanted.  One more entry, at WINDOW_NBYTES, leads to itself. */
struct link_table {
    uint32_t words[WINDOW_NBYTES / 4 + 1];

    /* One lane. */
    WHARF_DEVICE_MEMBER uint32_t at(uint32_t place) const
    {
        return load(reinterpret_cast<const uint8_t *>(words) + place);
    }
};

struct shared {
    input::shared ring;
    /* Where the next sequence begins, the second from there, and the fourth. */
    link_table next, second, fourth;
    uint8_t heads[WARP_LANES]; /* of join_matches() */
    stop_word stop;
};

/* One lane. */
WHARF_DEVICE void init_links(shared &s)
{
    store(&s.next.words[WINDOW_NBYTES / 4], WINDOW_NBYTES);
    store(&s.second.words[WINDOW_NBYTES / 4], WINDOW_NBYTES);
    store(&s.fourth.words[WINDOW_NBYTES / 4], WINDOW_NBYTES);
}

/* One lane.  Limits each of four places, one a byte, to WINDOW_NBYTES. */
WHARF_DEVICE uint32_t clamp_places(uint32_t places)
{
    static_assert(WINDOW_NBYTES == 128);
    uint32_t beyond = places & 0x80808080;
    return places & ~(beyond - (beyond >> 7));
}

/* One lane.  The four places that those in `places` lead to. */
WHARF_DEVICE uint32_t follow_links(const link_table &links, uint32_t places)
{
    uint32_t low = links.at(places & 255) | links.at(places >> 8 & 255) << 8;
    uint32_t high = links.at(places >> 16 & 255) | links.at(places >> 24) << 8;
    return low | high << 16;
}

/* collective.  Fills the tables.  `places` holds the links of this lane's four bytes, as a Format's
 * links() returns them: WINDOW_NBYTES and above lead out of the window. */
WHARF_DEVICE void fill_links(shared &s, uint32_t places)
{
    uint32_t lane = lane_id();
    places = clamp_places(places);
    syncwarp(); /* the last batch's reads */
    store(&s.next.words[lane], places);
    syncwarp();
    places = follow_links(s.next, places);
    store(&s.second.words[lane], places);
    syncwarp();
    store(&s.fourth.words[lane], follow_links(s.second, places));
    syncwarp();
}

/* collective.  Where sequence number `lane` begins, counted from the position.  WINDOW_NBYTES: it
 * is not in the window, or comes after a sequence that ends the batch. */
WHARF_DEVICE uint32_t find_mine(const shared &s)
{
    uint32_t at = 0, mine = WINDOW_NBYTES;
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++) {
        mine = lane_id() >> 2 == i ? at : mine;
        at = s.fourth.at(at);
    }
    uint32_t after = s.second.at(mine);
    mine = lane_id() & 2 ? after : mine;
    after = s.next.at(mine);
    return lane_id() & 1 ? after : mine;
}

/* One lane's sequence in the input; places are counted from the position. */
struct found {
    uint32_t n_literals, literals; /* where */
    uint32_t match_length, distance;
    uint32_t end; /* where the next begins */
    bool good;    /* complete, and fit for a batch as far as the sequence alone can tell */
};

} // namespace lz
} // namespace wharf

#endif
