/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_plan.cuh: what is to be done for a chunk of Blosc, or of bitshuffle's framing: how it is
 * cut into streams that can be decoded in any order, and into groups of blocks whose filters can be
 * undone in any order.
 *
 * The plan lies in global memory.  blosc_header.cuh and blosc_walk.cuh make it.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_PLAN_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_PLAN_CUH

#include "encoders/blosc/blosc_format.h"
#include "kernels/output_stream.cuh"

namespace wharf
{
namespace blosc
{

constexpr uint32_t SIZE_NBYTES = 4;

/* Pieces of chunks that are one value or a copy. */
constexpr uint32_t PIECE_NBYTES = 64 << 10;

/* Streams of a block up to which each can be an item of its own: later ones are found by way of
 * those before them. */
constexpr uint32_t MOST_SINGLE_STREAMS = 16;

/* An item's number must fit the key of a failure. */
constexpr uint32_t MOST_ITEMS = 65535;

/* What a chunk is. */
enum kind : uint32_t {
    ENDED = 0,      /* all is known */
    OF_STREAMS = 1, /* blocks */
    OF_VALUES = 2,  /* one value, over and over */
    OF_A_COPY = 3,
};

/* What undoes a filter, by the filter's number. */
constexpr uint32_t NOTHING = WHARF_BLOSC_FILTER_NONE;
constexpr uint32_t ORDER_BYTES = WHARF_BLOSC_FILTER_SHUFFLE;
constexpr uint32_t ORDER_BITS = WHARF_BLOSC_FILTER_BITSHUFFLE;
constexpr uint32_t ADD_DELTAS = WHARF_BLOSC_FILTER_DELTA;

struct plan {
    uint32_t kind;
    uint32_t inside; /* enum wharf_blosc_inside */
    uint32_t is_frame;
    uint32_t whole_eights; /* bits are in order where elements are no multiple of eight */
    uint32_t element_nbytes;
    uint32_t header_nbytes;
    uint32_t end; /* streams end here at the latest */
    uint32_t out_nbytes, block_nbytes, n_blocks;
    uint32_t n_splits; /* streams of a block, but of the last one */
    uint32_t n_last;   /* streams of that */
    /* Streams are numbered through all blocks.  The first n_good can be read; then comes `failure`,
     * if that is one. */
    uint32_t n_good;
    uint32_t in_nbytes; /* of a chunk that is good */
    verdict failure;
    /* Of filter i, in the order of packing, byte i. */
    uint64_t operations, units;
    /* Items are streams, or pieces of output; groups are blocks. */
    uint32_t per_item, n_items;
    uint32_t per_group, n_groups;
    uint32_t has_deltas;
};

/* One lane.  Four bytes of input, which are there. */
WHARF_DEVICE uint32_t load_le32(const uint8_t *p)
{
    return load_nc(p) | (uint32_t)load_nc(p + 1) << 8 | (uint32_t)load_nc(p + 2) << 16 |
           (uint32_t)load_nc(p + 3) << 24;
}

WHARF_DEVICE uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)load_nc(p) << 24 | (uint32_t)load_nc(p + 1) << 16 |
           (uint32_t)load_nc(p + 2) << 8 | load_nc(p + 3);
}

/* A failure at byte `at` of the input. */
WHARF_DEVICE verdict fail(uint32_t reason, uint32_t at)
{
    uint32_t result = WHARF_BAD_DATA;
    if (reason == WHARF_REASON_OUTPUT_FULL)
        result = WHARF_OUTPUT_TOO_SMALL;
    else if (reason == WHARF_REASON_BLOSC_VERSION || reason == WHARF_REASON_BLOSC_FLAGS ||
             reason == WHARF_REASON_BLOSC_FILTER || reason == WHARF_REASON_BLOSC_CODEC)
        result = WHARF_UNSUPPORTED;
    else if (reason == WHARF_REASON_STEP_BUDGET)
        result = WHARF_INTERNAL;
    return bad(result, reason, 8 * at);
}

/* How large block number `block` is. */
WHARF_DEVICE uint32_t nbytes_of_block(const plan &p, uint32_t block)
{
    /* A frame's blocks are multiples of eight elements, and what is left is none. */
    uint32_t blocked =
        p.is_frame ? p.out_nbytes - p.out_nbytes % (8 * p.element_nbytes) : p.out_nbytes;
    uint32_t left = blocked - block * p.block_nbytes;
    return left < p.block_nbytes ? left : p.block_nbytes;
}

/* One lane.  Filter i of a block of nbytes: what undoes it, of how many planes of plane_nbytes. */
struct step {
    uint32_t operation; /* NOTHING also where it changes nothing */
    uint32_t unit_nbytes;
    uint32_t n_planes, plane_nbytes;
};

WHARF_DEVICE step step_of(const plan &p, unsigned i, uint32_t nbytes)
{
    uint32_t operation = (uint32_t)(p.operations >> 8 * i) & 0xff;
    uint32_t unit = (uint32_t)(p.units >> 8 * i) & 0xff;
    if (operation == NOTHING || operation == ADD_DELTAS)
        return {operation, unit, 0, 0};
    uint32_t n_units = nbytes / unit;
    bool is_kept = operation == ORDER_BYTES ? unit == 1 : p.whole_eights && n_units % 8 != 0;
    uint32_t n_planes = operation == ORDER_BITS ? 8 * unit : unit;
    uint32_t plane_nbytes = operation == ORDER_BITS ? n_units / 8 : n_units;
    return {is_kept || plane_nbytes == 0 ? NOTHING : operation, unit, n_planes, plane_nbytes};
}

/* Streams, with the one that cannot be read. */
WHARF_DEVICE uint32_t count_planned(const plan &p)
{
    return p.n_good + (p.failure.result != WHARF_OK);
}

/* How many bytes, streams or pieces are in an item, for n in all, if it had better have `least`. */
WHARF_DEVICE void cut_items(plan &p, uint32_t n, uint32_t least)
{
    uint32_t n_items = n ? (n - 1) / least + 1 : 0;
    p.per_item = n_items > MOST_ITEMS ? least * ((n_items - 1) / MOST_ITEMS + 1) : least;
    p.n_items = n ? (n - 1) / p.per_item + 1 : 0;
}

/* One lane.  Cuts what is known of a chunk into items, and its blocks into groups of as many as fit
 * in `room` together.  Deltas want the first block's output, so that all blocks are one group. */
WHARF_DEVICE void cut(plan &p, uint32_t room)
{
    if (p.kind == OF_VALUES || p.kind == OF_A_COPY) {
        /* Values of other sizes than these repeat what is there: one item. */
        bool is_long = p.block_nbytes > 8 || (p.block_nbytes & (p.block_nbytes - 1)) != 0;
        cut_items(p, p.out_nbytes, p.kind == OF_VALUES && is_long ? p.out_nbytes : PIECE_NBYTES);
    } else if (p.kind == OF_STREAMS) {
        cut_items(p, count_planned(p), p.n_splits > MOST_SINGLE_STREAMS ? p.n_splits : 1);
    }
    if (p.kind != OF_STREAMS || p.operations == 0 || p.n_blocks == 0)
        return;
    for (unsigned i = 0; i < WHARF_BLOSC_N_FILTERS; i++)
        p.has_deltas |= (p.operations >> 8 * i & 0xff) == ADD_DELTAS;
    p.per_group = room / p.block_nbytes;
    p.per_group = p.has_deltas ? p.n_blocks : p.per_group ? p.per_group : 1;
    p.n_groups = (p.n_blocks - 1) / p.per_group + 1;
}

} // namespace blosc
} // namespace wharf

#endif
