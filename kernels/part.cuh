/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.cuh: a part of a chunk, for codecs whose streams have places to begin at: what a decoder is
 * given of it, and what it says of it.
 *
 * A chunk is decoded in parts by as many warps, none of which waits for another: each brings those
 * bytes of the input here that it needs, finds out by itself where its part begins and ends, and
 * verifies it; work_parts.h makes the chunk's outcome of theirs.
 *
 * A codec name that can do so has
 *
 *   template <typename Shared> WHARF_DEVICE verdict name_decode_part(Shared &s, part_job &part)
 *
 * collective.  A good verdict's bit_offset is the byte of the chunk's output at which the part
 * begins, and its out_nbytes are the part's.
 */
#ifndef WHARF_KERNELS_PART_CUH
#define WHARF_KERNELS_PART_CUH

#include "kernels/decoder.cuh"
#include "kernels/epoch_copy.cuh"
#include "kernels/work_parts.h"

namespace wharf
{

/* Bytes of the input, as they were when this warp copied them.  The same in all lanes. */
struct part_input {
    const uint8_t *from; /* the whole chunk, in the host's memory */
    uint8_t *to;         /* aligned to 256 */
    uint32_t room;       /* bytes at `to` */
    uint32_t begin;      /* where the chunk's first bytes are, from `to` on */
    uint32_t used;       /* of the room */

    WHARF_DEVICE_MEMBER void init(const uint8_t *chunk, uint8_t *buffer, uint32_t buffer_nbytes)
    {
        from = chunk;
        to = buffer;
        room = buffer_nbytes;
        begin = used = (uint32_t)(reinterpret_cast<uintptr_t>(chunk) & 127);
    }

    /* What is fetched next has at least n bytes of the chunk, or of nothing, before it. */
    WHARF_DEVICE_MEMBER void keep_apart(uint32_t n)
    {
        if (used - begin < n)
            used = begin + n;
    }

    /* collective.  Bytes first to first + n - 1 of the chunk, behind what is there; aligned as they
     * are in the chunk, unless they follow what came before.  False: there is no room.  ret_at:
     * where they are, counted from the chunk's first bytes. */
    WHARF_DEVICE_MEMBER bool fetch(uint32_t first, uint32_t n, uint32_t &ret_at)
    {
        uint32_t aligned =
            (used & ~127u) + (uint32_t)((reinterpret_cast<uintptr_t>(from) + first) & 127);
        uint32_t at = aligned < used ? aligned + 128 : aligned;
        if (at > room || n > room - at)
            return false;
        copy_from_host(to + at, from + first, n);
        syncwarp(); /* all lanes' stores, before any lane's loads */
        used = at + n;
        ret_at = at - begin;
        return true;
    }
};

/* The same in all lanes. */
struct part_job {
    uint32_t number, n_parts; /* parts of the chunk; the number is below that */
    part_input input;
    uint64_t to;     /* where the chunk's output belongs */
    uint8_t *output; /* where the part's is built, aligned to 256; NULL: where it belongs */
    uint32_t room;   /* bytes of output that a part may have */
    chunk_job chunk; /* without `in` and `out` */
    /* By the decoder. */
    const uint8_t *built; /* the part's output */
    uint32_t flaw;        /* enum wharf_part_flaw, of a bad part */

    /* One lane.  Where to build what begins at that byte of the chunk's output. */
    WHARF_DEVICE_MEMBER uint8_t *place(uint32_t begin) const
    {
        uint64_t address = to + begin;
        return output ? output + (address & 127) : reinterpret_cast<uint8_t *>(address);
    }
};

/* A part that cannot be decoded by itself. */
WHARF_DEVICE verdict part_refused()
{
    return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
}

} // namespace wharf

#endif
