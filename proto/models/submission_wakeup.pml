/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submission_wakeup.pml: the daemon sleeps until a packet comes.  Is it always woken?
 *
 * The client submits and publishes JOBS jobs, one or two at a time, as it likes, and waits for
 * completions by looking.  The daemon takes what there is, completes it and sleeps.  Packets may
 * come for no reason.  A wake-up that is lost leaves the daemon asleep and the client waiting: an
 * invalid end state.
 */
#include "ring.pml"

#define JOBS 6

/* The socket: packets that were not read.  One more is dropped: the reader is awake anyway. */
#define SOCKET 2
byte packets;

inline send_packet()
{
	atomic {
		if
		:: packets < SOCKET -> packets++
		:: else
		fi
	}
}

active proctype client()
{
	byte n_submitted, n_reaped, completion, kinds;

	do
	:: n_submitted < JOBS && wharf_ring_room > 0 ->
		wharf_ring_submit(n_submitted);
		n_submitted++
	:: c_sq_tail != c_sq_woken ->
		wharf_ring_publish_submissions(kinds);
		if
		:: kinds & WAIT_PACKET -> kernel_barrier(client_stores); send_packet()
		:: else
		fi
	:: c_cq_head == c_cq_tail && memory[CQ_TAIL] != c_cq_tail ->
		wharf_ring_look_completions()
	:: c_cq_head != c_cq_tail ->
		wharf_ring_reap(completion);
		assert(completion == n_reaped);
		n_reaped++
	:: n_reaped == JOBS -> break
	od
}

active proctype daemon()
{
	byte n_taken, submission, loaded, d_cq_look, kinds;

	do
	:: n_taken == JOBS -> break
	:: n_taken < JOBS && d_sq_head != d_sq_tail ->
		wharf_ring_take(submission);
		assert(submission == n_taken);
		n_taken++;
		wharf_ring_complete(submission);
		wharf_ring_publish_completions(kinds)
	:: n_taken < JOBS && d_sq_head == d_sq_tail ->
		wharf_ring_look_submissions(loaded);
		if
		:: d_sq_head != d_sq_tail
		:: else ->
			wharf_ring_daemon_arm(loaded);
			if
			:: d_sq_head != d_sq_tail
			:: else -> atomic { packets > 0; packets-- }
			fi;
			wharf_ring_daemon_disarm()
		fi
	od
}

active proctype stranger()
{
	send_packet()
}
