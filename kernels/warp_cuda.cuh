/* SPDX-License-Identifier: Apache-2.0 */
/* warp_cuda.cuh: warp.cuh's functions on the hardware.  Contracts stand there. */
#ifndef WHARF_KERNELS_WARP_CUDA_CUH
#define WHARF_KERNELS_WARP_CUDA_CUH

#include <stdint.h>

namespace wharf
{

/* Where a collective was called: the SIMT layer's business; nothing here. */
struct call_site {
};

struct alignas(16) u32x4 {
    uint32_t x, y, z, w;
};

/*
 * A reference to shared memory that can be given to functions which are not inlined: the
 * compiler still sees that it is shared memory, whose accesses are cheaper than generic ones.
 */
template <typename T>
struct shared_ref {
    uint32_t handle;

    WHARF_DEVICE_MEMBER void init(T &t) { handle = (uint32_t)__cvta_generic_to_shared(&t); }
    WHARF_DEVICE_MEMBER T &get() const
    {
        return *static_cast<T *>(__cvta_shared_to_generic(handle));
    }
};

/* An address of 32 bits, so that moving it and loading beside it are one instruction each. */
template <typename T>
struct shared_cursor {
    uint32_t address;

    WHARF_DEVICE_MEMBER void init(const T *p) { address = (uint32_t)__cvta_generic_to_shared(p); }
    WHARF_DEVICE_MEMBER void init(const T *p, uint32_t nbytes)
    {
        init(p);
        address += nbytes;
    }
    WHARF_DEVICE_MEMBER void move(int n) { address += (uint32_t)(n * (int)sizeof(T)); }
    /* In assembly, so that the subtraction is one instruction, and widening is none. */
    WHARF_DEVICE_MEMBER uint32_t load_before(unsigned n) const
    {
        static_assert(sizeof(T) == 2);
        uint32_t v;
        asm volatile("ld.shared.u16 %0, [%1+-2];" : "=r"(v) : "r"(address - n * 2) : "memory");
        return v;
    }
    WHARF_DEVICE_MEMBER uint32_t load_behind() const
    {
        uint32_t v;
        asm volatile("ld.shared.u16 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
        return v;
    }
    WHARF_DEVICE_MEMBER uint32_t nbytes_from(const T *p) const
    {
        return address - (uint32_t)__cvta_generic_to_shared(p);
    }
    WHARF_DEVICE_MEMBER uint32_t place() const { return address; }
    WHARF_DEVICE_MEMBER bool is_below(const shared_cursor &other) const
    {
        return address < other.address;
    }
};

/* Volatile, so that it stays behind what fills the table. */
struct shared_table {
    uint32_t address;

    template <typename T>
    WHARF_DEVICE_MEMBER void init(const T *p)
    {
        address = (uint32_t)__cvta_generic_to_shared(p);
    }
    WHARF_DEVICE_MEMBER uint32_t load_word(uint32_t at) const
    {
        uint32_t v;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address + at));
        return v;
    }
    WHARF_DEVICE_MEMBER uint32_t load_byte(uint32_t at) const
    {
        uint32_t v;
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(address + at));
        return v;
    }
};

/* The reduction gives its result in a uniform register. */
WHARF_DEVICE uint32_t uniform(uint32_t v, call_site = {})
{
    return __reduce_or_sync(0xffffffffu, v);
}

/* Nothing: but the compiler must take the value as it comes. */
WHARF_DEVICE uint32_t opaque(uint32_t v)
{
    asm("" : "+r"(v));
    return v;
}

/* By way of two reductions; unless its halves are opaque the compiler finds that the pointer is
 * the one it had and no wiser than before. */
template <typename T>
WHARF_DEVICE T *uniform_global(T *p, call_site = {})
{
    size_t a = __cvta_generic_to_global(p);
    uint32_t lo = opaque(uniform((uint32_t)a));
    uint32_t hi = opaque(uniform((uint32_t)(a >> 32)));
    return static_cast<T *>(__cvta_global_to_generic((size_t)hi << 32 | lo));
}

