/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_model.cuh: the tables of a model, which the warp builds from the model's packed form, and
 * look-ups in them.
 *
 * One distribution of bytes has its tables in shared memory:
 *   n up to a limit    an entry of 32 bits for each slot: symbol, frequency, and the slot's place
 *                      in the symbol's range
 *   larger n           for each bucket of slots (their top BUCKET_NBITS bits) the symbol of its
 *                      first slot, and for each symbol its range: a slot belongs to the bucket's
 *                      symbol or to one after it, up to the next bucket's
 *
 * Other models have the first slot of each symbol in scratch, and are searched by bisection.
 * Registered models have the tables of their image (encoders/rans/rans_image.h).
 */
#ifndef WHARF_KERNELS_RANS_RANS_MODEL_CUH
#define WHARF_KERNELS_RANS_RANS_MODEL_CUH

#include "encoders/rans/rans_image.h"
#include "encoders/rans/rans_window.h"
#include "kernels/rans/rans_stream.cuh"

namespace wharf
{
namespace rans
{

/* For tables of a warp's own (8 KiB) or of a block, and where they have to be small. */
constexpr unsigned PACKED_NBITS = 11;
constexpr unsigned SMALL_PACKED_NBITS = 10;
constexpr unsigned BUCKET_NBITS = 11;

/*
 * A slot's entry, for n up to 11: the symbol in the low byte, where stores take it from, then its
 * place in its symbol's range in 11 bits and the frequency in 12.  The highest bit says that the
 * slot is nobody's.  A shift by PACKED_PLACE_AT gives the place and 2^11 times the frequency; the
 * multiplication by the frequency takes that off again (found), so that no mask is needed.
 */
constexpr unsigned PACKED_PLACE_AT = 8, PACKED_FREQUENCY_AT = 19;
constexpr uint32_t PACKED_NOBODYS = 1u << 31 | 1u << PACKED_FREQUENCY_AT;
static_assert(PACKED_FREQUENCY_AT - PACKED_PLACE_AT == PACKED_NBITS);

WHARF_DEVICE uint32_t packed_entry(uint32_t symbol, uint32_t place, uint32_t frequency)
{
    return symbol | place << PACKED_PLACE_AT | frequency << PACKED_FREQUENCY_AT;
}

struct bucket_tables {
    /* Frequency - 1 in the high half, first slot in the low half, which of a symbol without slots
     * is where the next one's begin.  The last one is no symbol's: a slot that is nobody's comes to
     * it. */
    uint32_t ranges[256 + 1];
    /* Behind those of all buckets the last symbol that has slots. */
    uint8_t buckets[(1 << BUCKET_NBITS) + 1];
};

struct distribution_table {
    uint32_t totals[WHARF_RANS_MAX_DISTRIBUTIONS]; /* slots from here on are nobody's */
    uint32_t ends[WHARF_RANS_MAX_DISTRIBUTIONS];   /* one more than the last symbol with a slot */
};

/* Shared memory of a model. */
template <unsigned PACKED>
union model_tables {
    uint32_t packed[1 << PACKED];
    bucket_tables bucket;
    distribution_table distributions;
};

/* Which of them a model has; SPREAD and RANGED: rans_spread.cuh. */
enum class lookup { PACKED, BUCKET, GENERAL, REGISTERED, SPREAD, RANGED };

/* Whether symbols may be of 2 bytes. */
template <lookup KIND>
WHARF_CONSTEXPR bool has_symbol_size()
{
    return KIND == lookup::GENERAL || KIND == lookup::REGISTERED;
}

/* The same in all lanes. */
struct model {
    uint32_t *packed;
    uint32_t *ranges;
    uint8_t *buckets;
    distribution_table *distributions;
    uint16_t *firsts; /* in scratch: of distribution d from d * alphabet on */
    /* Of a registered model that none of the above have: its image, and where its parts are. */
    const uint8_t *image;
    uint32_t totals_at, ranges_at, slots_at;
    uint32_t windows_at, scales_at, buckets_at, windows_stride; /* windows_at 0: none */
    /* Of spread tables: this lane's words, bytes from a slot to the next, symbols by slot. */
    shared_table own, symbols;
    uint32_t row_nbytes;
    uint32_t n_bits, alphabet, n_distributions, symbol_nbytes;
    bool is_full;   /* no slot is nobody's */
    uint32_t total; /* of the last distribution: slots from here on are nobody's */
    lookup kind;
};

/* The tables of a model that was handed to a function which is not inlined: so the compiler sees
 * that they are in shared memory. */
template <unsigned PACKED>
WHARF_DEVICE model with_tables(const model &given, model_tables<PACKED> &tables)
{
    model m = given;
    m.packed = tables.packed;
    m.ranges = tables.bucket.ranges;
    m.buckets = tables.bucket.buckets;
    m.distributions = &tables.distributions;
    return m;
}

/* ---- the packed form ------------------------------------------------------------------------ */

/* One lane.  n bits (at most 17) from bit `at` of the packed model on, least significant first. */
WHARF_DEVICE uint32_t model_bits(const stream &in, uint32_t at, uint32_t n)
{
    at += 8 * WHARF_RANS_HEADER_NBYTES + in.source.skew_nbits();
    return low_bits(
        funnel_right(in.source.load_word(at / 32), in.source.load_word(at / 32 + 1), at % 32), n);
}

WHARF_DEVICE uint32_t blocks_of(const stream &in)
{
    return ceil_div(in.alphabet, WHARF_RANS_BLOCK_NSYMBOLS);
}

WHARF_DEVICE uint32_t block_nsymbols(const stream &in, uint32_t block)
{
    uint32_t left = in.alphabet - block * WHARF_RANS_BLOCK_NSYMBOLS;
    return left < WHARF_RANS_BLOCK_NSYMBOLS ? left : WHARF_RANS_BLOCK_NSYMBOLS;
}

/* collective.  Whether the widths are allowed, and the packed form is as large as they say. */
WHARF_DEVICE bool widths_are_good(const stream &in)
{
    uint32_t n_blocks = blocks_of(in);
    uint32_t n_widths = n_blocks * in.n_distributions;
    uint32_t n_bits = 0;
    bool good = true;
    if (n_widths * WHARF_RANS_WIDTH_NBITS > 8 * (uint64_t)in.model_nbytes)
        return false;
    for (uint32_t i = lane_id(); i < n_widths; i += WARP_LANES) {
        uint32_t width = model_bits(in, i * WHARF_RANS_WIDTH_NBITS, WHARF_RANS_WIDTH_NBITS);
        good &= width <= WHARF_RANS_MAX_WIDTH;
        n_bits += width * block_nsymbols(in, i % n_blocks);
    }
    n_bits = reduce_add(n_bits) + n_widths * WHARF_RANS_WIDTH_NBITS;
    return !any_lane(!good) && (n_bits + 7) / 8 == in.model_nbytes;
}

/* ---- one distribution of bytes -------------------------------------------------------------- */

constexpr unsigned MAX_BYTE_BLOCKS = 256 / WHARF_RANS_BLOCK_NSYMBOLS;

/* Of symbols 32 * b + lane_id(). */
struct byte_model {
    uint32_t frequency[MAX_BYTE_BLOCKS], first[MAX_BYTE_BLOCKS];
};

/* collective.  Reads them, all on their way at once.  False by rule 2. */
WHARF_DEVICE bool read_byte_model(const stream &in, byte_model &bytes, model &m)
{
    uint32_t n_blocks = blocks_of(in);
    uint32_t width = 0;
    if (lane_id() < n_blocks)
        width = model_bits(in, lane_id() * WHARF_RANS_WIDTH_NBITS, WHARF_RANS_WIDTH_NBITS);
    uint32_t n_bits = lane_id() < n_blocks ? width * block_nsymbols(in, lane_id()) : 0;
    uint32_t at = exclusive_add(n_bits) + n_blocks * WHARF_RANS_WIDTH_NBITS;
    WHARF_UNROLL
    for (unsigned b = 0; b < MAX_BYTE_BLOCKS; b++) {
        uint32_t n = shfl(width, b);
        uint32_t from = shfl(at, b) + lane_id() * n;
        bool exists = b * WARP_LANES + lane_id() < in.alphabet;
        bytes.frequency[b] = model_bits(in, exists ? from : 0, exists ? n : 0);
    }
    m.total = 0;
    WHARF_UNROLL
    for (unsigned b = 0; b < MAX_BYTE_BLOCKS; b++) {
        uint32_t sum = inclusive_add(bytes.frequency[b]);
        bytes.first[b] = m.total + sum - bytes.frequency[b];
        m.total += shfl(sum, WARP_LANES - 1);
    }
    m.is_full = m.total == 1u << m.n_bits;
    return m.total > 0 && m.total <= 1u << m.n_bits;
}

/* One lane.  A slot's entry from what stands in its range's first slot. */
WHARF_DEVICE uint32_t slot_entry(uint32_t mark, uint32_t slot)
{
    uint32_t frequency = mark >> 11 & 0xfff;
    uint32_t place = slot - (mark & 0x7ff);
    uint32_t symbol = mark >> 23;
    return place < frequency ? packed_entry(symbol, place, frequency) : PACKED_NOBODYS;
}

/* collective.  The entries of 2^n_bits slots, which are 256 at least. */
WHARF_DEVICE void fill_slots(uint32_t *packed, uint32_t n_bits, const byte_model &bytes)
{
    uint32_t n_slots = uniform(1u << n_bits);
    uint32_t carry = 0; /* the mark of the range that the slot before belongs to */
    for (uint32_t slot = lane_id(); slot < n_slots; slot += WARP_LANES)
        store(&packed[slot], 0u);
    syncwarp();
    WHARF_UNROLL
    for (unsigned b = 0; b < MAX_BYTE_BLOCKS; b++) {
        uint32_t f = bytes.frequency[b], first = bytes.first[b];
        /* Never 0. */
        if (f > 0)
            store(&packed[first], (b * WARP_LANES + lane_id()) << 23 | f << 11 | first);
    }
    syncwarp();
    for (uint32_t row = 0; row < n_slots; row += 4 * WARP_LANES) {
        uint32_t marks[4], owners[4];
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++)
            marks[k] = load(&packed[row + k * WARP_LANES + lane_id()]);
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++)
            owners[k] = ballot(marks[k] != 0);
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            uint32_t before = owners[k] & (lanemask_lt() << 1 | 1);
            uint32_t v = shfl(marks[k], 31 - clz(before | 1));
            uint32_t last = shfl(marks[k], 31 - clz(owners[k] | 1));
            uint32_t slot = row + k * WARP_LANES + lane_id();
            store(&packed[slot], slot_entry(before ? v : carry, slot));
            carry = owners[k] ? last : carry;
        }
    }
}

