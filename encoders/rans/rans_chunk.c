/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec's encoder: a chunk's own statistics become its model.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_statistics.h"

/*
 * A split is some 85 bytes, and decoders pass its window with more care: one for each 32 Ki
 * symbols, a quarter of a percent.  But four decoders side by side are what a processor or a warp
 * is busy with, so the first four may be of 16 Ki symbols.
 */
#define SPLIT_NSYMBOLS 32768
#define FIRST_SPLIT_NSYMBOLS 16384
#define N_FIRST_SPLITS 4

/* Where many symbols occur, most have few slots. */
#define N_FEW 256

struct wharf_encoder {
    uint32_t n_bits;
    uint32_t symbol_nbytes;
    uint32_t max_alphabet;
    struct wharf_rans_statistics statistics;
    /* By place in the statistics: those of the chunk, and others to compare them with. */
    uint32_t *frequencies;
    uint32_t *other;
    struct wharf_rans_code *codes; /* by symbol */
    uint8_t *packed;               /* the model */
    double log2s[N_FEW];           /* of 1 and more */
    uint32_t reciprocals[N_FEW];
};

const struct wharf_encoder_row wharf_rans_encoder_rows[] = {
    {.name = "recoil",
     .level_min = WHARF_RANS_MIN_NBITS,
     .level_max = WHARF_RANS_MAX_NBITS,
     .level_default = 11},
    {.name = NULL},
};

static void rans_free(struct wharf_encoder *encoder)
{
    if (!encoder)
        return;
    wharf_rans_statistics_deinit(&encoder->statistics);
    free(encoder->frequencies);
    free(encoder->other);
    free(encoder->codes);
    free(encoder->packed);
    free(encoder);
}

static int take_memory(struct wharf_encoder *encoder)
{
    size_t n = encoder->max_alphabet;

    encoder->frequencies = malloc(n * sizeof(*encoder->frequencies));
    encoder->other = malloc(n * sizeof(*encoder->other));
    encoder->codes = calloc(n, sizeof(*encoder->codes));
    encoder->packed = malloc(wharf_rans_packed_bound(n) + WHARF_RANS_SOME_MARGIN_NBYTES);
    if (!encoder->frequencies || !encoder->other || !encoder->codes || !encoder->packed)
        return -ENOMEM;
    return wharf_rans_statistics_init(&encoder->statistics, encoder->symbol_nbytes);
}

static int rans_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    struct wharf_encoder *encoder;
    int level;
    int rc = wharf_encoder_choose(&wharf_rans_codec, options, &row, &level);

    if (rc < 0)
        return rc;
    encoder = calloc(1, sizeof(*encoder));
    if (!encoder)
        return -ENOMEM;
    encoder->n_bits = (uint32_t)level;
    encoder->symbol_nbytes = wharf_rans_unit_nbytes(options ? options->parameter : 0);
    encoder->max_alphabet = encoder->symbol_nbytes == 1 ? 256 : WHARF_RANS_MAX_ALPHABET;
    rc = take_memory(encoder);
    if (rc < 0) {
        rans_free(encoder);
        return rc;
    }
    for (uint32_t f = 1; f < N_FEW; f++) {
        encoder->log2s[f] = log2((double)f);
        encoder->reciprocals[f] = wharf_rans_reciprocal(f);
    }
    *ret_encoder = encoder;
    return 0;
}

static uint32_t count_splits(uint32_t n_symbols)
{
    uint32_t n = n_symbols / FIRST_SPLIT_NSYMBOLS;

    if (n > N_FIRST_SPLITS)
        n = N_FIRST_SPLITS;
    if (n < n_symbols / SPLIT_NSYMBOLS)
        n = n_symbols / SPLIT_NSYMBOLS;
    return n > 1 ? n : 1;
}

static struct wharf_rans_job chunk_job(const struct wharf_encoder *encoder, const uint8_t *in,
                                       size_t in_nbytes)
{
    uint32_t n_symbols = (uint32_t)(in_nbytes / encoder->symbol_nbytes);

    return (struct wharf_rans_job){
        .shape = {.n_bits = encoder->n_bits,
                  .symbol_nbytes = encoder->symbol_nbytes,
                  .alphabet = encoder->max_alphabet,
                  .n_distributions = 1},
        .symbols = in,
        .n_symbols = n_symbols,
        .max_splits = count_splits(n_symbols),
    };
}

static size_t rans_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    struct wharf_rans_job job = chunk_job(encoder, NULL, in_nbytes);

    return wharf_rans_encode_bound(&job);
}

