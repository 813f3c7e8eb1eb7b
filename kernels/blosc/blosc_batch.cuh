/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_batch.cuh: a batch of Blosc's chunks, in phases that come one after the other, each of them
 * a kernel of its own:
 *
 *   plan     a warp for each chunk: its plan, and what there is to do in all
 *   decode   a warp for each item, a few streams: once for LZ4 and its like, which need little
 *            memory, once for zlib, once for zstd
 *   order    a block of warps for each group of blocks: undoes their filters
 *   settle   a warp for each chunk: its outcome
 *
 * So the work of few large chunks spreads over all warps, and what is decoded needs no memory
 * beside the output.
 *
 * Items are numbered through all chunks.  A warp finds an item's chunk by a search in the sums of
 * items before each chunk.  Of a chunk's failures that of the lowest item counts: items put theirs
 * into a word of the chunk, as a key that is the less the lower the item.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_BATCH_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_BATCH_CUH

#include "kernels/batch_warp.cuh"
#include "kernels/blosc/blosc_filter.cuh"
#include "kernels/blosc/blosc_lz.cuh"
#include "kernels/blosc/blosc_streams.cuh"
#include "kernels/gather_chunks.cuh"

namespace wharf
{
namespace blosc
{

/* What is numbered: items by their codec, and groups of blocks.  A kernel that had both zlib and
 * zstd would have guards (KERNELS.md, rule 9). */
enum { LIGHT = 0, ZLIB = 1, ZSTD = 2, GROUPS = 3, N_CLASSES = 4 };

/* In global memory; zero before a batch. */
struct control {
    uint32_t n_planned;        /* chunks */
    uint32_t n_taken;          /* chunks beyond each warp's first, by warps that plan */
    uint32_t taken[N_CLASSES]; /* tickets likewise */
    uint32_t reserved;
    uint64_t totals[N_CLASSES];
};

/* A batch.  The same in all lanes. */
struct work {
    wharf_device_arrays arrays; /* n_chunks of 0: `chunks` are there already */
    wharf_device_chunk *chunks;
    wharf_outcome *outcomes;
    control *state;
    plan *plans;                 /* one for each chunk */
    uint64_t *keys;              /* of its first failure */
    uint64_t *firsts[N_CLASSES]; /* how many items there are before it */
    uint32_t n_chunks;
    uint32_t stage_nbytes; /* of a block of warps that orders */
};

/* Memory for a batch, in one piece aligned to 256. */
constexpr size_t CONTROL_NBYTES = 256;
constexpr size_t EACH_NBYTES =
    sizeof(wharf_device_chunk) + sizeof(plan) + (1 + N_CLASSES) * sizeof(uint64_t);
static_assert(sizeof(control) <= CONTROL_NBYTES && sizeof(wharf_device_chunk) % 8 == 0 &&
              sizeof(plan) % 8 == 0);

WHARF_CONSTEXPR size_t work_nbytes(size_t n_chunks)
{
    return CONTROL_NBYTES + (n_chunks * EACH_NBYTES + 255) / 256 * 256;
}

/* Lays out what work_nbytes() counts. */
inline work lay_out(uint8_t *memory, uint32_t n_chunks)
{
    work w = {};
    uint8_t *at = memory + CONTROL_NBYTES;
    w.state = reinterpret_cast<control *>(memory);
    w.n_chunks = n_chunks;
    w.keys = reinterpret_cast<uint64_t *>(at);
    for (unsigned c = 0; c < N_CLASSES; c++)
        w.firsts[c] = w.keys + (size_t)(1 + c) * n_chunks;
    at += (size_t)(1 + N_CLASSES) * n_chunks * sizeof(uint64_t);
    w.chunks = reinterpret_cast<wharf_device_chunk *>(at);
    w.plans = reinterpret_cast<plan *>(at + n_chunks * sizeof(wharf_device_chunk));
    return w;
}

/* ---- failures -------------------------------------------------------------------------------- */

constexpr uint64_t NO_FAILURE = UINT64_MAX;
constexpr unsigned RESULT_NBITS = 4, REASON_NBITS = 12;

WHARF_DEVICE uint64_t key_of(uint32_t item, const verdict &v)
{
    return (uint64_t)item << 48 | (uint64_t)v.bit_offset << (RESULT_NBITS + REASON_NBITS) |
           v.reason << RESULT_NBITS | v.result;
}

WHARF_DEVICE verdict verdict_of(uint64_t key)
{
    return bad((uint32_t)key & ((1u << RESULT_NBITS) - 1),
               (uint32_t)key >> RESULT_NBITS & ((1u << REASON_NBITS) - 1),
               (uint32_t)(key >> (RESULT_NBITS + REASON_NBITS)));
}

static_assert(WHARF_REASON_FILE_READ <= 1 << REASON_NBITS && MOST_ITEMS <= 0xffff);

/* ---- plan ------------------------------------------------------------------------------------ */

/* What a decoder is given of a chunk. */
WHARF_DEVICE chunk_job job_of(const wharf_device_chunk &chunk, uint8_t *scratch)
{
    uint32_t in_nbytes = (uint32_t)chunk.in_nbytes, out_avail = (uint32_t)chunk.out_avail;
    uint32_t budget = chunk.step_budget ? chunk.step_budget : step_budget(in_nbytes, out_avail);
    return {chunk.in, in_nbytes, chunk.out, out_avail, chunk.parameter,
            nullptr,  scratch,   budget,    {}};
}

/* collective.  Plans chunk i. */
WHARF_DEVICE void plan_chunk(const work &w, uint32_t i)
{
    if (w.arrays.n_chunks && lane_id() == 0)
        w.chunks[i] = gather_chunk(w.arrays, i);
    syncwarp();
    const wharf_device_chunk &chunk = w.chunks[i];
    plan &p = w.plans[i];
    uint32_t refusal = chunk.refusal;
    if (chunk.in_nbytes > MAX_CHUNK_NBYTES || chunk.out_avail > MAX_CHUNK_NBYTES)
        refusal = refusal ? refusal : (uint32_t)WHARF_REASON_REQUEST_SIZE;
    if (chunk.codec != WHARF_CODEC_BLOSC)
        refusal = WHARF_REASON_REQUEST_CODEC;
    if (refusal == 0) {
        make_plan(job_of(chunk, nullptr), p, w.stage_nbytes - STAGE_SPARE);
    } else if (lane_id() == 0) {
        p = {};
        p.failure = bad(WHARF_BAD_REQUEST, refusal, 0);
    }
    syncwarp();
    if (lane_id() == 0) {
        bool is_zlib = p.kind == OF_STREAMS && p.inside == WHARF_BLOSC_ZLIB;
        bool is_zstd = p.kind == OF_STREAMS && p.inside == WHARF_BLOSC_ZSTD;
        store(w.keys + i, NO_FAILURE);
        store(w.firsts[LIGHT] + i, (uint64_t)(is_zlib || is_zstd ? 0 : p.n_items));
        store(w.firsts[ZLIB] + i, (uint64_t)(is_zlib ? p.n_items : 0));
        store(w.firsts[ZSTD] + i, (uint64_t)(is_zstd ? p.n_items : 0));
        store(w.firsts[GROUPS] + i, (uint64_t)p.n_groups);
    }
    syncwarp();
}

/* collective.  Makes sums of all numbers: how much there is before each chunk, and in all. */
WHARF_DEVICE void sum_up(const work &w)
{
    constexpr unsigned EACH = 4;
    uint64_t before[N_CLASSES] = {};
    for (uint32_t first = 0; first < w.n_chunks; first += EACH * WARP_LANES) {
        uint32_t at = first + EACH * lane_id(), own[N_CLASSES][EACH];
        WHARF_UNROLL
        for (unsigned i = 0; i < N_CLASSES * EACH; i++) {
            uint32_t chunk = at + i % EACH;
            const uint64_t *number = w.firsts[i / EACH] + chunk;
            bool is_there = chunk < w.n_chunks;
            own[i / EACH][i % EACH] = is_there ? (uint32_t)load_shared_by_device(number) : 0;
        }
        WHARF_UNROLL
        for (unsigned c = 0; c < N_CLASSES; c++) {
            uint32_t sum = own[c][0] + own[c][1] + own[c][2] + own[c][3];
            uint32_t end = inclusive_add(sum);
            uint64_t next = before[c] + (end - sum);
            WHARF_UNROLL
            for (unsigned k = 0; k < EACH; k++) {
                if (at + k < w.n_chunks)
                    store(w.firsts[c] + at + k, next);
                next += own[c][k];
            }
            before[c] += uniform(shfl(end, WARP_LANES - 1));
        }
    }
    if (lane_id() == 0)
        for (unsigned c = 0; c < N_CLASSES; c++)
            store(&w.state->totals[c], before[c]);
    syncwarp();
}

/* collective.  Warp number `warp` of n_warps, all of which must run.  The one that plans the last
 * chunk makes the sums. */
WHARF_DEVICE void plan_warp(const work &w, uint32_t warp, uint32_t n_warps)
{
    for (uint32_t i = uniform(warp); i < w.n_chunks;) {
        plan_chunk(w, i);
        uint32_t taken = 0, n_planned = 0;
        if (lane_id() == 0) {
            fence_device();
            n_planned = atomic_add(&w.state->n_planned, 1) + 1;
            fence_device();
            taken = atomic_add(&w.state->n_taken, 1);
        }
        if (uniform(shfl(n_planned, 0)) == w.n_chunks)
            sum_up(w);
        i = chunk_taken(w.n_chunks, n_warps, uniform(shfl(taken, 0)));
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

/* Tickets are numbers of 32 bits; of 2^31 items or more, each is for several. */
constexpr unsigned TICKET_NBITS = 31;

/* collective.  The last chunk before which there are at most `item` others. */
WHARF_DEVICE uint32_t find_chunk(const uint64_t *firsts, uint32_t n_chunks, uint64_t item)
{
    uint32_t low = 0, high = n_chunks; /* low's are at most that many, high's are more */
    while (high - low > 1) {
        uint32_t step = (high - low - 1) / WARP_LANES + 1;
        uint32_t at = low + lane_id() * step;
        uint32_t n = popc(ballot(at < high && at >= low && load(firsts + at) <= item));
        uint32_t next = low + (n - 1) * step;
        high = step < high - next ? next + step : high;
        low = next;
    }
    return low;
}

/* The tickets of a class.  The same in all lanes. */
struct tickets {
    uint64_t n_items;
    unsigned shift; /* a ticket is for 2^shift items */
    uint32_t n;

    /* collective. */
    WHARF_DEVICE_MEMBER void init(const work &w, unsigned c)
    {
        n_items = load(&w.state->totals[c]);
        shift = 0; /* no division, whose result the compiler would not take for uniform */
        while (n_items >> shift >> TICKET_NBITS)
            shift++;
        n = (uint32_t)((n_items + ((uint64_t)1 << shift) - 1) >> shift);
    }
    WHARF_DEVICE_MEMBER uint64_t first(uint32_t ticket) const { return (uint64_t)ticket << shift; }
    WHARF_DEVICE_MEMBER uint64_t end(uint32_t ticket) const
    {
        uint64_t next = first(ticket + 1);
        return next < n_items ? next : n_items;
    }
};

/* collective.  The number of the ticket behind a warp's last, of those that are taken. */
WHARF_DEVICE uint32_t take_ticket(const work &w, unsigned c)
{
    uint32_t taken = 0;
    if (lane_id() == 0)
        taken = atomic_add(&w.state->taken[c], 1);
    return uniform(shfl(taken, 0));
}

/* ---- decode ---------------------------------------------------------------------------------- */

struct light {
    using shared = lz::shared;
    static constexpr unsigned CLASS = LIGHT;
    static constexpr size_t SCRATCH_NBYTES = 0;
    static constexpr unsigned WARPS_PER_SM = 32;

    static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t inside, const chunk_job &job)
    {
        switch (inside) {
        case WHARF_BLOSC_LZ4:
            return lz4_decode(s, job);
        case WHARF_BLOSC_SNAPPY:
            return snappy_decode(s, job);
        default:
            return lz_decode(s, job);
        }
    }
};

struct of_zlib {
    using shared = zlib_shared;
    static constexpr unsigned CLASS = ZLIB;
    static constexpr size_t SCRATCH_NBYTES = ZLIB_SCRATCH_NBYTES;
    static constexpr unsigned WARPS_PER_SM = ZLIB_WARPS_PER_SM;

    static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t, const chunk_job &job)
    {
        return zlib_decode(s, job);
    }
};

struct of_zstd {
    using shared = zstd_shared;
    static constexpr unsigned CLASS = ZSTD;
    static constexpr size_t SCRATCH_NBYTES = ZSTD_SCRATCH_NBYTES;
    static constexpr unsigned WARPS_PER_SM = ZSTD_WARPS_PER_SM;

