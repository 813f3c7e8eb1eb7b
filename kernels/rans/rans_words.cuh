/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_words.cuh: the words of a stream on their way to one decoder of a warp.
 *
 * READ ME FIRST: directions.  Words are taken downwards.  A *block* is 256 words, aligned to 512
 * bytes in memory.  A buffer holds two neighbouring blocks, the upper of which has the next words;
 * the block below them is being loaded, to the lanes' registers.
 *
 * Nothing here notices that the words have run out.  Words below number 0 are whatever bytes
 * precede them in the input, or zeros; the caller finds next_word() below -1 afterwards.
 */
#ifndef WHARF_KERNELS_RANS_RANS_WORDS_CUH
#define WHARF_KERNELS_RANS_RANS_WORDS_CUH

#include "kernels/rans/rans_stream.cuh"

namespace wharf
{
namespace rans
{

/* Groups between two looks at a buffer, and the words that they take at most. */
constexpr uint32_t BATCH_NGROUPS = 8;
constexpr uint32_t BATCH_NWORDS = BATCH_NGROUPS * WARP_LANES;
constexpr uint32_t BLOCK_NWORDS = BATCH_NWORDS;
constexpr uint32_t BLOCK_NBYTES = 2 * BLOCK_NWORDS;
static_assert(BLOCK_NBYTES == WARP_LANES * sizeof(u32x4));

struct word_buffer {
    u32x4 quads[2 * WARP_LANES];
    /* What stands in memory at the lower block's begin: words that lie one byte further on have
     * lost their first byte there, and the block below ends with it. */
    u32x4 begin;
};

/* Where the words lie.  The same in all lanes. */
struct word_source {
    const uint8_t *aligned; /* block 0 begins here; words may lie one byte further on */
    bool is_odd;
    int32_t skew;   /* words from there to word 0 */
    int32_t lowest; /* the first quad that is wholly input begins here */

    WHARF_DEVICE_MEMBER void init(const stream &in)
    {
        uint32_t at = in.source.begin + in.words_at;
        aligned = uniform_global(in.source.aligned);
        is_odd = at % 2 != 0;
        skew = (int32_t)(at / 2);
        lowest = (int32_t)((in.source.begin + sizeof(u32x4) - 1) & -sizeof(u32x4));
    }
};

/* A lane's part of a block, as it lies in memory, and the byte behind it. */
struct word_quad {
    u32x4 v;
    uint32_t behind;
};

/* One lane.  Of a block that is not wholly there. */
WHARF_DEVICE word_quad load_edge_quad(const input_source &source, int32_t block)
{
    uint32_t i = 4 * (WARP_LANES * (uint32_t)block + lane_id());
    if (block < 0)
        return {{0, 0, 0, 0}, 0};
    return {{source.load_word(i), source.load_word(i + 1), source.load_word(i + 2),
             source.load_word(i + 3)},
            source.load_word(i + 4)};
}

/* One lane.  Of one that is. */
WHARF_DEVICE word_quad load_quad(const word_source &source, int32_t block)
{
    const u32x4 *p =
        reinterpret_cast<const u32x4 *>(source.aligned + (uint32_t)block * BLOCK_NBYTES) +
        lane_id();
    return {load_nc(p), source.is_odd ? load_nc(reinterpret_cast<const uint32_t *>(p + 1)) : 0};
}

/* collective.  This lane's quad of a block that is two or more below another one with words in it;
 * for those that are not wholly input, which have no words in them, another one. */
WHARF_DEVICE const u32x4 *inner_quad(const word_source &source, int32_t block)
{
    int32_t at = block * (int32_t)BLOCK_NBYTES + (int32_t)(sizeof(u32x4) * lane_id());
    at = at < source.lowest ? source.lowest : at;
    return reinterpret_cast<const u32x4 *>(source.aligned + at);
}

/* One lane.  The words of a quad. */
WHARF_DEVICE u32x4 words_of(const word_source &source, const u32x4 &v, uint32_t behind)
{
    if (!source.is_odd)
        return v;
    return {funnel_right(v.x, v.y, 8), funnel_right(v.y, v.z, 8), funnel_right(v.z, v.w, 8),
            funnel_right(v.w, behind, 8)};
}

/* A lane's part of the blocks that a feed begins with. */
struct first_blocks {
    int32_t block; /* the lower one of the buffer */
    word_quad upper, lower;
    u32x4 below;

    /* collective.  For a feed whose next word is `next_word`. */
    WHARF_DEVICE_MEMBER void load(const stream &in, const word_source &source, int32_t next_word)
    {
        /* Not negative: the states alone are more bytes than a word. */
        block = (next_word + source.skew) / (int32_t)BLOCK_NWORDS - 1;
        if (block <= 1 || (uint32_t)(block + 2) * BLOCK_NBYTES + 4 > in.source.end) {
            *this = near_an_edge(in.source, block);
            return;
        }
        upper = load_quad(source, block + 1);
        lower = load_quad(source, block);
    }