WHARF_DEVICE unsigned lane_id()
{
    /* The builtin thread index would do for one-dimensional blocks only. */
    unsigned id;
    asm("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
}

WHARF_DEVICE uint32_t lanemask_lt()
{
    uint32_t mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}

WHARF_DEVICE void syncwarp(call_site = {})
{
    __syncwarp();
}

WHARF_DEVICE void syncblock(call_site = {})
{
    __syncthreads();
}

/* The vote is for the compiler, which does not know that all lanes get the same. */
WHARF_DEVICE bool syncblock_or(bool p, call_site = {})
{
    return __any_sync(0xffffffffu, __syncthreads_or(p));
}

struct shared_barrier {
    uint64_t word;
};

WHARF_DEVICE uint32_t barrier_address(const shared_barrier *b)
{
    return (uint32_t)__cvta_generic_to_shared(b);
}

WHARF_DEVICE void barrier_init(shared_barrier *b, uint32_t n)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier_address(b)), "r"(n) : "memory");
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); /* for copies */
#endif
}

WHARF_DEVICE void barrier_arrive(shared_barrier *b)
{
    asm volatile("{\n"
                 "  .reg .b64 t;\n"
                 "  mbarrier.arrive.shared.b64 t, [%0];\n"
                 "}" ::"r"(barrier_address(b))
                 : "memory");
}

/* All lanes ask, since each one's loads are to come behind. */
WHARF_DEVICE bool barrier_try(shared_barrier *b, uint32_t parity, call_site = {})
{
    uint32_t done;
    asm volatile("{\n"
                 "  .reg .pred p;\n"
#if __CUDA_ARCH__ >= 900
                 "  mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
#else
                 "  mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
#endif
                 "  selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(barrier_address(b)), "r"(parity)
                 : "memory");
    return __all_sync(0xffffffffu, done != 0);
}

WHARF_DEVICE bool barrier_try_own(shared_barrier *b, uint32_t parity, call_site = {})
{
    uint32_t done = 0;
    if (b)
        asm volatile("{\n"
                     "  .reg .pred p;\n"
                     "  mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
                     "  selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(barrier_address(b)), "r"(parity)
                     : "memory");
    __syncwarp();
    return done != 0;
}

/* The bytes that the barrier expects are those of the copy: one number. */
WHARF_DEVICE void copy_ahead(void *to, const void *from, uint32_t nbytes, shared_barrier *b,
                             call_site = {})
{
#if __CUDA_ARCH__ >= 900
    if (lane_id() != 0)
        return;
    asm volatile("{\n"
                 "  .reg .b64 t;\n"
                 "  mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1;\n"
                 "}" ::"r"(barrier_address(b)),
                 "r"(nbytes)
                 : "memory");
    if (nbytes != 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                     "l"(__cvta_generic_to_global(from)), "r"(nbytes), "r"(barrier_address(b))
                     : "memory");
#else
    for (uint32_t i = lane_id(); i < nbytes / 16; i += 32)
        static_cast<uint4 *>(to)[i] = __ldg(static_cast<const uint4 *>(from) + i);
    __syncwarp();
    if (lane_id() == 0)
        barrier_arrive(b);
#endif
}

template <typename T>
WHARF_DEVICE T shfl(T v, unsigned src, call_site = {})
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return __shfl_sync(0xffffffffu, v, (int)src);
}

template <unsigned N, typename T>
WHARF_DEVICE T shfl_in(T v, unsigned src, call_site = {})
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return __shfl_sync(0xffffffffu, v, (int)src, (int)N);
}

template <unsigned MASK>
WHARF_DEVICE uint32_t shfl_xor(uint32_t v, call_site = {})
{
    static_assert(MASK < 32);
    return __shfl_xor_sync(0xffffffffu, v, (int)MASK);
}