/* collective.  To each bucket the symbol that its first slot belongs to, and the ranges. */
WHARF_DEVICE void fill_buckets(const model &m, const byte_model &bytes)
{
    unsigned shift = m.n_bits - BUCKET_NBITS;
    uint32_t *fours = reinterpret_cast<uint32_t *>(m.buckets);
    uint32_t carry = 0; /* the symbol of the bucket before */
    uint32_t last = 0;
    for (uint32_t i = lane_id(); i < (1u << BUCKET_NBITS) / 4; i += WARP_LANES)
        store(&fours[i], 0u);
    syncwarp();
    for (unsigned b = 0; b < MAX_BYTE_BLOCKS; b++) {
        uint32_t f = bytes.frequency[b], first = bytes.first[b];
        uint32_t symbol = b * WARP_LANES + lane_id();
        uint32_t bucket = f > 0 ? (first + (1u << shift) - 1) >> shift : 0xffffffffu;
        /* Several symbols may begin before the same bucket: it begins with the last one. */
        uint32_t same = match_any(bucket);
        if (bucket < 1u << BUCKET_NBITS && same >> lane_id() == 1)
            store(&m.buckets[bucket], (uint8_t)symbol);
        store(&m.ranges[symbol], (f > 0 ? (f - 1) << 16 : 0u) | (first & 0xffff));
        uint32_t owners = ballot(f > 0);
        last = owners ? b * WARP_LANES + 31 - clz(owners) : last;
        syncwarp(); /* a later block may enter the same bucket */
    }
    if (lane_id() == 0) {
        store(&m.ranges[256], 0u);
        store(&m.buckets[1 << BUCKET_NBITS], (uint8_t)last);
    }
    for (uint32_t row = 0; row < (1u << BUCKET_NBITS) / 4; row += WARP_LANES) {
        /* Symbols rise, so that each byte becomes the largest so far. */
        uint32_t v = load(&fours[row + lane_id()]);
        uint32_t b0 = v & 0xff, b1 = v >> 8 & 0xff, b2 = v >> 16 & 0xff, b3 = v >> 24;
        b1 = b1 > b0 ? b1 : b0;
        b2 = b2 > b1 ? b2 : b1;
        b3 = b3 > b2 ? b3 : b2;
        uint32_t most = inclusive_max(b3);
        most = most > carry ? most : carry;
        uint32_t before = shfl_up(most, 1);
        before = lane_id() == 0 ? carry : before;
        carry = shfl(most, WARP_LANES - 1);
        b0 = b0 > before ? b0 : before;
        b1 = b1 > before ? b1 : before;
        b2 = b2 > before ? b2 : before;
        store(&fours[row + lane_id()], b0 | b1 << 8 | b2 << 16 | most << 24);
    }
}

