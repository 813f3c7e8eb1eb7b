/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.pml: daemons that die at any step, and a client that goes on with the next one.  Does
 * every job complete, once, with its own output, and does nobody write to memory that the client
 * has got back?
 *
 * Each daemon has a worker, which writes the outputs and can outlive it for a while.  The client
 * has two slots, each with a source, a destination and its private copy of the submission, and
 * uses them over and over, so that an old completion or a late write would hit another job.  Store
 * buffers and sleeping are the other models' matter: memory is plain here, and waiting is looking.
 *
 * What breaks when a rule is left out:
 *   -DREPLAY_UNTAKEN_ONLY  the client submits again only what the dead daemon had not taken
 *   -DHELLO_EARLY          a new daemon serves while the old one's worker is alive
 *   -DOLD_RINGS            the new session uses the old one's segments
 *   -DPUBLISH_EARLY        completions are published before the worker has finished
 */
#define JOBS 3
#define SLOTS 2
#define DAEMONS 3

#ifdef OLD_RINGS
#define SEGMENT(generation) 0
#else
#define SEGMENT(generation) (generation)
#endif

/* Segments C and D of each session. */
byte sq_tail[DAEMONS], sq_head[DAEMONS], cq_tail[DAEMONS];
byte submissions[DAEMONS * SLOTS], completions[DAEMONS * SLOTS];
#define submission_at(g, i) submissions[SEGMENT(g) * SLOTS + (i) % SLOTS]
#define completion_at(g, i) completions[SEGMENT(g) * SLOTS + (i) % SLOTS]

/* Of each slot.  Jobs are numbered from 1; the output of job j is j. */
byte source[SLOTS], destination[SLOTS];
bool in_flight[SLOTS];

bool dead[DAEMONS];      /* and its end of the control socket closed */
bool gone[DAEMONS];      /* its worker too */
bool greeted[DAEMONS];   /* it has answered Hello */
chan to_worker[DAEMONS] = [SLOTS] of { byte };
chan from_worker[DAEMONS] = [SLOTS] of { byte };

/* ---- daemons -------------------------------------------------------------------------------- */

proctype worker(byte g)
{
	byte s;

end:	do
	:: atomic { !dead[g] && nempty(to_worker[g]) -> to_worker[g]?s };
		/* Here its daemon may die: then this is a late write. */
		atomic { assert(in_flight[s]); destination[s] = source[s] };
		atomic { from_worker[g]!s; s = 0 }
	:: atomic { dead[g] -> gone[g] = true; break }
	od
}

inline wharf_ring_take(ret_s)
{
	atomic { ret_s = submission_at(g, d_sq_head); d_sq_head++ }
}

inline wharf_ring_complete(s)
{
	atomic { completion_at(g, d_cq_tail) = s; d_cq_tail++ }
}

inline wharf_ring_publish_completions()
{
	sq_head[SEGMENT(g)] = d_sq_head;
	cq_tail[SEGMENT(g)] = d_cq_tail
}

proctype daemon(byte g)
{
	byte s, d_sq_head, d_cq_tail;

	{
#ifndef HELLO_EARLY
		(g < 1 || gone[0]) && (g < 2 || gone[1]);
#endif
		greeted[g] = true;
end:		do
		:: d_sq_head != sq_tail[SEGMENT(g)] ->
			wharf_ring_take(s);
#ifdef PUBLISH_EARLY
			to_worker[g]!s;
			wharf_ring_complete(s);
			wharf_ring_publish_completions()
		:: from_worker[g]?s -> s = 0
#else
			atomic { to_worker[g]!s; s = 0 }
		:: from_worker[g]?s ->
			wharf_ring_complete(s);
			s = 0;
			wharf_ring_publish_completions()
#endif
		od
	} unless { dead[g] }
}

/* All but the last may die, whenever they like; the next one starts then. */
active proctype killer()
{
	byte g;

	atomic { run daemon(0); run worker(0) };
end:	do
	:: atomic { g < DAEMONS - 1 -> dead[g] = true; g++; run daemon(g); run worker(g) }
	od
}

/* ---- the client ----------------------------------------------------------------------------- */

inline wharf_ring_submit(s)
{
	atomic { submission_at(g, c_sq_tail) = s; c_sq_tail++ }
}

inline wharf_ring_publish_submissions()
{
	sq_tail[SEGMENT(g)] = c_sq_tail
}

/* When there is one. */
inline wharf_ring_reap()
{
	atomic {
		s = completion_at(g, c_cq_head);
		c_cq_head++;
		assert(c_cq_head <= c_sq_tail);
		assert(in_flight[s] && destination[s] == source[s]);
		in_flight[s] = false;
		destination[s] = 0; /* the client's again, to do with as it likes */
		s = 0;
		n_done++
	}
}

#ifdef REPLAY_UNTAKEN_ONLY
#define must_replay(s) (taken_at_death <= place[s])
#else
#define must_replay(s) true
#endif

/* The next daemon that answers. */
inline connect()
{
	do
	:: greeted[g] -> break
	:: dead[g] && !greeted[g] -> g++
	od
}

inline replay()
{
	s = 0;
	do
	:: s < SLOTS && in_flight[s] && must_replay(s) ->
		wharf_ring_submit(s);
		wharf_ring_publish_submissions();
		s++
	:: s < SLOTS && !(in_flight[s] && must_replay(s)) -> s++
	:: s == SLOTS -> s = 0; break
	od
}

active proctype client()
{
	byte g, s, n_submitted, n_done, c_sq_tail, c_cq_head, taken_at_death;
	byte place[SLOTS];

	connect();
	do
	:: n_done == JOBS -> break
	:: n_submitted < JOBS && (!in_flight[0] || !in_flight[1]) ->
		s = (in_flight[0] -> 1 : 0);
		n_submitted++;
		atomic { source[s] = n_submitted; destination[s] = 0; in_flight[s] = true };
#ifdef REPLAY_UNTAKEN_ONLY
		place[s] = c_sq_tail;
#endif
		wharf_ring_submit(s);
		s = 0;
		wharf_ring_publish_submissions()
	:: c_cq_head != cq_tail[SEGMENT(g)] ->
		wharf_ring_reap()
	:: dead[g] ->
		/* Nothing is published any more: drain. */
		do
		:: c_cq_head != cq_tail[SEGMENT(g)] -> wharf_ring_reap()
		:: else -> break
		od;
#ifdef REPLAY_UNTAKEN_ONLY
		taken_at_death = sq_head[SEGMENT(g)];
#endif
		g++;
		connect();
		c_sq_tail = 0;
		c_cq_head = 0;
		replay()
	od;
	assert(!in_flight[0] && !in_flight[1])
}
