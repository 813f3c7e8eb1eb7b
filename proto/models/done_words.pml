/* SPDX-License-Identifier: Apache-2.0 */
/*
 * done_words.pml: a stream of the client's waits for a job by its done word, while daemons die at
 * any step.  Does every job end, and does nobody write to memory that the stream has taken over?
 *
 * There is one job at a time, with one place for its memory and its word; serial numbers are the
 * jobs'.  Rings are replay.pml's matter: here a submission and a completion are messages.  The word
 * is memory of the client's, which outlives each daemon.
 *
 * What breaks when a rule is left out:
 *   -DWORD_UNREAD  the client submits again without looking at the word
 *   -DWORD_EARLY   the word is written before the worker has finished
 *   -DWORD_LATE    the completion is published before the word is written
 */
#define JOBS 2
#define DAEMONS 3

byte word;       /* the serial number of the last job that says that it has ended */
byte serial;     /* of the job in flight */
bool taken;      /* its memory is the stream's */

bool dead[DAEMONS];    /* and its end of the control socket closed */
bool gone[DAEMONS];    /* its worker too */
bool greeted[DAEMONS]; /* it has answered Hello */
chan submission[DAEMONS] = [1] of { byte };
chan completion[DAEMONS] = [1] of { byte };
chan to_worker[DAEMONS] = [1] of { byte };
chan from_worker[DAEMONS] = [1] of { byte };

/* ---- daemons -------------------------------------------------------------------------------- */

proctype worker(byte g)
{
	byte j;

end:	do
	:: atomic { !dead[g] && nempty(to_worker[g]) -> to_worker[g]?j };
		/* The output: here its daemon may die. */
		assert(j == serial && !taken);
		atomic { from_worker[g]!j; j = 0 }
	:: atomic { dead[g] -> gone[g] = true; break }
	od
}

inline wharf_ring_write_done(j)
{
	word = j
}

proctype daemon(byte g)
{
	byte j;

	{
		(g < 1 || gone[0]) && (g < 2 || gone[1]);
		greeted[g] = true;
end:		do
		:: submission[g]?j ->
#ifdef WORD_EARLY
			wharf_ring_write_done(j);
#endif
			atomic { to_worker[g]!j; j = 0 }
		:: from_worker[g]?j ->
#ifdef WORD_LATE
			completion[g]!j;
			wharf_ring_write_done(j);
#else
#ifndef WORD_EARLY
			wharf_ring_write_done(j);
#endif
			completion[g]!j;
#endif
			j = 0
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

active proctype stream()
{
end:	do
	:: atomic { serial != 0 && word == serial && !taken -> taken = true }
	od
}

/* The next daemon that answers. */
inline connect()
{
	do
	:: greeted[g] -> break
	:: dead[g] && !greeted[g] -> g++
	od
}

inline wharf_ring_read_done()
{
#ifdef WORD_UNREAD
	false
#else
	word == serial
#endif
}

active proctype client()
{
	byte g;
	bool is_over;

	connect();
	do
	:: serial == JOBS -> break
	:: serial < JOBS ->
		atomic { serial++; taken = false };
		submission[g]!serial;
		is_over = false;
		do
		:: is_over -> break
		:: !is_over && completion[g]?[serial] ->
			completion[g]?serial;
			assert(word == serial);
			is_over = true
		:: !is_over && dead[g] && empty(completion[g]) ->
			g++;
			connect();
			if
			:: wharf_ring_read_done() -> is_over = true
			:: else -> submission[g]!serial
			fi
		od;
		/* The stream's wait ends too. */
		taken
	od
}
