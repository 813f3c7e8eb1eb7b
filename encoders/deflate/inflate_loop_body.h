/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_loop_body.h: the fast loop itself, included once for each form, which defines LOOP as
 * the function's name, TARGET as its attributes, and LOW_BITS(word, n) as the lowest n bits of a
 * word, where only the lowest 8 bits of n count and are at most 63.  A form for units of 16 bits
 * (inflate.h) defines WIDE besides.
 *
 * The latency until the next entry is known limits the loop.  So each turn first consumes an
 * entry's bits, then starts both look-ups that may follow, of a litlen entry and of a distance, and
 * only then branches on the entry's kind.  After a misprediction the look-ups are already under
 * way.
 *
 * `bits` are the next bits of the source, the lowest first; nbits of them (in the lowest 6 bits of
 * the variable; the rest is whatever entries had there) come before in_next.  Those above are the
 * bits at in_next or zero, so that OR-ing them in again changes nothing.  A refill leaves at least
 * 56; what a turn takes before it refills is at most
 *     two literal steps, 2 * 11, and a FULL match, 11 + 13: 46; or
 *     two literal steps and a length, 15 + 5: 42, then a refill if fewer bits are left than a
 *     distance may have, 15 + 13, and the next look-up needs.
 * After a refill 64 bits are true ones, of which at least 64 - 46 are left for the next look-up.
 */

/* Bytes of the source that a turn may read: eight at a refill, up to seven of them taken, and
 * eight more.  Starting up reads eight, goes on by seven, and by one more with the first refill. */
#define IN_MARGIN (7 + 8)
#define IN_START_MARGIN (8 + IN_MARGIN)

#ifdef WIDE
#define UNIT uint16_t
/* Two literals as the output stores them. */
#define LITERALS_TYPE uint32_t
#define LITERALS_OF(entry) (((entry) >> 16 & 0xff) | ((entry) >> 24) << 16)
#define COPY_MATCH wharf_copy_match_wide
#else
#define UNIT uint8_t
#define LITERALS_TYPE uint16_t
#define LITERALS_OF(entry) ((uint16_t)((entry) >> 16))
#define COPY_MATCH wharf_copy_match
#endif

/* Units that a turn may write: two literal steps, a literal and a match. */
#define OUT_MARGIN (2 * 2 + 1 + WHARF_COPY_NBYTES)

#define REFILL()                                                                                   \
    do {                                                                                           \
        bits |= wharf_load_le64(in_next) << (nbits & 63);                                          \
        in_next += ~nbits >> 3 & 7;                                                                \
        nbits |= 56;                                                                               \
    } while (0)

/* Takes the entry's bits and starts the look-ups. */
#define STEP()                                                                                     \
    do {                                                                                           \
        before = bits;                                                                             \
        bits >>= entry & 63;                                                                       \
        nbits -= entry;                                                                            \
        next_entry = tables->litlen[LOW_BITS(bits, litlen_nbits)];                                 \
        distance_entry = tables->distance[(uint8_t)bits];                                          \
    } while (0)

/* Puts out the entry's one or two literals and goes on to the next entry. */
#define PUT_LITERALS()                                                                             \
    do {                                                                                           \
        const LITERALS_TYPE literals = LITERALS_OF(entry);                                         \
        memcpy(out, &literals, sizeof(literals));                                                  \
        out += (uint8_t)(entry >> 8);                                                              \
        entry = next_entry;                                                                        \
    } while (0)

