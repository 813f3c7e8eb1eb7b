/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_door.c: liblz4's decompression of one whole block, as the program calls it.
 *
 * Blocks without output are left to liblz4, which takes one of them alone.  Of all others that our
 * decoder takes liblz4 makes the same (encoders/lz4/lz4_format.h).  Other functions of liblz4 that
 * decode need what earlier calls left, or a part of a block: they stay liblz4's.
 */
#include <lz4.h>
#include <string.h>

#include "clientlib/preload/preload.h"
#include "encoders/lz4/lz4.h"

typedef int whole_call(const char *in, char *out, int in_nbytes, int out_avail);

WHARF_PRELOAD_EXPORT int LZ4_decompress_safe(const char *in, char *out, int in_nbytes,
                                             int out_avail)
{
    const struct wharf_preload_whole whole = {
        .library = WHARF_LIBLZ4,
        .codec = WHARF_CODEC_LZ4,
        .decode = wharf_lz4_decode,
        .in = in,
        .in_nbytes = in_nbytes > 0 ? (size_t)in_nbytes : 0,
        .out = out,
        .out_avail = out_avail > 0 ? (size_t)out_avail : 0,
        .takes_all = true,
    };
    const bool is_empty = !in || !out || in_nbytes <= 0 || out_avail <= 0;
    const bool is_inner = wharf_preload_in_genuine;
    struct wharf_outcome outcome;
    whole_call *genuine;

    if (wharf_preload_decode_whole(&whole, is_empty ? WHARF_WHY_OVERLAP : WHARF_WHY_TAKEN,
                                   &outcome))
        return (int)outcome.out_nbytes;
    void *found = wharf_preload_search("LZ4_decompress_safe", __builtin_return_address(0));
    memcpy(&genuine, &found, sizeof(found));
    if (!genuine)
        return -1;
    wharf_preload_in_genuine = true;
    int result = genuine(in, out, in_nbytes, out_avail);
    wharf_preload_in_genuine = is_inner;
    wharf_preload_count_declined(&whole, result > 0 ? (uint64_t)result : 0);
    return result;
}
