/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h: deficit round robin.
 *
 * Each member receives its quantum of time once a round, and has the turn while its deficit is
 * above 0.  Use is charged when it is estimated and corrected when it is known, so a deficit may
 * fall far below 0; the member then waits for as many rounds as it takes to pay that back.  A
 * member that leaves keeps its debt, which the rounds in its absence reduce.  Unused time is not
 * saved.
 */
#ifndef WHARF_DAEMON_BASE_TURNS_H
#define WHARF_DAEMON_BASE_TURNS_H

#include <stdint.h>

#include "daemon/base/list.h"

struct wharf_turns {
    struct wharf_list members;
    uint32_t n_members;
    uint64_t round;
};

struct wharf_turn {
    struct wharf_list link; /* in no list while the member has nothing to do */
    int64_t deficit_ns;
    int64_t quantum_ns; /* above 0 */
    uint64_t round;     /* when it last got its quantum */
};

void wharf_turns_init(struct wharf_turns *turns);
void wharf_turn_init(struct wharf_turn *turn);

/* Takes part from now on, or no longer.  They do nothing if that is so already. */
void wharf_turns_join(struct wharf_turns *turns, struct wharf_turn *turn, int64_t quantum_ns);
void wharf_turns_leave(struct wharf_turns *turns, struct wharf_turn *turn);

/* The member whose turn it is, or NULL. */
struct wharf_turn *wharf_turns_first(struct wharf_turns *turns);

/*
 * The number of rounds before a member has its turn; 0 if it could be now.  To choose among some
 * members only, take the one with the fewest.
 */
uint64_t wharf_turns_away(const struct wharf_turns *turns, const struct wharf_turn *turn);

/* Skips a member whose turn it is: the next one has the turn. */
void wharf_turns_skip(struct wharf_turns *turns, struct wharf_turn *turn);

/* Charges a member for its use.  A negative one is a refund. */
void wharf_turns_charge(struct wharf_turns *turns, struct wharf_turn *turn, int64_t used_ns);

#endif
