/* SPDX-License-Identifier: Apache-2.0 */
/*
 * genuine.c: finds the genuine zlib, and tests whether its state has the layout that we know.
 *
 * A program may load zlib late and outside the global scope, as Python's module does.  So the
 * search runs at the first call: first behind this library in the link order, then by zlib's name.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "clientlib/preload/genuine_state.h"
#include "clientlib/preload/preload.h"

static struct wharf_genuine genuine;
static atomic_bool is_found;

#define X(type, name, parameters, arguments, none)                                                 \
    static type no_##name parameters                                                               \
    {                                                                                              \
        return none;                                                                               \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
WHARF_PRELOAD_ALL_LIST(X)
#pragma GCC diagnostic pop
#undef X

static void *find(void *library, const char *name)
{
    return dlsym(library ? library : RTLD_NEXT, name);
}

static void find_all(void)
{
    void *library = NULL;

    if (!dlsym(RTLD_NEXT, "inflateInit2_")) {
        library = dlopen("libz.so.1", RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            library = dlopen("libz.so.1", RTLD_LAZY);
    }
#define X(type, name, parameters, arguments, none)                                                 \
    {                                                                                              \
        void *found = find(library, #name);                                                        \
        genuine.name = no_##name;                                                                  \
        if (found)                                                                                 \
            memcpy(&genuine.name, &found, sizeof(found));                                          \
    }
    WHARF_PRELOAD_ALL_LIST(X)
#undef X
    atomic_store_explicit(&is_found, true, memory_order_release);
}

const struct wharf_genuine *wharf_preload_genuine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (!atomic_load_explicit(&is_found, memory_order_acquire))
        pthread_once(&once, find_all);
    return &genuine;
}

/* ---- the state's layout ---- */

/* Tests with the start of a zlib stream: a fixed block that gives 'a' and ends within a unit. */
static bool stream_is_known(z_streamp strm)
{
    static const uint8_t in[] = {0x78, 0x01, 0x4b, 0x04};
    const struct wharf_genuine_state *state = wharf_genuine_state(strm);
    uint8_t out[8];

    strm->next_in = (Bytef *)(uintptr_t)in;
    strm->avail_in = sizeof(in);
    strm->next_out = out;
    strm->avail_out = sizeof(out);
    genuine.inflate(strm, Z_NO_FLUSH);
    return state->strm == strm && state->mode >= WHARF_ZMODE_LEN_BEGIN &&
           state->mode <= WHARF_ZMODE_LIT && state->last == 1 && state->wrap == 5 &&
           state->havedict == 0 && state->flags == 0 && state->dmax == 32768 && out[0] == 'a' &&
           state->check == strm->adler && state->total == strm->total_out && !state->head &&
           state->wbits == 15 && state->wsize == 32768 && state->whave == strm->total_out &&
           state->window && state->window[0] == 'a' &&
           state->bits == ((unsigned)strm->data_type & 31) && state->hold < 256 &&
           state->lenbits == 9 && state->distbits == 5;
}

/* A dynamic header's first bytes. */
static bool header_is_known(z_streamp strm)
{
    static const uint32_t header = 5 | 3 << 3 | 7 << 8 | 9 << 13 | 5 << 17;
    struct wharf_genuine_state *state = wharf_genuine_state(strm);
    uint8_t in[3] = {(uint8_t)header, (uint8_t)(header >> 8), (uint8_t)(header >> 16)}, out[1];

    if (genuine.inflateReset2(strm, -15) != Z_OK || state->sane != 1 || state->back != -1)
        return false;
    strm->next_in = in;
    strm->avail_in = sizeof(in);
    strm->next_out = out;
    strm->avail_out = sizeof(out);
    genuine.inflate(strm, Z_NO_FLUSH);
    if (state->mode != WHARF_ZMODE_LENLENS || state->ncode != 13 || state->nlen != 260 ||
        state->ndist != 8 || state->have != 2 || state->lens[16] != 5 || state->lens[17] != 0)
        return false;
    state->back = 5;
    state->was = 77;
    state->length = 7;
    state->mode = WHARF_ZMODE_MATCH;
    return genuine.inflateMark(strm) == (5L << 16) + 70;
}

static bool is_known;

static void try_layout(void)
{
    static const char *const versions[] = {"1.2.13", "1.3", "1.3.1"};
    const char *version = genuine.zlibVersion();
    z_stream strm = {0};

    for (unsigned i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
        is_known |= strcmp(version, versions[i]) == 0;
    if (!is_known)
        return;
    is_known = false;
    wharf_preload_inside = &strm;
    if (genuine.inflateInit2_(&strm, 15, ZLIB_VERSION, (int)sizeof(strm)) == Z_OK) {
        is_known = stream_is_known(&strm) && header_is_known(&strm);
        genuine.inflateEnd(&strm);
    }
    wharf_preload_inside = NULL;
    wharf_inflate_tables_fixed();
}

bool wharf_preload_knows_zlib(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    wharf_preload_genuine();
    pthread_once(&once, try_layout);
    return is_known;
}
