/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_decode.c: decodes ORC's run length encoding, version 2, with the checks of rle2_format.h in
 * their order.
 *
 * Packed numbers are extracted from words (rle2_unpack.h).  The OR of all of them tells whether any
 * exceeds the type, so there is one check a run.  For a patched run, the values' lower bits are
 * stored first, and then the upper bits of the few patched values are added.  If a value might
 * exceed the type, or room is short, the run's offsets are collected in a buffer first.
 *
 * INVARIANT: a run is delivered as a whole or not at all; an error in it is reported at its first
 * byte.
 */
#include "encoders/rle2/rle2.h"
#include "encoders/rle2/rle2_format.h"
#include "encoders/rle2/rle2_unpack.h"
#include "encoders/rle_fill.h"
#include "encoders/rle_shell.h"
#include "encoders/rle_values.h"

/* The packed bytes of a run where a word may be read at each of them. */
struct packed {
    const uint8_t *bytes;
    uint8_t copy[WHARF_RLE2_RUN_MAX * 8 + WHARF_RLE2_WORD_NBYTES];
};

static size_t left(const struct wharf_rle_state *state)
{
    return (size_t)(state->in.end - state->in.next);
}

/* For so many values. */
WHARF_RLE_INLINE size_t room(const struct wharf_rle_state *state, unsigned nbytes)
{
    return (size_t)(state->out_end - state->out_next) / nbytes;
}

WHARF_RLE_INLINE int is_room(const struct wharf_rle_state *state, unsigned n, unsigned nbytes)
{
    return n <= room(state, nbytes);
}

/* Takes nbytes, which are there. */
static void take_packed(struct wharf_rle_state *state, size_t nbytes, struct packed *packed)
{
    const uint8_t *bytes = state->in.next;

    if (left(state) >= nbytes + WHARF_RLE2_WORD_NBYTES) {
        packed->bytes = bytes;
    } else {
        memcpy(packed->copy, bytes, nbytes);
        memset(packed->copy + nbytes, 0, WHARF_RLE2_WORD_NBYTES);
        packed->bytes = packed->copy;
    }
    state->in.next += nbytes;
}

/* nbytes of the source, 1 to 8, which are there, as one number. */
static uint64_t take_bytes(struct wharf_rle_state *state, unsigned nbytes)
{
    const uint8_t *bytes = state->in.next;
    uint64_t u = 0;

    state->in.next += nbytes;
    if (state->in.end - bytes >= 8)
        return __builtin_bswap64(wharf_rle_load_word(bytes)) >> (64 - 8 * nbytes);
    for (unsigned i = 0; i < nbytes; i++)
        u = u << 8 | bytes[i];
    return u;
}

/* The block in which repeats are written, if there is room: one size for all short repeats, another
 * for longer runs.  A branch on the exact length would be mispredicted. */
WHARF_RLE_INLINE unsigned repeat_nbytes(unsigned nbytes)
{
    return (WHARF_RLE2_REPEAT_MAX * nbytes + WHARF_RLE_FILL_NBYTES - 1) & -WHARF_RLE_FILL_NBYTES;
}

enum { EVEN_NBYTES = 256 };

/* Stores the same value n times; there is room. */
WHARF_RLE_INLINE void fill_same(struct wharf_rle_state *state, uint64_t v, unsigned n,
                                unsigned nbytes, unsigned block_nbytes)
{
    if ((size_t)(state->out_end - state->out_next) >= n * nbytes + block_nbytes)
        wharf_rle_fill_blocks(state->out_next, v, n, nbytes, block_nbytes);
    else
        wharf_rle_fill(state->out_next, state->out_end, v, 0, n, nbytes);
}

