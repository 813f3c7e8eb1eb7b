/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_command.cuh: how the first warp of a block has the others work with it at a chunk, and lets
 * them wait meanwhile.
 *
 * Shared is what the block's warps share; its `command` is what the first one wants of them.
 */
#ifndef WHARF_KERNELS_BLOCK_COMMAND_CUH
#define WHARF_KERNELS_BLOCK_COMMAND_CUH

#include "kernels/input_stream.cuh"

namespace wharf
{

struct block_command {
    input_source source;
    uint8_t *out;
    uint32_t out_avail;
    uint32_t at; /* input position after source.aligned; Deflate: bits, LZ4 and Snappy: bytes */
    uint32_t position;
    uint32_t steps_left;
    uint32_t ended; /* there is nothing more to do */
};

/* For all warps: where the first gives its command, and the others wait for it.  Synchronises the
 * block. */
template <typename Shared>
WHARF_DEVICE_NOINLINE void meet_for_command(shared_ref<Shared>)
{
    syncblock();
}

/* collective, for the first warp: a command.  Synchronises the block. */
template <typename Shared>
WHARF_DEVICE void give_command(shared_ref<Shared> ref, const block_command &command)
{
    if (lane_id() == 0)
        ref.get().command = command;
    meet_for_command(ref);
}

/* For all warps but the first: does what that commands, by `work`, until there is nothing more. */
template <typename Shared, typename Work>
WHARF_DEVICE void follow_commands(Shared &s, Work work)
{
    shared_ref<Shared> ref;
    ref.init(s);
    for (;;) {
        meet_for_command(ref);
        if (uniform(s.command.ended))
            break;
        work(ref);
    }
}

/* collective, for the first warp, behind its last chunk: the others may end. */
template <typename Shared>
WHARF_DEVICE void end_commands(Shared &s)
{
    shared_ref<Shared> ref;
    ref.init(s);
    give_command(ref, {{}, nullptr, 0, 0, 0, 0, 1});
}

} // namespace wharf

#endif
