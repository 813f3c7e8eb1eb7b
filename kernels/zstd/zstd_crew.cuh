/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_crew.cuh: decodes zstd with a crew, a block of several *workers* and one *follower*.  Each
 * worker is a warp with a chunk of its own.  The follower is one more warp; it follows the FSE
 * states of all workers' sequences, one lane for each worker.
 *
 * Idea: each state depends on the one before, so a single warp does in 32 lanes what one lane could
 * do.  Here each lane of the follower does that work for another chunk, while the workers write the
 * batches that it found before.
 *
 * A worker requests up to N_AHEAD batches ahead.  If a sequence needs the exact path, the worker
 * drops its requests and starts a new chain of states behind that sequence.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_CREW_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_CREW_CUH

#include "kernels/zstd/zstd_decode.cuh"

namespace wharf
{
namespace zstd
{

constexpr unsigned CREW_WORKERS = 8;
constexpr unsigned N_AHEAD = 2;
/* A window serves several batches. */
constexpr unsigned CREW_WINDOW_NWORDS = 256;
using crew_window = bits_of<CREW_WINDOW_NWORDS>;

/* A batch that a worker wants, and what the follower notes of it.  At both barriers all lanes of a
 * warp arrive, since all of them store and load what the phase is about: the worker has said what
 * it wants, and has read what was here before; all is noted. */
struct alignas(16) crew_batch {
    batch_notes notes;
    u32x4 begin;     /* of a new chain: its states, and where in the input its bits begin */
    uint32_t n;      /* sequences; 0: the worker has ended */
    uint32_t is_new; /* or the chain goes on from the batch before */
    uint32_t window; /* which one, and the bit of the input where it begins */
    uint32_t base;
    shared_barrier wanted, noted;
};

/* Between a worker and the follower. */
struct alignas(16) crew_link {
    crew_batch batches[N_AHEAD]; /* in turn */
    /* In turn as well: what a batch is wanted for, the one before may not have been read. */
    crew_window windows[2];
    input_source source; /* of the chain */
    uint32_t n_wanted;   /* batches of all chunks before */
};

struct crew_worker {
    shared own;
    crew_link link;
};

/* Shared memory of the block. */
struct crew_shared {
    crew_worker workers[CREW_WORKERS];
};

/* ---- workers --------------------------------------------------------------------------------- */

/* A worker's batches: those that it wants and does not have yet are n_wanted - n_got. */
struct crew_notes {
    shared_ref<crew_link> ref;
    uint32_t n_wanted, n_got;

    /* collective. */
    WHARF_DEVICE_MEMBER void init(crew_link &link)
    {
        ref.init(link);
        n_wanted = n_got = uniform(load(&link.n_wanted));
    }

    /* collective.  Behind a chunk, when none is wanted. */
    WHARF_DEVICE_MEMBER void keep()
    {
        if (lane_id() == 0)
            store(&ref.get().n_wanted, n_wanted);
        syncwarp();
    }

    /* collective.  The worker has no more chunks. */
    WHARF_DEVICE_MEMBER void end()
    {
        if (lane_id() == 0)
            ask(0, false);
        syncwarp();
        arrive();
    }

    WHARF_DEVICE_MEMBER noted_batch<CREW_WINDOW_NWORDS> next(const state &st, const sequences &q,
                                                             uint32_t n)
    {
        if (n_got == n_wanted) {
            if (lane_id() == 0) {
                crew_link &link = ref.get();
                link.source = st.source;
                store(&link.batches[n_wanted % N_AHEAD].begin,
                      u32x4{q.index[0], q.index[1], q.index[2], q.at});
                ask(n, true);
            }
            syncwarp();
            arrive();
            n_wanted++;
            want_ahead(q);
        }
        wait();
        const crew_link &link = ref.get();
        const crew_batch &b = link.batches[n_got % N_AHEAD];
        return {link.windows[uniform(load(&b.window))], b.notes, uniform(load(&b.base))};
    }

    WHARF_DEVICE_MEMBER void release(const sequences &q)
    {
        syncwarp(); /* all lanes have read it */
        n_got++;
        want_ahead(q, 1);
    }

    WHARF_DEVICE_MEMBER void drop()
    {
        while (n_got != n_wanted) {
            wait();
            n_got++;
        }
    }

  private:
    /* One lane. */
    WHARF_DEVICE_MEMBER void ask(uint32_t n, bool is_new)
    {
        crew_batch &b = ref.get().batches[n_wanted % N_AHEAD];
        store(&b.n, n);
        store(&b.is_new, (uint32_t)is_new);
    }

