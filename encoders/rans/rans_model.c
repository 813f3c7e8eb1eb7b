/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_model.c: the packed form of a model, both ways, and the tables by slot.
 *
 * Frequencies stand in blocks of 32 symbols, each block as wide as its largest frequency.  So the
 * widths alone say where any frequency stands, and that the packed form has the right size, before
 * a frequency is read.
 *
 * Unpacking gives slots away in the order of the symbols.  INVARIANT: `first` slots of a
 * distribution are given away, and a frequency that is larger than what is left is refused before
 * it is written.  Slots behind the sum are nobody's: decoders compare a slot with totals[] before
 * they believe its symbol.
 */
#include "encoders/rans/rans_model.h"

#include <string.h>

#include "encoders/little_endian.h"

bool wharf_rans_shape_is_good(const struct wharf_rans_shape *shape, uint32_t max_nslots)
{
    if (shape->n_bits < WHARF_RANS_MIN_NBITS || shape->n_bits > WHARF_RANS_MAX_NBITS)
        return false;
    if (shape->symbol_nbytes < 1 || shape->symbol_nbytes > 2)
        return false;
    if (shape->alphabet < 1 || shape->alphabet > (shape->symbol_nbytes == 1 ? 256u : 65536u))
        return false;
    if (shape->n_distributions < 1 || shape->n_distributions > WHARF_RANS_MAX_DISTRIBUTIONS)
        return false;
    return wharf_rans_n_slots(shape) <= max_nslots && wharf_rans_n_ranges(shape) <= max_nslots;
}

bool wharf_rans_frequencies_are_good(const struct wharf_rans_shape *shape,
                                     const uint32_t *frequencies)
{
    for (uint32_t d = 0; d < shape->n_distributions; d++) {
        uint64_t sum = 0;

        for (uint32_t s = 0; s < shape->alphabet; s++)
            sum += *frequencies++;
        if (sum == 0 || sum > 1u << shape->n_bits)
            return false;
    }
    return true;
}

static uint32_t n_blocks(const struct wharf_rans_shape *shape)
{
    return (shape->alphabet + WHARF_RANS_BLOCK_NSYMBOLS - 1) / WHARF_RANS_BLOCK_NSYMBOLS;
}

/* Symbols in a distribution's block `block`. */
static uint32_t block_nsymbols(const struct wharf_rans_shape *shape, uint32_t block)
{
    uint32_t left = shape->alphabet - block * WHARF_RANS_BLOCK_NSYMBOLS;

    return left < WHARF_RANS_BLOCK_NSYMBOLS ? left : WHARF_RANS_BLOCK_NSYMBOLS;
}

/* ---- unpacking -------------------------------------------------------------------------- */

/* The n_bits (at most 17) from bit `at` on, least significant first; 0 for what is not there. */
static uint32_t get_bits(const uint8_t *in, size_t in_nbytes, uint64_t at, uint32_t n_bits)
{
    uint32_t gathered = 0;

    if (at / 8 + 4 <= in_nbytes)
        gathered = wharf_load_le32(in + at / 8);
    else
        for (uint32_t i = 0; i < 4 && at / 8 + i < in_nbytes; i++)
            gathered |= (uint32_t)in[at / 8 + i] << 8 * i;
    return gathered >> at % 8 & ((1u << n_bits) - 1);
}

/* By fours: behind the last slot up to 4 more are overwritten. */
static void fill_slots(uint16_t *slots, uint16_t symbol, uint32_t n)
{
    const uint64_t four = symbol * 0x0001000100010001u;

    memcpy(slots, &four, sizeof(four));
    for (uint32_t done = 4; done < n; done += 4)
        memcpy(slots + done, &four, sizeof(four));
}

/* One distribution on its way into the tables. */
struct entering {
    uint16_t *slots;
    struct wharf_rans_range *ranges;
    uint32_t n_slots;
    uint32_t first; /* slot that is not given away yet */
};

/* Enters a symbol of frequency f; false if slots are too few.  One without slots leaves a range
 * that means nothing, and slots that the next one overwrites: which symbols have slots cannot be
 * foreseen. */
