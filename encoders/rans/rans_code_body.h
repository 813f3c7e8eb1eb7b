/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_code_body.h: what is the same in all forms of the tuned coder.  A form's file defines before
 *
 *   N_PARTS       how many registers have all coders' states
 *   struct part   of a register's coders the states, and the groups and states that they start with
 *   load_part     the values of so many coders from one on, the last one first; inlined
 *   store_part    likewise
 *   code_part     codes a part's symbols of one group, given the number of the first; inlined
 *
 * and CODE_NAME.
 */

/* The lowest coder of a part. */
#define FIRST_OF(part) (WHARF_RANS_N_LANES / N_PARTS * (N_PARTS - 1 - (part)))

LANES_INLINE void code_groups(struct wharf_rans_coder *coder, struct lookup lookup, uint32_t begin,
                              uint32_t end)
{
    const struct wharf_rans_source *source = coder->source;
    uint16_t *next_word = coder->next_word;
    struct part parts[N_PARTS];

    for (unsigned i = 0; i < N_PARTS; i++)
        parts[i] = (struct part){load_part(coder->states + FIRST_OF(i)),
                                 load_part(coder->start + FIRST_OF(i)),
                                 load_part(coder->start_state + FIRST_OF(i))};
    for (; end > begin; end--) {
        uint64_t number = (uint64_t)(end - 1) * WHARF_RANS_N_LANES;

#pragma GCC unroll 4
        for (unsigned i = 0; i < N_PARTS; i++)
            next_word =
                code_part(source, lookup, &parts[i], number + FIRST_OF(i), end - 1, next_word);
    }
    for (unsigned i = 0; i < N_PARTS; i++) {
        store_part(coder->states + FIRST_OF(i), parts[i].states);
        store_part(coder->start + FIRST_OF(i), parts[i].start);
        store_part(coder->start_state + FIRST_OF(i), parts[i].start_state);
    }
    coder->next_word = next_word;
}

/* The kinds of sources, each with code of its own. */
TARGET void CODE_NAME(struct wharf_rans_coder *coder, uint32_t begin, uint32_t end)
{
    const struct wharf_rans_source *source = coder->source;
    bool is_indexed = source->indexes != NULL;

    if (source->shape.symbol_nbytes == 1 && !is_indexed)
        code_groups(coder, (struct lookup){.symbol_nbytes = 1}, begin, end);
    else if (source->shape.symbol_nbytes == 1)
        code_groups(coder, (struct lookup){.is_indexed = true, .symbol_nbytes = 1}, begin, end);
    else if (!is_indexed)
        code_groups(coder, (struct lookup){.symbol_nbytes = 2}, begin, end);
    else
        code_groups(coder, (struct lookup){.is_indexed = true, .symbol_nbytes = 2}, begin, end);
}
