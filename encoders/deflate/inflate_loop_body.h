/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_loop_body.h: the fast loop itself, included once for each form, which defines LOOP as
 * the function's name and TARGET as its attributes.
 *
 * `bits` holds the next bits of the source, `nbits` of them (56 to 63 after a refill) belong to
 * bytes before in_next; those above are copies of the bits at in_next or zero, so that OR-ing
 * them in again changes nothing.
 */

/* Most bytes that one turn reads from in_next on: three refills, of which the first two move it
 * by at most 7 bytes each, after 7 that starting up moves it by. */
#define IN_MARGIN (7 + 7 + 7 + 8)

/* Most bytes that one turn writes from out on: two literals, or one and a match, which is copied in
 * words and so writes up to 7 bytes past its end. */
#define OUT_MARGIN (2 + WHARF_DEFLATE_MAX_MATCH + 7)

#define REFILL()                                                                                   \
    do {                                                                                           \
        bits |= wharf_load_le64(in_next) << nbits;                                                 \
        in_next += (63 - nbits) >> 3;                                                              \
        nbits |= 56;                                                                               \
    } while (0)

#define TAKE(entry)                                                                                \
    do {                                                                                           \
        bits >>= wharf_entry_nbits(entry) & 63;                                                    \
        nbits -= wharf_entry_nbits(entry);                                                         \
    } while (0)

static inline void copy_words(uint8_t *to, const uint8_t *from, const uint8_t *to_end,
                              uint32_t step)
{
    do {
        uint64_t word;
        memcpy(&word, from, sizeof(word));
        memcpy(to, &word, sizeof(word));
        to += step;
        from += step;
    } while (to < to_end);
}

TARGET void LOOP(struct wharf_inflate *inflate)
{
    const struct wharf_inflate_tables *tables = &inflate->tables;
    const uint64_t litlen_mask = ((uint64_t)1 << tables->litlen_nbits) - 1;
    const uint64_t distance_mask = ((uint64_t)1 << tables->distance_nbits) - 1;
    const uint8_t *in_next = inflate->in + (inflate->bit_pos >> 3);
    uint8_t *out = inflate->out_next;

    if (inflate->in + inflate->in_nbytes - in_next < IN_MARGIN ||
        inflate->out_end - out < OUT_MARGIN)
        return;
    const uint8_t *in_limit = inflate->in + inflate->in_nbytes - IN_MARGIN;
    uint8_t *out_limit = inflate->out_end - OUT_MARGIN;

    uint64_t bits = wharf_load_le64(in_next) >> (inflate->bit_pos & 7);
    unsigned nbits = 56 - (inflate->bit_pos & 7);
    in_next += 7;
    do {
        REFILL();
        uint32_t entry = tables->litlen[bits & litlen_mask];
        if (entry & WHARF_ENTRY_LITERAL) {
            TAKE(entry);
            *out++ = (uint8_t)wharf_entry_value(entry);
            entry = tables->litlen[bits & litlen_mask];
        }
        if (entry & WHARF_ENTRY_SUBTABLE)
            entry = tables->litlen[wharf_entry_sum(entry, bits)];
        if (entry & WHARF_ENTRY_LITERAL) {
            TAKE(entry);
            *out++ = (uint8_t)wharf_entry_value(entry);
            continue;
        }
        if (entry & WHARF_ENTRY_SPECIAL)
            break;

        /* A match.  Nothing is taken for good until it is known to be one. */
        const unsigned litlen_nbits = wharf_entry_nbits(entry);
        const uint32_t length = wharf_entry_sum(entry, bits);
        TAKE(entry);
        REFILL();
        entry = tables->distance[bits & distance_mask];
        if (entry & WHARF_ENTRY_SUBTABLE)
            entry = tables->distance[wharf_entry_sum(entry, bits)];
        const uint32_t distance = wharf_entry_sum(entry, bits);
        if ((entry & WHARF_ENTRY_SPECIAL) || distance > (size_t)(out - inflate->out_begin)) {
            nbits += litlen_nbits;
            break;
        }
        TAKE(entry);
        copy_words(out, out - distance, out + length, distance < 8 ? distance : 8);
        out += length;
    } while (in_next <= in_limit && out <= out_limit);
    inflate->bit_pos = 8 * (uint64_t)(in_next - inflate->in) - nbits;
    inflate->out_next = out;
}