template <typename T>
WHARF_DEVICE T shfl_up(T v, unsigned delta, call_site = {})
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return __shfl_up_sync(0xffffffffu, v, delta);
}

template <typename T>
WHARF_DEVICE T shfl_down(T v, unsigned delta, call_site = {})
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return __shfl_down_sync(0xffffffffu, v, delta);
}

/* By the reduction of uniform(). */
template <unsigned LANE>
WHARF_DEVICE uint32_t from_lane(uint32_t v, call_site = {})
{
    static_assert(LANE < 32);
    return uniform(lane_id() == LANE ? v : 0);
}

template <unsigned LANE>
WHARF_DEVICE uint64_t from_lane(uint64_t v, call_site = {})
{
    uint32_t lo = from_lane<LANE>((uint32_t)v), hi = from_lane<LANE>((uint32_t)(v >> 32));
    return (uint64_t)hi << 32 | lo;
}

WHARF_DEVICE uint32_t ballot(bool p, call_site = {})
{
    return __ballot_sync(0xffffffffu, p);
}

WHARF_DEVICE bool any_lane(bool p, call_site = {})
{
    return __any_sync(0xffffffffu, p);
}

WHARF_DEVICE uint32_t match_any(uint32_t v, call_site = {})
{
    return __match_any_sync(0xffffffffu, v);
}

WHARF_DEVICE uint32_t reduce_add(uint32_t v, call_site = {})
{
    return __reduce_add_sync(0xffffffffu, v);
}

WHARF_DEVICE uint32_t reduce_min(uint32_t v, call_site = {})
{
    return __reduce_min_sync(0xffffffffu, v);
}

WHARF_DEVICE uint32_t reduce_max(uint32_t v, call_site = {})
{
    return __reduce_max_sync(0xffffffffu, v);
}

WHARF_DEVICE uint32_t reduce_or(uint32_t v, call_site = {})
{
    return __reduce_or_sync(0xffffffffu, v);
}

WHARF_DEVICE uint32_t reduce_xor(uint32_t v, call_site = {})
{
    return __reduce_xor_sync(0xffffffffu, v);
}

/*
 * The scans use shfl.up's own predicate (whether the source lane exists), which saves the
 * compare of the lane number in each of the five steps.
 */
WHARF_DEVICE uint32_t inclusive_add(uint32_t v, call_site = {})
{
#pragma unroll
    for (unsigned delta = 1; delta < 32; delta *= 2)
        asm volatile("{\n"
                     "  .reg .u32 t;\n"
                     "  .reg .pred p;\n"
                     "  shfl.sync.up.b32 t|p, %0, %1, 0, 0xffffffff;\n"
                     "  @p add.u32 %0, %0, t;\n"
                     "}"
                     : "+r"(v)
                     : "r"(delta));
    return v;
}

WHARF_DEVICE uint32_t inclusive_max(uint32_t v, call_site = {})
{
#pragma unroll
    for (unsigned delta = 1; delta < 32; delta *= 2)
        asm volatile("{\n"
                     "  .reg .u32 t;\n"
                     "  .reg .pred p;\n"
                     "  shfl.sync.up.b32 t|p, %0, %1, 0, 0xffffffff;\n"
                     "  @p max.u32 %0, %0, t;\n"
                     "}"
                     : "+r"(v)
                     : "r"(delta));
    return v;
}

WHARF_DEVICE uint32_t exclusive_add(uint32_t v, call_site = {})
{
    return inclusive_add(v) - v;
}

WHARF_DEVICE unsigned popc(uint32_t x)
{
    return (unsigned)__popc(x);
}

WHARF_DEVICE unsigned clz(uint32_t x)
{
    return (unsigned)__clz((int)x);
}

WHARF_DEVICE unsigned ffs(uint32_t x)
{
    return (unsigned)__ffs((int)x);
}

WHARF_DEVICE uint32_t brev(uint32_t x)
{
    return __brev(x);
}