TARGET void LOOP(struct wharf_inflate *inflate)
{
    const struct wharf_inflate_tables *const tables = inflate->tables;
    const unsigned litlen_nbits = tables->litlen_nbits;
    const uintptr_t out_begin = (uintptr_t)inflate->out_begin;
    const uint8_t *in_next = inflate->in + (inflate->bit_pos >> 3);
    UNIT *out = (UNIT *)(void *)inflate->out_next;
    UNIT *const out_end = (UNIT *)(void *)inflate->out_end;

    if (inflate->in + inflate->in_nbytes - in_next < IN_START_MARGIN || out_end - out < OUT_MARGIN)
        return;
    const uint8_t *const in_limit = inflate->in + inflate->in_nbytes - IN_MARGIN;
    const UNIT *const out_limit = out_end - OUT_MARGIN;

    uint64_t bits = wharf_load_le64(in_next) >> (inflate->bit_pos & 7);
    uint64_t nbits = 56 - (inflate->bit_pos & 7);
    in_next += 7;
    REFILL();

    uint64_t before;                     /* the bits with the entry's own */
    uint32_t next_entry, distance_entry; /* if the entry is literals; if it is a length */
    unsigned given_back = 0;             /* bits taken by a unit that is not good */
    uint32_t entry = tables->litlen[LOW_BITS(bits, litlen_nbits)];
    do {
        STEP();
        if (entry & WHARF_ENTRY_LITERAL) {
            PUT_LITERALS();
            STEP();
            if (entry & WHARF_ENTRY_LITERAL) {
                PUT_LITERALS();
                STEP();
                if (entry & WHARF_ENTRY_LITERAL) {
                    PUT_LITERALS();
                    REFILL();
                    continue;
                }
            }
        }

        UNIT *to;
        const UNIT *from;
        uint32_t length, distance;
        if (entry & WHARF_ENTRY_FULL) {
            distance_entry = wharf_inflate_distances[(uint8_t)(entry >> 8)];
            const uint64_t extra = before >> ((entry - distance_entry) & 63);
            distance = (distance_entry >> 16) + (uint32_t)LOW_BITS(extra, distance_entry);
            length = WHARF_DEFLATE_MIN_MATCH + (entry >> 24);
            *out = (uint8_t)(entry >> 16);
            to = out + (entry >> 13 & 1);
            from = (const UNIT *)((uintptr_t)to - distance * sizeof(UNIT));
            if (__builtin_expect((uintptr_t)from < out_begin, 0)) {
                given_back = wharf_entry_nbits(entry);
                break;
            }
            entry = next_entry;
        } else {
            if (__builtin_expect(entry & WHARF_ENTRY_SPECIAL, 0)) {
                bits = before;
                nbits += entry;
                if (!(entry & WHARF_ENTRY_SUBTABLE))
                    break;
                entry = wharf_entry_follow(tables->litlen, entry, bits);
                if (entry & WHARF_ENTRY_SPECIAL)
                    break;
                STEP();
                if (entry & WHARF_ENTRY_LITERAL) {
                    PUT_LITERALS();
                    REFILL();
                    continue;
                }
            }
            length = WHARF_DEFLATE_MIN_MATCH + (entry >> 24) +
                     (uint32_t)(LOW_BITS(before, entry) >> wharf_entry_code_nbits(entry));
            if (__builtin_expect((nbits & 63) < 15 + 13 + WHARF_LITLEN_TABLE_NBITS, 0))
                REFILL();
            *out = (uint8_t)(entry >> 16);
            to = out + (entry >> 13 & 1);
            if (__builtin_expect(distance_entry & WHARF_ENTRY_SPECIAL, 0)) {
                if (distance_entry & WHARF_ENTRY_SUBTABLE)
                    distance_entry = wharf_entry_follow(tables->distance, distance_entry, bits);
                if (distance_entry & WHARF_ENTRY_SPECIAL) {
                    given_back = wharf_entry_nbits(entry);
                    break;
                }
            }
            before = bits;
            bits >>= distance_entry & 63;
            nbits -= distance_entry;
            next_entry = tables->litlen[LOW_BITS(bits, litlen_nbits)];
            distance = (distance_entry >> 16) + (uint32_t)(LOW_BITS(before, distance_entry) >>
                                                           wharf_entry_code_nbits(distance_entry));
            from = (const UNIT *)((uintptr_t)to - distance * sizeof(UNIT));
            if (__builtin_expect((uintptr_t)from < out_begin, 0)) {
                given_back = wharf_entry_nbits(entry) + wharf_entry_nbits(distance_entry);
                break;
            }
            entry = next_entry;
        }
        REFILL();
        out = to + length;
        COPY_MATCH(to, from, length, distance);
    } while (in_next <= in_limit && out <= out_limit);
    inflate->bit_pos = 8 * (uint64_t)(in_next - inflate->in) - (nbits & 63) - given_back;
    inflate->out_next = (uint8_t *)out;
}
