/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_gzip.c: packs by threads, of which each has every so-manieth piece. */
#include "tests/gpu/gpu_gzip.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "encoders/crc32_join.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"

enum { N_THREADS = 16, WINDOW = 32 << 10 };

/* Pieces of plain that threads pack, each to a place of its own. */
struct packing {
    const uint8_t *plain;
    uint8_t *out;
    size_t nbytes, piece_nbytes, room, n_pieces;
    size_t *sizes;
    uint32_t *crcs;
    int level, strategy;
};

struct packer {
    struct packing *packing;
    unsigned first;
};

static void pack_piece(struct packing *p, size_t i)
{
    size_t begin = i * p->piece_nbytes;
    size_t n = p->nbytes - begin < p->piece_nbytes ? p->nbytes - begin : p->piece_nbytes;
    bool is_last = i + 1 == p->n_pieces;
    z_stream stream = {0};

    if (deflateInit2(&stream, p->level, Z_DEFLATED, -15, 8, p->strategy) != Z_OK)
        bench_die("deflateInit2");
    if (begin >= WINDOW)
        deflateSetDictionary(&stream, p->plain + begin - WINDOW, WINDOW);
    stream.next_in = (Bytef *)(uintptr_t)(p->plain + begin);
    stream.avail_in = (uInt)n;
    stream.next_out = p->out + i * p->room;
    stream.avail_out = (uInt)p->room;
    if (deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH) != (is_last ? Z_STREAM_END : Z_OK))
        bench_die("deflate");
    p->sizes[i] = stream.total_out;
    p->crcs[i] = (uint32_t)crc32(0, p->plain + begin, (uInt)n);
    deflateEnd(&stream);
}

static void *pack_pieces(void *argument)
{
    const struct packer *packer = argument;

    for (size_t i = packer->first; i < packer->packing->n_pieces; i += N_THREADS)
        pack_piece(packer->packing, i);
    return NULL;
}

uint8_t *gpu_gzip_pack(const uint8_t *plain, size_t nbytes, const char *level, size_t piece_nbytes,
                       size_t *ret_nbytes)
{
    bool is_fixed = strcmp(level, "fixed") == 0;
    size_t n = (nbytes + piece_nbytes - 1) / piece_nbytes, at = 10;
    struct packing p = {.plain = plain,
                        .nbytes = nbytes,
                        .piece_nbytes = piece_nbytes,
                        .room = piece_nbytes + piece_nbytes / 8 + 4096,
                        .n_pieces = n,
                        .level = is_fixed ? 6 : atoi(level),
                        .strategy = is_fixed ? Z_FIXED : Z_DEFAULT_STRATEGY};
    struct packer packers[N_THREADS];
    pthread_t threads[N_THREADS];
    uint32_t crc = 0;

    p.out = bench_check(malloc(n * p.room));
    p.sizes = bench_check(calloc(n, sizeof(*p.sizes)));
    p.crcs = bench_check(calloc(n, sizeof(*p.crcs)));
    for (unsigned t = 0; t < N_THREADS; t++) {
        packers[t] = (struct packer){&p, t};
        if (pthread_create(&threads[t], NULL, pack_pieces, &packers[t]) != 0)
            bench_die("pthread_create");
    }
    for (unsigned t = 0; t < N_THREADS; t++)
        pthread_join(threads[t], NULL);
    uint8_t *stream = bench_check(malloc(n * p.room + 18));
    memcpy(stream, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
    for (size_t i = 0; i < n; i++) {
        size_t left = nbytes - i * piece_nbytes;
        memcpy(stream + at, p.out + i * p.room, p.sizes[i]);
        at += p.sizes[i];
        crc = wharf_crc32_join(crc, p.crcs[i], left < piece_nbytes ? left : piece_nbytes);
    }
    const uint32_t trailer[] = {crc, (uint32_t)nbytes};
    memcpy(stream + at, trailer, sizeof(trailer));
    free(p.out);
    free(p.sizes);
    free(p.crcs);
    *ret_nbytes = at + sizeof(trailer);
    return stream;
}

static uint8_t *read_sample(const char *path, size_t *ret_nbytes)
{
    FILE *file = bench_check(fopen(path, "rb"));

    fseek(file, 0, SEEK_END);
    *ret_nbytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = bench_check(malloc(*ret_nbytes));
    if (fread(bytes, 1, *ret_nbytes, file) != *ret_nbytes)
        bench_die(path);
    fclose(file);
    return bytes;
}

uint8_t *gpu_gzip_plain(const char *sample_name, size_t nbytes)
{
    enum { STRETCH = 4096, SAMPLE = 8 << 20 };
    const struct test_data_kind *kind = test_data_find(sample_name);
    size_t n = SAMPLE;
    uint8_t *sample = kind ? test_data_new(kind, 1, n) : read_sample(sample_name, &n);
    uint8_t *plain = bench_check(malloc(nbytes));
    struct test_random random = {1};

    for (size_t at = 0; at < nbytes;) {
        size_t length = 1 + test_random_below(&random, STRETCH);
        length = length < n ? length : n;
        length = length < nbytes - at ? length : nbytes - at;
        memcpy(plain + at, sample + test_random_below(&random, n - length + 1), length);
        at += length;
    }
    free(sample);
    return plain;
}
