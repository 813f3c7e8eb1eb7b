/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdeflate_calls.c: random calls of libdeflate's decompression, to a genuine libdeflate and to
 * libwharf-preload, must give the same: result, counts and output.
 *
 * Streams of all three formats, good, damaged and cut off, with rooms that are right, too small and
 * too large, and with and without places for the counts.  A failure names its seed.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/preload/random_streams.h"

enum { MAX_PACKED = MAX_RAW + 1000, N_FORMATS = 3 };

typedef enum libdeflate_result plain_call(struct libdeflate_decompressor *, const void *, size_t,
                                          void *, size_t, size_t *);
typedef enum libdeflate_result ex_call(struct libdeflate_decompressor *, const void *, size_t,
                                       void *, size_t, size_t *, size_t *);
typedef size_t pack_call(struct libdeflate_compressor *, const void *, size_t, void *, size_t);

static const char *const formats[N_FORMATS] = {"deflate", "zlib", "gzip"};
static plain_call *plain[2][N_FORMATS]; /* the genuine one's and ours */
static ex_call *ex[2][N_FORMATS];
static pack_call *pack[N_FORMATS];
static void *find(void *library, const char *format, const char *pattern)
{
    char name[64];
    void *found;

    snprintf(name, sizeof(name), pattern, format);
    found = dlsym(library, name);
    if (!found) {
        printf("Bail out! %s is missing\n", name);
        exit(1);
    }
    return found;
}

static void find_all(void *genuine, void *ours)
{
    void *const libraries[2] = {genuine, ours};

    for (int f = 0; f < N_FORMATS; f++) {
        *(void **)&pack[f] = find(genuine, formats[f], "libdeflate_%s_compress");
        for (int l = 0; l < 2; l++) {
            *(void **)&plain[l][f] = find(libraries[l], formats[f], "libdeflate_%s_decompress");
            *(void **)&ex[l][f] = find(libraries[l], formats[f], "libdeflate_%s_decompress_ex");
        }
    }
}

struct answer {
    enum libdeflate_result result;
    size_t in_nbytes, out_nbytes;
};

static bool same(const struct answer *one, const struct answer *other)
{
    return one->result == other->result && one->in_nbytes == other->in_nbytes &&
           one->out_nbytes == other->out_nbytes;
}

static bool run_one(struct libdeflate_decompressor *d, struct libdeflate_compressor *const *levels,
                    uint64_t seed, uint64_t *n_good)
{
    static uint8_t raw[MAX_RAW], packed[MAX_PACKED + 16], out[2][2 * MAX_RAW + 64];
    int f;

    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    f = (int)draw(N_FORMATS);
    size_t raw_nbytes = make_raw(raw);
    size_t packed_nbytes = pack[f](levels[draw(3)], raw, raw_nbytes, packed, MAX_PACKED);
    size_t nbytes = damage(packed, packed_nbytes);
    size_t avail = draw(2) ? raw_nbytes : draw((uint32_t)(2 * raw_nbytes + 2));
    bool has_in = draw(2), has_out = draw(2), is_ex = draw(2);
    struct answer answers[2];

    for (int l = 0; l < 2; l++) {
        struct answer *a = &answers[l];
        size_t *ret_out = has_out ? &a->out_nbytes : NULL;

        *a = (struct answer){0, 77, 77};
        a->result = is_ex ? ex[l][f](d, packed, nbytes, out[l], avail,
                                     has_in ? &a->in_nbytes : NULL, ret_out)
                          : plain[l][f](d, packed, nbytes, out[l], avail, ret_out);
        if (out[l][avail]) {
            printf("Bail out! seed %" PRIu64 ": a byte behind the room was written\n", seed);
            return false;
        }
    }
    size_t made = answers[0].result             ? 0
                  : answers[0].out_nbytes != 77 ? answers[0].out_nbytes
                                                : (has_out ? 77 : avail);
    if (!same(&answers[0], &answers[1]) || memcmp(out[0], out[1], made) != 0) {
        printf("Bail out! seed %" PRIu64 ": %s gave %d, %zu, %zu and %d, %zu, %zu\n", seed,
               formats[f], answers[0].result, answers[0].in_nbytes, answers[0].out_nbytes,
               answers[1].result, answers[1].in_nbytes, answers[1].out_nbytes);
        return false;
    }
    memset(out[0], 0, avail);
    memset(out[1], 0, avail);
    *n_good += answers[0].result == LIBDEFLATE_SUCCESS;
    return true;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 2 ? strtoull(argv[1], NULL, 10) : 0, n_good = 0;
    void *genuine = dlopen("libdeflate.so.0", RTLD_NOW | RTLD_LOCAL);
    void *ours = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (argc < 3 || !genuine || !ours) {
        fprintf(stderr, "usage: libdeflate_calls COUNT LIBWHARF-PRELOAD [SEED]\n%s\n",
                argc < 3 ? "" : dlerror());
        return 2;
    }
    find_all(genuine, ours);
    struct libdeflate_compressor *levels[3] = {libdeflate_alloc_compressor(1),
                                               libdeflate_alloc_compressor(6),
                                               libdeflate_alloc_compressor(12)};
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;

    printf("1..1\n");
    for (uint64_t i = 0; i < count; i++)
        if (!run_one(d, levels, first + i, &n_good))
            return 1;
    printf("# %" PRIu64 " of %" PRIu64 " were good\nok 1 - libdeflate_calls\n", n_good, count);
    libdeflate_free_decompressor(d);
    for (int i = 0; i < 3; i++)
        libdeflate_free_compressor(levels[i]);
    return n_good == 0 || n_good == count;
}
