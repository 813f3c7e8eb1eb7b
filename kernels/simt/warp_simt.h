/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp_simt.h: warp.cuh's functions on a warp of coroutines.  Contracts stand in warp.cuh.
 *
 * A collective deposits this lane's value, lets the other lanes run until all have come to the
 * same call, and reads its result from what they deposited.  Where lanes share a result, the
 * first one to go on works it out.
 */
#ifndef WHARF_KERNELS_WARP_SIMT_H
#define WHARF_KERNELS_WARP_SIMT_H

#include <string.h>

#include "kernels/simt/simt.h"

namespace wharf
{

using call_site = simt::call_site;

struct alignas(16) u32x4 {
    uint32_t x, y, z, w;
};

template <typename T>
struct shared_ref {
    T *handle;

    void init(T &t) { handle = &t; }
    T &get() const { return *handle; }
};

inline uint32_t opaque(uint32_t v)
{
    return v;
}

WHARF_SIMT_INLINE unsigned lane_id()
{
    return simt::current_lane();
}

inline uint32_t lanemask_lt()
{
    return (1u << lane_id()) - 1;
}

WHARF_SIMT_INLINE void syncwarp(call_site at = {})
{
    simt::meet(simt::SYNCWARP, at, 0);
}

inline void syncblock(call_site at = {})
{
    simt::meet_block(at, false);
}

inline bool syncblock_or(bool p, call_site at = {})
{
    return simt::meet_block(at, p);
}

struct shared_barrier {
    simt::barrier state;
};

inline void barrier_init(shared_barrier *b, uint32_t n)
{
    b->state = {0, n, n};
}

inline void barrier_arrive(shared_barrier *b)
{
    simt::arrive(b->state);
}

inline bool barrier_try(shared_barrier *b, uint32_t parity, call_site at = {})
{
    return simt::try_barrier(at, b->state, parity);
}

inline bool barrier_try_own(shared_barrier *b, uint32_t parity, call_site at = {})
{
    return simt::try_own_barrier(at, b ? &b->state : nullptr, parity);
}

inline void copy_ahead(void *to, const void *from, uint32_t nbytes, shared_barrier *b,
                       call_site at = {})
{
    simt::check_aligned(to, 16);
    simt::check_aligned(from, 16);
    simt::copy_later(at, to, from, nbytes, b->state);
}

template <typename T>
WHARF_SIMT_INLINE T shfl(T v, unsigned src, call_site at = {})
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return (T)simt::meet("shfl", at, (uint64_t)v).given[src & 31];
}

template <unsigned N, typename T>
WHARF_SIMT_INLINE T shfl_in(T v, unsigned src, call_site at = {})
{
    static_assert(N <= 32 && (N & (N - 1)) == 0 && (sizeof(T) == 4 || sizeof(T) == 8));
    return (T)simt::meet("shfl_in", at, (uint64_t)v).given[lane_id() / N * N + src % N];
}

template <unsigned MASK>
inline uint32_t shfl_xor(uint32_t v, call_site at = {})
{
    static_assert(MASK < 32);
    return (uint32_t)simt::meet("shfl_xor", at, v).given[lane_id() ^ MASK];
}

template <unsigned LANE, typename T>
WHARF_SIMT_INLINE T from_lane(T v, call_site at = {})
{
    static_assert(LANE < 32 && (sizeof(T) == 4 || sizeof(T) == 8));
    return (T)simt::meet("from_lane", at, (uint64_t)v).given[LANE];
}

template <typename T>
WHARF_SIMT_INLINE T shfl_up(T v, unsigned delta, call_site at = {})
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    unsigned lane = lane_id();
    const simt::meeting &m = simt::meet("shfl_up", at, (uint64_t)v);
    return (T)m.given[lane >= delta ? lane - delta : lane];
}

template <typename T>
WHARF_SIMT_INLINE T shfl_down(T v, unsigned delta, call_site at = {})
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    unsigned lane = lane_id();
    const simt::meeting &m = simt::meet("shfl_down", at, (uint64_t)v);
    return (T)m.given[lane + delta < 32 ? lane + delta : lane];
}

