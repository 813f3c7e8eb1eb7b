/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.pml: an epoch kernel leaves while the core publishes.  Is every item taken?
 *
 * The steps of work_queue_ops.h, of epoch_poll.cuh and of the worker's loop in epoch.h.  The core
 * publishes ITEMS items, one or two at a time, and waits until all are taken.  The kernel takes
 * what it sees; it may find itself idle at any moment at which it sees nothing, and its stay over
 * at any moment at all.  The worker sleeps until it is woken.  An item that is overlooked leaves
 * the core waiting and the worker asleep: an invalid end state.
 *
 * There are two kernels: one whose blocks decode few items, of those codecs that blocks can, and one
 * whose warps decode all.  Either leaves when what is there is for the other one: the one of blocks
 * before an item that it cannot decode, and when there are many; the one of warps when there have
 * been few for long, which may be so before its first look, since it may have waited for its turn
 * on the GPU.  Each says which is to follow, and the worker starts that.  That items are taken at
 * all is an assertion: of four kernels one takes some.
 *
 * The core's stores and the kernel's reach memory in order but as late as they like.  That the
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
#define KIND 3

#define OUT 0
#define RUNNING 1
#define LEAVING 2
#define OUT_MORE 3

#define FOR_FEW 0
#define FOR_MANY 1

byte memory[4];

chan core_stores = [2] of { byte, byte };
chan kernel_stores = [3] of { byte, byte };

active proctype core_memory()
{
	byte word, value;
end:	do
	:: atomic { core_stores?word, value; memory[word] = value }
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
#define core_fence() skip
#else
#define core_fence() empty(core_stores)
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

#ifdef TAKE_ALL_BY_BLOCKS
#define is_for_blocks(item) true
#else
#define is_for_blocks(item) (!misfit[item])
#endif

/* A kernel that goes though there is more. */
#ifdef MAKE_ROOM_AS_OUT
#define MAKING_ROOM OUT
#else
#define MAKING_ROOM OUT_MORE
#endif

#ifdef NO_END_OF_VAIN
#define knows_of_other() true
#else
#define knows_of_other() (n_vain < 3)
#endif

bool misfit[ITEMS]; /* no block can decode it */
bool many;          /* there was work for the kernel of warps a short while ago */
bool by_blocks;     /* the kernel that is there, or was last */
byte n_vain;        /* kernels that took nothing of what was there, one after the other */

bool woken;    /* what the worker sleeps on remembers a wake-up */
bool resident; /* a kernel was launched and has not ended */
byte k_head;   /* items that kernels have taken */

inline wharf_work_publish()
{
	core_stores!TAIL, f_tail;
	core_fence();
	state = memory[STATE];
	if
	:: must_wake(state) -> woken = true
	:: else
	fi;
	state = 0
}

active proctype core()
{
	byte f_tail, state;

	do
	:: f_tail < ITEMS ->
		if
		:: misfit[f_tail] = true
		:: skip
		fi;
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

inline choose_kernel()
{
	atomic {
		if
		:: memory[HEAD] == last_head && memory[TAIL] != memory[HEAD] -> n_vain++
		:: else -> n_vain = 0
		fi;
		last_head = memory[HEAD];
		assert(n_vain < 4);
		by_blocks = knows_of_other() && memory[KIND] == FOR_FEW
	}
}

active proctype worker()
{
	byte last_head;

end:	do
	:: atomic { woken -> woken = false };
start:
		wharf_work_begin_epoch();
		choose_kernel();
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

/* Looks at how much there is, and stops if that is for the other kernel. */
inline compare_kernels()
{
	if
	:: tail - k_head > 1 -> many = true
	:: many = false
	:: skip
	fi;
	stopped = stopped || (knows_of_other() && tail != k_head && by_blocks == many)
}

/* Takes what was seen, as far as it is for this kernel. */
inline take_some()
{
	do
	:: stopped || k_head == tail -> break
	:: !stopped && k_head < tail ->
		if
		:: by_blocks && !is_for_blocks(k_head) -> many = true; stopped = true
		:: else ->
			assert(!(by_blocks && misfit[k_head]));
			many = many || misfit[k_head];
			k_head = k_head + 1;
			kernel_stores!HEAD, k_head
		fi
	od
}

inline tell_kind()
{
	if
	:: many -> kernel_stores!KIND, FOR_MANY
	:: else -> kernel_stores!KIND, FOR_FEW
	fi
}

active proctype kernel()
{
	byte tail;
	bool stopped;

end:	do
	:: resident ->
look:
		tail = memory[TAIL];
		atomic { compare_kernels() };
		take_some();
		if
		:: !stopped -> goto look
		:: true -> tell_kind(); leave_if_still_idle(); goto look
		:: true -> tell_kind(); kernel_stores!STATE, MAKING_ROOM
		fi;
gone:
		/* What a kernel stored is in memory when it has ended. */
		empty(kernel_stores);
		tail = 0;
		stopped = false;
		resident = false
	od
}
