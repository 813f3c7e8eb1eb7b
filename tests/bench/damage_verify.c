/* SPDX-License-Identifier: Apache-2.0 */
/* damage_verify.c: compares a library's results with those of the codec's own library. */
#include <inttypes.h>
#include <lz4.h>
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "encoders/codec.h"
#include "tests/bench/damage.h"

/* What is right: whether the stream is good, and what it decodes to. */
struct truth {
    bool is_good;
    uint64_t out_nbytes, sum;
};

struct counts {
    uint64_t accepted, wrong, refused, refused_good, placed, lost, failed, unknown, good;
};

static bool decode_lz4(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t *out_nbytes)
{
    int n = LZ4_decompress_safe((const char *)in, (char *)out, (int)in_nbytes, (int)*out_nbytes);

    *out_nbytes = n < 0 ? 0 : (size_t)n;
    return n >= 0;
}

static bool decode_snappy(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t *out_nbytes)
{
    return snappy_uncompress((const char *)in, in_nbytes, (char *)out, out_nbytes) == SNAPPY_OK;
}

static bool decode_zstd(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t *out_nbytes)
{
    size_t n = ZSTD_decompress(out, *out_nbytes, in, in_nbytes);

    if (ZSTD_isError(n))
        return false;
    *out_nbytes = n;
    return true;
}

/* Of Deflate, zlib and gzip it is zlib. */
static bool decode_reference(const struct damage_corpus *corpus, uint64_t i, uint8_t *out,
                             size_t *out_nbytes)
{
    const struct wharf_codec_setting setting = {.parameter = corpus->parameter};
    struct wharf_outcome outcome;

    wharf_codec_find(corpus->codec)
        ->ops->decode_reference(damage_stream(corpus, i), corpus->chunks[i].in_nbytes, out,
                                *out_nbytes, &setting, &outcome);
    *out_nbytes = outcome.out_nbytes;
    return outcome.result == WHARF_OK;
}

static struct truth find_truth(const struct damage_corpus *corpus, uint64_t i, uint8_t *out)
{
    const uint8_t *in = damage_stream(corpus, i);
    size_t in_nbytes = corpus->chunks[i].in_nbytes;
    size_t out_nbytes = corpus->chunks[i].out_avail;
    struct truth truth = {0};

    switch (corpus->codec) {
    case WHARF_CODEC_LZ4:
        truth.is_good = decode_lz4(in, in_nbytes, out, &out_nbytes);
        break;
    case WHARF_CODEC_SNAPPY:
        truth.is_good = decode_snappy(in, in_nbytes, out, &out_nbytes);
        break;
    case WHARF_CODEC_ZSTD:
        truth.is_good = decode_zstd(in, in_nbytes, out, &out_nbytes);
        break;
    default:
        truth.is_good = decode_reference(corpus, i, out, &out_nbytes);
    }
    if (truth.is_good) {
        truth.out_nbytes = out_nbytes;
        truth.sum = damage_sum(out, out_nbytes);
    }
    return truth;
}

static void count(struct counts *counts, const struct damage_result *result,
                  const struct truth *truth)
{
    counts->good += truth->is_good;
    switch (result->state) {
    case DAMAGE_ACCEPTED:
        counts->accepted++;
        counts->wrong +=
            !truth->is_good || result->out_nbytes != truth->out_nbytes || result->sum != truth->sum;
        return;
    case DAMAGE_REFUSED:
        counts->refused++;
        counts->refused_good += truth->is_good;
        counts->placed += result->has_place != 0;
        return;
    case DAMAGE_LOST:
        counts->lost++;
        return;
    case DAMAGE_FAILED:
        counts->failed++;
        return;
    default:
        counts->unknown++;
    }
}

static void print(const char *path, const struct counts *counts)
{
    printf("{\"results\":\"%s\",\"good\":%" PRIu64 ",\"accepted\":%" PRIu64 ",\"wrong\":%" PRIu64
           ",\"refused\":%" PRIu64 ",\"refused_good\":%" PRIu64 ",\"placed\":%" PRIu64
           ",\"lost\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"unknown\":%" PRIu64 "}\n",
           path, counts->good, counts->accepted, counts->wrong, counts->refused,
           counts->refused_good, counts->placed, counts->lost, counts->failed, counts->unknown);
}

void damage_verify(const struct damage_corpus *corpus, char **results, int n_results)
{
    struct truth *truths = calloc(corpus->n_chunks, sizeof(*truths));
    size_t out_avail = 1;

    for (uint64_t i = 0; i < corpus->n_chunks; i++)
        if (corpus->chunks[i].out_avail > out_avail)
            out_avail = corpus->chunks[i].out_avail;
    uint8_t *out = malloc(out_avail);
    if (!truths || !out) {
        perror("damage: memory");
        exit(DAMAGE_CANNOT);
    }
    for (uint64_t i = 0; i < corpus->n_chunks; i++)
        truths[i] = find_truth(corpus, i, out);
    for (int k = 0; k < n_results; k++) {
        const struct damage_results *said = damage_map(results[k], 0);
        struct counts counts = {0};

        for (uint64_t i = 0; i < corpus->n_chunks; i++)
            count(&counts, &said->results[i], &truths[i]);
        print(results[k], &counts);
    }
    free(out);
    free(truths);
}