/* ---- all other models ----------------------------------------------------------------------- */

/* collective.  One distribution's first slots; `at` is the bit at which its frequencies begin, and
 * then end. */
WHARF_DEVICE bool enter_distribution(const stream &in, model &m, uint32_t distribution,
                                     uint32_t &at)
{
    uint32_t n_blocks = blocks_of(in);
    uint32_t total = 0;
    uint32_t end = 0;
    for (uint32_t block = 0; block < n_blocks; block++) {
        uint32_t width = model_bits(in, (distribution * n_blocks + block) * WHARF_RANS_WIDTH_NBITS,
                                    WHARF_RANS_WIDTH_NBITS);
        uint32_t n = block_nsymbols(in, block);
        uint32_t symbol = block * WARP_LANES + lane_id();
        bool exists = lane_id() < n;
        uint32_t frequency = exists ? model_bits(in, at + lane_id() * width, width) : 0;
        uint32_t sum = inclusive_add(frequency);
        if (total + shfl(sum, WARP_LANES - 1) > 1u << m.n_bits)
            return false;
        if (exists)
            store(m.firsts + distribution * m.alphabet + symbol,
                  (uint16_t)(total + sum - frequency));
        total += shfl(sum, WARP_LANES - 1);
        uint32_t owners = ballot(frequency > 0);
        if (owners)
            end = block * WARP_LANES + WARP_LANES - clz(owners);
        at += n * width;
    }
    m.is_full &= total == 1u << m.n_bits;
    m.total = total;
    if (lane_id() == 0) {
        store(&m.distributions->totals[distribution], total);
        store(&m.distributions->ends[distribution], end);
    }
    return total > 0;
}