static struct wharf_rans_some some_of(const struct wharf_encoder *encoder,
                                      const uint32_t *frequencies)
{
    return (struct wharf_rans_some){encoder->statistics.symbols, frequencies,
                                    encoder->statistics.n};
}

/* Bits that a chunk takes with these frequencies, model and symbols. */
static double coded_nbits(const struct wharf_encoder *encoder, uint32_t n_bits,
                          const uint32_t *frequencies)
{
    const struct wharf_rans_some some = some_of(encoder, frequencies);
    double nbits = (double)wharf_rans_some_nbits(&some);

    for (uint32_t i = 0; i < some.n; i++) {
        uint32_t f = frequencies[i];

        nbits += (double)encoder->statistics.counts[i] *
                 (n_bits - (f < N_FEW ? encoder->log2s[f] : log2((double)f)));
    }
    return nbits;
}

static int normalise(const struct wharf_encoder *encoder, uint32_t n_bits, uint32_t *frequencies)
{
    return wharf_rans_normalise_some(encoder->statistics.counts, encoder->statistics.n, n_bits,
                                     frequencies);
}

/*
 * The most bits that can pay.  With as many slots as symbols, frequencies differ from counts by the
 * rounding of a half at most, which costs less than 0.2 bits for each symbol that occurs; to have
 * them finer costs each of them a bit of the model.
 */
static uint32_t most_bits(const struct wharf_encoder *encoder, uint32_t n_symbols)
{
    uint32_t n_bits = WHARF_RANS_MIN_NBITS;

    while (n_bits < encoder->n_bits && n_symbols > 1u << n_bits)
        n_bits++;
    while (encoder->statistics.n > 1u << n_bits)
        n_bits++;
    return n_bits;
}

/* Whether all symbols that occur can have slots. */
static bool can_have(const struct wharf_encoder *encoder, uint32_t n_bits)
{
    return n_bits >= WHARF_RANS_MIN_NBITS && encoder->statistics.n <= 1u << n_bits;
}

/* As many bits as the level says, or more if the symbols are more than there would be slots; then
 * fewer as long as that makes the chunk smaller: finer frequencies take room too. */
static int choose_frequencies(struct wharf_encoder *encoder, struct wharf_rans_job *job)
{
    uint32_t n_bits = most_bits(encoder, job->n_symbols);
    double nbits = INFINITY;
    int rc;

    job->shape.n_bits = n_bits;
    do {
        uint32_t *other = encoder->other;
        double other_nbits;

        rc = normalise(encoder, n_bits, other);
        if (rc < 0)
            return rc;
        /* What is compared with nothing need not be known. */
        other_nbits = nbits < INFINITY || can_have(encoder, n_bits - 1)
                          ? coded_nbits(encoder, n_bits, other)
                          : 0;
        if (other_nbits >= nbits)
            break;
        encoder->other = encoder->frequencies;
        encoder->frequencies = other;
        job->shape.n_bits = n_bits;
        nbits = other_nbits;
    } while (can_have(encoder, --n_bits));
    return 0;
}

static struct wharf_rans_ready_model make_model(struct wharf_encoder *encoder)
{
    const struct wharf_rans_some some = some_of(encoder, encoder->frequencies);
    size_t packed_nbytes = wharf_rans_some_pack(&some, encoder->packed);
    uint32_t first = 0;

    for (uint32_t i = 0; i < some.n; i++) {
        uint32_t f = some.frequencies[i];

        encoder->codes[some.symbols[i]] = wharf_rans_code_of(
            f, f < N_FEW ? encoder->reciprocals[f] : wharf_rans_reciprocal(f), first);
        first += f;
    }
    return (struct wharf_rans_ready_model){encoder->packed, packed_nbytes, encoder->codes};
}

static int rans_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    struct wharf_rans_ready_model model;
    struct wharf_rans_job job;
    int rc;

    if (in_nbytes % encoder->symbol_nbytes != 0 ||
        in_nbytes / encoder->symbol_nbytes > WHARF_RANS_MAX_SYMBOLS)
        return -EILSEQ;
    job = chunk_job(encoder, in, in_nbytes);
    wharf_rans_statistics_take(&encoder->statistics, in, job.n_symbols);
    rc = choose_frequencies(encoder, &job);
    if (rc < 0)
        return rc;
    job.shape.alphabet = encoder->statistics.symbols[encoder->statistics.n - 1] + 1;
    model = make_model(encoder);
    return wharf_rans_encode_ready(&job, &model, out, out_avail, ret_out_nbytes);
}

const struct wharf_encoder_ops wharf_rans_encoder = {
    .new = rans_new,
    .bound = rans_bound,
    .encode = rans_encode,
    .free = rans_free,
};
