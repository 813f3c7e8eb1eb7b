/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_calls.c: random calls of libzstd's and liblz4's one-shot decompression, to the genuine
 * libraries and to libwharf-preload, must give the same: result and output.
 *
 * Streams are good, damaged and cut off, of one frame and of several, with rooms that are right,
 * too small and too large.  The second half of the calls of libzstd use contexts with dictionaries,
 * prefixes and parameters.  A failure names its seed.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include <dlfcn.h>
#include <inttypes.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "tests/preload/random_streams.h"

enum { MAX_PACKED = 2 * MAX_RAW + 4096, ROOM = 3 * MAX_RAW + 64 };

#define CALLS(X)                                                                                   \
    X(size_t, ZSTD_decompress, (void *, size_t, const void *, size_t))                             \
    X(size_t, ZSTD_decompressDCtx, (ZSTD_DCtx *, void *, size_t, const void *, size_t))            \
    X(size_t, ZSTD_DCtx_loadDictionary, (ZSTD_DCtx *, const void *, size_t))                       \
    X(size_t, ZSTD_DCtx_refPrefix, (ZSTD_DCtx *, const void *, size_t))                            \
    X(size_t, ZSTD_DCtx_setParameter, (ZSTD_DCtx *, ZSTD_dParameter, int))                         \
    X(int, LZ4_decompress_safe, (const char *, char *, int, int))

struct functions {
#define X(type, name, parameters) type(*name) parameters;
    CALLS(X)
#undef X
};

static struct functions sides[2]; /* the genuine ones and ours */
static ZSTD_DCtx *contexts[2];
static ZSTD_CCtx *packer;
static uint8_t raw[MAX_RAW], packed[MAX_PACKED + 16], out[2][ROOM];
static uint64_t n_good[3], n_all[3], n_ready;