/* ---- building ------------------------------------------------------------------------------- */

/* collective.  The tables of one distribution of bytes: false by rule 2. */
template <unsigned PACKED>
WHARF_DEVICE bool make_byte_model(const stream &in, model_tables<PACKED> &tables, model &m)
{
    byte_model bytes;
    if (!read_byte_model(in, bytes, m))
        return false;
    if (m.kind == lookup::BUCKET)
        fill_buckets(m, bytes);
    else
        fill_slots(tables.packed, in.n_bits, bytes); /* not by m: it may be elsewhere */
    return true;
}

/* collective.  The tables of a stream's model: false by rule 2. */
template <unsigned PACKED>
WHARF_DEVICE bool make_model(const stream &in, model_tables<PACKED> &tables, uint8_t *scratch,
                             model &m)
{
    uint32_t at = blocks_of(in) * in.n_distributions * WHARF_RANS_WIDTH_NBITS;
    m.packed = tables.packed;
    m.ranges = tables.bucket.ranges;
    m.buckets = tables.bucket.buckets;
    m.distributions = &tables.distributions;
    m.firsts = reinterpret_cast<uint16_t *>(scratch);
    m.image = nullptr;
    m.n_bits = in.n_bits;
    m.alphabet = in.alphabet;
    m.n_distributions = in.n_distributions;
    m.symbol_nbytes = in.symbol_nbytes;
    m.is_full = true;
    m.total = 0;
    m.kind = in.n_distributions > 1 || in.symbol_nbytes > 1 ? lookup::GENERAL
             : in.n_bits > PACKED                           ? lookup::BUCKET
                                                            : lookup::PACKED;
    if (!widths_are_good(in))
        return false;
    bool good = true;
    if (m.kind != lookup::GENERAL)
        good = make_byte_model(in, tables, m);
    else
        for (uint32_t d = 0; d < in.n_distributions && good; d++)
            good = enter_distribution(in, m, d, at);
    syncwarp();
    return good;
}

