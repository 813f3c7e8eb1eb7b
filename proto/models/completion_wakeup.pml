/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion_wakeup.pml: the client sleeps until so many completions are there, by futex or for a
 * packet.  Is it always woken?
 *
 * The daemon looks for submissions, completes what it holds when it likes and publishes one or
 * more at once.  The kernel puts a sleeper on the futex only if the word still has the expected
 * value, in one step.  Both wake-ups may come for no reason.  A wake-up that is lost is an invalid
 * end state.
 */
#include "ring.pml"

#define JOBS 5
#define SOCKET 2
byte packets;
bool asleep; /* in FUTEX_WAIT on memory[CQ_TAIL] */

inline send_packet()
{
	atomic {
		if
		:: packets < SOCKET -> packets++
		:: else
		fi
	}
}

inline futex_wait(expected)
{
	atomic {
		if
		:: memory[CQ_TAIL] == expected -> asleep = true
		:: else
		fi
	}
	!asleep
}

inline futex_wake()
{
	asleep = false
}

active proctype client()
{
	byte n_submitted, n_reaped, completion, kinds, n_wanted;

	do
	:: n_submitted < JOBS && wharf_ring_room > 0 ->
		wharf_ring_submit(n_submitted);
		n_submitted++
	:: c_sq_tail != c_sq_woken ->
		wharf_ring_publish_submissions(kinds);
		kinds = 0
	:: c_cq_head != c_cq_tail ->
		wharf_ring_reap(completion);
		assert(completion == n_reaped);
		completion = 0;
		n_reaped++
	:: n_reaped == JOBS -> break
	:: c_cq_head == c_cq_tail && c_sq_tail == c_sq_woken && n_submitted > n_reaped ->
		if
		:: n_wanted = 1
		:: n_wanted = n_submitted - n_reaped
		fi;
		if
		:: kinds = WAIT_FUTEX
		:: kinds = WAIT_PACKET
		fi;
		wharf_ring_client_arm(kinds, n_wanted);
		if
		:: span(c_cq_head, c_cq_tail) >= n_wanted
		:: else ->
			if
			:: kinds == WAIT_FUTEX -> futex_wait(c_cq_tail)
			:: else -> atomic { packets > 0; packets-- }
			fi
		fi;
		if
		:: wharf_ring_client_disarm()
		:: skip
		fi;
		wharf_ring_look_completions();
		n_wanted = 0;
		kinds = 0
	od
}

active proctype daemon()
{
	byte n_published, loaded, d_cq_look, kinds;
	byte submission, n_completed;
	chan held = [N] of { byte };

	do
	:: n_published == JOBS -> break
	:: d_sq_head == d_sq_tail && memory[SQ_TAIL] != d_sq_tail ->
		wharf_ring_look_submissions(loaded);
		loaded = 0;
		d_cq_look = 0
	:: d_sq_head != d_sq_tail ->
		wharf_ring_take(submission);
		held!submission;
		submission = 0
	:: atomic { nempty(held) -> held?submission };
		wharf_ring_complete(submission);
		submission = 0;
		n_completed++
	:: n_completed > n_published ->
		wharf_ring_publish_completions(kinds);
		n_published = n_completed;
		kernel_barrier(daemon_stores);
		if
		:: kinds & WAIT_PACKET -> send_packet()
		:: else
		fi;
		if
		:: kinds & WAIT_FUTEX -> futex_wake()
		:: else
		fi;
		kinds = 0
	od
}

active proctype stranger()
{
	futex_wake();
	send_packet()
}
