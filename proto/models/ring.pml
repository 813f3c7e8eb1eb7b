/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.pml: the steps of ring_ops.h, under its names, for the two models that include this.
 *
 * Small: N entries a queue, indices of two bits that wrap as those of 32 bits do.  What
 * the C code keeps private is private here; what it shares lies in memory[] and is reached through
 * store buffers, one for each side, that give up their stores in order but as late as they like:
 * what x86 allows.  Nobody loads a word that it stores itself, so no load looks into a buffer.
 *
 * A fence waits until the own buffer is empty, and so do system calls that wake somebody: the
 * kernel's are full barriers.  A release store is a plain one here, and an acquire load too, since
 * store buffers keep order; the thread sanitizer watches those in tests/unit/ring_thread_test.c.
 *
 * sq_head is left out, since nothing depends on it.
 *
 * -DNO_FENCE_WAKER and -DNO_FENCE_SLEEPER take one fence out.  The models must then fail.
 */

#ifndef N
#define N 2 /* entries of a queue */
#define WIDTH 4 /* values of an index: more than N */
#endif

#define span(from, to) (((to) - (from)) & (WIDTH - 1))
#define may_advance(old, new_value, limit) (span(old, new_value) <= span(old, limit))
#define crossed(from, to, at) (span(from, at) < span(from, to))
#define next(index) ((index + 1) & (WIDTH - 1))
#define slot(index) ((index) & (N - 1))

/* ---- shared memory ------------------------------------------------------------------------- */

#define SQ_TAIL 0
#define CQ_HEAD 1
#define CQ_WAIT 2
#define CQ_TAIL 3
#define SQ_WAIT 4
#define SUBMISSIONS 5
#define COMPLETIONS (SUBMISSIONS + N)

/* A wait word: an index and what is wanted. */
#define WAIT(index, kinds) ((index) + WIDTH * (kinds))
#define WAIT_INDEX(word) ((word) & (WIDTH - 1))
#define WAIT_KINDS(word) ((word) / WIDTH)
#define WAIT_PACKET 1
#define WAIT_FUTEX 2

byte memory[COMPLETIONS + N];

chan client_stores = [3] of { byte, byte };
chan daemon_stores = [3] of { byte, byte };

active proctype client_memory()
{
	byte word, value;
end:	do
	:: atomic { client_stores?word, value; memory[word] = value }
	od
}

active proctype daemon_memory()
{
	byte word, value;
end:	do
	:: atomic { daemon_stores?word, value; memory[word] = value }
	od
}

#ifdef NO_FENCE_WAKER
#define wharf_ring_fence_waker(stores) skip
#else
#define wharf_ring_fence_waker(stores) empty(stores)
#endif

#ifdef NO_FENCE_SLEEPER
#define wharf_ring_fence_sleeper(stores) skip
#else
#define wharf_ring_fence_sleeper(stores) empty(stores)
#endif

/* What the kernel does before it looks for somebody to wake. */
#define kernel_barrier(stores) empty(stores)

/* ---- the daemon's side: private copies, then steps ----------------------------------------- */

byte d_cq_head, d_cq_tail, d_cq_woken, d_sq_head, d_sq_tail;

inline wharf_ring_look_submissions(loaded)
{
	loaded = memory[SQ_TAIL];
	if
	:: may_advance(d_sq_tail, loaded, d_cq_head + N) -> d_sq_tail = loaded
	:: else ->
		d_step { d_cq_look = memory[CQ_HEAD]; assert(may_advance(d_cq_head, d_cq_look, d_cq_woken)) }
		d_cq_head = d_cq_look;
		assert(may_advance(d_sq_tail, loaded, d_cq_head + N));
		d_sq_tail = loaded
	fi
}

/* After wharf_ring_look_submissions, if the private copies had none. */
inline wharf_ring_take(ret_submission)
{
	ret_submission = memory[SUBMISSIONS + slot(d_sq_head)];
	d_sq_head = next(d_sq_head)
}

inline wharf_ring_complete(completion)
{
	assert(span(d_cq_head, d_cq_tail) < N);
	daemon_stores!(COMPLETIONS + slot(d_cq_tail)), completion;
	d_cq_tail = next(d_cq_tail)
}

/* ret_kinds is what the client wants for it. */
inline wharf_ring_publish_completions(ret_kinds)
{
	daemon_stores!CQ_TAIL, d_cq_tail;
	wharf_ring_fence_waker(daemon_stores);
	d_step {
		ret_kinds = (crossed(d_cq_woken, d_cq_tail, WAIT_INDEX(memory[CQ_WAIT])) ->
			WAIT_KINDS(memory[CQ_WAIT]) : 0);
		d_cq_woken = d_cq_tail
	}
}

inline wharf_ring_daemon_arm(loaded)
{
	daemon_stores!SQ_WAIT, WAIT(d_sq_tail, WAIT_PACKET);
	wharf_ring_fence_sleeper(daemon_stores);
	wharf_ring_look_submissions(loaded)
}

inline wharf_ring_daemon_disarm()
{
	daemon_stores!SQ_WAIT, 0
}

/* ---- the client's side ---------------------------------------------------------------------- */

byte c_cq_head, c_cq_tail, c_sq_tail, c_sq_woken;

#define wharf_ring_room (N - span(c_cq_head, c_sq_tail))

inline wharf_ring_submit(submission)
{
	client_stores!(SUBMISSIONS + slot(c_sq_tail)), submission;
	c_sq_tail = next(c_sq_tail)
}

/* ret_kinds is what the daemon wants for it. */
inline wharf_ring_publish_submissions(ret_kinds)
{
	client_stores!CQ_HEAD, c_cq_head;
	client_stores!SQ_TAIL, c_sq_tail;
	wharf_ring_fence_waker(client_stores);
	d_step {
		ret_kinds = (crossed(c_sq_woken, c_sq_tail, WAIT_INDEX(memory[SQ_WAIT])) ->
			WAIT_KINDS(memory[SQ_WAIT]) : 0);
		c_sq_woken = c_sq_tail
	}
}

inline wharf_ring_look_completions()
{
	d_step {
		assert(may_advance(c_cq_tail, memory[CQ_TAIL], c_sq_woken));
		c_cq_tail = memory[CQ_TAIL]
	}
}

/* After wharf_ring_look_completions, if the private copies had none. */
inline wharf_ring_reap(ret_completion)
{
	ret_completion = memory[COMPLETIONS + slot(c_cq_head)];
	c_cq_head = next(c_cq_head)
}

inline wharf_ring_client_arm(kinds, n_wanted)
{
	client_stores!CQ_WAIT, WAIT((c_cq_head + n_wanted - 1) & (WIDTH - 1), kinds);
	wharf_ring_fence_sleeper(client_stores);
	wharf_ring_look_completions()
}

inline wharf_ring_client_disarm()
{
	client_stores!CQ_WAIT, 0
}