/* collective.  Whether a registered model is of the stream's shape, and the stream has no other. */
WHARF_DEVICE bool image_fits(const stream &in, const uint8_t *image)
{
    const wharf_rans_image *head = reinterpret_cast<const wharf_rans_image *>(image);
    return in.model_nbytes == 0 && load(&head->n_bits) == in.n_bits &&
           load(&head->symbol_nbytes) == in.symbol_nbytes && load(&head->alphabet) == in.alphabet &&
           load(&head->n_distributions) == in.n_distributions;
}

/* collective.  What the packed form of a stream's model stands in: the stream itself, or what was
 * registered, if that is of one distribution of bytes and has this image, of the stream's shape. */
WHARF_DEVICE stream model_stream(const stream &in, const uint8_t *image)
{
    stream from = in;
    const wharf_rans_image *head = reinterpret_cast<const wharf_rans_image *>(image);
    uint32_t nbytes = image ? uniform(load(&head->registered_nbytes)) : 0;
    if (nbytes > 0) {
        /* To a word's end, which is the image's as well: it goes on behind that. */
        from.source.init(image + uniform(load(&head->registered_at)), (nbytes + 3) & ~3u);
        from.model_nbytes = nbytes - WHARF_RANS_HEADER_NBYTES;
    }
    return from;
}

/* collective.  A model whose tables are in an image, of the stream's shape: all registered ones but
 * those of one distribution of bytes. */
WHARF_DEVICE void take_image(const stream &in, const uint8_t *image, model &m)
{
    const wharf_rans_image *head = reinterpret_cast<const wharf_rans_image *>(image);
    m.n_bits = in.n_bits;
    m.alphabet = in.alphabet;
    m.n_distributions = in.n_distributions;
    m.symbol_nbytes = in.symbol_nbytes;
    m.is_full = load(&head->is_full) != 0;
    m.image = image;
    m.totals_at = uniform(load(&head->totals_at));
    m.ranges_at = uniform(load(&head->ranges_at));
    m.slots_at = uniform(load(&head->slots_at));
    m.windows_at = uniform(load(&head->windows_at));
    m.scales_at = uniform(load(&head->scales_at));
    m.buckets_at = uniform(load(&head->buckets_at));
    m.windows_stride = uniform(load(&head->windows_stride));
    m.kind = lookup::REGISTERED;
}