static inline bool give_slots(struct entering *entering, uint32_t symbol, uint32_t f)
{
    if (f > entering->n_slots - entering->first)
        return false;
    entering->ranges[symbol] =
        (struct wharf_rans_range){(uint16_t)(f - 1), (uint16_t)entering->first};
    fill_slots(entering->slots + entering->first, (uint16_t)symbol, f);
    entering->first += f;
    return true;
}

/* What is left to nobody; false if it is all. */
static bool end_distribution(struct wharf_rans_model *model, uint32_t distribution)
{
    uint32_t n_slots = 1u << model->shape.n_bits;
    uint32_t total = model->totals[distribution];
    uint16_t *slots;

    if (total < n_slots)
        model->is_full = false;
    if (total == 0)
        return false;
    slots = model->slot_symbols + ((size_t)distribution << model->shape.n_bits);
    for (uint32_t slot = total; slot < n_slots; slot++)
        slots[slot] = slots[total - 1];
    return true;
}

/* One distribution: its widths are the blocks' from width_at on, its frequencies begin at *at. */
static bool unpack_distribution(const uint8_t *in, size_t in_nbytes, uint64_t width_at,
                                uint64_t *at, struct wharf_rans_model *model, uint32_t distribution)
{
    const struct wharf_rans_shape *shape = &model->shape;
    struct entering entering = {
        .slots = model->slot_symbols + ((size_t)distribution << shape->n_bits),
        .ranges = model->ranges + (size_t)distribution * shape->alphabet,
        .n_slots = 1u << shape->n_bits,
    };

    for (uint32_t block = 0; block < n_blocks(shape); block++) {
        uint32_t width =
            get_bits(in, in_nbytes, width_at + (uint64_t)block * WHARF_RANS_WIDTH_NBITS,
                     WHARF_RANS_WIDTH_NBITS);

        for (uint32_t i = 0; width > 0 && i < block_nsymbols(shape, block); i++) {
            uint32_t f = get_bits(in, in_nbytes, *at, width);

            *at += width;
            if (!give_slots(&entering, block * WHARF_RANS_BLOCK_NSYMBOLS + i, f))
                return false;
        }
    }
    model->totals[distribution] = entering.first;
    return end_distribution(model, distribution);
}

/* Bits of the whole packed form, from its widths; 0 if a width is not allowed. */
static uint64_t packed_nbits(const uint8_t *in, size_t in_nbytes,
                             const struct wharf_rans_shape *shape)
{
    uint64_t n_widths = (uint64_t)n_blocks(shape) * shape->n_distributions;
    uint64_t n_bits = n_widths * WHARF_RANS_WIDTH_NBITS;

    for (uint64_t i = 0; i < n_widths; i++) {
        uint32_t width =
            get_bits(in, in_nbytes, i * WHARF_RANS_WIDTH_NBITS, WHARF_RANS_WIDTH_NBITS);

        if (width > WHARF_RANS_MAX_WIDTH)
            return 0;
        n_bits += (uint64_t)width * block_nsymbols(shape, (uint32_t)(i % n_blocks(shape)));
    }
    return n_bits;
}

bool wharf_rans_model_unpack(const uint8_t *in, size_t in_nbytes, struct wharf_rans_model *model)
{
    const struct wharf_rans_shape *shape = &model->shape;
    uint64_t widths_nbits =
        (uint64_t)n_blocks(shape) * shape->n_distributions * WHARF_RANS_WIDTH_NBITS;
    uint64_t n_bits;
    uint64_t at = widths_nbits;

    if (widths_nbits > 8 * (uint64_t)in_nbytes)
        return false;
    n_bits = packed_nbits(in, in_nbytes, shape);
    if (n_bits == 0 || (n_bits + 7) / 8 != in_nbytes)
        return false;
    model->is_full = true;
    for (uint32_t d = 0; d < shape->n_distributions; d++) {
        uint64_t width_at = (uint64_t)d * n_blocks(shape) * WHARF_RANS_WIDTH_NBITS;

        if (!unpack_distribution(in, in_nbytes, width_at, &at, model, d))
            return false;
    }
    return true;
}

