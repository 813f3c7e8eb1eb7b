/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.pml: a daemon that dies at any step, and a client that then looks at the marks it left.
 *
 * The question: does the client count the death against every job that the daemon was looking at or
 * had begun, and against no job that it had not looked at yet or that only waited?
 *
 * The client has two jobs in flight at a time and uses their slots over and over, so that an old
 * mark could be taken for another job's.  replay.pml models what the client does after a death.
 *
 * Each of these leaves out a rule, and the model then finds a fault:
 *   -DLOOK_UNMARKED   submissions are marked after the daemon has looked at them
 *   -DBEGIN_UNMARKED  jobs are marked after the daemon has begun them
 *   -DKEEP_LOOK       a submission stays marked when the daemon looks at it no more
 *   -DMARK_PLACES     marks are of places, not of indices
 *   -DCOUNT_ALL       the client counts the death against all that is outstanding
 */
#define JOBS 5
#define SLOTS 2

/* Of segments C and D.  The entry of a submission is its slot. */
byte sq_tail, cq_tail, submissions[SLOTS], completions[SLOTS];
byte sq_looked, marks[SLOTS];

#ifdef MARK_PLACES
#define mark_of(i) (1 + (i) % SLOTS)
#else
#define mark_of(i) (1 + (i))
#endif

/* The truth, whatever marks say, as bits of indices.  in_hand: being looked at, or begun.  near: also
 * just before and just after, when a mark may be there already, or still. */
byte in_hand, near;
#define bit(i) (1 << (i))

bool dead;

/* ---- the daemon ----------------------------------------------------------------------------- */

inline wharf_ring_mark_look(i)
{
	sq_looked = mark_of(i)
}

inline wharf_ring_unmark_look()
{
	sq_looked = 0
}

inline wharf_ring_mark_begun(p, i)
{
	marks[p] = mark_of(i)
}

inline wharf_ring_take(ret_s)
{
	atomic {
#ifndef LOOK_UNMARKED
		wharf_ring_mark_look(sq_head);
#endif
		near = near | bit(sq_head)
	};
	atomic {
		ret_s = submissions[sq_head % SLOTS];
		in_hand = in_hand | bit(sq_head)
	};
#ifdef LOOK_UNMARKED
	wharf_ring_mark_look(sq_head);
#endif
	sq_head++
}

/* It waits for an engine. */
inline queue(s)
{
	in_hand = in_hand & ~bit(sq_head - 1);
	atomic {
#ifndef KEEP_LOOK
		wharf_ring_unmark_look();
#endif
		near = near & ~bit(sq_head - 1);
		index[s] = sq_head - 1;
		queued!s;
		s = 0
	}
}

/* An engine has it. */
inline begin(s)
{
	atomic {
#ifndef BEGIN_UNMARKED
		wharf_ring_mark_begun(s, index[s]);
#endif
		near = near | bit(index[s])
	};
	atomic { in_hand = in_hand | bit(index[s]); running!s };
#ifdef BEGIN_UNMARKED
	wharf_ring_mark_begun(s, index[s]);
#endif
	s = 0
}

inline wharf_ring_complete(s)
{
	completions[cq_tail % SLOTS] = s
}

inline wharf_ring_publish_completions()
{
	atomic { cq_tail++; s = 0 }
}

active proctype daemon()
{
	byte s, sq_head, index[SLOTS];
	chan queued = [SLOTS] of { byte };
	chan running = [SLOTS] of { byte };

	{
end:		do
		:: sq_head != sq_tail ->
			wharf_ring_take(s);
			queue(s)
		:: queued?s ->
			begin(s)
		/* In any order. */
		:: running??0 ->
			wharf_ring_complete(0);
			wharf_ring_publish_completions()
		:: running??1 ->
			wharf_ring_complete(1);
			wharf_ring_publish_completions()
		od
	} unless { dead }
}

active proctype killer()
{
end:	dead = true
}

/* ---- the client ----------------------------------------------------------------------------- */

inline wharf_ring_submit(s)
{
	atomic {
		submissions[tail % SLOTS] = s;
		place[s] = tail;
		in_flight[s] = true;
		tail++
	}
}

inline wharf_ring_publish_submissions()
{
	atomic { sq_tail = tail; s = 0 }
}

/* When there is one. */
inline wharf_ring_reap()
{
	atomic { in_flight[completions[head % SLOTS]] = false; head++ }
}

#ifdef COUNT_ALL
#define counts(s) true
#else
#define counts(s) (sq_looked == mark_of(place[s]) || marks[0] == mark_of(place[s]) || \
		   marks[1] == mark_of(place[s]))
#endif

inline count_death(s)
{
	assert(!in_flight[s] || !(in_hand & bit(place[s])) || counts(s));
	assert(!in_flight[s] || !counts(s) || (near & bit(place[s])))
}

active proctype client()
{
	byte s, tail, head, place[SLOTS];
	bool in_flight[SLOTS];

end:	do
	:: tail < JOBS && (!in_flight[0] || !in_flight[1]) ->
		s = (in_flight[0] -> 1 : 0);
		wharf_ring_submit(s);
		wharf_ring_publish_submissions()
	:: head != cq_tail ->
		wharf_ring_reap()
	:: dead ->
		do
		:: head != cq_tail -> wharf_ring_reap()
		:: else -> break
		od;
		atomic { count_death(0); count_death(1) };
		break
	od
}
