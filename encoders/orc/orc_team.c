/* SPDX-License-Identifier: Apache-2.0 */
/* orc_team.c: shares the blocks of streams between threads; see orc_team.h. */
#include "encoders/orc/orc_team.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A smaller block is decoded in less time than it takes to give it away. */
enum { LEAST_NBYTES = 2048 };

enum state { FREE, POSTED, BEGUN, DONE };

/* A block that a reader gave away.  Who begins it owns all but `state` and the links until it is
 * DONE. */
struct wharf_orc_slot {
    enum state state;
    struct wharf_orc_slot *next;    /* of its reader's, or of the free ones */
    struct wharf_orc_slot *waiting; /* of those that nobody has begun */
    const struct wharf_orc_bytes *of;
    struct wharf_orc_block block;
    struct wharf_orc_scratch packed;
    uint8_t *out;
    size_t out_avail;
    size_t nbytes;
    struct wharf_orc_error error;
};

struct wharf_orc_team {
    pthread_mutex_t lock;  /* for all below */
    pthread_cond_t posted; /* helpers wait for blocks, or the end */
    pthread_cond_t done;   /* readers wait for blocks */
    size_t n_left;         /* pieces of work that are not done */
    unsigned n_helpers;
    unsigned n_posted;
    struct wharf_orc_slot *free;
    struct wharf_orc_slot *waiting, *last_waiting;
    unsigned n_slots;
    struct wharf_orc_slot slots[];
};

int wharf_orc_team_new(unsigned n_threads, struct wharf_orc_team **ret_team)
{
    unsigned n_slots = n_threads * WHARF_ORC_TEAM_SLOTS;
    struct wharf_orc_team *team = calloc(1, sizeof(*team) + n_slots * sizeof(team->slots[0]));

    if (!team)
        return -ENOMEM;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->posted, NULL);
    pthread_cond_init(&team->done, NULL);
    team->n_slots = n_slots;
    for (unsigned i = 0; i < n_slots; i++) {
        team->slots[i].next = team->free;
        team->free = &team->slots[i];
    }
    *ret_team = team;
    return 0;
}

void wharf_orc_team_free(struct wharf_orc_team *team)
{
    if (!team)
        return;
    for (unsigned i = 0; i < team->n_slots; i++) {
        free(team->slots[i].packed.bytes);
        free(team->slots[i].out);
    }
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->posted);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

/* ---- decoding, by whoever has time --------------------------------------------------------- */

static int make_room(struct wharf_orc_slot *slot)
{
    if (slot->out_avail >= slot->of->block_nbytes)
        return 0;
    free(slot->out);
    slot->out = malloc(slot->of->block_nbytes);
    slot->out_avail = slot->out ? slot->of->block_nbytes : 0;
    return slot->out ? 0 : -ENOMEM;
}

static void decode(struct wharf_orc_slot *slot)
{
    slot->error.trouble = WHARF_ORC_GOOD;
    if (make_room(slot) < 0)
        wharf_orc_fail_system(-ENOMEM, slot->block.at, &slot->error);
    else
        wharf_orc_block_decode(slot->of, &slot->block, &slot->packed, slot->out, &slot->nbytes,
                               &slot->error);
}

/* Takes a slot out of those that nobody has begun.  `before`: the one before it, or NULL. */
static void begin(struct wharf_orc_team *team, struct wharf_orc_slot *slot,
                  struct wharf_orc_slot *before)
{
    *(before ? &before->waiting : &team->waiting) = slot->waiting;
    if (team->last_waiting == slot)
        team->last_waiting = before;
    slot->state = BEGUN;
    team->n_posted--;
}

/* Does the oldest block that nobody has begun, of which there is one; with the lock. */
static void do_oldest(struct wharf_orc_team *team)
{
    struct wharf_orc_slot *slot = team->waiting;

    begin(team, slot, NULL);
    pthread_mutex_unlock(&team->lock);
    decode(slot);
    pthread_mutex_lock(&team->lock);
    slot->state = DONE;
    pthread_cond_broadcast(&team->done);
}

/* ---- helpers ------------------------------------------------------------------------------- */

void wharf_orc_team_begin(struct wharf_orc_team *team, size_t n_items)
{
    pthread_mutex_lock(&team->lock);
    team->n_left = n_items;
    pthread_mutex_unlock(&team->lock);
}

void wharf_orc_team_finish(struct wharf_orc_team *team)
{
    pthread_mutex_lock(&team->lock);
    if (--team->n_left == 0)
        pthread_cond_broadcast(&team->posted);
    pthread_mutex_unlock(&team->lock);
}

void wharf_orc_team_help(struct wharf_orc_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->n_helpers++;
    while (team->n_left > 0)
        if (team->waiting)
            do_oldest(team);
        else
            pthread_cond_wait(&team->posted, &team->lock);
    team->n_helpers--;
    pthread_mutex_unlock(&team->lock);
}

