/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_memo.cuh: decoded chunks that an epoch keeps, to copy them where the same chunk comes
 * again.
 *
 * A chunk's outcome and output depend on its input, codec, parameter and capacity alone.  A warp
 * that has fetched a chunk hashes its own copy, finds the entry with that hash, and compares the
 * copy with the one that the entry keeps.  Clients can write neither, so what was compared is what
 * counts, whatever a client does meanwhile.  Only if every byte is equal does the kept output take
 * the place of decoding.  Only good outputs are kept, from a warp's own memory.
 */
#ifndef WHARF_KERNELS_EPOCH_MEMO_CUH
#define WHARF_KERNELS_EPOCH_MEMO_CUH

#include "kernels/batch_warp.cuh"
#include "kernels/memo_place.cuh"

namespace wharf
{

/* collective.  Whether the item's chunk may be among those that are kept. */
template <typename Team>
WHARF_DEVICE bool may_be_kept(const epoch_params &p, const wharf_work_item &item)
{
    if (!Team::MEMOIZES || p.memo.n_parts == 0)
        return false;
    return any_lane(item.opcode == WHARF_WORK_DECODE && item.staging != 0 &&
                    WHARF_MEMO_PART_OF(item.staging) < p.memo.n_parts && item.codec < 64 &&
                    (WHARF_MEMO_CODECS >> item.codec & 1) != 0);
}

/* collective.  Searches for the item's chunk, and notes in its slot what was found. */
WHARF_DEVICE memo_look look_for_chunk(const epoch_params &p, epoch_slot *slot, const uint8_t *input)
{
    memo_look look = memo_find(p.memo, memo_wish_of(slot->item), input);
    uint32_t found = look.entry ? WHARF_MEMO_HIT : 0;
    if (lane_id() == 0) {
        store(&slot->memo, WHARF_MEMO_LOOKED | found);
        store(&slot->digest, look.digest);
    }
    syncwarp();
    return look;
}

/* collective.  Keeps a chunk that was searched for in vain and decoded well. */
template <typename Team>
WHARF_DEVICE void keep_chunk(const epoch_params &p, const Team &team, epoch_slot *slot,
                             const uint8_t *input, const uint8_t *output, const verdict &v)
{
    memo_wish wish = memo_wish_of(slot->item);
    memo_place place = memo_reserve(p.memo, wish, load(&slot->digest), input, output, v);
    bool is_kept = any_lane(place.entry != nullptr);
    if (lane_id() == 0)
        store(&slot->memo, WHARF_MEMO_LOOKED | (is_kept ? WHARF_MEMO_KEPT : 0) |
                               place.n_evicted * WHARF_MEMO_EVICTED);
    syncwarp();
    if (!is_kept)
        return;
    team.copy_in(uniform_global(place.input), input, wish.src_nbytes);
    team.copy_in(uniform_global(place.output), output, uniform(v.out_nbytes));
    memo_publish(place);
}

/* collective.  Copies a kept output to `to`. */
template <typename Team>
WHARF_DEVICE verdict copy_kept(const Team &team, const memo_look &look, uint8_t *to)
{
    uint32_t out_nbytes = uniform(look.out_nbytes);
    team.copy_in(to, uniform_global(look.output), out_nbytes);
    memo_leave(uniform_global(look.entry));
    return good(uniform(look.in_nbytes), out_nbytes);
}

} // namespace wharf

#endif
