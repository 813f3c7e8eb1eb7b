/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp.cuh: the warp, as every device decoder sees it.
 *
 * One decoder source compiles twice: by nvcc (sm_80 and up) onto the hardware's instructions,
 * and by g++ onto kernels/simt/, which runs the warp as 32 coroutines.  Device code therefore
 * calls only what stands in this header, never a CUDA intrinsic.
 *
 * THE CONTRACT.  Functions marked *collective* need all 32 lanes: every lane of the warp makes
 * the same call, in the same place, under conditions that are the same for all lanes.  (The SIMT
 * layer stops the program and names both places when lanes meet in different ones.)  Functions
 * not so marked work for one lane and may be called under any condition.
 *
 * Collectives exchange registers; they do not order memory.  ONLY syncwarp() makes one lane's
 * writes to shared or global memory visible to the other lanes.
 *
 * Everything is in namespace wharf and works on 32-bit (where noted also 64-bit) unsigned values.
 */
#ifndef WHARF_KERNELS_WARP_CUH
#define WHARF_KERNELS_WARP_CUH

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define WHARF_DEVICE static __device__ __forceinline__
#define WHARF_DEVICE_MEMBER __device__ __forceinline__
/* Worked out by the compiler for tables, and called in device code too. */
#define WHARF_CONSTEXPR constexpr __host__ __device__
/* For large bodies that are called from several places: one copy, called. */
#define WHARF_DEVICE_NOINLINE static __device__ __noinline__
#define WHARF_DEVICE_MEMBER_NOINLINE __device__ __noinline__
#define WHARF_PRAGMA(x) _Pragma(#x)
#define WHARF_UNROLL WHARF_PRAGMA(unroll)
#define WHARF_NO_UNROLL _Pragma("unroll 1")
#define WHARF_UNROLL_BY(n) WHARF_PRAGMA(unroll n)
/* A table in device memory. */
#define WHARF_DEVICE_TABLE static __device__ const
#include "kernels/warp_cuda.cuh"
#else
#define WHARF_DEVICE static inline
#define WHARF_DEVICE_MEMBER inline
#define WHARF_CONSTEXPR constexpr
#define WHARF_DEVICE_NOINLINE static inline
#define WHARF_DEVICE_MEMBER_NOINLINE inline
#define WHARF_UNROLL
#define WHARF_NO_UNROLL
#define WHARF_UNROLL_BY(n)
#define WHARF_DEVICE_TABLE static const
#include "kernels/simt/warp_simt.h"
#endif

