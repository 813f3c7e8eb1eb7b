/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_body.h: a rans stream's body taken apart: sizes, splits, words.  encoders/rans/rans_format.h
 * has the layout and the rules.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_BODY_H
#define WHARF_ENCODERS_RANS_RANS_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "encoders/little_endian.h"
#include "encoders/rans/rans_format.h"
#include "proto/wharf_result.h"

/* Where everything is.  Points into the source; all of it was found to be there. */
struct wharf_rans_body {
    const uint8_t *in;
    uint32_t n_splits;  /* 1 to WHARF_RANS_MAX_SPLITS */
    uint32_t n_symbols; /* 0 to WHARF_RANS_MAX_SYMBOLS */
    uint32_t n_groups;
    uint32_t cut_nbits; /* item 5's magnitudes; this and the next four only with several splits */
    uint32_t group_nbits;
    uint64_t cuts_at; /* bits of the body */
    uint64_t groups_at;
    uint64_t starts_at;
    const uint8_t *split_states;
    const uint8_t *words;
    uint64_t n_words;
};

/* A place in the list of splits. */
struct wharf_rans_cursor {
    uint32_t number;    /* of the split that comes next; from 1 on */
    uint64_t starts_at; /* its starts, in bits of the body */
};

struct wharf_rans_split {
    uint32_t first_group; /* the smallest start */
    uint32_t last_group;  /* the largest start: where its window ends */
    int64_t first_word;   /* cut(s) */
    uint32_t start[WHARF_RANS_N_LANES];
    uint16_t state[WHARF_RANS_N_LANES];
};

/*
 * Takes a body apart and verifies it by rules 3 and 4, except those about indexes.  Returns true;
 * or false with the reason, of BAD_DATA.  Needs no memory; time is linear in in_nbytes.
 */
bool wharf_rans_body_parse(const uint8_t *in, uint64_t in_nbytes, struct wharf_rans_body *ret_body,
                           enum wharf_reason *ret_reason);

/* Splits that are gone past, without a look at what they say, between two questions whether to go
 * on: each is 5 ns, or 100 ns where its fields are not in the caches. */
#define WHARF_RANS_POLL_NSKIPPED 1024

struct wharf_codec_setting;

/* The same by rule 3 alone, asking in between whether to go on, as encoders/decode_poll.h says.
 * *ret_result is BAD_DATA where that is why it returns false, or the answer, without a reason.
 * `setting` may be NULL. */
bool wharf_rans_body_take_apart(const uint8_t *in, uint64_t in_nbytes,
                                const struct wharf_codec_setting *setting,
                                struct wharf_rans_body *ret_body, enum wharf_reason *ret_reason,
                                uint32_t *ret_result);

/* How far the splits of a body that was taken apart were held against rule 4. */
struct wharf_rans_order {
    struct wharf_rans_cursor cursor;
    int64_t word_before;
    int64_t group_before;
};
void wharf_rans_order_init(struct wharf_rans_order *order, const struct wharf_rans_body *body);

/* The n splits that come next, or those that are left; false when one breaks it. */
bool wharf_rans_order_keeps(struct wharf_rans_order *order, const struct wharf_rans_body *body,
                            uint32_t n);

/* Whether a split keeps rule 4 behind one whose first word is word_before and whose window ends
 * with group_before. */
bool wharf_rans_split_follows(const struct wharf_rans_body *body,
                              const struct wharf_rans_split *split, int64_t word_before,
                              int64_t group_before);

static inline struct wharf_rans_cursor wharf_rans_first_split(const struct wharf_rans_body *body)
{
    return (struct wharf_rans_cursor){.number = 1, .starts_at = body->starts_at};
}

/* The split that comes next, and the cursor behind it; false when there is none. */
bool wharf_rans_next_split(const struct wharf_rans_body *body, struct wharf_rans_cursor *cursor,
                           struct wharf_rans_split *ret_split);

/* Goes past the split that comes next, which is there, without looking at it. */
void wharf_rans_skip_split(const struct wharf_rans_body *body, struct wharf_rans_cursor *cursor);

/* Coder `lane`'s final state. */
static inline uint32_t wharf_rans_final_state(const struct wharf_rans_body *body, uint32_t lane)
{
    return wharf_load_le16(body->in + 4 * lane) << 16 | wharf_load_le16(body->in + 4 * lane + 2);
}

/* Word `number`, which is there. */
static inline uint32_t wharf_rans_word(const struct wharf_rans_body *body, int64_t number)
{
    return wharf_load_le16(body->words + WHARF_RANS_WORD_NBYTES * number);
}

/* The bit of the body at which word `number` ends: where errors stand when it is the next one. */
static inline uint64_t wharf_rans_word_end(const struct wharf_rans_body *body, int64_t number)
{
    return 8 * (uint64_t)(body->words - body->in) + (uint64_t)(number + 1) * WHARF_RANS_WORD_NBITS;
}

#endif
