/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec's encoder: a chunk's own statistics become its model.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"

/*
 * A split is some 85 bytes, and decoders pass its window with more care: one for each 32 Ki
 * symbols, a quarter of a percent.  But four decoders side by side are what a processor or a warp
 * is busy with, so the first four may be of 16 Ki symbols.
 */
#define SPLIT_NSYMBOLS 32768
#define FIRST_SPLIT_NSYMBOLS 16384
#define N_FIRST_SPLITS 4

/* Where many symbols occur, most have few slots. */
#define N_LOG2S 256

struct wharf_encoder {
    uint32_t n_bits;
    uint32_t symbol_nbytes;
    uint32_t max_alphabet;
    uint64_t *counts;
    uint32_t n_counted;    /* symbols of which there are any */
    uint32_t *frequencies; /* those of the chunk, and others to compare them with */
    uint32_t *other;
    double log2s[N_LOG2S]; /* of 1 and more */
};

const struct wharf_encoder_row wharf_rans_encoder_rows[] = {
    {"recoil", WHARF_RANS_MIN_NBITS, WHARF_RANS_MAX_NBITS, 11},
    {.name = NULL},
};

static void rans_free(struct wharf_encoder *encoder)
{
    if (!encoder)
        return;
    free(encoder->counts);
    free(encoder->frequencies);
    free(encoder->other);
    free(encoder);
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
    encoder->counts = malloc(encoder->max_alphabet * sizeof(*encoder->counts));
    encoder->frequencies = malloc(encoder->max_alphabet * sizeof(*encoder->frequencies));
    encoder->other = malloc(encoder->max_alphabet * sizeof(*encoder->other));
    if (!encoder->counts || !encoder->frequencies || !encoder->other) {
        rans_free(encoder);
        return -ENOMEM;
    }
    for (uint32_t f = 1; f < N_LOG2S; f++)
        encoder->log2s[f] = log2((double)f);
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
        .frequencies = encoder->frequencies,
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

/* Four bytes next to each other have counters of their own: where bytes repeat, one would have to
 * wait for itself. */
static void count_bytes(const uint8_t *in, uint32_t n, uint64_t *counts)
{
    uint32_t partial[4][256] = {{0}};

    for (; n % 4 != 0; n--)
        counts[*in++]++;
    for (; n > 0; n -= 4, in += 4)
        for (unsigned i = 0; i < 4; i++)
            partial[i][in[i]]++;
    for (unsigned s = 0; s < 256; s++)
        counts[s] += (uint64_t)partial[0][s] + partial[1][s] + partial[2][s] + partial[3][s];
}

/* Returns how many different ones there are. */
static uint32_t count_words(const uint8_t *in, uint32_t n, uint64_t *counts)
{
    uint32_t n_counted = 0;

    for (uint64_t i = 0; i < n; i++)
        n_counted += counts[wharf_load_le16(in + 2 * i)]++ == 0;
    return n_counted;
}

/* Counts the symbols; the alphabet ends with the last one that occurs. */
static void count_symbols(struct wharf_encoder *encoder, struct wharf_rans_job *job)
{
    uint32_t alphabet = encoder->max_alphabet;
    uint32_t n_counted = 0;

    memset(encoder->counts, 0, encoder->max_alphabet * sizeof(*encoder->counts));
    if (job->shape.symbol_nbytes == 1)
        count_bytes(job->symbols, job->n_symbols, encoder->counts);
    else
        n_counted = count_words(job->symbols, job->n_symbols, encoder->counts);
    if (job->n_symbols == 0)
        n_counted = encoder->counts[0] = 1; /* a distribution has to be of something */
    while (encoder->counts[alphabet - 1] == 0)
        alphabet--;
    for (uint32_t s = 0; s < alphabet && job->shape.symbol_nbytes == 1; s++)
        n_counted += encoder->counts[s] > 0;
    encoder->n_counted = n_counted;
    job->shape.alphabet = alphabet;
}

/* Bits that a chunk takes with these frequencies, model and symbols. */
static double coded_nbits(const struct wharf_encoder *encoder, const struct wharf_rans_job *job,
                          const uint32_t *frequencies)
{
    double nbits = 8.0 * (double)wharf_rans_model_pack(&job->shape, frequencies, NULL, 0);

    for (uint32_t s = 0; s < job->shape.alphabet; s++) {
        uint32_t f = frequencies[s];

        if (encoder->counts[s] > 0)
            nbits += (double)encoder->counts[s] *
                     (job->shape.n_bits - (f < N_LOG2S ? encoder->log2s[f] : log2((double)f)));
    }
    return nbits;
}

static int normalise(const struct wharf_encoder *encoder, const struct wharf_rans_job *job,
                     uint32_t *frequencies)
{
    return wharf_rans_normalise(encoder->counts, job->shape.alphabet, job->shape.n_bits,
                                frequencies);
}

/* Whether fewer bits would still be a slot for each symbol. */
static bool has_less(const struct wharf_encoder *encoder, const struct wharf_rans_job *job)
{
    return job->shape.n_bits > WHARF_RANS_MIN_NBITS &&
           encoder->n_counted <= 1u << (job->shape.n_bits - 1);
}

/* As many bits as the level says, or more if the symbols are more than there would be slots; then
 * fewer as long as that makes the chunk smaller: finer frequencies take room too. */
static int choose_frequencies(struct wharf_encoder *encoder, struct wharf_rans_job *job)
{
    double nbits;
    int rc;

    while (encoder->n_counted > 1u << job->shape.n_bits)
        job->shape.n_bits++;
    rc = normalise(encoder, job, encoder->frequencies);
    if (rc < 0 || !has_less(encoder, job))
        return rc;
    nbits = coded_nbits(encoder, job, encoder->frequencies);
    while (has_less(encoder, job)) {
        uint32_t *other = encoder->other;
        double other_nbits;

        job->shape.n_bits--;
        rc = normalise(encoder, job, other);
        if (rc < 0)
            return rc;
        other_nbits = coded_nbits(encoder, job, other);
        if (other_nbits >= nbits) {
            job->shape.n_bits++;
            return 0;
        }
        encoder->other = encoder->frequencies;
        encoder->frequencies = other;
        nbits = other_nbits;
    }
    return 0;
}

static int rans_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    struct wharf_rans_job job;
    int rc;

    if (in_nbytes % encoder->symbol_nbytes != 0 ||
        in_nbytes / encoder->symbol_nbytes > WHARF_RANS_MAX_SYMBOLS)
        return -EILSEQ;
    job = chunk_job(encoder, in, in_nbytes);
    count_symbols(encoder, &job);
    rc = choose_frequencies(encoder, &job);
    job.frequencies = encoder->frequencies;
    return rc < 0 ? rc : wharf_rans_encode(&job, out, out_avail, ret_out_nbytes);
}

const struct wharf_encoder_ops wharf_rans_encoder = {
    .new = rans_new,
    .bound = rans_bound,
    .encode = rans_encode,
    .free = rans_free,
};
