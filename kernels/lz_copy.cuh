/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_copy.cuh: one long match copied by the whole warp, 8 bytes a lane.
 */
#ifndef WHARF_KERNELS_LZ_COPY_CUH
#define WHARF_KERNELS_LZ_COPY_CUH

#include "kernels/match_copy.cuh"

namespace wharf
{
namespace lz
{

/* collective.  Copies 8 bytes or more.  The source ends at or before `to`, so its aligned words end
 * before to + 8. */
WHARF_DEVICE void copy_apart(const uint8_t *first, uint8_t *to, uint32_t distance, uint32_t length)
{
    const uint8_t *from = to - distance;
    cut c;
    c.init(to, length);
    if (c.has_byte)
        store(to + c.byte, load(from + c.byte));
    for (uint32_t i = lane_id(); i < c.n_words; i += 32)
        store(reinterpret_cast<uint64_t *>(to + c.head) + i, load_8(from + c.head + 8 * i, first));
}

/* collective.  For distances 1, 2, 4 and 8: all words equal the eight bytes before `to`. */
WHARF_DEVICE void fill_words(const uint8_t *first, uint8_t *to, uint32_t distance, uint32_t length)
{
    cut c;
    c.init(to, length);
    uint64_t v = repeated(load_8(to - 8, first), distance);
    uint64_t word = rotate_right(v, c.head); /* whose first byte is byte `head` of the pattern */
    if (c.has_byte)
        store(to + c.byte, byte_of(v, c.byte));
    for (uint32_t i = lane_id(); i < c.n_words; i += 32)
        store(reinterpret_cast<uint64_t *>(to + c.head) + i, word);
}

/* The shortest match for copy_long(), which also requires MIN_COPY_POSITION. */
constexpr uint32_t MIN_COPY_LENGTH = 8;

/*
 * collective, the same arguments in all lanes.  Copies a match of MIN_COPY_LENGTH or more to
 * out[at].  It must fit, `at` must be at least MIN_COPY_POSITION, and distance is 1 to `at`.  The
 * bytes that it reads must be visible (syncwarp).
 */
WHARF_DEVICE void copy_long(uint8_t *out, uint32_t at, uint32_t distance, uint32_t length)
{
    if (distance >= length) {
        copy_apart(out, out + at, distance, length);
    } else if (distance <= 8 && (distance & (distance - 1)) == 0) {
        fill_words(out, out + at, distance, length);
    } else if (distance < MIN_COPY_LENGTH || length - distance < 64) {
        repeat_bytes(out + at, distance, length);
    } else {
        /* Each pass copies all that exists, so the number of periods doubles. */
        uint32_t done = 0, n = distance;
        for (; length - done > n; n *= 2) {
            copy_apart(out, out + at + done, n, n);
            syncwarp();
            done += n;
        }
        if (length - done < MIN_COPY_LENGTH)
            repeat_bytes(out + at + done, n, length - done);
        else
            copy_apart(out, out + at + done, n, length - done);
    }
}

} // namespace lz
} // namespace wharf

#endif