/* ---- packing ---------------------------------------------------------------------------- */

/* Bits on their way out: fewer than 32 wait in `gathered`. */
struct packer {
    uint8_t *out;
    uint64_t gathered;
    uint32_t n_gathered;
};

/* A value of at most 32 bits. */
static inline void put_bits(struct packer *packer, uint64_t value, uint32_t n_bits)
{
    packer->gathered |= value << packer->n_gathered;
    packer->n_gathered += n_bits;
    if (packer->n_gathered < 32)
        return;
    wharf_store_le32(packer->out, (uint32_t)packer->gathered);
    packer->out += 4;
    packer->gathered >>= 32;
    packer->n_gathered -= 32;
}

static void put_last(struct packer *packer)
{
    for (uint32_t done = 0; done < packer->n_gathered; done += 8)
        *packer->out++ = (uint8_t)(packer->gathered >> done);
}

static uint32_t width_of(uint32_t any)
{
    return any == 0 ? 0 : 32 - (uint32_t)__builtin_clz(any);
}

static uint32_t block_width(const uint32_t *frequencies, uint32_t n_symbols)
{
    uint32_t any = 0;

    if (n_symbols == WHARF_RANS_BLOCK_NSYMBOLS) /* a loop that compilers can make vectors of */
        for (uint32_t i = 0; i < WHARF_RANS_BLOCK_NSYMBOLS; i++)
            any |= frequencies[i];
    else
        for (uint32_t i = 0; i < n_symbols; i++)
            any |= frequencies[i];
    return width_of(any);
}

/* Two at a time: most alphabets of 16-bit symbols have narrow blocks, and many of them. */
static void put_block(struct packer *packer, const uint32_t *f, uint32_t n_symbols, uint32_t width)
{
    uint32_t i = 0;

    if (width == 0)
        return;
    for (; width <= 16 && i + 2 <= n_symbols; i += 2)
        put_bits(packer, f[i] | (uint64_t)f[i + 1] << width, 2 * width);
    for (; i < n_symbols; i++)
        put_bits(packer, f[i], width);
}

/* All blocks' widths, written if there is an `out`.  Returns the bits of the whole packed form. */
static uint64_t pack_widths(struct packer *packer, const struct wharf_rans_shape *shape,
                            const uint32_t *frequencies)
{
    uint64_t n_bits = 0;

    for (uint32_t d = 0; d < shape->n_distributions; d++)
        for (uint32_t block = 0; block < n_blocks(shape); block++) {
            uint32_t n_symbols = block_nsymbols(shape, block);
            uint32_t width = block_width(frequencies, n_symbols);

            n_bits += WHARF_RANS_WIDTH_NBITS + (uint64_t)width * n_symbols;
            if (packer->out)
                put_bits(packer, width, WHARF_RANS_WIDTH_NBITS);
            frequencies += n_symbols;
        }
    return n_bits;
}

static void pack_blocks(struct packer *packer, const struct wharf_rans_shape *shape,
                        const uint32_t *frequencies)
{
    for (uint32_t d = 0; d < shape->n_distributions; d++)
        for (uint32_t block = 0; block < n_blocks(shape); block++) {
            uint32_t n_symbols = block_nsymbols(shape, block);

            put_block(packer, frequencies, n_symbols, block_width(frequencies, n_symbols));
            frequencies += n_symbols;
        }
}

size_t wharf_rans_model_pack(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                             uint8_t *out, size_t out_avail)
{
    uint64_t widths_nbits =
        (uint64_t)n_blocks(shape) * shape->n_distributions * WHARF_RANS_WIDTH_NBITS;
    struct packer packer = {.out = (widths_nbits + 7) / 8 <= out_avail ? out : NULL};
    size_t nbytes = (size_t)((pack_widths(&packer, shape, frequencies) + 7) / 8);

    if (nbytes <= out_avail) {
        pack_blocks(&packer, shape, frequencies);
        put_last(&packer);
    }
    return nbytes;
}

