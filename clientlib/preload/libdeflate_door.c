/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdeflate_door.c: libdeflate's decompression functions, as the program calls them.
 *
 * A call decodes one whole stream.  If our decoder succeeds, its output is the answer.  If it fails
 * for any reason, the genuine libdeflate decodes the stream again and its answer counts, so errors
 * are exactly libdeflate's.  The decompressor object is the genuine one and is never read here.
 */
#include <dlfcn.h>
#include <libdeflate.h>
#include <pthread.h>
#include <string.h>

#include "clientlib/preload/preload.h"
#include "encoders/deflate/deflate.h"
#include "encoders/deflate/inflate_tables.h"
#include "encoders/gzip/gzip.h"
#include "encoders/zlib/zlib.h"

#define EXPORT __attribute__((visibility("default")))

typedef enum libdeflate_result whole_call(struct libdeflate_decompressor *d, const void *in,
                                          size_t in_nbytes, void *out, size_t out_avail,
                                          size_t *ret_in_nbytes, size_t *ret_out_nbytes);

static struct {
    whole_call *deflate, *zlib, *gzip;
} genuine;

/* The answer if no libdeflate is found; the program then cannot have a decompressor either. */
static enum libdeflate_result no_libdeflate(struct libdeflate_decompressor *d, const void *in,
                                            size_t in_nbytes, void *out, size_t out_avail,
                                            size_t *ret_in_nbytes, size_t *ret_out_nbytes)
{
    (void)d, (void)in, (void)in_nbytes, (void)out, (void)out_avail;
    (void)ret_in_nbytes, (void)ret_out_nbytes;
    return LIBDEFLATE_BAD_DATA;
}

static whole_call *find(void *library, const char *name)
{
    void *found = dlsym(library ? library : RTLD_NEXT, name);
    whole_call *call = no_libdeflate;

    if (found)
        memcpy(&call, &found, sizeof(call));
    return call;
}

/* Finds the genuine functions; libdeflate may be loaded outside the global scope. */
static void find_all(void)
{
    void *library = NULL;

    if (!dlsym(RTLD_NEXT, "libdeflate_deflate_decompress_ex"))
        library = dlopen("libdeflate.so.0", RTLD_LAZY | RTLD_NOLOAD);
    genuine.deflate = find(library, "libdeflate_deflate_decompress_ex");
    genuine.zlib = find(library, "libdeflate_zlib_decompress_ex");
    genuine.gzip = find(library, "libdeflate_gzip_decompress_ex");
    wharf_inflate_tables_fixed();
}

static void find_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_all);
}

/* Whether input and output do not overlap: our decoders may write anywhere in the output. */
static bool are_apart(const void *in, size_t in_nbytes, const void *out, size_t out_avail)
{
    const uintptr_t source = (uintptr_t)in, room = (uintptr_t)out;

    return source < room ? room - source >= in_nbytes : source - room >= out_avail;
}

/* Decodes.  Returns whether the whole call succeeded in the way that the caller wants. */
static bool decode(wharf_decode_fn *decoder, const void *in, size_t in_nbytes, void *out,
                   size_t out_avail, size_t *ret_in_nbytes, size_t *ret_out_nbytes)
{
    struct wharf_outcome outcome;

    if (!are_apart(in, in_nbytes, out, out_avail))
        return false;
    decoder(in, in_nbytes, out, out_avail, NULL, &outcome);
    if (outcome.result != WHARF_OK || (!ret_out_nbytes && outcome.out_nbytes != out_avail))
        return false;
    if (ret_in_nbytes)
        *ret_in_nbytes = outcome.in_nbytes;
    if (ret_out_nbytes)
        *ret_out_nbytes = outcome.out_nbytes;
    return true;
}

static enum libdeflate_result answer(wharf_decode_fn *decoder, whole_call *const *behind,
                                     struct libdeflate_decompressor *d, const void *in,
                                     size_t in_nbytes, void *out, size_t out_avail,
                                     size_t *ret_in_nbytes, size_t *ret_out_nbytes)
{
    const bool is_left_alone = wharf_preload_is_left_alone();
    size_t out_nbytes = out_avail, *counted = ret_out_nbytes ? ret_out_nbytes : &out_nbytes;
    enum libdeflate_result result;

    find_once();
    if (!is_left_alone &&
        decode(decoder, in, in_nbytes, out, out_avail, ret_in_nbytes, ret_out_nbytes)) {
        wharf_preload_count_stream(WHARF_LIBDEFLATE, WHARF_WHY_TAKEN, NULL);
        wharf_preload_count_bytes(WHARF_LIBDEFLATE, true, *counted);
        return LIBDEFLATE_SUCCESS;
    }
    result = (*behind)(d, in, in_nbytes, out, out_avail, ret_in_nbytes, ret_out_nbytes);
    wharf_preload_count_stream(WHARF_LIBDEFLATE, is_left_alone ? WHARF_WHY_CHILD : WHARF_WHY_BAD,
                               NULL);
    wharf_preload_count_bytes(WHARF_LIBDEFLATE, false, result == LIBDEFLATE_SUCCESS ? *counted : 0);
    return result;
}

#define DOORS(name, decoder)                                                                       \
    EXPORT enum libdeflate_result libdeflate_##name##_decompress_ex(                               \
        struct libdeflate_decompressor *d, const void *in, size_t in_nbytes, void *out,            \
        size_t out_avail, size_t *ret_in_nbytes, size_t *ret_out_nbytes)                           \
    {                                                                                              \
        return answer(decoder, &genuine.name, d, in, in_nbytes, out, out_avail, ret_in_nbytes,     \
                      ret_out_nbytes);                                                             \
    }                                                                                              \
    EXPORT enum libdeflate_result libdeflate_##name##_decompress(                                  \
        struct libdeflate_decompressor *d, const void *in, size_t in_nbytes, void *out,            \
        size_t out_avail, size_t *ret_out_nbytes)                                                  \
    {                                                                                              \
        return answer(decoder, &genuine.name, d, in, in_nbytes, out, out_avail, NULL,              \
                      ret_out_nbytes);                                                             \
    }
DOORS(deflate, wharf_deflate_decode)
DOORS(zlib, wharf_zlib_decode)
DOORS(gzip, wharf_gzip_decode)