    /* collective.  The block below those: later, where registers are short. */
    WHARF_DEVICE_MEMBER void load_below(const word_source &source)
    {
        below = load_nc(inner_quad(source, block - 1));
    }

  private:
    /* One lane.  Not inlined: rare and long. */
    static WHARF_DEVICE_MEMBER_NOINLINE first_blocks near_an_edge(input_source source,
                                                                  int32_t block)
    {
        return {block, load_edge_quad(source, block + 1), load_edge_quad(source, block), {}};
    }
};

/* One decoder's words.  The same in all lanes, but for `pending`. */
struct word_feed {
    shared_cursor<uint16_t> behind; /* the word that is taken next ends here */
    int32_t block;                  /* in the lower half of the buffer */
    u32x4 pending;                  /* of the block below */

    /* collective.  The buffer is this feed's alone until its last use; `blocks` were loaded for the
     * same word. */
    WHARF_DEVICE_MEMBER void init(const word_source &source, word_buffer &buffer, int32_t next_word,
                                  const first_blocks &blocks)
    {
        block = blocks.block;
        store(&buffer.quads[WARP_LANES + lane_id()],
              words_of(source, blocks.upper.v, blocks.upper.behind));
        store(&buffer.quads[lane_id()], words_of(source, blocks.lower.v, blocks.lower.behind));
        store_begin(buffer, blocks.lower.v);
        pending = blocks.below;
        behind.init(reinterpret_cast<const uint16_t *>(buffer.quads));
        behind.move(next_word + source.skew + 1 - block * (int32_t)BLOCK_NWORDS);
        syncwarp();
    }

    /* Whether a batch's words are in the buffer. */
    WHARF_DEVICE_MEMBER bool has_batch(const word_buffer &buffer) const
    {
        const uint16_t *words = reinterpret_cast<const uint16_t *>(buffer.quads);
        return behind.nbytes_from(words) >= 2 * BATCH_NWORDS;
    }

    /* collective.  Sees to it that they are. */
    WHARF_DEVICE_MEMBER void ensure(const word_source &source, word_buffer &buffer)
    {
        if (has_batch(buffer))
            return;
        uint32_t behind_it = 0;
        if (source.is_odd)
            behind_it = word_behind(buffer);
        syncwarp(); /* every lane's loads of words that go, before the stores here */
        store(&buffer.quads[WARP_LANES + lane_id()], load(&buffer.quads[lane_id()]));
        store(&buffer.quads[lane_id()], words_of(source, pending, behind_it));
        if (source.is_odd)
            store_begin(buffer, pending);
        syncwarp(); /* the stores, before any lane's loads */
        behind.move(BLOCK_NWORDS);
        block--;
        load_nc_over(pending, inner_quad(source, block - 1));
    }

    /* collective.  Becomes what `other` is, whose buffer is `from`. */
    WHARF_DEVICE_MEMBER void become(word_buffer &buffer, const word_feed &other,
                                    const word_buffer &from)
    {
        uint32_t nbytes = other.behind.nbytes_from(reinterpret_cast<const uint16_t *>(from.quads));
        syncwarp(); /* every lane's loads of words that go, before the stores here */
        store(&buffer.quads[lane_id()], load(&from.quads[lane_id()]));
        store(&buffer.quads[WARP_LANES + lane_id()], load(&from.quads[WARP_LANES + lane_id()]));
        store_begin(buffer, load(&from.begin));
        syncwarp(); /* the stores, before any lane's loads */
        behind.init(reinterpret_cast<const uint16_t *>(buffer.quads));
        behind.move((int)nbytes / 2);
        block = other.block;
        pending = other.pending;
    }

    /* collective.  The number of the word that is taken next. */
    WHARF_DEVICE_MEMBER int32_t next_word(const word_source &source,
                                          const word_buffer &buffer) const
    {
        const uint16_t *words = reinterpret_cast<const uint16_t *>(buffer.quads);
        return (int32_t)(behind.nbytes_from(words) / 2) - 1 + block * (int32_t)BLOCK_NWORDS -
               source.skew;
    }

  private:
    /* collective.  What stands behind this lane's quad of the pending block. */
    WHARF_DEVICE_MEMBER uint32_t word_behind(const word_buffer &buffer) const
    {
        uint32_t next = shfl_down(pending.x, 1), begin = load(&buffer.begin.x);
        return lane_id() < WARP_LANES - 1 ? next : begin;
    }

    /* collective.  Of a block of which this is lane 0's quad. */
    static WHARF_DEVICE_MEMBER void store_begin(word_buffer &buffer, const u32x4 &v)
    {
        if (lane_id() == 0)
            store(&buffer.begin.x, v.x);
    }
};

} // namespace rans
} // namespace wharf

#endif