/* PTX shifts all bits out, where C++ says nothing. */
WHARF_DEVICE uint32_t bit_or_none(uint32_t n)
{
    uint32_t v;
    asm("shl.b32 %0, 1, %1;" : "=r"(v) : "r"(n));
    return v;
}

WHARF_DEVICE uint32_t funnel_right(uint32_t lo, uint32_t hi, unsigned n)
{
    return __funnelshift_r(lo, hi, n);
}

WHARF_DEVICE uint32_t funnel_left(uint32_t lo, uint32_t hi, unsigned n)
{
    return __funnelshift_l(lo, hi, n);
}

WHARF_DEVICE uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t s)
{
    return __byte_perm(a, b, s);
}

WHARF_DEVICE uint32_t signed_perm(uint32_t a, uint32_t b, uint32_t s)
{
    uint32_t v;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(s));
    return v;
}

/* Of sm_90's instructions one adds halves; the maximum with 0 changes nothing. */
WHARF_DEVICE uint32_t add_halves(uint32_t a, uint32_t b)
{
#if __CUDA_ARCH__ >= 900
    return __viaddmax_u16x2(a, b, 0);
#else
    return ((a & 0x7fff7fffu) + (b & 0x7fff7fffu)) ^ ((a ^ b) & 0x80008000u);
#endif
}

WHARF_DEVICE uint32_t mul_high(uint32_t a, uint32_t b)
{
    return __umulhi(a, b);
}

/* In assembly, so that factors that are powers of two become no shifts. */
WHARF_DEVICE uint32_t multiply_add(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t v;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(c));
    return v;
}

/* A predicate, and neither a branch nor a selection. */
WHARF_DEVICE void multiply_add_if(bool sets, uint32_t &to, uint32_t a, uint32_t b, uint32_t c)
{
    asm("{\n"
        "  .reg .pred p;\n"
        "  setp.ne.u32 p, %4, 0;\n"
        "  @p mad.lo.u32 %0, %1, %2, %3;\n"
        "}"
        : "+r"(to)
        : "r"(a), "r"(b), "r"(c), "r"((uint32_t)sets));
}

WHARF_DEVICE void set_if(bool sets, uint32_t &to, uint32_t v)
{
    asm("{\n"
        "  .reg .pred p;\n"
        "  setp.ne.u32 p, %2, 0;\n"
        "  @p mov.u32 %0, %1;\n"
        "}"
        : "+r"(to)
        : "r"(v), "r"((uint32_t)sets));
}

WHARF_DEVICE void or_difference_if(bool sets, uint32_t &to, uint32_t a, uint32_t b)
{
    asm("{\n"
        "  .reg .pred p;\n"
        "  setp.ne.u32 p, %3, 0;\n"
        "  @p lop3.b32 %0, %1, %2, %0, 0xbe;\n"
        "}"
        : "+r"(to)
        : "r"(a), "r"(b), "r"((uint32_t)sets));
}

WHARF_DEVICE uint32_t dot4(uint32_t a, uint32_t b, uint32_t c)
{
    return __dp4a(a, b, c);
}

template <typename T>
WHARF_DEVICE T load(const T *p)
{
    return *p;
}

template <typename T>
WHARF_DEVICE T load_part(const T *p, unsigned, unsigned)
{
    return load(p);
}

/* The policy of createpolicy.fractional.L2::evict_first.  A pointer that has it takes no
 * instruction more, unlike ld with a cache hint, which has to be assembly and gets no predicate. */
constexpr unsigned long long EVICT_FIRST = 0x12f0000000000000;
WHARF_DEVICE uint8_t load_part_once(const uint8_t *p, unsigned, unsigned)
{
    return *static_cast<const uint8_t *>(__nv_associate_access_property(p, EVICT_FIRST));
}

#ifndef WHARF_INPUT_IS_COPIED
template <typename T>
WHARF_DEVICE T load_nc(const T *p)
{
    return __ldg(p);
}