namespace simt
{

/* One result for all lanes: start, then f(result, value) for each lane in order. */
template <typename F>
inline uint32_t fold(const char *what, call_site at, uint32_t v, uint32_t start, F f)
{
    meeting &m = meet(what, at, v);
    if (!m.worked_out) {
        uint32_t r = start;
        for (unsigned i = 0; i < 32; i++)
            r = f(r, (uint32_t)m.given[i], i);
        m.result[0] = r;
        m.worked_out = true;
    }
    return m.result[0];
}

/* A result for each lane: f over the lanes before it, with or without itself. */
template <typename F>
inline uint32_t scan(const char *what, call_site at, uint32_t v, bool inclusive, F f)
{
    unsigned lane = current_lane();
    meeting &m = meet(what, at, v);
    if (!m.worked_out) {
        uint32_t r = 0;
        for (unsigned i = 0; i < 32; i++) {
            uint32_t next = f(r, (uint32_t)m.given[i]);
            m.result[i] = inclusive ? next : r;
            r = next;
        }
        m.worked_out = true;
    }
    return m.result[lane];
}

} // namespace simt

inline uint32_t ballot(bool p, call_site at = {})
{
    return simt::fold("ballot", at, p, 0,
                      [](uint32_t r, uint32_t v, unsigned i) { return r | v << i; });
}

inline bool any_lane(bool p, call_site at = {})
{
    return simt::fold("any_lane", at, p, 0, [](uint32_t r, uint32_t v, unsigned) { return r | v; });
}

WHARF_SIMT_INLINE uint32_t match_any(uint32_t v, call_site at = {})
{
    const simt::meeting &m = simt::meet("match_any", at, v);
    uint32_t mask = 0;
    for (unsigned i = 0; i < 32; i++)
        mask |= (uint32_t)(m.given[i] == v) << i;
    return mask;
}

inline uint32_t reduce_add(uint32_t v, call_site at = {})
{
    return simt::fold("reduce_add", at, v, 0,
                      [](uint32_t r, uint32_t x, unsigned) { return r + x; });
}

inline uint32_t reduce_min(uint32_t v, call_site at = {})
{
    return simt::fold("reduce_min", at, v, ~0u,
                      [](uint32_t r, uint32_t x, unsigned) { return r < x ? r : x; });
}

inline uint32_t reduce_max(uint32_t v, call_site at = {})
{
    return simt::fold("reduce_max", at, v, 0,
                      [](uint32_t r, uint32_t x, unsigned) { return r > x ? r : x; });
}

inline uint32_t reduce_or(uint32_t v, call_site at = {})
{
    return simt::fold("reduce_or", at, v, 0,
                      [](uint32_t r, uint32_t x, unsigned) { return r | x; });
}

inline uint32_t reduce_xor(uint32_t v, call_site at = {})
{
    return simt::fold("reduce_xor", at, v, 0,
                      [](uint32_t r, uint32_t x, unsigned) { return r ^ x; });
}

/* The hardware takes the values together by OR; different ones are a mistake that it hides. */
WHARF_SIMT_INLINE uint32_t uniform(uint32_t v, call_site at = {})
{
    uint64_t first = simt::meet("uniform", at, v).given[0];
    if (first != v)
        simt::not_uniform(at, first, v);
    return v;
}

template <typename T>
inline T *uniform_global(T *p, call_site at = {})
{
    uint64_t own = reinterpret_cast<uintptr_t>(p);
    uint64_t first = simt::meet("uniform_global", at, own).given[0];
    if (first != own)
        simt::not_uniform(at, first, own);
    return p;
}

inline uint32_t inclusive_add(uint32_t v, call_site at = {})
{
    return simt::scan("inclusive_add", at, v, true, [](uint32_t r, uint32_t x) { return r + x; });
}

inline uint32_t exclusive_add(uint32_t v, call_site at = {})
{
    return simt::scan("exclusive_add", at, v, false, [](uint32_t r, uint32_t x) { return r + x; });
}

inline uint32_t inclusive_max(uint32_t v, call_site at = {})
{
    return simt::scan("inclusive_max", at, v, true,
                      [](uint32_t r, uint32_t x) { return r > x ? r : x; });
}

WHARF_SIMT_INLINE unsigned popc(uint32_t x)
{
    return (unsigned)__builtin_popcount(x);
}

inline unsigned clz(uint32_t x)
{
    return x ? (unsigned)__builtin_clz(x) : 32;
}

inline unsigned ffs(uint32_t x)
{
    return (unsigned)__builtin_ffs((int)x);
}

