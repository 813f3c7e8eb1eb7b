/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c: deficit round robin (Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit
 * Round-Robin", 1995), with debts.
 *
 * The list has the next member first.  Rounds are counted, and a member receives missed quanta when
 * it is visited.  While all members have debts, rounds in which nobody has a turn are skipped at
 * once.
 *
 * INVARIANT: a deficit is at most one quantum, so a member cannot save time up.
 */
#include "daemon/base/turns.h"

#include "daemon/base/list.h"

/* Debts stop growing here, far below overflow: 2^60 ns are 36 years. */
#define MAX_DEBT_NS ((int64_t)1 << 60)

void wharf_turns_init(struct wharf_turns *turns)
{
    wharf_list_init(&turns->members);
    turns->n_members = 0;
    turns->round = 1;
}

void wharf_turn_init(struct wharf_turn *turn)
{
    *turn = (struct wharf_turn){.quantum_ns = 1};
    wharf_list_init(&turn->link);
}

/* The number of quanta that lift the deficit above 0. */
static uint64_t rounds_needed(const struct wharf_turn *turn)
{
    return turn->deficit_ns > 0 ? 0 : (uint64_t)(-turn->deficit_ns / turn->quantum_ns) + 1;
}

/* Adds the quanta of the rounds since the member's last one. */
static void catch_up(const struct wharf_turns *turns, struct wharf_turn *turn)
{
    uint64_t n_missed = turns->round - turn->round;

    turn->round = turns->round;
    if (n_missed >= rounds_needed(turn))
        /* Of missed quanta, at most one may be left after the debt is paid. */
        n_missed = rounds_needed(turn);
    turn->deficit_ns += (int64_t)n_missed * turn->quantum_ns;
}

void wharf_turns_join(struct wharf_turns *turns, struct wharf_turn *turn, int64_t quantum_ns)
{
    if (wharf_list_is_linked(&turn->link))
        return;
    turn->quantum_ns = quantum_ns;
    if (turn->deficit_ns > 0)
        turn->deficit_ns = 0;
    catch_up(turns, turn);
    if (turn->deficit_ns > 0) {
        /* Without a debt, it gets this round's quantum when its turn comes. */
        turn->deficit_ns = 0;
        turn->round--;
    }
    wharf_list_append(&turns->members, &turn->link);
    turns->n_members++;
}

void wharf_turns_leave(struct wharf_turns *turns, struct wharf_turn *turn)
{
    if (!wharf_list_is_linked(&turn->link))
        return;
    wharf_list_remove(&turn->link);
    turns->n_members--;
}

/* All members have had this round.  Goes on to the next one in which some deficit is above 0. */
static void begin_round(struct wharf_turns *turns)
{
    uint64_t least = UINT64_MAX;

    WHARF_LIST_FOR(link, &turns->members)
    {
        uint64_t n = rounds_needed(WHARF_LIST_ENTRY(link, struct wharf_turn, link));
        if (n < least)
            least = n;
    }
    turns->round += least;
}

struct wharf_turn *wharf_turns_first(struct wharf_turns *turns)
{
    struct wharf_turn *turn;
    uint32_t n_done = 0; /* members seen in a row without time left in this round */

    while ((turn = WHARF_LIST_FIRST(&turns->members, struct wharf_turn, link))) {
        if (turn->deficit_ns <= 0 && turn->round == turns->round && ++n_done == turns->n_members) {
            begin_round(turns);
            n_done = 0;
            /* All members were seen; the one that has waited longest comes next. */
            wharf_list_rotate(&turns->members);
            turn = WHARF_LIST_FIRST(&turns->members, struct wharf_turn, link);
        }
        if (turn->deficit_ns <= 0)
            catch_up(turns, turn);
        if (turn->deficit_ns > 0)
            return turn;
        wharf_list_rotate(&turns->members);
    }
    return NULL;
}

uint64_t wharf_turns_away(const struct wharf_turns *turns, const struct wharf_turn *turn)
{
    uint64_t n_missed = turns->round - turn->round;
    uint64_t n_needed = rounds_needed(turn);

    return n_needed > n_missed ? n_needed - n_missed : 0;
}

void wharf_turns_skip(struct wharf_turns *turns, struct wharf_turn *turn)
{
    wharf_list_remove(&turn->link);
    wharf_list_append(&turns->members, &turn->link);
}

void wharf_turns_charge(struct wharf_turns *turns, struct wharf_turn *turn, int64_t used_ns)
{
    turn->deficit_ns -= used_ns;
    if (turn->deficit_ns < -MAX_DEBT_NS)
        turn->deficit_ns = -MAX_DEBT_NS;
    if (turn->deficit_ns > turn->quantum_ns)
        turn->deficit_ns = turn->quantum_ns;
    if (used_ns > 0 && turn->deficit_ns <= 0 && wharf_list_is_linked(&turn->link))
        wharf_turns_skip(turns, turn);
}