static void load(struct functions *functions, void *library, void *lz4)
{
    void *found;
#define X(type, name, parameters)                                                                  \
    found = dlsym(strncmp(#name, "LZ4", 3) == 0 ? lz4 : library, #name);                           \
    if (!found) {                                                                                  \
        printf("Bail out! %s is missing\n", #name);                                                \
        exit(1);                                                                                   \
    }                                                                                              \
    memcpy(&functions->name, &found, sizeof(found));
    CALLS(X)
#undef X
}

static size_t draw_avail(size_t raw_nbytes)
{
    return draw(2) ? raw_nbytes : draw((uint32_t)(2 * raw_nbytes + 2));
}

static bool check(const char *what, uint64_t seed, size_t avail, int64_t one, int64_t other)
{
    const size_t made = one > 0 && (uint64_t)one <= avail ? (size_t)one : 0;

    if (one != other || memcmp(out[0], out[1], made) != 0 || out[1][avail] != 0) {
        printf("Bail out! seed %" PRIu64 ": %s gave %" PRId64 " and %" PRId64 "\n", seed, what, one,
               other);
        return false;
    }
    memset(out[0], 0, avail);
    memset(out[1], 0, avail);
    return true;
}

/* ---- liblz4 ---- */

static bool run_lz4(uint64_t seed)
{
    const size_t raw_nbytes = make_raw(raw);
    int nbytes, results[2];

    if (draw(2))
        nbytes = LZ4_compress_default((char *)raw, (char *)packed, (int)raw_nbytes, MAX_PACKED);
    else
        nbytes = LZ4_compress_HC((char *)raw, (char *)packed, (int)raw_nbytes, MAX_PACKED, 9);
    nbytes = (int)damage(packed, (size_t)nbytes);
    const size_t avail = draw_avail(raw_nbytes);
    for (int l = 0; l < 2; l++)
        results[l] =
            sides[l].LZ4_decompress_safe((char *)packed, (char *)out[l], nbytes, (int)avail);
    n_all[0]++;
    n_good[0] += results[0] >= 0;
    if (!check("LZ4_decompress_safe", seed, avail, results[0], results[1]))
        return false;
    if (results[0] < 0)
        return true;
    /* In place: the block at the end of the room. */
    const size_t room = raw_nbytes + raw_nbytes / 256 + 64 + 16;
    for (int l = 0; l < 2; l++) {
        char *at = (char *)out[l] + room - nbytes;
        memcpy(at, packed, (size_t)nbytes);
        results[l] = sides[l].LZ4_decompress_safe(at, (char *)out[l], nbytes, (int)raw_nbytes);
        memset(out[l] + raw_nbytes, 0, ROOM - raw_nbytes);
    }
    return check("LZ4_decompress_safe in place", seed, raw_nbytes, results[0], results[1]);
}

/* ---- libzstd ---- */

static size_t pack_frame(uint8_t *to, size_t room, const uint8_t *from, size_t nbytes, bool is_odd)
{
    static const int levels[] = {-5, 1, 3, 9, 19};

    ZSTD_CCtx_reset(packer, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(packer, ZSTD_c_compressionLevel, levels[draw(nbytes < 3000 ? 5 : 4)]);
    ZSTD_CCtx_setParameter(packer, ZSTD_c_checksumFlag, (int)draw(2));
    ZSTD_CCtx_setParameter(packer, ZSTD_c_contentSizeFlag, (int)draw(2));
    if (draw(2))
        ZSTD_CCtx_setParameter(packer, ZSTD_c_windowLog, 10 + (int)draw(10));
    if (is_odd && draw(8) == 0)
        ZSTD_CCtx_setParameter(packer, ZSTD_c_format, ZSTD_f_zstd1_magicless);
    if (is_odd && draw(2))
        ZSTD_CCtx_loadDictionary(packer, raw, 1000);
    return ZSTD_compress2(packer, to, room, from, nbytes);
}

static size_t pack_frames(size_t raw_nbytes, bool is_odd)
{
    size_t at = 0, nbytes = 0;

    do {
        size_t part = draw(3) ? raw_nbytes - at : draw((uint32_t)(raw_nbytes - at + 1));
        if (draw(8) == 0) {
            static const uint8_t skippable[] = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
            memcpy(packed + nbytes, skippable, sizeof(skippable));
            nbytes += sizeof(skippable);
        }
        size_t made = pack_frame(packed + nbytes, MAX_PACKED - nbytes, raw + at, part, is_odd);
        if (ZSTD_isError(made))
            return nbytes;
        nbytes += made;
        at += part;
    } while (at < raw_nbytes);
    return nbytes;
}

/* The same to both contexts. */
static void make_odd(void)
{
    const int kind = (int)draw(5), value = (int)draw(2);

    for (int l = 0; l < 2; l++) {
        ZSTD_DCtx_reset(contexts[l], ZSTD_reset_session_and_parameters);
        if (kind == 0)
            sides[l].ZSTD_DCtx_loadDictionary(contexts[l], raw, 1000);
        else if (kind == 1)
            sides[l].ZSTD_DCtx_refPrefix(contexts[l], raw, 1000);
        else if (kind == 2)
            sides[l].ZSTD_DCtx_setParameter(contexts[l], ZSTD_d_format, value);
        else if (kind == 3)
            sides[l].ZSTD_DCtx_setParameter(contexts[l], ZSTD_d_forceIgnoreChecksum, value);
    }
}

/* Of a stream: what it gives, or the error. */
static size_t stream(ZSTD_DCtx *context, uint8_t *to, const uint8_t *in, size_t nbytes)
{
    ZSTD_inBuffer input = {in, nbytes, 0};
    ZSTD_outBuffer output = {to, MAX_RAW, 0};

    for (int n_idle = 0; input.pos < nbytes && n_idle < 2;) {
        const size_t before = input.pos + output.pos;
        const size_t result = ZSTD_decompressStream(context, &output, &input);
        if (ZSTD_isError(result))
            return result;
        n_idle = input.pos + output.pos == before ? n_idle + 1 : 0;
    }
    return output.pos;
}

/* A part of a frame, which is not gone on with; then one call; then a frame from its beginning.
 * Whether the call makes the context ready for that depends on the part: where libzstd's does, ours
 * must. */
static bool run_after_part(uint64_t seed)
{
    static uint8_t other[MAX_PACKED];
    const size_t raw_nbytes = make_raw(raw), other_raw_nbytes = draw((uint32_t)raw_nbytes + 1);
    const size_t nbytes = pack_frame(packed, MAX_PACKED, raw, raw_nbytes, false);
    const size_t other_nbytes = pack_frame(other, MAX_PACKED, raw, other_raw_nbytes, false);
    const size_t part_nbytes = draw((uint32_t)other_nbytes + 1);
    size_t results[2];
    bool is_ready[2];

    for (int l = 0; l < 2; l++) {
        ZSTD_DCtx_reset(contexts[l], ZSTD_reset_session_and_parameters);
        stream(contexts[l], out[l], other, part_nbytes);
        memset(out[l], 0, MAX_RAW);
        results[l] = sides[l].ZSTD_decompressDCtx(contexts[l], out[l], raw_nbytes, packed, nbytes);
    }
    if (!check("ZSTD_decompressDCtx after a part", seed, raw_nbytes, (int64_t)results[0],
               (int64_t)results[1]))
        return false;
    for (int l = 0; l < 2; l++) {
        results[l] = stream(contexts[l], out[l], other, other_nbytes);
        is_ready[l] = results[l] == other_raw_nbytes && !memcmp(out[l], raw, other_raw_nbytes);
        memset(out[l], 0, MAX_RAW);
    }
    n_ready += is_ready[0];
    if (is_ready[0] && !is_ready[1])
        printf("Bail out! seed %" PRIu64 ": a stream after ZSTD_decompressDCtx\n", seed);
    return is_ready[1] || !is_ready[0];
}

static bool run_zstd(uint64_t seed, bool is_odd)
{
    if (draw(8) == 0 && !run_after_part(seed))
        return false;

    const size_t raw_nbytes = make_raw(raw);
    const size_t nbytes = damage(packed, pack_frames(raw_nbytes, is_odd));
    const size_t avail = draw_avail(raw_nbytes);
    const bool has_context = draw(2);
    size_t results[2];

    if (is_odd && draw(2))
        make_odd();
    for (int l = 0; l < 2; l++)
        results[l] = has_context
                         ? sides[l].ZSTD_decompressDCtx(contexts[l], out[l], avail, packed, nbytes)
                         : sides[l].ZSTD_decompress(out[l], avail, packed, nbytes);
    n_all[1 + is_odd]++;
    n_good[1 + is_odd] += !ZSTD_isError(results[0]);
    return check(has_context ? "ZSTD_decompressDCtx" : "ZSTD_decompress", seed, avail,
                 (int64_t)results[0], (int64_t)results[1]);
}

int main(int argc, char **argv)
{
    const uint64_t count = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
    const uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    void *lz4 = dlopen("liblz4.so.1", RTLD_NOW | RTLD_LOCAL);
    /* Which leaves both libraries alone by default. */
    setenv("WHARF_PRELOAD_SKIP", "", 1);
    void *ours = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (argc < 3 || !zstd || !lz4 || !ours) {
        fprintf(stderr, "usage: block_calls COUNT LIBWHARF-PRELOAD [SEED]\n%s\n",
                argc < 3 ? "" : dlerror());
        return 2;
    }
    load(&sides[0], zstd, lz4);
    load(&sides[1], ours, ours);
    packer = ZSTD_createCCtx();
    for (int l = 0; l < 2; l++)
        contexts[l] = ZSTD_createDCtx();
    printf("1..1\n");
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t seed = first + i;
        random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        if (!(i % 3 == 0 ? run_lz4(seed) : run_zstd(seed, i >= count / 2)))
            return 1;
    }
    for (int i = 0; i < 3; i++)
        printf("# %" PRIu64 " of %" PRIu64 " were good\n", n_good[i], n_all[i]);
    printf("# %" PRIu64 " streams after a part of another one\n", n_ready);
    printf("ok 1 - block_calls\n");
    ZSTD_freeCCtx(packer);
    for (int l = 0; l < 2; l++)
        ZSTD_freeDCtx(contexts[l]);
    return 0;
}