/* ---- where most symbols have no frequency ------------------------------------------------ */

#define MAX_BLOCKS (WHARF_RANS_MAX_ALPHABET / WHARF_RANS_BLOCK_NSYMBOLS)

/* The blocks of one distribution. */
struct blocks {
    uint32_t n;
    uint32_t width[MAX_BLOCKS];
    uint32_t at[MAX_BLOCKS]; /* bit of the packed form, at most 22 bits a symbol */
    uint64_t n_bits;         /* of all of it */
};

/* Without branches: how many symbols of a block have a frequency cannot be foreseen. */
static void measure_blocks(const struct wharf_rans_some *some, struct blocks *blocks)
{
    uint32_t alphabet = wharf_rans_some_alphabet(some);
    uint32_t last = UINT32_MAX;
    uint32_t any = 0;

    blocks->n = (alphabet + WHARF_RANS_BLOCK_NSYMBOLS - 1) / WHARF_RANS_BLOCK_NSYMBOLS;
    memset(blocks->width, 0, blocks->n * sizeof(blocks->width[0]));
    for (uint32_t i = 0; i < some->n; i++) {
        uint32_t block = some->symbols[i] / WHARF_RANS_BLOCK_NSYMBOLS;

        any = some->frequencies[i] | (block == last ? any : 0);
        blocks->width[block] = any;
        last = block;
    }
    blocks->n_bits = (uint64_t)blocks->n * WHARF_RANS_WIDTH_NBITS;
    for (uint32_t b = 0; b < blocks->n; b++) {
        blocks->width[b] = width_of(blocks->width[b]);
        blocks->at[b] = (uint32_t)blocks->n_bits;
        blocks->n_bits += blocks->width[b] * WHARF_RANS_BLOCK_NSYMBOLS;
    }
    /* The last block may have fewer symbols. */
    blocks->n_bits -=
        blocks->width[blocks->n - 1] * (blocks->n * WHARF_RANS_BLOCK_NSYMBOLS - alphabet);
}

uint64_t wharf_rans_some_nbits(const struct wharf_rans_some *some)
{
    struct blocks blocks;

    measure_blocks(some, &blocks);
    return blocks.n_bits;
}

/* Puts the frequencies into memory that is zero where widths do not stand yet: by units of 32 bits,
 * of which the one that a frequency begins in and the next one are gathered, and written each
 * time. */
static void put_some(const struct wharf_rans_some *some, const struct blocks *blocks, uint8_t *out)
{
    uint32_t unit = blocks->at[0] / 32;
    uint64_t gathered = wharf_load_le32(out + 4 * unit);

    for (uint32_t i = 0; i < some->n; i++) {
        uint32_t symbol = some->symbols[i];
        uint32_t block = symbol / WHARF_RANS_BLOCK_NSYMBOLS;
        uint32_t at = blocks->at[block] + symbol % WHARF_RANS_BLOCK_NSYMBOLS * blocks->width[block];
        uint32_t gone = at / 32 - unit;

        /* By 32 for each unit that is gone, but of two nothing is left. */
        gathered = gone < 2 ? gathered >> 32 * gone : 0;
        gathered |= (uint64_t)some->frequencies[i] << at % 32;
        unit += gone;
        wharf_store_le32(out + 4 * (size_t)unit, (uint32_t)gathered);
        wharf_store_le32(out + 4 * (size_t)unit + 4, (uint32_t)(gathered >> 32));
    }
}

size_t wharf_rans_some_pack(const struct wharf_rans_some *some, uint8_t *out)
{
    struct packer packer = {.out = out};
    struct blocks blocks;
    size_t nbytes;

    measure_blocks(some, &blocks);
    nbytes = (size_t)((blocks.n_bits + 7) / 8);
    memset(out, 0, nbytes + WHARF_RANS_SOME_MARGIN_NBYTES);
    for (uint32_t b = 0; b < blocks.n; b++)
        put_bits(&packer, blocks.width[b], WHARF_RANS_WIDTH_NBITS);
    put_last(&packer);
    put_some(some, &blocks, out);
    return nbytes;
}