template <>
__device__ __forceinline__ u32x4 load_nc(const u32x4 *p)
{
    uint4 v = __ldg(reinterpret_cast<const uint4 *>(p));
    return {v.x, v.y, v.z, v.w};
}

/* Volatile, since it is not to become a load to elsewhere and a move. */
WHARF_DEVICE void load_nc_over(u32x4 &v, const u32x4 *p)
{
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(__cvta_generic_to_global(p)));
}

#else
/* Not volatile, and no clobber: a compiler is as free with them as with __ldg.  The read-only path
 * itself would be wrong: it need not see what the same kernel stored. */
WHARF_DEVICE uint8_t load_nc(const uint8_t *p)
{
    uint32_t v;
    asm("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)));
    return (uint8_t)v;
}

WHARF_DEVICE uint16_t load_nc(const uint16_t *p)
{
    uint16_t v;
    asm("ld.global.u16 %0, [%1];" : "=h"(v) : "l"(__cvta_generic_to_global(p)));
    return v;
}

WHARF_DEVICE uint32_t load_nc(const uint32_t *p)
{
    uint32_t v;
    asm("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)));
    return v;
}

WHARF_DEVICE uint64_t load_nc(const uint64_t *p)
{
    uint64_t v;
    asm("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(__cvta_generic_to_global(p)));
    return v;
}

WHARF_DEVICE u32x4 load_nc(const u32x4 *p)
{
    u32x4 v;
    asm("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(__cvta_generic_to_global(p)));
    return v;
}

WHARF_DEVICE void load_nc_over(u32x4 &v, const u32x4 *p)
{
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(__cvta_generic_to_global(p)));
}
#endif

WHARF_DEVICE void prefetch(const uint8_t *p)
{
    asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

/* Without the instruction that makes a byte of a register. */
WHARF_DEVICE void store_byte(uint8_t *p, uint32_t v)
{
    asm volatile("st.global.u8 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
}

/* A predicate, and no branch. */
WHARF_DEVICE void store_pair_if(bool stores, uint8_t *p, uint32_t v)
{
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  setp.ne.u32 p, %2, 0;\n"
                 "  @p st.global.u16 [%0], %1;\n"
                 "}" ::"l"(__cvta_generic_to_global(p)),
                 "r"(v), "r"((uint32_t)stores)
                 : "memory");
}

WHARF_DEVICE void store_quad_if(bool stores, u32x4 *p, uint32_t nbytes, const u32x4 &v)
{
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  setp.ne.u32 p, %5, 0;\n"
                 "  @p st.shared.v4.u32 [%0], {%1, %2, %3, %4};\n"
                 "}" ::"r"((uint32_t)__cvta_generic_to_shared(p) + nbytes),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((uint32_t)stores)
                 : "memory");
}

WHARF_DEVICE void store_eight_if(bool stores, uint8_t *p, uint32_t low, uint32_t high)
{
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  setp.ne.u32 p, %3, 0;\n"
                 "  @p st.global.v2.u32 [%0], {%1, %2};\n"
                 "}" ::"l"(__cvta_generic_to_global(p)),
                 "r"(low), "r"(high), "r"((uint32_t)stores)
                 : "memory");
}

template <typename T>
WHARF_DEVICE void store(T *p, T v)
{
    *p = v;
}

WHARF_DEVICE uint32_t atomic_add(uint32_t *p, uint32_t v)
{
    return atomicAdd(p, v);
}

WHARF_DEVICE void atomic_or(uint32_t *p, uint32_t v)
{
    atomicOr(p, v);
}

WHARF_DEVICE void atomic_xor(uint32_t *p, uint32_t v)
{
    atomicXor(p, v);
}

WHARF_DEVICE uint32_t atomic_swap_if(uint32_t *p, uint32_t old, uint32_t v)
{
    return atomicCAS(p, old, v);
}

WHARF_DEVICE uint64_t atomic_swap_if(uint64_t *p, uint64_t old, uint64_t v)
{
    return atomicCAS(reinterpret_cast<unsigned long long *>(p), (unsigned long long)old,
                     (unsigned long long)v);
}

WHARF_DEVICE void atomic_min(uint64_t *p, uint64_t v)
{
    atomicMin(reinterpret_cast<unsigned long long *>(p), (unsigned long long)v);
}

WHARF_DEVICE uint32_t load_shared_by_device(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

WHARF_DEVICE uint64_t load_shared_by_device(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

WHARF_DEVICE void store_shared_by_device(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

WHARF_DEVICE void store_shared_by_device(uint64_t *p, uint64_t v)
{
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

WHARF_DEVICE uint8_t load_shared_with_host(const uint8_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return (uint8_t)v;
}

WHARF_DEVICE uint32_t load_shared_with_host(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

WHARF_DEVICE uint64_t load_shared_with_host(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

/* In global memory, as all of the host's is: said so, it is an instruction less. */
WHARF_DEVICE u32x4 load_shared_with_host(const u32x4 *p)
{
    u32x4 v;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(p))
                 : "memory");
    return v;
}

WHARF_DEVICE void store_shared_with_host(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.sys.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

WHARF_DEVICE void store_shared_with_host(uint64_t *p, uint64_t v)
{
    asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

WHARF_DEVICE void fence_device()
{
    asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

WHARF_DEVICE void fence_system()
{
    asm volatile("fence.acq_rel.sys;" : : : "memory");
}

WHARF_DEVICE void fence_system_total()
{
    asm volatile("fence.sc.sys;" : : : "memory");
}

/* As .v4.u32 the four words would be four accesses. */
#define WHARF_QUADS_OF_SCOPE(scope, whom)                                                          \
    WHARF_DEVICE u32x4 load_quad_shared_##whom(const u32x4 *p)                                     \
    {                                                                                              \
        uint64_t lo, hi;                                                                           \
        asm volatile("{\n"                                                                         \
                     "  .reg .b128 t;\n"                                                           \
                     "  ld.relaxed." scope ".global.b128 t, [%2];\n"                               \
                     "  mov.b128 {%0, %1}, t;\n"                                                   \
                     "}"                                                                           \
                     : "=l"(lo), "=l"(hi)                                                          \
                     : "l"(__cvta_generic_to_global(p))                                            \
                     : "memory");                                                                  \
        return {(uint32_t)lo, (uint32_t)(lo >> 32), (uint32_t)hi, (uint32_t)(hi >> 32)};           \
    }                                                                                              \
                                                                                                   \
    WHARF_DEVICE void store_quad_shared_##whom(u32x4 *p, u32x4 v)                                  \
    {                                                                                              \
        uint64_t lo = (uint64_t)v.y << 32 | v.x, hi = (uint64_t)v.w << 32 | v.z;                   \
        asm volatile("{\n"                                                                         \
                     "  .reg .b128 t;\n"                                                           \
                     "  mov.b128 t, {%1, %2};\n"                                                   \
                     "  st.relaxed." scope ".global.b128 [%0], t;\n"                               \
                     "}"                                                                           \
                     :                                                                             \
                     : "l"(__cvta_generic_to_global(p)), "l"(lo), "l"(hi)                          \
                     : "memory");                                                                  \
    }
WHARF_QUADS_OF_SCOPE("sys", with_host)
WHARF_QUADS_OF_SCOPE("gpu", by_device)
#undef WHARF_QUADS_OF_SCOPE

template <typename T>
WHARF_DEVICE T *fresh_pointer(T *p)
{
    asm volatile("" : "+l"(p));
    return p;
}

WHARF_DEVICE uint64_t clock_now()
{
    return (uint64_t)clock64();
}

WHARF_DEVICE uint64_t time_ns()
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

WHARF_DEVICE void sleep_ns(unsigned ns)
{
    __nanosleep(ns);
}

WHARF_DEVICE void pause_poll() {}

} // namespace wharf

#endif
