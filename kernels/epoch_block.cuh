/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_block.cuh: what each block of an epoch kernel for few items does: the first block's first
 * warp polls, the first warps of the others do tasks as warps do elsewhere, and the other warps of
 * their blocks help them.
 */
#ifndef WHARF_KERNELS_EPOCH_BLOCK_CUH
#define WHARF_KERNELS_EPOCH_BLOCK_CUH

#include "kernels/epoch_warp.cuh"

namespace wharf
{

enum block_order : uint32_t {
    BLOCK_END = 0,      /* nothing more is to come */
    BLOCK_COPY_IN = 1,  /* from the host's memory */
    BLOCK_COPY_OUT = 2, /* to it */
    BLOCK_DECODE = 3,   /* help until the decoder says that it has ended */
};

/* What the first warp wants of the others. */
struct block_wish {
    uint32_t order;
    uint32_t codec;
    uint32_t nbytes;
    uint8_t *to;
    const uint8_t *from;
};

struct alignas(128) epoch_block_shared {
    any_block_codec::shared decoder;
    block_wish wish;
};

/* For all warps: where the first says what it wants, and the others wait for that. */
WHARF_DEVICE_NOINLINE void meet_for_wish()
{
    syncblock();
}

/* For all warps, each of which copies its part.  All of it is there when it returns.  The wish
 * comes by value: KERNELS.md, rule 9. */
WHARF_DEVICE_NOINLINE void copy_together(block_wish wish, unsigned warp)
{
    constexpr unsigned N = any_block_codec::WARPS;
    uint32_t each = (uint32_t)round_up((wish.nbytes + N - 1) / N, 128);
    uint32_t begin = warp * each < wish.nbytes ? warp * each : wish.nbytes;
    uint32_t left = wish.nbytes - begin;
    uint32_t nbytes = left < each ? left : each;
    if (any_lane(wish.order == BLOCK_COPY_IN))
        copy_from_host(wish.to + begin, wish.from + begin, nbytes);
    else
        copy_to_host(wish.to + begin, wish.from + begin, nbytes);
    syncblock();
}

/* Who decodes an item: a block, for its first warp. */
struct block_team {
    static constexpr uint32_t WARPS = any_block_codec::WARPS;
    static constexpr bool TAKES_PARTS = false; /* they are for the other kernel */
    static constexpr bool MEMOIZES = true;
    epoch_block_shared &s;

    /* collective.  The others see it when this returns. */
    WHARF_DEVICE_MEMBER void want(const block_wish &wish) const
    {
        if (lane_id() == 0)
            s.wish = wish;
        meet_for_wish();
    }
    WHARF_DEVICE_MEMBER void copy(const block_wish &wish) const
    {
        want(wish);
        copy_together(wish, 0);
    }
    WHARF_DEVICE_MEMBER void copy_in(uint8_t *to, const uint8_t *from, uint32_t nbytes) const
    {
        copy({BLOCK_COPY_IN, 0, nbytes, to, from});
    }
    WHARF_DEVICE_MEMBER verdict decode(uint32_t codec, const chunk_job &job) const
    {
        want({BLOCK_DECODE, codec, 0, nullptr, nullptr});
        return any_block_codec::decode(s.decoder, codec, job);
    }
    WHARF_DEVICE_MEMBER void copy_out(uint8_t *to, const uint8_t *from, uint32_t nbytes) const
    {
        copy({BLOCK_COPY_OUT, 0, nbytes, to, from});
    }
};

/* All warps of a block but the first. */
WHARF_DEVICE void help_block(epoch_block_shared &s, unsigned warp)
{
    for (;;) {
        meet_for_wish();
        block_wish wish = s.wish;
        if (uniform(wish.order) == BLOCK_END)
            return;
        if (uniform(wish.order) == BLOCK_DECODE) {
            any_block_codec::help(s.decoder, uniform(wish.codec), warp);
            continue;
        }
        copy_together(wish, warp);
    }
}

/* For all warps of block number `block` of p.n_warps, at least two, all of which must run.  Codec
 * is the other kernel's, which has the same scratch. */
template <typename Codec>
WHARF_DEVICE void run_epoch_block(epoch_block_shared &s, const epoch_params &p, uint32_t block,
                                  unsigned warp)
{
    if (block == 0) {
        if (warp != 0)
            return;
        poll(p);
    } else if (warp != 0) {
        help_block(s, warp);
        return;
    } else {
        block_team team = {s};
        run_tasks<Codec>(p, team, block);
        team.want({BLOCK_END, 0, 0, nullptr, nullptr});
    }
    leave(p);
}

} // namespace wharf

#endif
