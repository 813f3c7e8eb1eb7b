/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_turn.cuh: puts planes in order that are larger than the stage, in their own place; as
 * encoders/blosc/blosc_filter.c does.
 *
 * Planes are cut into parts.  The same part of all planes is a column, which can be put in order by
 * itself: turning the matrix of parts round, in place, makes each column one piece.  Bytes at the
 * planes' ends that fill no part are set aside in the stage first, and put in order behind the
 * columns.  Columns that are still larger than the stage are cut again.
 *
 * Turning follows the cycles of the permutation: each thread moves the same bytes of all parts, so
 * that threads do not meet within a cycle.  The stage has a bit for each part, set once it was
 * moved.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_TURN_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_TURN_CUH

#include "kernels/blosc/blosc_order.cuh"

namespace wharf
{
namespace blosc
{

/* A team's memory for blocks that are put in order: a multiple of 16 bytes, aligned to that. */
struct stage {
    uint8_t *memory;
    uint32_t nbytes;
    stop_word stop = {}; /* with its value, blocks may stay as they are */
};

/* The stage may be off by as much as the output is from 16 bytes. */
constexpr uint32_t STAGE_SPARE = 16;

/* The least stage: of the most planes, of 255 bytes, it takes a column of eight bytes each. */
constexpr uint32_t STAGE_LEAST_NBYTES = 16 << 10;

/* How planes of plane_nbytes are cut. */
struct cutting {
    uint32_t n_columns, part_nbytes, left_nbytes;
};

/*
 * Columns fit in `room`, unless there would be more of them than what is left of n_planes planes,
 * less than a byte for each column, or for each of 16, has room for.
 */
WHARF_DEVICE cutting cut_planes(uint32_t n_planes, uint32_t plane_nbytes, uint32_t room)
{
    uint32_t most = room / n_planes;
    uint32_t n = (plane_nbytes - 1) / most + 1;
    n = n < most ? n : most;
    uint32_t part = plane_nbytes / n, even = part & ~15u;
    if (even > 0 && n_planes * (plane_nbytes - n * even) <= room)
        part = even;
    return {n, part, plane_nbytes - n * part};
}

/* Moves n bytes to a lower address. */
template <typename Team>
WHARF_DEVICE void move_down(const Team &team, uint8_t *to, const uint8_t *from, uint32_t n)
{
    constexpr unsigned EACH = 16;
    for (uint32_t at = 0; at < n; at += EACH * Team::SIZE) {
        uint8_t bytes[EACH];
        WHARF_UNROLL
        for (unsigned k = 0; k < EACH; k++) {
            uint32_t i = at + k * Team::SIZE + team.index();
            bytes[k] = i < n ? load(from + i) : 0;
        }
        team.sync();
        WHARF_UNROLL
        for (unsigned k = 0; k < EACH; k++) {
            uint32_t i = at + k * Team::SIZE + team.index();
            if (i < n)
                store(to + i, bytes[k]);
        }
        team.sync();
    }
}

/* Takes the bytes from the ends of planes that fill no part, and puts them in order at the end. */
template <typename Team>
WHARF_DEVICE void take_ends(const Team &team, const stage &st, const planes &p, uint32_t n_planes,
                            const cutting &c, bool is_bits)
{
    uint32_t left = c.left_nbytes, kept = p.plane_nbytes - left;
    if (left == 0)
        return;
    for (uint32_t i = team.index(); i < n_planes * left; i += Team::SIZE)
        store(st.memory + i, load(p.out + i / left * p.plane_nbytes + kept + i % left));
    team.sync();
    for (uint32_t k = 1; k < n_planes; k++)
        move_down(team, p.out + k * kept, p.out + k * p.plane_nbytes, kept);
    order_planes(team, {st.memory, p.out + n_planes * kept, 1, 0, p.unit_nbytes, left}, is_bits);
    team.sync();
}

/* Where part `at` of n_planes x n_columns goes. */
WHARF_DEVICE uint32_t destination(uint32_t at, uint32_t n_planes, uint32_t n_columns)
{
    return at % n_columns * n_planes + at / n_columns;
}

/* Moves the parts of the cycle of part `first`, in units of T: each thread several at a time, whose
 * loads overlap. */
template <typename T, typename Team>
WHARF_DEVICE void turn_cycle(const Team &team, uint8_t *out, uint32_t n_planes, const cutting &c,
                             uint32_t first)
{
    constexpr uint32_t EACH = 4, STRIDE = Team::SIZE * sizeof(T);
    uint32_t part = c.part_nbytes;
    for (uint32_t i = team.index() * sizeof(T); i < part; i += EACH * STRIDE) {
        T hand[EACH] = {};
        WHARF_UNROLL
        for (unsigned k = 0; k < EACH; k++)
            if (i + k * STRIDE < part)
                hand[k] = load(reinterpret_cast<const T *>(out + first * part + i + k * STRIDE));
        uint32_t at = first;
        do {
            T next[EACH] = {};
            at = destination(at, n_planes, c.n_columns);
            T *place = reinterpret_cast<T *>(out + at * part + i);
            WHARF_UNROLL
            for (unsigned k = 0; k < EACH; k++)
                if (i + k * STRIDE < part)
                    next[k] = load(place + k * Team::SIZE);
            WHARF_UNROLL
            for (unsigned k = 0; k < EACH; k++) {
                if (i + k * STRIDE < part)
                    store(place + k * Team::SIZE, hand[k]);
                hand[k] = next[k];
            }
        } while (at != first);
    }
}

/* Turns the parts of n_planes planes round. */
template <typename Team>
WHARF_DEVICE void turn_round(const Team &team, const stage &st, uint8_t *out, uint32_t n_planes,
                             const cutting &c)
{
    uint32_t n = n_planes * c.n_columns;
    uint32_t *marks = reinterpret_cast<uint32_t *>(st.memory);
    bool by_quads = (reinterpret_cast<uintptr_t>(out) | c.part_nbytes) % 16 == 0;
    for (uint32_t i = team.index(); i < n / 32 + 1; i += Team::SIZE)
        store(marks + i, 0u);
    team.sync();
    for (uint32_t first = 0; first < n;) {
        uint32_t rest = uniform(~load(marks + first / 32) >> first % 32);
        if (rest == 0) {
            first = (first / 32 + 1) * 32;
            continue;
        }
        first += ffs(rest) - 1;
        if (first >= n)
            break;
        team.sync(); /* all have looked, before one marks */
        if (team.index() == 0)
            for (uint32_t at = first, goes_on = 1; goes_on; goes_on = at != first) {
                at = destination(at, n_planes, c.n_columns);
                store(marks + at / 32, load(marks + at / 32) | 1u << at % 32);
            }
        if (by_quads)
            turn_cycle<u32x4>(team, out, n_planes, c, first);
        else
            turn_cycle<uint8_t>(team, out, n_planes, c, first);
        team.sync();
    }
    team.sync();
}

/* Copies n bytes of the output to the stage, aligned as they are; returns where they are. */
template <typename Team>
WHARF_DEVICE const uint8_t *copy_to_stage(const Team &team, const stage &st, const uint8_t *from,
                                          uint32_t n)
{
    uint32_t skew = (uint32_t)(reinterpret_cast<uintptr_t>(from) & 15);
    uint8_t *to = st.memory + skew;
    uint32_t head = (16 - skew) & 15;
    head = head < n ? head : n;
    uint32_t n_quads = (n - head) / 16, tail = head + 16 * n_quads;
    for (uint32_t i = team.index(); i < head; i += Team::SIZE)
        store(to + i, load(from + i));
    for (uint32_t i = tail + team.index(); i < n; i += Team::SIZE)
        store(to + i, load(from + i));
    WHARF_UNROLL_BY(16)
    for (uint32_t i = team.index(); i < n_quads; i += Team::SIZE)
        store(reinterpret_cast<u32x4 *>(to + head) + i,
              load(reinterpret_cast<const u32x4 *>(from + head) + i));
    team.sync();
    return to;
}

/* Pieces of a block between two looks whether to stop.  The first levels of the largest block take
 * most of a second each, later ones more, since they move bytes. */
constexpr uint32_t PIECES_BETWEEN_LOOKS = 4;

/* Puts the planes of blocks in order, where these are.  Blocks are one, or fit in the stage. */
template <typename Team>
WHARF_DEVICE void order_in_place(const Team &team, const stage &st, planes p, uint32_t n_planes,
                                 bool is_bits)
{
    uint32_t room = st.nbytes - STAGE_SPARE, plane_nbytes = p.plane_nbytes, n_pieces = 1;
    uint8_t *out = p.out;
    /* Level after level, all pieces of one.  They are numbered so that the place of a piece in the
     * first level is its number's lowest digit. */
    auto piece_at = [&](uint32_t piece, uint32_t nbytes_of_its_planes) {
        uint32_t at = 0;
        for (uint32_t n = plane_nbytes; n > nbytes_of_its_planes;) {
            cutting c = cut_planes(n_planes, n, room);
            at += piece % c.n_columns * n_planes * c.part_nbytes;
            piece /= c.n_columns;
            n = c.part_nbytes;
        }
        return out + at;
    };
    auto is_over = [&](uint32_t piece) {
        return n_pieces > 1 && piece % PIECES_BETWEEN_LOOKS == 0 && team.is_stopped(st.stop);
    };
    while (p.n_blocks == 1 && n_planes * p.plane_nbytes > room) {
        cutting c = cut_planes(n_planes, p.plane_nbytes, room);
        for (uint32_t i = 0; i < n_pieces; i++) {
            if (is_over(i))
                return;
            p.out = piece_at(i, p.plane_nbytes);
            take_ends(team, st, p, n_planes, c, is_bits);
            turn_round(team, st, p.out, n_planes, c);
        }
        n_pieces *= c.n_columns;
        p.plane_nbytes = c.part_nbytes;
    }
    uint32_t n = p.n_blocks == 1 ? n_planes * p.plane_nbytes : p.n_blocks * p.block_nbytes;
    for (uint32_t i = 0; i < n_pieces; i++) {
        if (is_over(i))
            return;
        p.out = piece_at(i, p.plane_nbytes);
        p.stage = copy_to_stage(team, st, p.out, n);
        order_planes(team, p, is_bits);
        team.sync();
    }
}

} // namespace blosc
} // namespace wharf

#endif
