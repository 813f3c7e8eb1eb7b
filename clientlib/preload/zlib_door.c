/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_door.c: zlib's functions, as the program calls them.
 *
 * The genuine zlib calls its own functions by symbol, and so reaches these too.  While it works on
 * a stream for us, wharf_preload_inside names that stream, and its calls go straight through.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#include "clientlib/preload/genuine_state.h"
#include "clientlib/preload/preload.h"
#include "encoders/checksum.h"

#define EXPORT WHARF_PRELOAD_EXPORT

__thread z_streamp wharf_preload_inside;

/* A child after fork without exec keeps the streams that it has, and takes no new ones. */
static atomic_bool is_child;

static void note_child(void)
{
    atomic_store_explicit(&is_child, true, memory_order_relaxed);
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, note_child);
}

bool wharf_preload_is_left_alone(void)
{
    return atomic_load_explicit(&is_child, memory_order_relaxed) || getauxval(AT_SECURE);
}

static void take(z_streamp strm)
{
    const struct wharf_genuine_state *state = wharf_genuine_state(strm);

    if (wharf_preload_is_left_alone()) {
        wharf_preload_count_stream(WHARF_ZLIB, WHARF_WHY_CHILD, NULL);
    } else if (wharf_preload_is_skipped(WHARF_ZLIB)) {
        wharf_preload_count_stream(WHARF_ZLIB, WHARF_WHY_SKIPPED, NULL);
    } else if (!wharf_preload_knows_zlib()) {
        wharf_preload_count_stream(WHARF_ZLIB, WHARF_WHY_UNKNOWN_ZLIB, NULL);
    } else if (!wharf_preload_take(strm)) {
        wharf_preload_count_stream(WHARF_ZLIB, WHARF_WHY_NO_ROOM, NULL);
    } else {
        wharf_zlib_steps_init(&wharf_preload_find(strm)->steps, state->wrap, state->wbits);
        wharf_preload_count_stream(WHARF_ZLIB, WHARF_WHY_TAKEN, NULL);
    }
}

EXPORT int inflateInit2_(z_streamp strm, int bits, const char *version, int nbytes)
{
    const z_streamp outer = wharf_preload_inside;

    wharf_preload_inside = strm;
    int result = wharf_preload_genuine()->inflateInit2_(strm, bits, version, nbytes);
    wharf_preload_inside = outer;
    if (result == Z_OK && outer != strm)
        take(strm);
    return result;
}

EXPORT int inflateInit_(z_streamp strm, const char *version, int nbytes)
{
    return inflateInit2_(strm, MAX_WBITS, version, nbytes);
}

static int run_taken(z_streamp strm, struct wharf_zlib_steps *steps, int flush)
{
    struct wharf_zlib_io io = {
        .next_in = strm->next_in,
        .avail_in = strm->avail_in,
        .next_out = strm->next_out,
        .avail_out = strm->avail_out,
        .total_in = strm->total_in,
        .total_out = strm->total_out,
        .adler = strm->adler,
        .msg = strm->msg,
        .data_type = strm->data_type,
    };
    const int result = wharf_zlib_steps_run(steps, &io, flush);

    if (wharf_preload_counts)
        wharf_preload_count_bytes(WHARF_ZLIB, true, strm->avail_out - io.avail_out);
    strm->next_in = (Bytef *)(uintptr_t)io.next_in;
    strm->avail_in = io.avail_in;
    strm->next_out = io.next_out;
    strm->avail_out = io.avail_out;
    strm->total_in = io.total_in;
    strm->total_out = io.total_out;
    strm->adler = io.adler;
    strm->msg = (char *)(uintptr_t)io.msg;
    strm->data_type = io.data_type;
    return result;
}

EXPORT int inflate(z_streamp strm, int flush)
{
    struct wharf_shadow *shadow = strm == wharf_preload_inside ? NULL : wharf_preload_find(strm);

    if (shadow && strm->zalloc && strm->zfree)
        return run_taken(strm, &shadow->steps, flush);
    if (!wharf_preload_counts || !strm)
        return wharf_preload_genuine()->inflate(strm, flush);
    const uInt before = strm->avail_out;
    const int result = wharf_preload_genuine()->inflate(strm, flush);
    wharf_preload_count_bytes(WHARF_ZLIB, false, before - strm->avail_out);
    return result;
}