/* collective.  The stream's model, or the registered one that has this image, with its tables.
 * False by rule 2. */
template <unsigned PACKED>
WHARF_DEVICE bool take_model(const stream &in, model_tables<PACKED> &tables, const uint8_t *image,
                             uint8_t *scratch, model &m)
{
    stream from = model_stream(in, image);
    if (!image || from.model_nbytes > 0)
        return make_model(from, tables, scratch, m);
    take_image(in, image, m);
    return true;
}

/* ---- looking up ---------------------------------------------------------------------------- */

/* What a slot stands for.  Of the symbol only the bits that symbols have mean something. */
struct found {
    uint32_t symbol;
    uint32_t frequency, place;
    uint32_t nobodys; /* the highest bit is set if it is nobody's; then nothing else counts */
    uint32_t excess;  /* so many times the frequency was added to the place */
};

constexpr found NOBODY = {0, 1, 0, 1u << 31, 0};

/* The state behind a symbol, before a word is taken. */
WHARF_DEVICE uint32_t state_behind(const model &m, const found &f, uint32_t state)
{
    return f.frequency * ((state >> m.n_bits) - f.excess) + f.place;
}

WHARF_DEVICE found found_packed(uint32_t v)
{
    return {v, v >> PACKED_FREQUENCY_AT, v >> PACKED_PLACE_AT, v, 1u << PACKED_NBITS};
}

/* One lane.  A slot's place in a range. */
WHARF_DEVICE uint32_t place_in(uint32_t range, uint32_t slot)
{
    return slot - (range & 0xffff);
}

/* What a slot stands for whose symbol has this range, if it is somebody's. */
WHARF_DEVICE found found_ranged(const model &m, uint32_t symbol, uint32_t range, uint32_t slot)
{
    return {symbol, (range >> 16) + 1, place_in(range, slot), m.total - 1 - slot, 0};
}

/*
 * One lane.  N slots side by side: those behind their bucket's first symbol belong to one from the
 * next one to the next bucket's first, the last of these whose range does not begin behind the
 * slot.  Nearly all belong to the very next one; of the others halving finds it, whatever model
 * somebody made.  Returns how often, at most 8 times.
 */
template <unsigned N>
WHARF_DEVICE uint32_t find_in_buckets(const model &m, const uint32_t slots[N], found f[N])
{
    uint32_t low[N], high[N], ranges[N], n_halved = 0;
    bool more = false;
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        low[k] = high[k] = load(&m.buckets[slots[k] >> (m.n_bits - BUCKET_NBITS)]);
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        ranges[k] = load(&m.ranges[low[k]]);
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        if (place_in(ranges[k], slots[k]) > ranges[k] >> 16) {
            high[k] = load(&m.buckets[(slots[k] >> (m.n_bits - BUCKET_NBITS)) + 1]);
            low[k]++;
            ranges[k] = load(&m.ranges[low[k]]);
            more |= low[k] < high[k];
        }
    for (; more; n_halved++) {
        more = false;
        WHARF_UNROLL
        for (unsigned k = 0; k < N; k++)
            if (low[k] < high[k]) {
                uint32_t middle = (low[k] + high[k] + 1) / 2;
                uint32_t range = load(&m.ranges[middle]);
                bool is_behind = slots[k] < (range & 0xffff);
                low[k] = is_behind ? low[k] : middle;
                high[k] = is_behind ? middle - 1 : high[k];
                ranges[k] = is_behind ? ranges[k] : range;
                more |= low[k] < high[k];
            }
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        f[k] = found_ranged(m, low[k], ranges[k], slots[k]);
    return n_halved;
}

/* A slot that is somebody's: of the last symbol whose range begins at it or before. */
WHARF_DEVICE found find_by_halving(const model &m, uint32_t distribution, uint32_t slot)
{
    const uint16_t *firsts = m.firsts + distribution * m.alphabet;
    uint32_t low = 0;
    uint32_t high = load(&m.distributions->ends[distribution]);
    uint32_t end = high;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        bool before = load(firsts + middle) <= slot;
        low = before ? middle : low;
        high = before ? high : middle;
    }
    uint32_t first = load(firsts + low);
    uint32_t next =
        low + 1 < end ? load(firsts + low + 1) : load(&m.distributions->totals[distribution]);
    return {low, next - first, slot - first, 0, 0};
}