    /* collective.  What the worker asks for is said. */
    WHARF_DEVICE_MEMBER void arrive()
    {
        barrier_arrive(&ref.get().batches[n_wanted % N_AHEAD].wanted);
    }

    /* collective.  Wants batches as far ahead as may be, of the sequences of q, of which n_more
     * batches are neither wanted nor had any more. */
    WHARF_DEVICE_MEMBER void want_ahead(const sequences &q, uint32_t n_more = 0)
    {
        uint32_t n_before = WARP_LANES * (n_wanted - n_got + n_more);
        if (n_wanted - n_got == N_AHEAD || q.n <= n_before)
            return;
        uint32_t n = q.n - n_before;
        if (lane_id() == 0)
            ask(n < WARP_LANES ? n : WARP_LANES, false);
        syncwarp(); /* lanes meet, for the compiler too */
        arrive();
        n_wanted++;
    }

    /* collective.  For the batch that was wanted first. */
    WHARF_DEVICE_MEMBER void wait() const
    {
        shared_barrier *b = &ref.get().batches[n_got % N_AHEAD].noted;
        while (!barrier_try(b, n_got / N_AHEAD & 1)) {
        }
    }
};
static_assert(N_AHEAD == 2, "of the first two batches the second is wanted with the first");

/* ---- the follower ---------------------------------------------------------------------------- */

/* collective.  Loads what of quad number `quad`, and those behind it, is all input: one a lane, and
 * no branch. */
WHARF_DEVICE u32x4 load_inside(const input_source &source, uint32_t quad)
{
    uint32_t first = 16 * (quad + lane_id());
    u32x4 v = {};
    if ((first >= source.begin) & (first + 16 <= source.end))
        v = load_nc(reinterpret_cast<const u32x4 *>(source.aligned + first));
    return v;
}

/* collective.  Whether that skipped a quad that is partly input, in any lane. */
WHARF_DEVICE bool has_edge(const input_source &source, uint32_t quad)
{
    uint32_t first = 16 * (quad + lane_id());
    bool inside = (first >= source.begin) & (first + 16 <= source.end);
    return any_lane(!inside & (first + 16 > source.begin) & (first < source.end));
}

/* The lane's worker, of the follower. */
struct followed {
    input_source source;
    chain c;          /* counted from the input's first bit */
    uint32_t n_noted; /* batches */
    uint32_t n;       /* of the batch under way; 0: there is none */
    uint32_t window;  /* which one */
    uint32_t base;    /* the bit where it begins */
};

/* collective.  Loads the windows of some lanes, whose `window` and `base` are set.  Those of two
 * are on their way together. */
WHARF_DEVICE void load_windows(crew_shared &s, const followed &mine, uint32_t which)
{
    constexpr unsigned N_TOGETHER = 2, N_QUADS = CREW_WINDOW_NWORDS / 4 / WARP_LANES;
    while (which) {
        u32x4 v[N_TOGETHER][N_QUADS];
        input_source sources[N_TOGETHER];
        uint32_t quads[N_TOGETHER], lanes[N_TOGETHER];
        WHARF_UNROLL
        for (unsigned k = 0; k < N_TOGETHER; k++) {
            /* The last one once more, if there is no other. */
            lanes[k] = which ? first_lane(which) : lanes[0];
            which &= which - 1;
            uint64_t aligned = shfl((uint64_t)(uintptr_t)mine.source.aligned, lanes[k]);
            sources[k] = {reinterpret_cast<const uint8_t *>((uintptr_t)aligned),
                          shfl(mine.source.begin, lanes[k]), shfl(mine.source.end, lanes[k])};
            quads[k] = shfl(mine.base >> 7, lanes[k]);
            WHARF_UNROLL
            for (unsigned i = 0; i < N_QUADS; i++)
                v[k][i] = load_inside(sources[k], quads[k] + WARP_LANES * i);
        }
        WHARF_UNROLL
        for (unsigned k = 0; k < N_TOGETHER; k++) {
            crew_link &link = s.workers[lanes[k]].link;
            /* All lanes see what the lane has seen, since all of them store. */
            uint32_t n_noted = shfl(mine.n_noted, lanes[k]);
            while (!barrier_try(&link.batches[n_noted % N_AHEAD].wanted, n_noted / N_AHEAD & 1)) {
            }
            u32x4 *to = reinterpret_cast<u32x4 *>(
                &link.windows[shfl(mine.window, lanes[k])].words[WINDOW_FIRST]);
            WHARF_UNROLL
            for (unsigned i = 0; i < N_QUADS; i++) {
                uint32_t quad = quads[k] + WARP_LANES * i;
                if (has_edge(sources[k], quad)) {
                    v[k][i] = sources[k].load_quad(quad + lane_id());
                    syncwarp(); /* lanes meet, for the compiler too */
                }
                store(to + WARP_LANES * i + lane_id(), v[k][i]);
            }
        }
        syncwarp();
    }
}

/* collective, for the follower: until all workers have ended. */
WHARF_DEVICE void follow_crew(crew_shared &s)
{
    crew_worker &worker = s.workers[lane_id() % CREW_WORKERS];
    bool has_ended = lane_id() >= CREW_WORKERS;
    followed mine = {};
    while (any_lane(!has_ended)) {
        crew_batch &b = worker.link.batches[mine.n_noted % N_AHEAD];
        bool is_wanted =
            barrier_try_own(has_ended ? nullptr : &b.wanted, mine.n_noted / N_AHEAD & 1);
        if (!any_lane(is_wanted))
            continue;
        bool is_outside = false;
        mine.n = 0;
        if (is_wanted) {
            mine.n = load(&b.n);
            has_ended = mine.n == 0;
            is_outside = mine.c.at < mine.base + MAX_BATCH_NBITS && mine.base > 0;
            if (load(&b.is_new)) {
                u32x4 begin = load(&b.begin);
                mine.c = {begin.w, {begin.x, begin.y, begin.z}};
                mine.source = worker.link.source;
                is_outside = true;
            }
        }
        is_outside &= mine.n > 0;
        mine.window ^= is_outside;
        mine.base = is_outside ? 128 * window_quad<CREW_WINDOW_NWORDS>(mine.c.at) : mine.base;
        syncwarp(); /* lanes meet, for the compiler too */
        load_windows(s, mine, ballot(is_outside));
        if (mine.n > 0) {
            mine.c.at -= mine.base;
            mine.c = follow_states(worker.own.cells, worker.link.windows[mine.window], b.notes,
                                   mine.c, mine.n, true);
            mine.c.at += mine.base;
            store(&b.window, mine.window);
            store(&b.base, mine.base);
        }
        syncwarp();
        for (uint32_t left = ballot(mine.n > 0); left; left &= left - 1) {
            unsigned who = first_lane(left);
            uint32_t which = shfl(mine.n_noted, who) % N_AHEAD;
            barrier_arrive(&s.workers[who].link.batches[which].noted);
        }
        if (mine.n > 0)
            mine.n_noted++;
        syncwarp(); /* lanes meet, for the compiler too */
    }
}

} // namespace zstd

using zstd_crew_shared = zstd::crew_shared;
using zstd_crew_worker = zstd::crew_worker;
constexpr unsigned ZSTD_CREW_WORKERS = zstd::CREW_WORKERS;
constexpr unsigned ZSTD_CREW_BLOCKS_PER_SM = 2;

/* For all warps of the block, before anything else.  Synchronises the block. */
WHARF_DEVICE void zstd_crew_begin(zstd_crew_shared &s, unsigned warp)
{
    if (warp < zstd::CREW_WORKERS) {
        zstd::crew_link &link = s.workers[warp].link;
        for (unsigned i = 0; i < zstd::N_AHEAD; i++) {
            zstd::init_window(link.windows[i]);
            if (lane_id() == 0) {
                barrier_init(&link.batches[i].wanted, WARP_LANES);
                barrier_init(&link.batches[i].noted, WARP_LANES);
            }
        }
        if (lane_id() == 0)
            store(&link.n_wanted, 0u);
    }
    syncblock();
}

/* collective, for a worker. */
WHARF_DEVICE verdict zstd_crew_decode(zstd_crew_worker &s, const chunk_job &job)
{
    zstd::crew_notes notes;
    notes.init(s.link);
    verdict v = zstd::decode(s.own, job, notes);
    notes.keep();
    return v;
}

/* collective, for a worker after its last chunk. */
WHARF_DEVICE void zstd_crew_end(zstd_crew_worker &s)
{
    zstd::crew_notes notes;
    notes.init(s.link);
    notes.end();
}

/* collective, for the warp behind the workers. */
WHARF_DEVICE void zstd_crew_help(zstd_crew_shared &s)
{
    zstd::follow_crew(s);
}

} // namespace wharf

#endif
