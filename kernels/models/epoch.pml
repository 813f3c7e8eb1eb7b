/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.pml: an epoch kernel leaves while the front publishes.  Is every item taken?
 *
 * The steps of work_queue_ops.h, of epoch_poll.cuh and of the worker's loop in epoch.h.  The front
 * publishes ITEMS items, one or two at a time, and waits until all are taken.  The kernel takes
 * what it sees; it may find itself idle at any moment at which it sees nothing, and its stay over
 * at any moment at all.  The worker sleeps until it is woken.  An item that is overlooked leaves
 * the front waiting and the worker asleep: an invalid end state.
 *
 * The front's stores and the kernel's reach memory in order but as late as they like.  That the
 * kernel's do so in order is more than the GPU promises: but each that matters is the last one
 * before a fence, before the kernel's end, or of its own word.  The worker's are followed by calls
 * of the driver.
 */

#ifndef ITEMS
#define ITEMS 3
#endif

/* Words of the queue. */
#define TAIL 0
#define HEAD 1
#define STATE 2

#define OUT 0
#define RUNNING 1
#define LEAVING 2
#define OUT_MORE 3

byte memory[3];

chan front_stores = [2] of { byte, byte };
chan kernel_stores = [3] of { byte, byte };

active proctype front_memory()
{
	byte word, value;
end:	do
	:: atomic { front_stores?word, value; memory[word] = value }
	od
}

active proctype kernel_memory()
{
	byte word, value;
end:	do
	:: atomic { kernel_stores?word, value; memory[word] = value }
	od
}

#ifdef NO_FENCE_FRONT
#define front_fence() skip
#else
#define front_fence() empty(front_stores)
#endif

#ifdef NO_FENCE_KERNEL
#define kernel_fence() skip
#else
#define kernel_fence() empty(kernel_stores)
#endif

#ifdef WAKE_ONLY_WHEN_OUT
#define must_wake(state) (state == OUT || state == OUT_MORE)
#else
#define must_wake(state) (state != RUNNING)
#endif

#ifdef NO_SECOND_LOOK
#define still_idle() true
#else
#define still_idle() (memory[TAIL] == k_head)
#endif

#ifdef NO_LOOK_AFTER_MORE
#define wharf_work_must_start() false
#else
#define wharf_work_must_start() (memory[STATE] == OUT_MORE && memory[TAIL] != memory[HEAD])
#endif

bool woken;    /* what the worker sleeps on remembers a wake-up */
bool resident; /* a kernel was launched and has not ended */
byte k_head;   /* items that kernels have taken */

inline wharf_work_publish()
{
	front_stores!TAIL, f_tail;
	front_fence();
	state = memory[STATE];
	if
	:: must_wake(state) -> woken = true
	:: else
	fi;
	state = 0
}

active proctype front()
{
	byte f_tail, state;

	do
	:: f_tail < ITEMS ->
		if
		:: f_tail = f_tail + 1
		:: f_tail + 2 <= ITEMS -> f_tail = f_tail + 2
		fi;
		wharf_work_publish()
	:: f_tail == ITEMS -> break
	od;
	k_head == ITEMS
}

inline wharf_work_begin_epoch()
{
	atomic {
		assert(memory[STATE] == OUT || memory[STATE] == OUT_MORE);
		memory[STATE] = RUNNING
	}
}

active proctype worker()
{
end:	do
	:: atomic { woken -> woken = false };
start:
		wharf_work_begin_epoch();
		resident = true;
		!resident;
		if
		:: wharf_work_must_start() -> goto start
		:: else
		fi
	od
}

/* Nothing is under way, and nothing was seen. */
inline leave_if_still_idle()
{
	kernel_stores!STATE, LEAVING;
	kernel_fence();
	if
	:: still_idle() ->
		kernel_stores!STATE, OUT;
		goto gone
	:: else ->
		kernel_stores!STATE, RUNNING
	fi
}

active proctype kernel()
{
	byte tail;

end:	do
	:: resident ->
look:
		tail = memory[TAIL];
		if
		:: tail != k_head ->
			k_head = tail;
			kernel_stores!HEAD, k_head;
			goto look
		:: tail == k_head -> goto look
		:: tail == k_head -> leave_if_still_idle(); goto look
		:: kernel_stores!STATE, OUT_MORE
		fi;
gone:
		/* What a kernel stored is in memory when it has ended. */
		empty(kernel_stores);
		tail = 0;
		resident = false
	od
}
