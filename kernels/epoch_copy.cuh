/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_copy.cuh: a warp's copies between the host's memory and the device's.
 *
 * All loads and stores of the bulk are 16 bytes a lane, from boundaries of 128 bytes of the
 * destination on, and 4 KiB are on their way together.  Nothing outside of source and destination
 * is touched.
 */
#ifndef WHARF_KERNELS_EPOCH_COPY_CUH
#define WHARF_KERNELS_EPOCH_COPY_CUH

#include "kernels/output_stream.cuh"

namespace wharf
{

/* Loads of 16 bytes that a lane has on their way. */
constexpr unsigned COPY_DEPTH = 8;

/* How a copy loads: what the host may be writing, and what this warp stored itself. */
struct from_host {
    template <typename T>
    static WHARF_DEVICE_MEMBER T get(const T *p)
    {
        return load_shared_with_host(p);
    }
};
struct from_device {
    template <typename T>
    static WHARF_DEVICE_MEMBER T get(const T *p)
    {
        return load(p);
    }
};

/* collective.  Copies the bytes before the first and after the last 16-byte boundary. */
template <typename From>
WHARF_DEVICE void copy_edges(uint8_t *to, const uint8_t *from, uint32_t head, uint32_t tail,
                             uint32_t nbytes)
{
    uint32_t lane = lane_id();
    uint32_t o = lane < 16 ? lane : tail + lane - 16;
    if (o < (lane < 16 ? head : nbytes))
        store(to + o, From::get(from + o));
}

/* One lane.  Quads first, first + 32 and so on, all loads before the first store; with GUARDED,
 * those of them that there are. */
template <typename From, bool GUARDED>
WHARF_DEVICE void copy_turn(u32x4 *to, const u32x4 *from, uint32_t first, uint32_t n_quads)
{
    u32x4 quads[COPY_DEPTH] = {};
    WHARF_UNROLL
    for (unsigned k = 0; k < COPY_DEPTH; k++)
        if (!GUARDED || first + 32 * k < n_quads)
            quads[k] = From::get(from + (first + 32 * k));
    WHARF_UNROLL
    for (unsigned k = 0; k < COPY_DEPTH; k++)
        if (!GUARDED || first + 32 * k < n_quads)
            store(to + (first + 32 * k), quads[k]);
}

/* collective.  Source and destination are aligned alike to 16 bytes.  Does not synchronise. */
template <typename From>
WHARF_DEVICE void copy_alike(uint8_t *to, const uint8_t *from, uint32_t nbytes)
{
    constexpr uint32_t TURN = 32 * COPY_DEPTH;
    uint32_t head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(to)) & 15;
    head = head < nbytes ? head : nbytes;
    uint32_t n_quads = (nbytes - head) / 16;
    const u32x4 *source = reinterpret_cast<const u32x4 *>(from + head);
    u32x4 *target = reinterpret_cast<u32x4 *>(to + head);
    /* Lane 0 begins at a boundary of 128 bytes; a negative number is a large one, and no quad. */
    uint32_t before = (uint32_t)(reinterpret_cast<uintptr_t>(target) / 16) & 7;

    copy_edges<From>(to, from, head, head + 16 * n_quads, nbytes);
    WHARF_NO_UNROLL
    for (uint32_t done = 0; done < n_quads + before; done += TURN) {
        uint32_t first = done - before + lane_id();
        if (done >= before && n_quads - (done - before) >= TURN)
            copy_turn<From, false>(target, source, first, n_quads);
        else
            copy_turn<From, true>(target, source, first, n_quads);
    }
}

/*
 * collective.  From the host's memory, aligned otherwise than the destination: each lane takes a
 * quad of the source, aligned as that is, and puts one together from its own and its right
 * neighbour's.  So the last lane has none, and a turn is of 31 quads.
 */
WHARF_DEVICE void copy_askew(uint8_t *to, const uint8_t *from, uint32_t nbytes)
{
    uint32_t head = (uint32_t)(0 - reinterpret_cast<uintptr_t>(to)) & 15;
    head = head < nbytes ? head : nbytes;
    uint32_t n_quads = (nbytes - head) / 16;
    uint32_t skew = (uint32_t)(reinterpret_cast<uintptr_t>(from + head)) & 15;
    /* The quads that hold n_quads * 16 bytes from here on; but those at the two ends may reach
     * beyond the source, and are taken byte by byte. */
    const uint8_t *aligned = from + head - skew;
    u32x4 *target = reinterpret_cast<u32x4 *>(to + head);

    copy_edges<from_host>(to, from, head, head + 16 * n_quads, nbytes);
    WHARF_NO_UNROLL
    for (uint32_t done = 0; done < n_quads; done += 31) {
        uint32_t i = done + lane_id();
        u32x4 own = {0, 0, 0, 0};
        if (i > 0 && i < n_quads) {
            own = load_shared_with_host(reinterpret_cast<const u32x4 *>(aligned) + i);
        } else if (i <= n_quads) {
            uint32_t words[4] = {0, 0, 0, 0};
            WHARF_UNROLL
            for (unsigned k = 0; k < 16; k++)
                if (i == 0 ? k >= skew : k < skew)
                    words[k / 4] |= (uint32_t)load_shared_with_host(aligned + (16 * i + k))
                                    << 8 * (k % 4);
            own = {words[0], words[1], words[2], words[3]};
        }
        u32x4 right = {shfl_down(own.x, 1), shfl_down(own.y, 1), shfl_down(own.z, 1),
                       shfl_down(own.w, 1)};
        if (lane_id() < 31 && i < n_quads)
            store(target + i, funnel_quad(own, right, skew));
    }
}

/* collective.  From the host's memory to anywhere. */
WHARF_DEVICE_NOINLINE void copy_from_host(uint8_t *to, const uint8_t *from, uint32_t nbytes)
{
    /* They come from different places: KERNELS.md, rule 9. */
    to = uniform_global(to);
    from = uniform_global(from);
    nbytes = uniform(nbytes);
    if (!any_lane((reinterpret_cast<uintptr_t>(to) ^ reinterpret_cast<uintptr_t>(from)) & 15))
        copy_alike<from_host>(to, from, nbytes);
    else
        copy_askew(to, from, nbytes);
}

/* collective.  From the device's memory, as other lanes of this warp left it before a syncwarp;
 * aligned as the destination is. */
WHARF_DEVICE_NOINLINE void copy_to_host(uint8_t *to, const uint8_t *from, uint32_t nbytes)
{
    copy_alike<from_device>(to, from, nbytes);
}

} // namespace wharf

#endif
