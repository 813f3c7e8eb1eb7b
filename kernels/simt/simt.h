/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt.h: runs device routines on the CPU, for tests, fuzzers and the simt engine.
 *
 * A warp is 32 coroutines on the calling thread.  Each runs until it comes to a collective of
 * warp.cuh; when all 32 have come to the same one, they go on.  Between two collectives the lanes
 * run one after the other, in an order of choice: a routine that needs a syncwarp() which is not
 * there gives a wrong answer in at least one of the orders (ascending alone hides every missing
 * one where a lane reads what a lower lane wrote).
 *
 * Lanes that meet in different places, or leave the routine while others wait, are a fault of
 * the routine that the hardware answers with a hang or with wrong values: here the program ends
 * with a message that names both places (abort; this is a test instrument).
 *
 * Threads: any number may run warps at once, each its own.  A warp's stacks are made on a
 * thread's first run and kept until the thread ends.
 */
#ifndef WHARF_KERNELS_SIMT_SIMT_H
#define WHARF_KERNELS_SIMT_SIMT_H

#include <stddef.h>
#include <stdint.h>

namespace wharf
{
namespace simt
{

enum class lane_order {
    ascending,
    descending,
    random, /* another order between any two collectives */
};

struct options {
    lane_order order = lane_order::ascending;
    uint64_t seed = 0; /* of the random order and of what shared memory holds at the start */
};

/*
 * Runs routine(shared, argument) as one warp and returns how many collectives it met in.
 * `shared` is shared_nbytes of memory, aligned to 128 bytes, that ends at a guard page (as closely
 * as 16-byte alignment of its size allows), follows a poisoned zone and is filled with a pattern
 * of its own on every run.
 */
using routine_fn = void(void *shared, void *argument);
uint64_t run_warp(const options &opt, routine_fn *routine, void *argument, size_t shared_nbytes);

/* The same for a callable and a type: f(Shared &), a plain struct without constructor. */
template <typename Shared, typename F>
inline uint64_t run_warp(const options &opt, const F &f)
{
    routine_fn *call = [](void *shared, void *argument) {
        (*static_cast<const F *>(argument))(*static_cast<Shared *>(shared));
    };
    return run_warp(opt, call, const_cast<F *>(&f), sizeof(Shared));
}

/*
 * Runs routine(shared, warp, argument) as a block of n_warps warps, up to MAX_BLOCK_WARPS, that
 * share memory and meet at syncblock().  Between two of these the warps run one after the other, in
 * an order of the same kind as the lanes': so a syncblock() that is not there gives a wrong answer
 * in one of the orders.  Warps that end while others wait at one, or wait at different ones, end
 * the program.  Returns how many collectives the first warp met in.
 *
 * Warps that wait at barriers let the others run; where all of them wait for too long, or copies
 * are under way when the block ends, the program ends.
 */
constexpr unsigned MAX_BLOCK_WARPS = 16;
using block_routine_fn = void(void *shared, unsigned warp, void *argument);
uint64_t run_block(const options &opt, unsigned n_warps, block_routine_fn *routine, void *argument,
                   size_t shared_nbytes);

template <typename Shared, typename F>
inline uint64_t run_block(const options &opt, unsigned n_warps, const F &f)
{
    block_routine_fn *call = [](void *shared, unsigned warp, void *argument) {
        (*static_cast<const F *>(argument))(*static_cast<Shared *>(shared), warp);
    };
    return run_block(opt, n_warps, call, const_cast<F *>(&f), sizeof(Shared));
}

/* ---- what warp_simt.h is made of; for no one else ------------------------------------------ */

/* As a default argument ({}), the place of the call. */
struct call_site {
    const char *file;
    int line;
    constexpr call_site(const char *f = __builtin_FILE(), int l = __builtin_LINE())
        : file(f), line(l)
    {
    }
};

/* What the lanes deposited, and what was worked out from it; good until this lane's next call. */
struct meeting {
    uint64_t given[32];
    uint32_t result[32];
    bool worked_out;
};
meeting &meet(const char *what, call_site at, uint64_t given);

/* What syncwarp() gives as `what`: the one meeting of a warp that orders memory. */
inline constexpr char SYNCWARP[] = "syncwarp";

/* syncblock() and syncblock_or(). */
bool meet_block(call_site at, bool p);

/* A barrier's parity, arrivals that its phase still wants, and those that each phase wants.  Copies
 * end when somebody asks, in any order. */
struct barrier {
    uint32_t parity, left, n;
};
void arrive(barrier &b);
bool try_barrier(call_site at, barrier &b, uint32_t parity);
bool try_own_barrier(call_site at, barrier *b, uint32_t parity);
void copy_later(call_site at, void *to, const void *from, uint32_t nbytes, barrier &b);

/*
 * Which lane runs, and since when its accesses to memory are unordered with those of others.  Time
 * counts what orders memory: each syncwarp() of a warp, each syncblock(), each start of a warp.
 */
struct moment {
    unsigned warp, lane;
    uint32_t now;
    uint32_t warp_since;  /* with those of its warp's lanes */
    uint32_t block_since; /* with those of other warps */
};
/* Whose memory p is, for the lane that runs. */
enum class owner {
    nobody, /* no lane runs */
    layer,  /* the layer's own, or the lane's stack: nothing that lanes share */
    shared,
    other_lane, /* the stack of another lane of this warp */
};
owner look_at_access(const void *p, moment &ret_moment);

/* Of small functions, what an access and a collective always go through: also where the compiler is
 * told to optimise little, as with sanitizers, these are no calls. */
#define WHARF_SIMT_INLINE inline __attribute__((always_inline))

/* (Of C++'s own thread_local an access is a call, which looks whether there is something to set.)
 */
extern __thread unsigned lane_now __attribute__((tls_model("initial-exec")));
WHARF_SIMT_INLINE unsigned current_lane()
{
    return lane_now;
}
uint64_t steps_so_far();
uint64_t monotonic_ns();
/* The whole thread, hence all lanes; the kernel makes it some ten microseconds more. */
void sleep_thread(unsigned ns);
void misaligned(const void *p, size_t nbytes);
void not_uniform(call_site at, uint64_t first, uint64_t own);

WHARF_SIMT_INLINE void check_aligned(const void *p, size_t nbytes)
{
    if (reinterpret_cast<uintptr_t>(p) % nbytes)
        misaligned(p, nbytes);
}

} // namespace simt
} // namespace wharf

#endif