/* One lane.  The distribution that symbol `number` has, or one that there is. */
WHARF_DEVICE uint32_t distribution_of(const model &m, const stream &in, uint32_t number)
{
    uint32_t distribution = m.n_distributions > 1 ? byte_at(in, in.indexes_at + number) : 0;
    /* Checked before; but the bound that counts is the tables' own. */
    return distribution < m.n_distributions ? distribution : 0;
}

template <typename T>
WHARF_DEVICE const T *image_part(const model &m, uint32_t at)
{
    return reinterpret_cast<const T *>(m.image + at);
}

WHARF_DEVICE found find_in_image(const model &m, uint32_t distribution, uint32_t slot)
{
    if (!m.is_full && slot >= load(image_part<uint32_t>(m, m.totals_at) + distribution))
        return NOBODY;
    uint32_t symbol = load(image_part<uint16_t>(m, m.slots_at) + (distribution << m.n_bits | slot));
    uint32_t range =
        load(image_part<uint32_t>(m, m.ranges_at) + distribution * m.alphabet + symbol);
    return {symbol, (range & 0xffff) + 1, slot - (range >> 16), 0, 0};
}

WHARF_DEVICE found find_ranged(const model &m, uint32_t slot)
{
    uint32_t symbol = m.symbols.load_byte(slot);
    uint32_t range = m.own.load_word(symbol * WARP_LANES * (uint32_t)sizeof(range));
    return found_ranged(m, symbol, range, slot);
}

/* One lane.  N slots of the one distribution of bytes. */
template <lookup KIND, unsigned N>
WHARF_DEVICE void find_bytes(const model &m, const uint32_t slots[N], found f[N])
{
    if (KIND == lookup::BUCKET) {
        find_in_buckets<N>(m, slots, f);
    } else {
        WHARF_UNROLL
        for (unsigned k = 0; k < N; k++)
            f[k] = KIND == lookup::PACKED   ? found_packed(load(&m.packed[slots[k]]))
                   : KIND == lookup::SPREAD ? found_packed(m.own.load_word(slots[k] * m.row_nbytes))
                                            : find_ranged(m, slots[k]);
    }
}

template <lookup KIND>
WHARF_DEVICE found find_byte(const model &m, uint32_t slot)
{
    found f[1];
    find_bytes<KIND, 1>(m, &slot, f);
    return f[0];
}

/* One lane.  A slot of a distribution. */
template <lookup KIND>
WHARF_DEVICE found find_in(const model &m, uint32_t distribution, uint32_t slot)
{
    if (!has_symbol_size<KIND>())
        return find_byte<KIND>(m, slot);
    if (KIND == lookup::REGISTERED)
        return find_in_image(m, distribution, slot);
    return slot < load(&m.distributions->totals[distribution])
               ? find_by_halving(m, distribution, slot)
               : NOBODY;
}

/* One lane.  A slot of symbol `number`'s distribution. */
template <lookup KIND>
WHARF_DEVICE found find(const model &m, const stream &in, uint32_t number, uint32_t slot)
{
    return find_in<KIND>(m, has_symbol_size<KIND>() ? distribution_of(m, in, number) : 0, slot);
}

} // namespace rans
} // namespace wharf

#endif