EXPORT int inflateEnd(z_streamp strm)
{
    if (strm != wharf_preload_inside && wharf_preload_find(strm))
        wharf_preload_drop(strm);
    return wharf_preload_genuine()->inflateEnd(strm);
}

/* After a reset by the genuine zlib: a stream that was handed over may be taken again. */
static void begin_again(z_streamp strm, bool was_taken)
{
    const struct wharf_genuine_state *state = wharf_genuine_state(strm);
    struct wharf_shadow *shadow = was_taken ? wharf_preload_find(strm) : NULL;

    if (shadow)
        wharf_zlib_steps_init(&shadow->steps, state->wrap, state->wbits);
}

EXPORT int inflateReset(z_streamp strm)
{
    const z_streamp outer = wharf_preload_inside;
    const struct wharf_shadow *shadow = outer != strm ? wharf_preload_find(strm) : NULL;
    const bool taken = shadow != NULL;

    /* zlib keeps the window size that the last stream's header gave, if none was asked for. */
    if (taken)
        wharf_genuine_state(strm)->wbits = shadow->steps.wbits;
    wharf_preload_inside = strm;
    int result = wharf_preload_genuine()->inflateReset(strm);
    wharf_preload_inside = outer;
    if (result == Z_OK)
        begin_again(strm, taken);
    return result;
}

EXPORT int inflateReset2(z_streamp strm, int bits)
{
    const z_streamp outer = wharf_preload_inside;
    const bool taken = outer != strm && wharf_preload_find(strm);

    wharf_preload_inside = strm;
    int result = wharf_preload_genuine()->inflateReset2(strm, bits);
    wharf_preload_inside = outer;
    if (result == Z_OK)
        begin_again(strm, taken);
    return result;
}

/* ---- calls that the genuine zlib answers ---- */

static int hand_over(z_streamp strm, const char *call)
{
    struct wharf_shadow *shadow = strm == wharf_preload_inside ? NULL : wharf_preload_find(strm);

    if (!shadow)
        return Z_OK;
    wharf_preload_count_stream(WHARF_ZLIB, WHARF_WHY_ODD_CALL, call);
    return wharf_preload_hand_over(strm, shadow);
}

#define X(type, name, parameters, arguments, none)                                                 \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        if (hand_over(s, #name) != Z_OK)                                                           \
            return (type)Z_MEM_ERROR;                                                              \
        return wharf_preload_genuine()->name arguments;                                            \
    }
WHARF_PRELOAD_PASSED_LIST(X)
#undef X

EXPORT int inflateCopy(z_streamp to, z_streamp from)
{
    if (hand_over(from, "inflateCopy") != Z_OK)
        return Z_MEM_ERROR;
    return wharf_preload_genuine()->inflateCopy(to, from);
}

#define X(type, name, parameters, arguments, none)                                                 \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        return wharf_preload_genuine()->name arguments;                                            \
    }
WHARF_PRELOAD_OTHER_LIST(X)
#undef X

/* ---- checksums ---- */

EXPORT uLong crc32_z(uLong crc, const Bytef *data, z_size_t nbytes)
{
    return data ? wharf_crc32((uint32_t)crc, data, nbytes) : 0;
}

EXPORT uLong crc32(uLong crc, const Bytef *data, uInt nbytes)
{
    return crc32_z(crc, data, nbytes);
}

EXPORT uLong adler32_z(uLong adler, const Bytef *data, z_size_t nbytes)
{
    enum { BASE = 65521 };

    if (!data)
        return WHARF_ADLER32_INIT;
    /* What no checksum is zlib reduces in its own way, which this is for lengths of 0. */
    uint32_t low = adler & 0xffff, high = adler >> 16 & 0xffff;
    low = low >= BASE ? low - BASE : low;
    high = high >= BASE ? high - BASE : high;
    return wharf_adler32(high << 16 | low, data, nbytes);
}

EXPORT uLong adler32(uLong adler, const Bytef *data, uInt nbytes)
{
    return adler32_z(adler, data, nbytes);
}