/* ---- readers ------------------------------------------------------------------------------- */

static void post(struct wharf_orc_team *team, const struct wharf_orc_bytes *of,
                 struct wharf_orc_ahead *ahead, const struct wharf_orc_block *block)
{
    struct wharf_orc_slot *slot = team->free;

    team->free = slot->next;
    slot->state = POSTED;
    slot->next = slot->waiting = NULL;
    slot->of = of;
    slot->block = *block;
    *(ahead->last ? &ahead->last->next : &ahead->first) = slot;
    ahead->last = slot;
    *(team->last_waiting ? &team->last_waiting->waiting : &team->waiting) = slot;
    team->last_waiting = slot;
    team->n_posted++;
    ahead->at = block->body + block->nbytes;
    pthread_cond_signal(&team->posted);
}

/* Two for each helper: one that it does, and one that it finds when it has done it. */
static bool is_wanted(const struct wharf_orc_team *team)
{
    return team->free && team->n_posted < 2 * team->n_helpers;
}

/* Gives the next blocks away, up to one that is not worth it, or bad. */
static void look_ahead(struct wharf_orc_team *team, const struct wharf_orc_bytes *of,
                       struct wharf_orc_ahead *ahead, uint64_t end)
{
    struct wharf_orc_block block;
    struct wharf_orc_error error;

    while (is_wanted(team) && ahead->at < end) {
        pthread_mutex_unlock(&team->lock);
        int r = wharf_orc_block_find(of, ahead->at, end, &block, &error);
        pthread_mutex_lock(&team->lock);
        if (r < 0 || block.is_plain || block.nbytes < LEAST_NBYTES || !is_wanted(team))
            break;
        post(team, of, ahead, &block);
    }
}

/* Out of those that nobody has begun, wherever it stands there. */
static void take_back(struct wharf_orc_team *team, struct wharf_orc_slot *slot)
{
    struct wharf_orc_slot *before = NULL;

    if (team->waiting != slot)
        for (before = team->waiting; before->waiting != slot;)
            before = before->waiting;
    begin(team, slot, before);
}

static void remove_first(struct wharf_orc_team *team, struct wharf_orc_ahead *ahead)
{
    struct wharf_orc_slot *slot = ahead->first;

    ahead->first = slot->next;
    if (!ahead->first)
        ahead->last = NULL;
    slot->state = FREE;
    slot->next = team->free;
    team->free = slot;
}

/* Does other blocks while somebody has this one. */
static void await_done(struct wharf_orc_team *team, const struct wharf_orc_slot *slot)
{
    while (slot->state != DONE)
        if (team->waiting)
            do_oldest(team);
        else
            pthread_cond_wait(&team->done, &team->lock);
}

/* The first one, which nobody may have begun, to `out`; with the lock. */
static void finish_first(struct wharf_orc_team *team, struct wharf_orc_ahead *ahead,
                         struct wharf_orc_block *ret_block, uint8_t *out, size_t *ret_nbytes,
                         struct wharf_orc_error *ret_error)
{
    struct wharf_orc_slot *slot = ahead->first;
    bool is_ours = slot->state == POSTED;

    if (is_ours)
        take_back(team, slot);
    else
        await_done(team, slot);
    pthread_mutex_unlock(&team->lock);
    *ret_block = slot->block;
    ret_error->trouble = WHARF_ORC_GOOD;
    if (is_ours) {
        wharf_orc_block_decode(slot->of, &slot->block, &slot->packed, out, ret_nbytes, ret_error);
    } else if (slot->error.trouble) {
        *ret_error = slot->error;
    } else {
        memcpy(out, slot->out, slot->nbytes);
        *ret_nbytes = slot->nbytes;
    }
    pthread_mutex_lock(&team->lock);
    remove_first(team, ahead);
}

bool wharf_orc_team_next(const struct wharf_orc_bytes *of, struct wharf_orc_ahead *ahead,
                         uint64_t at, uint64_t end, struct wharf_orc_block *ret_block, uint8_t *out,
                         size_t *ret_nbytes, struct wharf_orc_error *ret_error)
{
    struct wharf_orc_team *team = of->team;

    pthread_mutex_lock(&team->lock);
    if (!ahead->first)
        ahead->at = at;
    look_ahead(team, of, ahead, end);
    bool is_there = ahead->first != NULL;
    if (is_there)
        finish_first(team, ahead, ret_block, out, ret_nbytes, ret_error);
    pthread_mutex_unlock(&team->lock);
    return is_there;
}

void wharf_orc_team_drop(const struct wharf_orc_bytes *of, struct wharf_orc_ahead *ahead)
{
    struct wharf_orc_team *team = of->team;

    pthread_mutex_lock(&team->lock);
    while (ahead->first) {
        if (ahead->first->state == POSTED)
            take_back(team, ahead->first);
        else
            await_done(team, ahead->first);
        remove_first(team, ahead);
    }
    pthread_mutex_unlock(&team->lock);
}
