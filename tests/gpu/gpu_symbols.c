/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_symbols.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_image.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"

#define LEAST_SCALE 0.11
/* So many scales to both sides have a slot. */
#define REACH 5.0
#define SPLIT_NSYMBOLS 8192
/* Different chunks: repeated, they are not what a cache holds. */
#define MAX_DIFFERENT 256

static void die(const char *what, const char *why)
{
    fprintf(stderr, "symbols: %s: %s\n", what, why);
    exit(3);
}

static void *must_alloc(size_t nbytes)
{
    void *p = calloc(1, nbytes ? nbytes : 1);
    if (!p)
        die("memory", strerror(ENOMEM));
    return p;
}

static double scale_of(const struct gpu_symbols *symbols, uint32_t distribution)
{
    double most = ldexp(1, (int)symbols->n_bits - 8);
    double step = (double)distribution / (symbols->n_distributions - 1);

    return symbols->n_distributions == 1 ? most / 4 : LEAST_SCALE * pow(most / LEAST_SCALE, step);
}

/* The symbol that stands for 0: as many below it as above. */
static int middle_of(const struct gpu_symbols *symbols)
{
    return (int)(REACH * scale_of(symbols, symbols->n_distributions - 1)) + 1;
}

static uint32_t *make_frequencies(const struct gpu_symbols *symbols)
{
    size_t alphabet = symbols->alphabet;
    uint32_t *frequencies = must_alloc(alphabet * symbols->n_distributions * sizeof(uint32_t));
    uint64_t *counts = must_alloc(alphabet * sizeof(uint64_t));
    int middle = middle_of(symbols);

    for (uint32_t d = 0; d < symbols->n_distributions; d++) {
        double per = 1 / (scale_of(symbols, d) * sqrt(2));
        for (int s = 0; s < (int)alphabet; s++) {
            double above = erf((s - middle + 0.5) * per), below = erf((s - middle - 0.5) * per);
            bool is_near = abs(s - middle) <= REACH * scale_of(symbols, d) + 1;
            counts[s] = is_near ? 1 + (uint64_t)ldexp(above - below, 40) : 0;
        }
        if (wharf_rans_normalise(counts, symbols->alphabet, symbols->n_bits,
                                 frequencies + d * alphabet) < 0)
            die("model", "cannot be made");
    }
    free(counts);
    return frequencies;
}

/* By Box and Muller. */
static double normal(struct test_random *random)
{
    double u = (double)(test_random_next(random) >> 11) + 1, v = (double)test_random_next(random);

    return sqrt(-2 * log(ldexp(u, -53))) * cos(2 * M_PI * ldexp(v, -64));
}

static void fill(const struct gpu_symbols *symbols, struct test_random *random, uint8_t *plain,
                 uint8_t *indexes, size_t n)
{
    double scales[WHARF_RANS_MAX_DISTRIBUTIONS];

    for (uint32_t d = 0; d < symbols->n_distributions; d++)
        scales[d] = scale_of(symbols, d);
    for (size_t i = 0; i < n; i++) {
        uint32_t d = (uint32_t)test_random_below(random, symbols->n_distributions);
        double most = floor(REACH * scales[d]) + 1, x = rint(scales[d] * normal(random));
        int symbol = middle_of(symbols) + (int)fmax(-most, fmin(x, most));
        plain[2 * i] = (uint8_t)symbol;
        plain[2 * i + 1] = (uint8_t)(symbol >> 8);
        indexes[i] = (uint8_t)d;
    }
}

static struct gpu_packed pack(const struct wharf_rans_job *job)
{
    size_t bound = wharf_rans_encode_bound(job);
    struct gpu_packed packed = {.data = must_alloc(bound)};

    if (wharf_rans_encode(job, packed.data, bound, &packed.nbytes) < 0)
        die("encoder", "failed");
    return packed;
}

static void make_image(struct gpu_symbols *symbols, const struct wharf_rans_job *job)
{
    size_t nbytes = wharf_rans_model_write(&job->shape, job->frequencies, NULL, 0);
    uint8_t *model = must_alloc(nbytes);

    wharf_rans_model_write(&job->shape, job->frequencies, model, nbytes);
    symbols->image = test_rans_image(model, nbytes, &symbols->image_nbytes);
    free(model);
}

void gpu_symbols_pack(struct gpu_symbols *symbols, struct gpu_source *source, size_t chunk,
                      size_t n_wanted)
{
    struct test_random random = {1};
    size_t n = chunk / 2;
    uint8_t *indexes = must_alloc(n);

    symbols->alphabet = 2 * (uint32_t)middle_of(symbols) + 1;
    snprintf(symbols->name, sizeof(symbols->name), "normal_%u", symbols->n_distributions);
    source->chunk_nbytes = source->last_nbytes = chunk;
    source->n_chunks = n_wanted < MAX_DIFFERENT ? n_wanted : MAX_DIFFERENT;
    source->packed = must_alloc(source->n_chunks * sizeof(*source->packed));
    source->file = symbols->plain = must_alloc(source->n_chunks * chunk);
    uint32_t *frequencies = make_frequencies(symbols);
    for (size_t i = 0; i < source->n_chunks; i++) {
        struct wharf_rans_job job = {
            .shape = {symbols->n_bits, 2, symbols->alphabet, symbols->n_distributions},
            .frequencies = frequencies,
            .symbols = symbols->plain + i * chunk,
            .indexes = symbols->n_distributions > 1 ? indexes : NULL,
            .n_symbols = (uint32_t)n,
            .leaves_model_out = symbols->is_registered,
            .max_splits = n / SPLIT_NSYMBOLS ? (uint32_t)(n / SPLIT_NSYMBOLS) : 1,
        };
        fill(symbols, &random, symbols->plain + i * chunk, indexes, n);
        source->packed[i] = pack(&job);
        if (i == 0 && symbols->is_registered)
            make_image(symbols, &job);
    }
    free(frequencies);
    free(indexes);
}

void gpu_symbols_free(struct gpu_symbols *symbols)
{
    free(symbols->plain);
    free(symbols->image);
    symbols->plain = NULL;
    symbols->image = NULL;
}
