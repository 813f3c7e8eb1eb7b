/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_pack.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "clientlib/wharf.h"
#include "encoders/rle_values.h"
#include "tests/lib/test_pack.h"

enum { MAX_THREADS = 64 };

static void die(const char *what, const char *why)
{
    fprintf(stderr, "packing: %s: %s\n", what, why);
    exit(3);
}

static void *must_alloc(size_t nbytes)
{
    void *p = malloc(nbytes ? nbytes : 1);
    if (!p)
        die("memory", strerror(ENOMEM));
    return p;
}

/* zlib's window bits for the three framings of Deflate; 0 for other codecs. */
static int zlib_window_bits(uint32_t codec)
{
    switch (codec) {
    case WHARF_CODEC_DEFLATE:
        return -MAX_WBITS;
    case WHARF_CODEC_ZLIB:
        return MAX_WBITS;
    case WHARF_CODEC_GZIP:
        return MAX_WBITS + 16;
    default:
        return 0;
    }
}

static struct gpu_packed pack_zlib(const uint8_t *in, size_t nbytes, int window_bits)
{
    z_stream zlib = {0};
    if (deflateInit2(&zlib, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        die("zlib", "deflateInit2 failed");
    size_t bound = deflateBound(&zlib, nbytes) + 64;
    struct gpu_packed packed = {.data = must_alloc(bound)};
    zlib.next_in = (Bytef *)in;
    zlib.avail_in = (uInt)nbytes;
    zlib.next_out = packed.data;
    zlib.avail_out = (uInt)bound;
    if (deflate(&zlib, Z_FINISH) != Z_STREAM_END)
        die("zlib", "deflate failed");
    packed.nbytes = zlib.total_out;
    deflateEnd(&zlib);
    return packed;
}

/* As zlib above and nvCOMP's benchmark, if levels are of effort and there are as many; rans's are
 * bits of its probabilities. */
static int level_for(const struct wharf_codec_ops *codec)
{
    const struct wharf_encoder_row *row = codec->encoder_rows;

    return row->level_min <= 1 && row->level_max >= 9 ? 9 : WHARF_LEVEL_DEFAULT;
}

/* By the source's encoder. */
static struct gpu_packed pack_other(const struct gpu_source *source, const uint8_t *in,
                                    size_t nbytes)
{
    const struct wharf_encoder_options options = {
        .name = source->encoder,
        .level = source->level ? source->level : level_for(source->codec->ops),
        .parameter = source->parameter,
    };
    struct gpu_packed packed;
    packed.data = test_pack(source->codec_number, &options, in, nbytes, &packed.nbytes);
    return packed;
}

size_t gpu_chunk_nbytes(const struct gpu_source *source)
{
    return source->n_chunks == 1 ? source->last_nbytes : source->chunk_nbytes;
}

static void pack_one(struct gpu_source *source, size_t i)
{
    int window_bits = zlib_window_bits(source->codec_number);
    size_t nbytes = gpu_chunk_nbytes(source);
    const uint8_t *in = source->file + i * source->chunk_nbytes;

    source->packed[i] =
        window_bits ? pack_zlib(in, nbytes, window_bits) : pack_other(source, in, nbytes);
}

static void *pack_some(void *argument)
{
    struct gpu_source *source = argument;
    size_t i;

    while ((i = atomic_fetch_add(&source->next, 1)) < source->n_chunks)
        pack_one(source, i);
    return NULL;
}

static bool has_encoder(const struct wharf_codec_ops *codec, const char *name)
{
    for (const struct wharf_encoder_row *row = codec->encoder_rows; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return true;
    return false;
}

void gpu_source_choose(struct gpu_source *source, const char *name)
{
    const char *type = strchr(name, ':');
    char codec_name[32];

    snprintf(codec_name, sizeof(codec_name), "%.*s", (int)strcspn(name, ":"), name);
    int codec = wharf_codec_from_name(codec_name);
    if (codec < 0)
        die(name, "no such codec");
    source->codec_number = (uint32_t)codec;
    source->codec = wharf_codec_find(source->codec_number);
    source->encoder = type && has_encoder(source->codec->ops, type + 1) ? type + 1 : NULL;
    int parameter = type && !source->encoder ? wharf_rle_type_from_name(type + 1) : 0;
    source->parameter = (uint32_t)parameter;
    if (parameter < 0 || !wharf_codec_unit_nbytes(source->codec->ops, source->parameter))
        die(name, "no such type");
}

void gpu_pack(struct gpu_source *source, size_t file_nbytes, size_t chunk, size_t n_wanted)
{
    pthread_t threads[MAX_THREADS];
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int n_threads = n_cpus < 1 ? 1 : n_cpus > MAX_THREADS ? MAX_THREADS : (int)n_cpus;

    source->chunk_nbytes = chunk;
    source->n_chunks = file_nbytes / chunk > 1 ? file_nbytes / chunk : 1;
    source->n_chunks = source->n_chunks < n_wanted ? source->n_chunks : n_wanted;
    source->last_nbytes = file_nbytes < chunk ? file_nbytes : chunk;
    source->packed = must_alloc(source->n_chunks * sizeof(*source->packed));
    /* One alone first: if there is no such encoder, a single thread ends the program. */
    pack_one(source, 0);
    atomic_store(&source->next, 1);
    for (int t = 0; t < n_threads; t++)
        if (pthread_create(&threads[t], NULL, pack_some, source) != 0)
            die("pthread_create", strerror(errno));
    for (int t = 0; t < n_threads; t++)
        pthread_join(threads[t], NULL);
}

void gpu_source_free(struct gpu_source *source)
{
    for (size_t i = 0; i < source->n_chunks; i++)
        free(source->packed[i].data);
    free(source->packed);
}
