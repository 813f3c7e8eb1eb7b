/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_mark.h: splits as they were read, as they are written.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_MARK_H
#define WHARF_ENCODERS_RANS_RANS_MARK_H

#include "encoders/rans/rans_body.h"
#include "encoders/rans/rans_write.h"

static inline struct wharf_rans_mark wharf_rans_mark_of(const struct wharf_rans_split *split)
{
    struct wharf_rans_mark mark = {.first_word = split->first_word,
                                   .first_group = split->first_group};

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        mark.start_offset[lane] = (uint16_t)(split->start[lane] - split->first_group);
        mark.state[lane] = split->state[lane];
    }
    return mark;
}

/* Whether splits of this body can be written: the fields that say where they are in the words have
 * 32 bits.  A body with more words than it could have symbols is a bad one, with splits or
 * without. */
static inline bool wharf_rans_can_have_marks(const struct wharf_rans_body *body)
{
    return body->n_words <= WHARF_RANS_MAX_SYMBOLS;
}

/* A body with other splits. */
static inline struct wharf_rans_plan wharf_rans_plan_of(const struct wharf_rans_body *body,
                                                        const struct wharf_rans_mark *marks,
                                                        uint32_t n_splits)
{
    struct wharf_rans_plan plan = {
        .n_symbols = body->n_symbols,
        .n_words = body->n_words,
        .marks = marks,
        .n_splits = n_splits,
    };

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        plan.final_state[lane] = wharf_rans_final_state(body, lane);
    return plan;
}

#endif
