/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_find.cuh: finds where sequences begin, up to 32 at a time.
 *
 * For each byte of a window of the input it is worked out where the next sequence would begin if
 * one began there, by all lanes at once, and then where the second and the fourth would; from the
 * first sequence these links lead to all others.
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
/* What the ring can hold from the window's first byte on. */
constexpr uint32_t RING_NBYTES = input::MAX_ENSURE_NBITS / 8;

/* By byte of the window, a place of the window, a byte each; WINDOW_NBYTES: none there, also where
 * none is to be looked for.  Behind the window is one entry more, which leads to itself. */
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

/* One lane.  Four places, a byte each, of which those from WINDOW_NBYTES on become that. */
WHARF_DEVICE uint32_t clamp_places(uint32_t places)
{
    static_assert(WINDOW_NBYTES == 128);
    uint32_t beyond = places & 0x80808080;
    return places & ~(beyond - (beyond >> 7));
}

/* One lane.  The places that the four of `places` lead to. */
WHARF_DEVICE uint32_t follow_links(const link_table &links, uint32_t places)
{
    uint32_t low = links.at(places & 255) | links.at(places >> 8 & 255) << 8;
    uint32_t high = links.at(places >> 16 & 255) | links.at(places >> 24) << 8;
    return low | high << 16;
}

/* collective.  Fills the tables; `places` is where the next sequences begin if ones begin at this
 * lane's four bytes of the window, which are places from WINDOW_NBYTES on if they are not in it, or
 * if none is to be looked for. */
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

/* collective.  Where sequence number `lane` begins, from the position; WINDOW_NBYTES: there is none
 * in the window, or behind one that ends the batch. */
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
    bool good;    /* there, and fit for a batch, as far as can be said without those before */
};

} // namespace lz
} // namespace wharf

#endif