    static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t, const chunk_job &job)
    {
        return zstd_decode(s, job);
    }
};

/* collective.  Item number `number` of all. */
template <typename Inside>
WHARF_DEVICE void decode_numbered(typename Inside::shared &s, const work &w, uint64_t number,
                                  uint8_t *scratch)
{
    const uint64_t *firsts = w.firsts[Inside::CLASS];
    uint32_t i = uniform(find_chunk(firsts, w.n_chunks, number));
    uint32_t item = (uint32_t)(number - load(firsts + i));
    uint64_t so_far = lane_id() == 0 ? load_shared_by_device(w.keys + i) : 0;
    /* One that comes first has failed. */
    if (any_lane(lane_id() == 0 && so_far >> 48 < item))
        return;
    verdict v = decode_item<Inside>(s, job_of(w.chunks[i], scratch), w.plans[i], item);
    if (lane_id() == 0 && v.result != WHARF_OK)
        atomic_min(w.keys + i, key_of(item, v));
    syncwarp();
}

/* collective.  Warp number `warp` of n_warps. */
template <typename Inside>
WHARF_DEVICE void decode_warp(typename Inside::shared &s, const work &w, uint32_t warp,
                              uint32_t n_warps, uint8_t *scratch)
{
    tickets t;
    t.init(w, Inside::CLASS);
    for (uint32_t ticket = uniform(warp); ticket < t.n;) {
        for (uint64_t number = t.first(ticket); number < t.end(ticket); number++)
            decode_numbered<Inside>(s, w, number, scratch);
        ticket = chunk_taken(t.n, n_warps, take_ticket(w, Inside::CLASS));
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

constexpr unsigned ORDER_WARPS = 16;

/* In a block's shared memory, in front of its stage. */
struct order_shared {
    uint32_t taken;
    uint32_t reserved[3];
};

/* For all warps of block number `block` of n_blocks, whose stage of w.stage_nbytes is `memory`. */
WHARF_DEVICE void order_block(order_shared &s, uint8_t *memory, const work &w, unsigned warp,
                              uint32_t block, uint32_t n_blocks)
{
    block_team<ORDER_WARPS> team = {uniform(warp)};
    stage st = {memory, w.stage_nbytes};
    tickets t;
    t.init(w, GROUPS);
    for (uint32_t ticket = uniform(block); ticket < t.n;) {
        for (uint64_t number = t.first(ticket); number < t.end(ticket); number++) {
            uint32_t i = uniform(find_chunk(w.firsts[GROUPS], w.n_chunks, number));
            uint32_t group = (uint32_t)(number - load(w.firsts[GROUPS] + i));
            if (load(w.keys + i) == NO_FAILURE)
                undo_group(team, st, w.plans[i], w.chunks[i].out, group);
        }
        if (team.index() == 0)
            store(&s.taken, atomic_add(&w.state->taken[GROUPS], 1));
        team.sync();
        ticket = chunk_taken(t.n, n_blocks, uniform(load(&s.taken)));
        team.sync();
    }
}

/* ---- settle ---------------------------------------------------------------------------------- */

/* collective.  Warp number `warp` of n_warps. */
WHARF_DEVICE void settle_warp(const work &w, uint32_t warp, uint32_t n_warps)
{
    for (uint32_t i = uniform(warp); i < w.n_chunks; i += n_warps) {
        const plan &p = w.plans[i];
        uint64_t key = load(w.keys + i);
        verdict v = good(p.in_nbytes, p.out_nbytes);
        if (key != NO_FAILURE)
            v = verdict_of(key);
        else if (p.kind == ENDED && p.failure.result != WHARF_OK)
            v = p.failure;
        v = settle(w.chunks[i], v);
        if (lane_id() == 0)
            w.outcomes[i] = {v.result, v.reason, v.bit_offset, v.in_nbytes, v.out_nbytes};
        syncwarp();
    }
}

} // namespace blosc
} // namespace wharf

#endif
