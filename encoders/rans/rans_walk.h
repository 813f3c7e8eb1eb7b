/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_walk.h: the plain decoder of a rans body: coder by coder, looking at every rule.  It is the
 * verifier: what tuned decoders cannot vouch for, they leave to it.  They also let it do what is
 * rare: beginnings at splits, the last groups.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_WALK_H
#define WHARF_ENCODERS_RANS_RANS_WALK_H

#include "encoders/decode_poll.h"
#include "encoders/rans/rans_body.h"
#include "encoders/rans/rans_model.h"

/* Asks whether to go on, as encoders/decode_poll.h wants it. */
struct wharf_rans_asker {
    const struct wharf_codec_setting *setting;
    uint32_t n_groups; /* decoded since the last question */
    uint32_t result;   /* the last answer */
};

/* Symbols are 2 bytes at most. */
#define WHARF_RANS_POLL_NGROUPS (WHARF_POLL_OUT_NBYTES / (2 * WHARF_RANS_N_LANES))

/* So many groups of tuned decoders take as long as one for which all is looked at. */
#define WHARF_RANS_EXACT_NGROUPS 8

/* After n_groups more: false when the decode is to end, with asker->result. */
static inline bool wharf_rans_goes_on(struct wharf_rans_asker *asker, uint32_t n_groups)
{
    asker->n_groups += n_groups;
    if (asker->n_groups < WHARF_RANS_POLL_NGROUPS)
        return true;
    asker->n_groups = 0;
    asker->result = wharf_decode_poll(asker->setting);
    return asker->result == WHARF_OK;
}

/* What is decoded. */
struct wharf_rans_task {
    struct wharf_rans_asker *asker;
    const struct wharf_rans_body *body;
    const struct wharf_rans_model *model;
    const uint8_t *indexes; /* n_symbols numbers of distributions; NULL if there is one */
    uint8_t *out;           /* n_symbols symbols, of the model's size */
    /* Of all groups those from behind the window of the split that `from` stands before, up to the
     * end of the window of the one that `to` does; NULL: from the first, to the last. */
    const struct wharf_rans_cursor *from;
    const struct wharf_rans_cursor *to;
};

/* One decoder on its way through the groups.  Its states are at least WHARF_RANS_LOW, unless it
 * began at a split that is not what it says. */
struct wharf_rans_walk {
    const struct wharf_rans_task *task;
    uint32_t states[WHARF_RANS_N_LANES];
    int64_t next_word; /* -1 if none is left */
    uint32_t group;    /* that comes next */

    /* The split whose window comes next, if one does. */
    struct wharf_rans_cursor cursor;
    struct wharf_rans_split split;
    bool has_split;
    bool cut_seen; /* its first word was taken */
};

/*
 * Behind the window of the split that `cursor` stands before.  Symbols of the window are not
 * delivered.  Returns false when that split cannot be right.
 */
bool wharf_rans_walk_init_at(struct wharf_rans_walk *walk, const struct wharf_rans_task *task,
                             struct wharf_rans_cursor cursor);

/* Goes on to the window that comes next, if one does. */
void wharf_rans_walk_next_window(struct wharf_rans_walk *walk);

/* Decodes the group that comes next: rule 7.  After a failure the walk is over. */
enum wharf_reason wharf_rans_walk_group(struct wharf_rans_walk *walk);

/* Where a task begins; false when that cannot be right. */
bool wharf_rans_walk_begin(struct wharf_rans_walk *walk, const struct wharf_rans_task *task);

/* The group behind a task's last one. */
uint32_t wharf_rans_task_end(const struct wharf_rans_task *task);

/* Whether a task's groups are all good: of those that are part of a body, which are not verified,
 * the states at the end are those of the split there, if they are. */
bool wharf_rans_walk_part(const struct wharf_rans_task *task);

/* After the last group: rule 8. */
enum wharf_reason wharf_rans_walk_end(const struct wharf_rans_walk *walk);

/*
 * A whole body by one walk.  Returns WHARF_REASON_NONE, or the reason, of BAD_DATA, and in *ret_bit
 * where in the body it stands.  Ends at once, with any reason, when the asker's answer is not
 * WHARF_OK.
 */
enum wharf_reason wharf_rans_walk_all(const struct wharf_rans_task *task, uint64_t *ret_bit);

#endif
