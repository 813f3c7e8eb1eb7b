/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdeflate_door.c: libdeflate's decompression functions, as the program calls them.
 *
 * The decompressor object is the genuine one and is never read here.
 */
#include <libdeflate.h>
#include <string.h>

#include "clientlib/preload/preload.h"
#include "encoders/deflate/deflate.h"
#include "encoders/gzip/gzip.h"
#include "encoders/zlib/zlib.h"

typedef enum libdeflate_result whole_call(struct libdeflate_decompressor *d, const void *in,
                                          size_t in_nbytes, void *out, size_t out_avail,
                                          size_t *ret_in_nbytes, size_t *ret_out_nbytes);

static enum libdeflate_result answer(uint32_t codec, wharf_decode_fn *decoder, const char *name,
                                     const void *caller, struct libdeflate_decompressor *d,
                                     const void *in, size_t in_nbytes, void *out, size_t out_avail,
                                     size_t *ret_in_nbytes, size_t *ret_out_nbytes)
{
    const struct wharf_preload_whole whole = {
        .library = WHARF_LIBDEFLATE,
        .codec = codec,
        .decode = decoder,
        .in = in,
        .in_nbytes = in_nbytes,
        .out = out,
        .out_avail = out_avail,
        .fills_all = !ret_out_nbytes,
    };
    const bool is_inner = wharf_preload_in_genuine;
    struct wharf_outcome outcome;
    whole_call *genuine;

    if (wharf_preload_decode_whole(&whole, WHARF_WHY_TAKEN, &outcome)) {
        if (ret_in_nbytes)
            *ret_in_nbytes = outcome.in_nbytes;
        if (ret_out_nbytes)
            *ret_out_nbytes = outcome.out_nbytes;
        return LIBDEFLATE_SUCCESS;
    }
    void *found = wharf_preload_search(name, caller);
    memcpy(&genuine, &found, sizeof(found));
    /* Without a libdeflate the program has no decompressor either. */
    if (!genuine)
        return LIBDEFLATE_BAD_DATA;
    wharf_preload_in_genuine = true;
    enum libdeflate_result result =
        genuine(d, in, in_nbytes, out, out_avail, ret_in_nbytes, ret_out_nbytes);
    wharf_preload_in_genuine = is_inner;
    if (result == LIBDEFLATE_SUCCESS)
        wharf_preload_count_declined(&whole, ret_out_nbytes ? *ret_out_nbytes : out_avail);
    return result;
}

#define DOORS(name, codec, decoder)                                                                \
    WHARF_PRELOAD_EXPORT enum libdeflate_result libdeflate_##name##_decompress_ex(                 \
        struct libdeflate_decompressor *d, const void *in, size_t in_nbytes, void *out,            \
        size_t out_avail, size_t *ret_in_nbytes, size_t *ret_out_nbytes)                           \
    {                                                                                              \
        return answer(codec, decoder, "libdeflate_" #name "_decompress_ex",                        \
                      __builtin_return_address(0), d, in, in_nbytes, out, out_avail,               \
                      ret_in_nbytes, ret_out_nbytes);                                              \
    }                                                                                              \
    WHARF_PRELOAD_EXPORT enum libdeflate_result libdeflate_##name##_decompress(                    \
        struct libdeflate_decompressor *d, const void *in, size_t in_nbytes, void *out,            \
        size_t out_avail, size_t *ret_out_nbytes)                                                  \
    {                                                                                              \
        return answer(codec, decoder, "libdeflate_" #name "_decompress_ex",                        \
                      __builtin_return_address(0), d, in, in_nbytes, out, out_avail, NULL,         \
                      ret_out_nbytes);                                                             \
    }
DOORS(deflate, WHARF_CODEC_DEFLATE, wharf_deflate_decode)
DOORS(zlib, WHARF_CODEC_ZLIB, wharf_zlib_decode)
DOORS(gzip, WHARF_CODEC_GZIP, wharf_gzip_decode)
