/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_door.c: libzstd's decompression of whole frames, as the program calls it.
 *
 * What a frame decodes to depends on its context's dictionary and parameters, which only libzstd
 * knows.  So the functions that give a context one are exported too.  Once the program has called
 * one of them, for any context, all calls with a context are libzstd's.
 *
 * Of frames that our decoder takes libzstd makes the same (encoders/zstd/zstd_format.h).
 */
#include <stdatomic.h>
#include <string.h>

#include "clientlib/preload/preload.h"
#include "encoders/zstd/zstd.h"

/* What <zstd.h> says of these depends on its version; the interface of libzstd.so.1 does not. */
struct ZSTD_DCtx_s;
enum { ZSTD_ERROR_GENERIC = 1, ZSTD_WINDOW_LOG_MAX = 100 };

static size_t no_libzstd(void)
{
    return (size_t)-ZSTD_ERROR_GENERIC;
}

static bool is_error(size_t result)
{
    return result > (size_t)-120;
}

static atomic_bool has_odd_context;

typedef size_t plain_call(void *out, size_t out_avail, const void *in, size_t in_nbytes);
typedef size_t context_call(struct ZSTD_DCtx_s *d, void *out, size_t out_avail, const void *in,
                            size_t in_nbytes);

static struct wharf_preload_whole whole_of(void *out, size_t out_avail, const void *in,
                                           size_t in_nbytes)
{
    return (struct wharf_preload_whole){
        .library = WHARF_LIBZSTD,
        .codec = WHARF_CODEC_ZSTD,
        .decode = wharf_zstd_decode,
        .in = in,
        .in_nbytes = in_nbytes,
        .out = out,
        .out_avail = out_avail,
        .takes_all = true,
    };
}

plain_call ZSTD_decompress;
context_call ZSTD_decompressDCtx;

/* A reason not to decode. */
static enum wharf_preload_why look(const struct wharf_preload_whole *whole, bool has_context)
{
    if (has_context && atomic_load_explicit(&has_odd_context, memory_order_relaxed))
        return WHARF_WHY_ODD_CONTEXT;
    return !whole->in_nbytes || !whole->out || !whole->out_avail ? WHARF_WHY_OVERLAP
                                                                 : WHARF_WHY_TAKEN;
}

static size_t count(const struct wharf_preload_whole *whole, size_t result)
{
    wharf_preload_count_declined(whole, is_error(result) ? 0 : result);
    return result;
}

WHARF_PRELOAD_EXPORT size_t ZSTD_decompress(void *out, size_t out_avail, const void *in,
                                            size_t in_nbytes)
{
    const struct wharf_preload_whole whole = whole_of(out, out_avail, in, in_nbytes);
    const bool is_inner = wharf_preload_in_genuine;
    struct wharf_outcome outcome;
    plain_call *genuine;

    if (wharf_preload_decode_whole(&whole, look(&whole, false), &outcome))
        return outcome.out_nbytes;
    void *found = wharf_preload_search("ZSTD_decompress", __builtin_return_address(0));
    memcpy(&genuine, &found, sizeof(found));
    if (!genuine)
        return no_libzstd();
    wharf_preload_in_genuine = true;
    size_t result = genuine(out, out_avail, in, in_nbytes);
    wharf_preload_in_genuine = is_inner;
    return count(&whole, result);
}

/* A call of libzstd's ends the stream that its context was in; so must ours. */
static void end_stream(struct ZSTD_DCtx_s *d, const void *caller)
{
    enum { RESET_SESSION = 1 };
    size_t (*reset)(struct ZSTD_DCtx_s * d, int what);
    void *found = d ? wharf_preload_search("ZSTD_DCtx_reset", caller) : NULL;

    memcpy(&reset, &found, sizeof(found));
    if (reset)
        reset(d, RESET_SESSION);
}

WHARF_PRELOAD_EXPORT size_t ZSTD_decompressDCtx(struct ZSTD_DCtx_s *d, void *out, size_t out_avail,
                                                const void *in, size_t in_nbytes)
{
    const struct wharf_preload_whole whole = whole_of(out, out_avail, in, in_nbytes);
    const bool is_inner = wharf_preload_in_genuine;
    struct wharf_outcome outcome;
    context_call *genuine;

    if (wharf_preload_decode_whole(&whole, look(&whole, true), &outcome)) {
        end_stream(d, __builtin_return_address(0));
        return outcome.out_nbytes;
    }
    void *found = wharf_preload_search("ZSTD_decompressDCtx", __builtin_return_address(0));
    memcpy(&genuine, &found, sizeof(found));
    if (!genuine)
        return no_libzstd();
    wharf_preload_in_genuine = true;
    size_t result = genuine(d, out, out_avail, in, in_nbytes);
    wharf_preload_in_genuine = is_inner;
    return count(&whole, result);
}

/* ---- what makes a context odd ---- */

/* X(name, parameters, arguments, whether it does).  ZSTD_initDStream gives NULL for none. */
#define SETTERS(X)                                                                                 \
    X(ZSTD_DCtx_loadDictionary, (struct ZSTD_DCtx_s * d, const void *p, size_t n), (d, p, n), p)   \
    X(ZSTD_DCtx_loadDictionary_byReference, (struct ZSTD_DCtx_s * d, const void *p, size_t n),     \
      (d, p, n), p)                                                                                \
    X(ZSTD_DCtx_loadDictionary_advanced,                                                           \
      (struct ZSTD_DCtx_s * d, const void *p, size_t n, int how, int what), (d, p, n, how, what),  \
      p)                                                                                           \
    X(ZSTD_DCtx_refDDict, (struct ZSTD_DCtx_s * d, const void *p), (d, p), p)                      \
    X(ZSTD_DCtx_refPrefix, (struct ZSTD_DCtx_s * d, const void *p, size_t n), (d, p, n), p)        \
    X(ZSTD_DCtx_refPrefix_advanced, (struct ZSTD_DCtx_s * d, const void *p, size_t n, int what),   \
      (d, p, n, what), p)                                                                          \
    X(ZSTD_DCtx_setFormat, (struct ZSTD_DCtx_s * d, int format), (d, format), true)                \
    X(ZSTD_DCtx_setParameter, (struct ZSTD_DCtx_s * d, int which, int value), (d, which, value),   \
      which != ZSTD_WINDOW_LOG_MAX)                                                                \
    X(ZSTD_initDStream_usingDict, (struct ZSTD_DCtx_s * d, const void *p, size_t n), (d, p, n), p) \
    X(ZSTD_initDStream_usingDDict, (struct ZSTD_DCtx_s * d, const void *p), (d, p), p)

#define X(name, parameters, arguments, is_odd)                                                     \
    WHARF_PRELOAD_EXPORT size_t name parameters;                                                   \
    WHARF_PRELOAD_EXPORT size_t name parameters                                                    \
    {                                                                                              \
        size_t(*genuine) parameters;                                                               \
        void *found = wharf_preload_search(#name, __builtin_return_address(0));                    \
                                                                                                   \
        memcpy(&genuine, &found, sizeof(found));                                                   \
        if (is_odd)                                                                                \
            atomic_store_explicit(&has_odd_context, true, memory_order_relaxed);                   \
        return genuine ? genuine arguments : no_libzstd();                                         \
    }
SETTERS(X)
#undef X
