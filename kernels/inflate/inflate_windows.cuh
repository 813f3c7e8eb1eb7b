/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_windows.cuh: the last 32 KiB of each link's output, from what was measured.
 *
 * What measuring leaves of a part, its tail, is a map: from the window before the part to the
 * window behind it.  Each unit is a byte, or a marker for a byte of the window before.  Maps
 * compose, in any grouping: so links are cut into groups.
 *
 *   compose  a block for each group: one tail after the other becomes a map from the window before
 *            the group
 *   join     one block: the last tail of one group after the other becomes bytes
 *   settle   all blocks: each tail becomes bytes, which go to where they belong in the output
 *
 * A marker that is left points before the stream's first byte.  Delivering reports that.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_WINDOWS_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_WINDOWS_CUH

#include "kernels/inflate/inflate_wide.cuh"

namespace wharf
{
namespace inflate
{

constexpr unsigned WINDOW_WARPS = 16;
constexpr unsigned WINDOW_THREADS = 32 * WINDOW_WARPS;

struct link_group {
    uint32_t begin, end;
};

/* How many links a group has, but the last ones. */
WHARF_DEVICE uint32_t links_of_group(const wharf_inflate_job &job)
{
    return (load(&job.control->n_links) + job.n_groups - 1) / job.n_groups;
}

WHARF_DEVICE link_group group_of(const wharf_inflate_job &job, uint32_t group)
{
    uint32_t n_links = load(&job.control->n_links);
    uint32_t n = links_of_group(job);
    uint32_t begin = group * n < n_links ? group * n : n_links;
    return {begin, n_links - begin < n ? n_links : begin + n};
}

WHARF_DEVICE uint16_t *tail_of(const wharf_inflate_job &job, uint32_t link)
{
    return job.tails + (size_t)load(&job.links[link].part) * flate::WINDOW_NUNITS;
}

/* One lane. */
WHARF_DEVICE uint32_t unit_by(const uint16_t *before, uint32_t unit)
{
    return unit & flate::MARKER ? load(before + (unit & (flate::MARKER - 1))) : unit;
}

/* One lane.  Two units. */
WHARF_DEVICE uint32_t pair_by(const uint16_t *before, uint32_t pair)
{
    return unit_by(before, pair & 0xffff) | unit_by(before, pair >> 16) << 16;
}

/* For all warps of a block.  Makes a tail a map from the window that `before` is a map from.
 * Synchronises the block at its end. */
WHARF_DEVICE void compose_tails(uint16_t *tail, const uint16_t *before, unsigned warp)
{
    u32x4 *quads = reinterpret_cast<u32x4 *>(tail);
    WHARF_UNROLL_BY(4)
    for (uint32_t i = 32 * warp + lane_id(); i < flate::WINDOW_NUNITS / 8; i += WINDOW_THREADS) {
        u32x4 q = load(quads + i);
        store(quads + i, u32x4{pair_by(before, q.x), pair_by(before, q.y), pair_by(before, q.z),
                               pair_by(before, q.w)});
    }
    syncblock();
}

/* For all warps of block number `group`. */
WHARF_DEVICE void compose_group(const wharf_inflate_job &job, unsigned warp, uint32_t group)
{
    link_group links = group_of(job, group);
    for (uint32_t k = links.begin + 1; k < links.end; k++)
        compose_tails(tail_of(job, k), tail_of(job, k - 1), warp);
}

/* For all warps of one block. */
WHARF_DEVICE void join_groups(const wharf_inflate_job &job, unsigned warp)
{
    for (uint32_t group = 1; group < job.n_groups; group++) {
        link_group links = group_of(job, group);
        if (links.begin < links.end)
            compose_tails(tail_of(job, links.end - 1), tail_of(job, links.begin - 1), warp);
    }
}

/* For all warps of a block.  The window behind a link, as far as it is the link's own output. */
WHARF_DEVICE void settle_window(const wharf_inflate_job &job, unsigned warp, uint32_t k)
{
    uint32_t n_group = links_of_group(job);
    const uint16_t *tail = tail_of(job, k);
    /* Of the first group's window before, no byte is there. */
    const uint16_t *before = k >= n_group ? tail_of(job, k / n_group * n_group - 1) : tail;
    uint32_t n_out = load(&job.links[k].n_out);
    uint32_t n = n_out < flate::WINDOW_NUNITS ? n_out : flate::WINDOW_NUNITS;
    const uint16_t *units = tail + flate::WINDOW_NUNITS - n;
    uint8_t *to = job.out + load(&job.links[k].out_begin) + n_out - n;
    auto byte = [=](uint32_t i) { return unit_by(before, load(units + i)) & 0xff; };
    /* Words of four bytes, and those in front of the first and behind the last. */
    uint32_t head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(to)) & 3;
    head = head < n ? head : n;
    uint32_t n_words = (n - head) / 4, tail_at = head + 4 * n_words;
    uint32_t number = 32 * warp + lane_id();
    WHARF_UNROLL_BY(4)
    for (uint32_t w = number; w < n_words; w += WINDOW_THREADS) {
        uint32_t i = head + 4 * w;
        store(reinterpret_cast<uint32_t *>(to + i),
              byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24);
    }
    if (number < head)
        store(to + number, (uint8_t)byte(number));
    if (number < n - tail_at)
        store(to + tail_at + number, (uint8_t)byte(tail_at + number));
}

/* For all warps of block number `block` of n_blocks. */
WHARF_DEVICE void settle_windows(const wharf_inflate_job &job, unsigned warp, uint32_t block,
                                 uint32_t n_blocks)
{
    for (uint32_t k = block; k < load(&job.control->n_links); k += n_blocks)
        settle_window(job, warp, k);
}

} // namespace inflate
} // namespace wharf

#endif
