/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_find.cuh: finds where sequences begin, up to 32 at a time.
 *
 * For each byte of a window of the input it is worked out where the next sequence would begin if
 * one began there, by all lanes at once; from the first sequence these links lead to all others.
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

struct shared {
    input::shared ring;
    /* By byte of the window, where the next sequence begins: at most WINDOW_NBYTES, and that also
     * where none is to be looked for.  [WINDOW_NBYTES] leads to itself. */
    uint16_t next[WINDOW_NBYTES + 2];
    stop_word stop;
};

/* collective.  Fills the table: link(i) is the size of a sequence that begins i bytes behind the
 * position, or 0 if it ends the batch. */
template <typename Link>
WHARF_DEVICE void find_links(shared &s, Link link)
{
    uint32_t first = 4 * lane_id();
    uint32_t next[4];
    WHARF_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        uint32_t size = link(first + k);
        uint32_t at = first + k + size;
        next[k] = size && at < WINDOW_NBYTES ? at : WINDOW_NBYTES;
    }
    syncwarp(); /* the last batch's reads */
    uint32_t *to = reinterpret_cast<uint32_t *>(s.next + first);
    store(to, next[0] | next[1] << 16);
    store(to + 1, next[2] | next[3] << 16);
    if (lane_id() == 0)
        store(&s.next[WINDOW_NBYTES], (uint16_t)WINDOW_NBYTES);
    syncwarp();
}

/* collective.  Where sequence number `lane` begins, from the position; WINDOW_NBYTES: there is none
 * in the window, or behind one that ends the batch. */
WHARF_DEVICE uint32_t find_mine(const shared &s)
{
    uint32_t at = 0, mine = WINDOW_NBYTES;
    for (unsigned part = 0; part < 32; part += 8) {
        WHARF_UNROLL
        for (unsigned i = 0; i < 8; i++) {
            mine = lane_id() == part + i ? at : mine;
            at = load(&s.next[at]);
        }
        at = uniform(at);
        if (at == WINDOW_NBYTES)
            break;
    }
    return mine;
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
