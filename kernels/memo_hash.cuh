/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo_hash.cuh: the bytes of a chunk's copy, hashed and compared by a warp.
 *
 * The hash is HalfSipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF") of each
 * lane's quads, with the lane's number in front; the lanes' results are joined by exclusive or. Its
 * key is the daemon's secret, so that nobody makes chunks that collide.
 */
#ifndef WHARF_KERNELS_MEMO_HASH_CUH
#define WHARF_KERNELS_MEMO_HASH_CUH

#include "kernels/epoch_state.cuh"
#include "kernels/output_stream.cuh"

namespace wharf
{

/* ---- the bytes of a copy --------------------------------------------------------------------- */

/* A copy at any alignment, in a buffer aligned to 16, as quads from its first byte on. */
struct memo_bytes {
    const u32x4 *quads;
    uint32_t skew, nbytes, last; /* the number of the last quad in memory */

    /* One lane.  Not for 0 bytes. */
    WHARF_DEVICE_MEMBER void init(const uint8_t *at, uint32_t n)
    {
        skew = (uint32_t)(reinterpret_cast<uintptr_t>(at) & 15);
        quads = reinterpret_cast<const u32x4 *>(at - skew);
        nbytes = n;
        last = (skew + n - 1) / 16;
    }

    /* One lane.  Any i: bytes behind the end are 0.  Without a branch, so that lanes do not part.
     */
    WHARF_DEVICE_MEMBER u32x4 get(uint32_t i) const
    {
        u32x4 a = load(quads + (i < last ? i : last));
        u32x4 b = load(quads + (i < last ? i + 1 : last));
        u32x4 quad = funnel_quad(a, b, skew);
        uint32_t left = 16 * (uint64_t)i < nbytes ? nbytes - 16 * i : 0;
        return {keep(quad.x, left, 0), keep(quad.y, left, 4), keep(quad.z, left, 8),
                keep(quad.w, left, 12)};
    }

  private:
    /* A quad's word at byte `at`, of which the bytes count that are among the quad's first n. */
    static WHARF_DEVICE_MEMBER uint32_t keep(uint32_t word, uint32_t n, uint32_t at)
    {
        return low_bits(word, n > at ? 8 * (n - at < 4 ? n - at : 4) : 0);
    }
};

/* Quads of a lane that are on their way together. */
constexpr unsigned MEMO_DEPTH = 4;

/* ---- the hash -------------------------------------------------------------------------------- */

struct memo_hash {
    uint32_t v0, v1, v2, v3;

    static WHARF_DEVICE_MEMBER uint32_t rotate(uint32_t v, unsigned n)
    {
        return funnel_left(v, v, n);
    }

    WHARF_DEVICE_MEMBER void init(const uint32_t key[2])
    {
        v0 = key[0];
        v1 = key[1] ^ 0xee; /* the result has 64 bits */
        v2 = key[0] ^ 0x6c796765;
        v3 = key[1] ^ 0x74656462;
    }
    WHARF_DEVICE_MEMBER void mix()
    {
        v0 += v1, v1 = rotate(v1, 5) ^ v0, v0 = rotate(v0, 16);
        v2 += v3, v3 = rotate(v3, 8) ^ v2;
        v0 += v3, v3 = rotate(v3, 7) ^ v0;
        v2 += v1, v1 = rotate(v1, 13) ^ v2, v2 = rotate(v2, 16);
    }
    WHARF_DEVICE_MEMBER void add(uint32_t word)
    {
        v3 ^= word;
        mix();
        v0 ^= word;
    }
    WHARF_DEVICE_MEMBER void add(const u32x4 &quad)
    {
        add(quad.x), add(quad.y), add(quad.z), add(quad.w);
    }
    WHARF_DEVICE_MEMBER uint32_t finish(uint32_t end)
    {
        end == 0 ? v2 ^= 0xee : v1 ^= 0xdd;
        mix(), mix(), mix();
        return v1 ^ v3;
    }
};

/* What an item asks for, the same in all lanes. */
struct memo_wish {
    uint64_t owner;
    uint32_t codec; /* and parameter */
    uint32_t src_nbytes, dst_nbytes;
};

WHARF_DEVICE memo_wish memo_wish_of(const wharf_work_item &item)
{
    return {item.staging, (uint32_t)item.codec | (uint32_t)item.parameter << 16, item.src_nbytes,
            item.dst_nbytes};
}

/* collective.  Arguments of functions that are not inlined: KERNELS.md, rule 9. */
WHARF_DEVICE memo_area uniform_area(const memo_area &memo)
{
    return {uniform_global(memo.memory),   from_lane<0>(memo.part_nbytes),
            from_lane<0>(memo.log_nbytes), memo.n_parts,
            uniform(memo.n_entries),       {memo.key[0], memo.key[1]}};
}

WHARF_DEVICE memo_wish uniform_wish(const memo_wish &wish)
{
    return {from_lane<0>(wish.owner), uniform(wish.codec), uniform(wish.src_nbytes),
            uniform(wish.dst_nbytes)};
}

/* collective. */
WHARF_DEVICE uint64_t memo_digest(const memo_area &memo, const memo_wish &wish,
                                  const uint8_t *input)
{
    memo_hash hash;
    hash.init(memo.key);
    hash.add({lane_id(), wish.codec, wish.src_nbytes, wish.dst_nbytes});
    hash.add((uint32_t)wish.owner), hash.add((uint32_t)(wish.owner >> 32));
    memo_bytes bytes;
    bytes.init(input, wish.src_nbytes);
    WHARF_NO_UNROLL
    for (uint32_t base = 0; 16 * (uint64_t)base < wish.src_nbytes; base += 32 * MEMO_DEPTH) {
        u32x4 quads[MEMO_DEPTH];
        WHARF_UNROLL
        for (unsigned k = 0; k < MEMO_DEPTH; k++)
            quads[k] = bytes.get(base + 32 * k + lane_id());
        WHARF_UNROLL
        for (unsigned k = 0; k < MEMO_DEPTH; k++)
            hash.add(quads[k]);
    }
    uint32_t low = reduce_xor(hash.finish(0)), high = reduce_xor(hash.finish(1));
    return pair_of(low, high);
}

/* collective.  Whether n bytes are the same. */
WHARF_DEVICE bool memo_is_same(const uint8_t *one, const uint8_t *other, uint32_t n)
{
    memo_bytes a, b;
    a.init(one, n);
    b.init(other, n);
    WHARF_NO_UNROLL
    for (uint32_t base = 0; 16 * (uint64_t)base < n; base += 32 * MEMO_DEPTH) {
        uint32_t differs = 0;
        WHARF_UNROLL
        for (unsigned k = 0; k < MEMO_DEPTH; k++) {
            u32x4 x = a.get(base + 32 * k + lane_id()), y = b.get(base + 32 * k + lane_id());
            differs |= (x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w);
        }
        if (any_lane(differs != 0))
            return false;
    }
    return true;
}

} // namespace wharf

#endif