WHARF_RLE_INLINE uint32_t take_short_repeat(struct wharf_rle_state *state, unsigned nbytes,
                                            int is_signed)
{
    unsigned header = *state->in.next;
    unsigned n = (header & 7) + WHARF_RLE2_REPEAT_MIN;
    unsigned value_nbytes = (header >> 3 & 7) + 1;

    if (left(state) < 1 + value_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    state->in.next++;
    uint64_t u = take_bytes(state, value_nbytes);
    if (!is_room(state, n, nbytes))
        return WHARF_REASON_OUTPUT_FULL;
    if (wharf_rle_exceeds(u, nbytes))
        return WHARF_REASON_RLE_VALUE;
    fill_same(state, wharf_rle_value(u, is_signed), n, nbytes, repeat_nbytes(nbytes));
    state->out_next += n * nbytes;
    return WHARF_REASON_NONE;
}

WHARF_RLE_INLINE uint32_t take_direct(struct wharf_rle_state *state, unsigned nbytes, int is_signed)
{
    struct packed packed;

    if (left(state) < 2)
        return WHARF_REASON_INPUT_TRUNCATED;
    unsigned header = (unsigned)take_bytes(state, 2);
    unsigned width = wharf_rle2_width(header >> 9 & 31);
    unsigned n = (header & 511) + 1;
    size_t packed_nbytes = wharf_rle2_packed_nbytes(n, width);
    if (left(state) < packed_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (!is_room(state, n, nbytes))
        return WHARF_REASON_OUTPUT_FULL;
    take_packed(state, packed_nbytes, &packed);
    uint64_t all = wharf_rle2_unpack_to(packed.bytes, n, width, state->out_next,
                                        room(state, nbytes), nbytes, is_signed);
    if (wharf_rle_exceeds(all, nbytes))
        return WHARF_REASON_RLE_VALUE;
    state->out_next += n * nbytes;
    return WHARF_REASON_NONE;
}

/* ---- patched base ------------------------------------------------------------------------- */

struct patches {
    unsigned n;
    unsigned gap_width;
    unsigned width;
};

/* The width of an entry of the patch list. */
static unsigned entry_width(const struct patches *patches)
{
    return wharf_rle2_width(wharf_rle2_width_code(patches->gap_width + patches->width));
}

/* Adds the patches' bits above the lower `width` bits of the offsets. */
static uint32_t apply_patches(const struct patches *patches, const uint8_t *bytes,
                              uint64_t *offsets, unsigned n, unsigned width)
{
    uint64_t entries[WHARF_RLE2_PATCHES_MAX];
    unsigned at = 0;

    wharf_rle2_unpack(bytes, patches->n, entry_width(patches), entries);
    for (unsigned i = 0; i < patches->n; i++) {
        /* Gaps have up to 8 bits, so patches have 63 at most. */
        uint64_t bits = entries[i] & (((uint64_t)1 << (patches->width & 63)) - 1);
        unsigned gap =
            (unsigned)(entries[i] >> (patches->width & 63)) & ((1u << patches->gap_width) - 1);
        at += gap;
        if (at >= n || (gap == 0 && i > 0))
            return WHARF_REASON_RLE_PATCHES;
        if (width < 64)
            offsets[at] |= bits << width;
    }
    return WHARF_REASON_NONE;
}

/* A run's offsets, with their patches, all of which are there; its header has been taken. */
static uint32_t take_offsets(struct wharf_rle_state *state, const struct patches *patches,
                             uint64_t *offsets, unsigned n, unsigned width)
{
    struct packed packed;

    take_packed(state, wharf_rle2_packed_nbytes(n, width), &packed);
    wharf_rle2_unpack(packed.bytes, n, width, offsets);
    take_packed(state, wharf_rle2_packed_nbytes(patches->n, entry_width(patches)), &packed);
    return apply_patches(patches, packed.bytes, offsets, n, width);
}

/* Stores n values that are base + offset.  Returns their excess. */
WHARF_RLE_INLINE uint64_t store_sums(uint8_t *out, const uint64_t *offsets, unsigned n,
                                     uint64_t base, unsigned nbytes, int is_signed)
{
    uint64_t excess = 0;

    for (unsigned i = 0; i < n; i++) {
        uint64_t v = base + offsets[i];
        excess |= wharf_rle_excess(v, nbytes, is_signed);
        wharf_rle_store(out + i * nbytes, v, nbytes);
    }
    return excess;
}

/* A run by way of its offsets. */
WHARF_RLE_INLINE uint32_t take_any_patched(struct wharf_rle_state *state,
                                           const struct patches *patches, uint64_t base, unsigned n,
                                           unsigned width, unsigned nbytes, int is_signed)
{
    uint64_t offsets[WHARF_RLE2_RUN_MAX];
    uint32_t reason = take_offsets(state, patches, offsets, n, width);

    if (reason)
        return reason;
    if (!is_room(state, n, nbytes))
        return WHARF_REASON_OUTPUT_FULL;
    uint64_t excess = store_sums(state->out_next, offsets, n, base, nbytes, is_signed);
    if (wharf_rle_exceeds(excess, nbytes))
        return WHARF_REASON_RLE_VALUE;
    state->out_next += n * nbytes;
    return WHARF_REASON_NONE;
}

/* Whether the type has base + offset for all offsets of so many bits, before there are patches. */
WHARF_RLE_INLINE int has_sums(uint64_t base, unsigned width, unsigned nbytes, int is_signed)
{
    uint64_t excess = wharf_rle_excess(base, nbytes, is_signed);

    /* The second sum cannot overflow: it is at most 2^32 + 2^56 for types that have a bound. */
    return width < 64 && !wharf_rle_exceeds(excess | (excess + ((uint64_t)1 << width) - 1), nbytes);
}

/* Adds the upper bits of offsets to values that have the lower ones. */
WHARF_RLE_INLINE uint32_t patch_values(const struct patches *patches, const uint8_t *bytes,
                                       uint8_t *out, unsigned n, unsigned width, unsigned nbytes,
                                       int is_signed)
{
    unsigned patch_width = patches->width & 63;
    uint64_t bits_mask = ((uint64_t)1 << patch_width) - 1;
    unsigned gap_mask = (1u << patches->gap_width) - 1;
    unsigned nbits = entry_width(patches);
    uint64_t excess = 0;
    unsigned at = 0;

    for (unsigned i = 0; i < patches->n; i++) {
        uint64_t entry = wharf_rle2_number(bytes, i, nbits);
        unsigned gap = (unsigned)(entry >> patch_width) & gap_mask;
        at += gap;
        if (at >= n || (gap == 0 && i > 0))
            return WHARF_REASON_RLE_PATCHES;
        uint64_t v = wharf_rle_load(out + at * nbytes, nbytes, is_signed);
        v += (entry & bits_mask) << width;
        excess |= wharf_rle_excess(v, nbytes, is_signed);
        wharf_rle_store(out + at * nbytes, v, nbytes);
    }
    return wharf_rle_exceeds(excess, nbytes) ? WHARF_REASON_RLE_VALUE : WHARF_REASON_NONE;
}

/* Decodes a patched run directly into the output, which has room for it. */
WHARF_RLE_INLINE uint32_t take_quick_patched(struct wharf_rle_state *state,
                                             const struct patches *patches, uint64_t base,
                                             unsigned n, unsigned width, unsigned nbytes,
                                             int is_signed)
{
    struct packed packed;

    take_packed(state, wharf_rle2_packed_nbytes(n, width), &packed);
    wharf_rle2_sum_to(packed.bytes, n, width, base, state->out_next, room(state, nbytes), nbytes);
    take_packed(state, wharf_rle2_packed_nbytes(patches->n, entry_width(patches)), &packed);
    uint32_t reason =
        patch_values(patches, packed.bytes, state->out_next, n, width, nbytes, is_signed);
    state->out_next += n * nbytes;
    return reason;
}

WHARF_RLE_INLINE uint32_t take_patched_base(struct wharf_rle_state *state, unsigned nbytes,
                                            int is_signed)
{
    if (left(state) < 4)
        return WHARF_REASON_INPUT_TRUNCATED;
    unsigned header = (unsigned)take_bytes(state, 4);
    unsigned n = (header >> 16 & 511) + 1;
    unsigned width = wharf_rle2_width(header >> 25 & 31);
    unsigned base_nbytes = (header >> 13 & 7) + 1;
    struct patches patches = {header & 31, (header >> 5 & 7) + 1,
                              wharf_rle2_width(header >> 8 & 31)};
    if (left(state) < base_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (patches.n == 0 || patches.gap_width + patches.width > 64)
        return WHARF_REASON_RLE_PATCHES;
    uint64_t sign = (uint64_t)1 << (8 * base_nbytes - 1);
    uint64_t base = take_bytes(state, base_nbytes);
    base = base & sign ? 0 - (base ^ sign) : base;
    if (left(state) < wharf_rle2_packed_nbytes(n, width) +
                          wharf_rle2_packed_nbytes(patches.n, entry_width(&patches)))
        return WHARF_REASON_INPUT_TRUNCATED;
    if (is_room(state, n, nbytes) && has_sums(base, width, nbytes, is_signed))
        return take_quick_patched(state, &patches, base, n, width, nbytes, is_signed);
    return take_any_patched(state, &patches, base, n, width, nbytes, is_signed);
}

/* ---- delta -------------------------------------------------------------------------------- */

/* Stores n values from their differences.  Returns their excess. */
WHARF_RLE_INLINE uint64_t store_steps(uint8_t *out, uint64_t v, const uint64_t *steps, unsigned n,
                                      int is_down, unsigned nbytes, int is_signed)
{
    uint64_t excess = 0;
    uint64_t flip = is_down ? UINT64_MAX : 0;

    for (unsigned i = 0; i < n; i++) {
        v += (steps[i] ^ flip) - flip;
        excess |= wharf_rle_excess(v, nbytes, is_signed);
        wharf_rle_store(out + i * nbytes, v, nbytes);
    }
    return excess;
}

/* Stores n values with a constant difference.  Returns the OR of the excesses of the first and the
 * last value, between which the others lie; of all values if they may wrap around at 2^64. */
WHARF_RLE_INLINE uint64_t store_evenly(struct wharf_rle_state *state, uint64_t base, uint64_t delta,
                                       unsigned n, unsigned nbytes, int is_signed)
{
    uint64_t excess = wharf_rle_excess(base, nbytes, is_signed);

    if (delta + ((uint64_t)1 << 40) >= (uint64_t)1 << 41)
        for (unsigned i = 1; i < n; i++)
            excess |= wharf_rle_excess(base + i * delta, nbytes, is_signed);
    else
        excess |= wharf_rle_excess(base + (n - 1) * delta, nbytes, is_signed);
    if (delta == 0)
        fill_same(state, base, n, nbytes, EVEN_NBYTES);
    else
        wharf_rle_fill(state->out_next, state->out_end, base, delta, n, nbytes);
    return excess;
}

/* A run's two first values, which are in the header. */
struct start {
    uint64_t base;
    uint64_t delta;
};

static uint32_t take_start(struct wharf_rle_state *state, int is_signed, struct start *start)
{
    uint64_t u;
    uint32_t reason = wharf_rle_take_number(&state->in, &u);

    if (reason)
        return reason;
    start->base = wharf_rle_value(u, is_signed);
    reason = wharf_rle_take_number(&state->in, &u);
    start->delta = reason ? 0 : wharf_rle_unzigzag(u);
    return reason;
}

/* A run whose further n differences are packed in `width` bits each. */
WHARF_RLE_INLINE uint32_t take_steps(struct wharf_rle_state *state, const struct start *start,
                                     unsigned n, unsigned width, unsigned nbytes, int is_signed)
{
    uint64_t steps[WHARF_RLE2_RUN_MAX];
    size_t packed_nbytes = wharf_rle2_packed_nbytes(n, width);
    uint64_t second = start->base + start->delta;
    struct packed packed;

    if (left(state) < packed_nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (!is_room(state, n + 2, nbytes))
        return WHARF_REASON_OUTPUT_FULL;
    take_packed(state, packed_nbytes, &packed);
    wharf_rle2_unpack(packed.bytes, n, width, steps);
    wharf_rle_store(state->out_next, start->base, nbytes);
    wharf_rle_store(state->out_next + nbytes, second, nbytes);
    uint64_t excess = store_steps(state->out_next + 2 * nbytes, second, steps, n,
                                  (int64_t)start->delta < 0, nbytes, is_signed);
    excess |= wharf_rle_excess(start->base, nbytes, is_signed) |
              wharf_rle_excess(second, nbytes, is_signed);
    if (wharf_rle_exceeds(excess, nbytes))
        return WHARF_REASON_RLE_VALUE;
    state->out_next += (n + 2) * nbytes;
    return WHARF_REASON_NONE;
}

WHARF_RLE_INLINE uint32_t take_delta(struct wharf_rle_state *state, unsigned nbytes, int is_signed)
{
    struct start start;

    if (left(state) < 2)
        return WHARF_REASON_INPUT_TRUNCATED;
    unsigned header = (unsigned)take_bytes(state, 2);
    unsigned code = header >> 9 & 31;
    unsigned n = (header & 511) + 1;
    uint32_t reason = take_start(state, is_signed, &start);
    if (reason)
        return reason;
    if (code && n > 2)
        return take_steps(state, &start, n - 2, wharf_rle2_width(code), nbytes, is_signed);
    if (!is_room(state, n, nbytes))
        return WHARF_REASON_OUTPUT_FULL;
    if (wharf_rle_exceeds(store_evenly(state, start.base, start.delta, n, nbytes, is_signed),
                          nbytes))
        return WHARF_REASON_RLE_VALUE;
    state->out_next += n * nbytes;
    return WHARF_REASON_NONE;
}

/* ---- all kinds ---------------------------------------------------------------------------- */

WHARF_RLE_INLINE uint32_t take_run(struct wharf_rle_state *state, unsigned nbytes, int is_signed)
{
    switch (*state->in.next >> 6) {
    case WHARF_RLE2_SHORT_REPEAT:
        return take_short_repeat(state, nbytes, is_signed);
    case WHARF_RLE2_DIRECT:
        return take_direct(state, nbytes, is_signed);
    case WHARF_RLE2_PATCHED_BASE:
        return take_patched_base(state, nbytes, is_signed);
    default:
        return take_delta(state, nbytes, is_signed);
    }
}

void wharf_rle2_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct wharf_rle_state state = wharf_rle_begin(in, in_nbytes, out, out_avail);

    WHARF_RLE_FOR_TYPE(wharf_rle_type_of(setting), wharf_rle_decode, &state, take_run, setting,
                       ret_outcome);
}