namespace wharf
{

constexpr unsigned WARP_LANES = 32;
constexpr uint32_t FULL_MASK = 0xffffffffu;

/*
 * What the two implementations, warp_cuda.cuh and simt/warp_simt.h, provide:
 *
 * The lane
 *   unsigned lane_id()           this lane, 0 to 31
 *   uint32_t lanemask_lt()       the lanes below this one
 *
 * Meeting
 *   void syncwarp()              collective.  Every lane's reads and writes of memory before it
 *                                come before every lane's reads and writes after it.
 *
 * Meeting of a block, for decoders that more than one warp works on: all warps of the block call
 * it, each with all lanes, in the same place
 *   void syncblock()             as syncwarp, for all lanes of the block
 *   bool syncblock_or(bool p)    the same; whether p held in any lane of the block
 *
 * Barriers in shared memory, shared_barrier: a phase ends when so many have arrived, and the next
 * one begins.  Phases have parities 0, 1, 0 and so on
 *   barrier_init(b, n)     one lane, before a syncblock().  For n arrivals a phase.
 *   barrier_arrive(b)      one lane.  What it did to memory before, and knows to have been done by
 *                          lanes of its warp by syncwarp(), comes before what those do who saw the
 *                          phase end.
 *   barrier_try(b, parity) collective.  Whether the last phase of that parity has ended, and not
 *                          the other parity's before it; may wait a little for it.  Of a new
 *                          barrier the phase of parity 1 has ended.
 *   barrier_try_own(b, parity) collective.  The same for a barrier of each lane's own, NULL for
 * none, of which the answer is false; does not wait. copy_ahead(to, from, nbytes, b)  collective.
 * Copies from global memory that is constant while the kernel runs to shared memory, both aligned
 * to 16 bytes, a multiple of 16 many and the same in all lanes, and arrives at b when they are
 *                          there.  Nobody touches them before.
 *
 * Exchange; T is a 32-bit or 64-bit integer
 *   T shfl(T v, unsigned src)        collective.  v of lane src & 31.  All lanes hold a result.
 *   T shfl_in<N>(T v, unsigned src)  collective.  v of lane src % N of the N neighbours, a power of
 *                                    two, to which the lane belongs
 *   uint32_t shfl_xor<MASK>(v)       collective.  v of lane (own ^ MASK).  MASK < 32
 *   T shfl_up(T v, unsigned delta)   collective.  v of lane (own - delta); own v where there is no
 *                                    such lane.  delta < 32 and the same in all lanes.
 *   T shfl_down(T v, unsigned delta) likewise, lane (own + delta)
 *
 * Votes: all lanes hold the result
 *   uint32_t ballot(bool p)          collective.  Bit i is lane i's p.
 *   bool any_lane(bool p)            collective.
 *   uint32_t match_any(uint32_t v)   collective.  The lanes that hold the same v as this one.
 *
 * Reductions over the 32 lanes, uint32_t: all lanes hold the result
 *   reduce_add, reduce_min, reduce_max, reduce_or, reduce_xor
 *                                    collective.  One instruction.
 *
 * Prefix scans over the lanes in order, uint32_t: lane i holds the result of lanes 0 to i
 * (inclusive) or 0 to i - 1 (exclusive; lane 0 holds 0)
 *   inclusive_add, exclusive_add, inclusive_max    collective.  Five shuffles.
 *
 * Bits: one lane
 *   popc(x)   number of ones                     clz(x)   leading zeros, 32 for 0
 *   ffs(x)    lowest one, counted from 1; 0 for 0          brev(x)  bits in reverse order
 *   bit_or_none(n)            1 << n, or 0 for an n of 32 and more
 *   funnel_right(lo, hi, n)   the low 32 bits of (hi:lo) >> (n & 31)
 *   funnel_left(lo, hi, n)    the high 32 bits of (hi:lo) << (n & 31)
 *   byte_perm(a, b, s)        four bytes of (b:a), chosen by the nibbles of s (0 to 7)
 *   signed_perm(a, b, s)      byte_perm, where a nibble of 8 to 15 gives eight times the sign of
 *                             byte 0 to 7
 *   add_halves(a, b)          the sums of the high and of the low 16 bits, each modulo 2^16
 *   mul_high(a, b)            the high 32 bits of a * b
 *   multiply_add(a, b, c)     a * b + c, by a multiplication even where a shift would do: an H100
 *                             multiplies and does everything else to integers in different units,
 *                             each of which takes an instruction of a warp in two cycles
 *   multiply_add_if(p, to, a, b, c)   that to `to` where p holds, set_if(p, to, v) v, and
 *                             or_difference_if(p, to, a, b) the bits of a ^ b besides; no lane
 *                             parts from the others
 *   dot4(a, b, c)             c + the sum of the products of the four bytes of a and b
 *
 * Shared memory: one lane
 *   shared_ref<T>     a T in shared memory, for passing to functions that are not inlined:
 *                     init(T &), get()
 *   shared_cursor<T>  a place between Ts, uint16_t, in shared memory that moves: init(T *) or
 *                     init(T *, nbytes) for one behind it, move(int n); a T as a uint32_t by
 *                     load_before(n), the one before it for n = 0, or load_behind();
 *                     nbytes_from(const T *), which is not behind it; is_below(another one);
 *                     place(), in bytes from wherever, modulo 2^32
 *   shared_table      a table in shared memory: init(const T *); load_word(at) and load_byte(at)
 *                     give what stands so many bytes behind, as a uint32_t
 *
 * For the compiler
 *   uniform(v)        collective.  v, a uint32_t that is the same in all lanes: now the compiler
 *                     knows, and branches on it need no care for lanes that go apart (KERNELS.md,
 *                     rule 9).  It knows so too of what votes, reductions and syncblock_or give,
 *                     and of loads by addresses made of such values; of shuffles it does not
 *   uniform_global(p) collective.  p, a pointer to global memory that is the same in all lanes:
 *                     now the compiler knows both
 *   from_lane<LANE>(v)  collective.  v, a uint32_t or uint64_t, of that lane, as shfl gives it: now
 *                     the compiler knows that all lanes have the same
 *   opaque(v)         one lane.  v, a uint32_t of which the compiler is to know nothing
 *
 * Memory: one lane; the address must be aligned to the size of what it names
 *   load(p)           uint8_t, uint16_t, uint32_t, uint64_t, u32x4: an ordinary load
 *   load_part(p, first, n)  an ordinary load of an integer, of which the n bytes from byte `first`
 *                     on count, or none; the others, which other lanes may be storing, are anything
 *   load_part_once(p, first, n)  load_part of a uint8_t in global memory that is hardly loaded
 *                     again: what it brings into the second-level cache leaves that first
 *   load_nc(p)        the same from memory that nothing writes while the kernel runs (a chunk's
 *                     input): goes by the read-only path
 *   load_nc_over(v, p)  v = load_nc(p) of a u32x4, in v's own registers: where v is a variable of
 *                     a loop in which it is seldom loaded, it is not moved about in all turns
 *   prefetch(p)       nothing, but what is at p, in global memory, may be loaded sooner
 *   store(p, v)       an ordinary store
 *   store_byte(p, v)  the low byte of v, a uint32_t, to global memory
 *   store_pair_if(b, p, v)    the two low bytes of v, where b is true, to an even address of global
 *                     memory; no lane parts from the others
 *   store_eight_if(b, p, lo, hi)      likewise eight bytes, of two uint32_t
 *   store_quad_if(b, p, nbytes, v)    likewise a u32x4 to shared memory, nbytes behind p
 *   atomic_add(p, v)  uint32_t in global or shared memory: adds, returns what was there
 *   atomic_or(p, v)   uint32_t in shared memory: sets the bits of v, of which other lanes of the
 * block may set others meanwhile
 *   atomic_xor(p, v)  uint32_t in global memory: flips the bits of v, as atomic_or sets them
 *   atomic_min(p, v)  uint64_t in global memory: the less of v and what was there
 *   atomic_swap_if(p, old, v)  uint32_t, uint64_t in global memory: stores v if old is there,
 *                     returns what was there
 *
 * Memory that others write meanwhile: one lane.  Of all of these the compiler leaves out none and
 * moves none past another; none goes by a cache that does not hear of others' stores
 *   load_shared_by_device(p), store_shared_by_device(p, v)   uint32_t, uint64_t: words that other
 *                            warps of the kernel store or load
 *   load_quad_shared_by_device(p), store_quad_shared_by_device(p, v)   u32x4 of that kind, as one
 *                            access
 *   load_shared_with_host(p), store_shared_with_host(p, v)   the host's memory: uint8_t, uint32_t,
 *                            uint64_t; loads also u32x4, whose words may come from different times
 *   load_quad_shared_with_host(p), store_quad_shared_with_host(p, v)   u32x4 in the host's memory,
 *                            as one access: work_queue.h says what that means
 *   fence_device()           what this lane did to memory before, and what it knows to have been
 *                            done (by a word that it loaded, or from lanes by syncwarp), comes
 *                            before what it stores after, and what it loaded before what it loads
 *                            after, for all warps of the kernel
 *   fence_system()           the same for the host too, about a microsecond
 *   fence_system_total()     fence_system, and what it stored before comes before what it loads
 *                            after
 *   fresh_pointer(p)         p, of which the compiler knows nothing, not even that it was the
 *                            same the last time: what is loaded by it is loaded again
 *
 * Time: one lane
 *   uint64_t clock_now()     a counter that grows: cycles, or steps under SIMT
 *   uint64_t time_ns()       nanoseconds from some start, the same for all warps; in steps of up
 *                            to a microsecond
 *   void sleep_ns(unsigned)  called by all lanes: waits about so long, at most about a
 *                            millisecond; under SIMT the thread sleeps, at least some ten
 *                            microseconds.  (One lane alone would be a loop's end at which the
 *                            compiler takes lanes to part: KERNELS.md, rule 9)
 *   void pause_poll()        in a loop that polls the host as fast as it can: nothing, but under
 *                            SIMT the thread sleeps
 *
 * load_nc where its memory is written by the same kernel, but never while a chunk is decoded (an
 * epoch kernel's copy of the input): a source that defines WHARF_INPUT_IS_COPIED gets ordinary
 * loads under that name, which the compiler may move as freely.  They need a fresh_pointer.
 */

/* The lowest lane of a mask that is not empty. */
WHARF_DEVICE unsigned first_lane(uint32_t mask)
{
    return (unsigned)ffs(mask) - 1;
}

} // namespace wharf

#endif