inline uint32_t brev(uint32_t x)
{
    x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
    return __builtin_bswap32(x);
}

WHARF_SIMT_INLINE uint32_t bit_or_none(uint32_t n)
{
    return n < 32 ? 1u << n : 0;
}

WHARF_SIMT_INLINE uint32_t funnel_right(uint32_t lo, uint32_t hi, unsigned n)
{
    return (uint32_t)(((uint64_t)hi << 32 | lo) >> (n & 31));
}

inline uint32_t funnel_left(uint32_t lo, uint32_t hi, unsigned n)
{
    return (uint32_t)(((uint64_t)hi << 32 | lo) << (n & 31) >> 32);
}

inline uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t s)
{
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++)
        r |= (uint32_t)(both >> (s >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return r;
}

inline uint32_t add_halves(uint32_t a, uint32_t b)
{
    return ((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16;
}

inline uint32_t signed_perm(uint32_t a, uint32_t b, uint32_t s)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t choice = s >> 4 * i & 15, byte = byte_perm(a, b, choice & 7) & 255;
        r |= (choice < 8 ? byte : byte >= 128 ? 255 : 0) << 8 * i;
    }
    return r;
}

inline uint32_t mul_high(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

inline uint32_t multiply_add(uint32_t a, uint32_t b, uint32_t c)
{
    return a * b + c;
}

inline void multiply_add_if(bool sets, uint32_t &to, uint32_t a, uint32_t b, uint32_t c)
{
    to = sets ? a * b + c : to;
}

inline void set_if(bool sets, uint32_t &to, uint32_t v)
{
    to = sets ? v : to;
}

inline void or_difference_if(bool sets, uint32_t &to, uint32_t a, uint32_t b)
{
    to |= sets ? a ^ b : 0;
}

inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c)
{
    for (unsigned i = 0; i < 32; i += 8)
        c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}

/*
 * memcpy, since one place is read and written at several widths; the check stands for the fault
 * that a misaligned access is on the GPU.
 */
template <typename T>
WHARF_SIMT_INLINE T load(const T *p)
{
    simt::check_aligned(p, sizeof(T));
    T v;
    memcpy(&v, p, sizeof(T));
    return v;
}

/* The other bytes are neither looked at nor what memory holds. */
template <typename T>
inline T load_part(const T *p, unsigned first, unsigned n)
{
    simt::check_aligned(p, sizeof(T));
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(p);
    T v = (T)0xa5a5a5a5a5a5a5a5u;
    for (unsigned i = first; i < first + n; i++)
        v = (T)((v & ~((T)0xff << 8 * i)) | (T)bytes[i] << 8 * i);
    return v;
}

WHARF_SIMT_INLINE uint8_t load_part_once(const uint8_t *p, unsigned first, unsigned n)
{
    return load_part(p, first, n);
}

template <typename T>
WHARF_SIMT_INLINE T load_nc(const T *p)
{
    return load(p);
}

template <typename T>
inline void load_nc_over(T &v, const T *p)
{
    v = load_nc(p);
}

template <typename T>
struct shared_cursor {
    const T *at;

    void init(const T *p) { at = p; }
    void init(const T *p, uint32_t nbytes) { at = p + nbytes / sizeof(T); }
    void move(int n) { at += n; }
    uint32_t load_before(unsigned n) const { return load(at - n - 1); }
    uint32_t load_behind() const { return load(at); }
    uint32_t nbytes_from(const T *p) const { return (uint32_t)((at - p) * (ptrdiff_t)sizeof(T)); }
    uint32_t place() const { return (uint32_t) reinterpret_cast<uintptr_t>(at); }
    bool is_below(const shared_cursor &other) const { return at < other.at; }
};

struct shared_table {
    const uint8_t *address;

    template <typename T>
    void init(const T *p)
    {
        address = reinterpret_cast<const uint8_t *>(p);
    }
    uint32_t load_word(uint32_t at) const
    {
        return load(reinterpret_cast<const uint32_t *>(address + at));
    }
    uint32_t load_byte(uint32_t at) const { return address[at]; }
};

inline void prefetch(const uint8_t *p)
{
    (void)p;
}

inline void store_byte(uint8_t *p, uint32_t v)
{
    *p = (uint8_t)v;
}

inline void store_pair_if(bool stores, uint8_t *p, uint32_t v)
{
    uint16_t pair = (uint16_t)v;
    if (stores) {
        simt::check_aligned(p, sizeof(pair));
        memcpy(p, &pair, sizeof(pair));
    }
}

inline void store_quad_if(bool stores, u32x4 *p, uint32_t nbytes, const u32x4 &v)
{
    if (stores) {
        simt::check_aligned(p, sizeof(v));
        memcpy(reinterpret_cast<uint8_t *>(p) + nbytes, &v, sizeof(v));
    }
}

inline void store_eight_if(bool stores, uint8_t *p, uint32_t low, uint32_t high)
{
    uint64_t v = (uint64_t)high << 32 | low;
    if (stores) {
        simt::check_aligned(p, sizeof(v));
        memcpy(p, &v, sizeof(v));
    }
}

template <typename T>
WHARF_SIMT_INLINE void store(T *p, T v)
{
    simt::check_aligned(p, sizeof(T));
    memcpy(p, &v, sizeof(T));
}

inline uint32_t atomic_add(uint32_t *p, uint32_t v)
{
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

inline void atomic_or(uint32_t *p, uint32_t v)
{
    __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}

inline void atomic_xor(uint32_t *p, uint32_t v)
{
    __atomic_fetch_xor(p, v, __ATOMIC_RELAXED);
}

template <typename T>
inline T atomic_swap_if(T *p, T old, T v)
{
    simt::check_aligned(p, sizeof(T));
    __atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return old;
}

inline void atomic_min(uint64_t *p, uint64_t v)
{
    uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (v < old &&
           !__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

template <typename T>
inline T load_shared_by_device(const T *p)
{
    simt::check_aligned(p, sizeof(T));
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

template <typename T>
inline void store_shared_by_device(T *p, T v)
{
    simt::check_aligned(p, sizeof(T));
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

template <typename T>
inline T load_shared_with_host(const T *p)
{
    return load_shared_by_device(p);
}

inline u32x4 load_shared_with_host(const u32x4 *p)
{
    simt::check_aligned(p, sizeof(*p));
    return {__atomic_load_n(&p->x, __ATOMIC_RELAXED), __atomic_load_n(&p->y, __ATOMIC_RELAXED),
            __atomic_load_n(&p->z, __ATOMIC_RELAXED), __atomic_load_n(&p->w, __ATOMIC_RELAXED)};
}

template <typename T>
inline void store_shared_with_host(T *p, T v)
{
    store_shared_by_device(p, v);
}

inline void fence_device()
{
    __sync_synchronize();
}

inline void fence_system()
{
    __sync_synchronize();
}

inline void fence_system_total()
{
    __sync_synchronize();
}

/* The last word first, and stored last: who sees it sees what was stored before it. */
inline u32x4 load_quad_shared_with_host(const u32x4 *p)
{
    simt::check_aligned(p, sizeof(*p));
    uint32_t w = __atomic_load_n(&p->w, __ATOMIC_ACQUIRE);
    return {__atomic_load_n(&p->x, __ATOMIC_RELAXED), __atomic_load_n(&p->y, __ATOMIC_RELAXED),
            __atomic_load_n(&p->z, __ATOMIC_RELAXED), w};
}

inline void store_quad_shared_with_host(u32x4 *p, u32x4 v)
{
    simt::check_aligned(p, sizeof(*p));
    __atomic_store_n(&p->x, v.x, __ATOMIC_RELAXED);
    __atomic_store_n(&p->y, v.y, __ATOMIC_RELAXED);
    __atomic_store_n(&p->z, v.z, __ATOMIC_RELAXED);
    __atomic_store_n(&p->w, v.w, __ATOMIC_RELEASE);
}

inline u32x4 load_quad_shared_by_device(const u32x4 *p)
{
    return load_quad_shared_with_host(p);
}

inline void store_quad_shared_by_device(u32x4 *p, u32x4 v)
{
    store_quad_shared_with_host(p, v);
}

template <typename T>
inline T *fresh_pointer(T *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

inline uint64_t clock_now()
{
    return simt::steps_so_far();
}

inline uint64_t time_ns()
{
    return simt::monotonic_ns();
}

inline void sleep_ns(unsigned ns)
{
    if (lane_id() == 0)
        simt::sleep_thread(ns);
}

inline void pause_poll()
{
    simt::sleep_thread(0);
}

} // namespace wharf

#endif
