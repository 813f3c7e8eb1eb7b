/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.pml: the core uses the places of a queue again, and passes by those of items under way.
 * Does the kernel find each index as it was written, and each item a slot of its own?
 *
 * The steps of work_queue_ops.h and of epoch_poll.cuh.  The core gives away INDICES indices, each to
 * an item or to nothing, as it may at any moment.  The kernel takes them in order, and items end in
 * any.  Stores of both reach memory in order but as late as they like; so do completions.  A kernel
 * that is to leave has to see that nothing is under way: one that counts wrong never leaves.
 */

#ifndef INDICES
#define INDICES 7
#endif
#define PLACES 2
#define NOBODY 255

/* Words that core stores: a place, or the tail. */
#define TAIL PLACES

#ifdef PASS_WHAT_WAS_NOT_TAKEN
#define wharf_work_can_pass() true
#else
#define wharf_work_can_pass() (f_item[f_tail % PLACES] == NOBODY || head > f_item[f_tail % PLACES])
#endif

#ifdef NO_LOOK_AT_ROOM
#define wharf_work_room() true
#else
#define wharf_work_room() (f_tail - f_passed_end >= PLACES || f_tail - head < PLACES)
#endif

/* In memory: the core's, and the kernel's. */
byte index_at[PLACES], tail;
bool passes_at[PLACES];
byte head;

chan core_stores = [4] of { byte, byte, bool };
chan kernel_stores = [2] of { byte };
chan done = [PLACES] of { byte };

byte slot[PLACES]; /* the index of the item that has it, counted from 1; 0: none */
byte k_ended, k_passed;

active proctype core_memory()
{
	byte word, value;
	bool passes;
end:	do
	:: atomic {
		core_stores?word, value, passes;
		if
		:: word == TAIL -> tail = value
		:: else -> index_at[word] = value; passes_at[word] = passes
		fi
	   }
	od
}

active proctype kernel_memory()
{
	byte value;
end:	do
	:: atomic { kernel_stores?value; head = value }
	od
}

active proctype core()
{
	byte f_tail, item;
	byte f_item[PLACES];
	short f_passed_end = -PLACES;

	f_item[0] = NOBODY;
	f_item[1] = NOBODY;
	do
	:: done?item ->
		assert(f_item[item % PLACES] == item);
		f_item[item % PLACES] = NOBODY
	:: f_tail < INDICES && f_item[f_tail % PLACES] == NOBODY && wharf_work_room() ->
		f_item[f_tail % PLACES] = f_tail;
		core_stores!f_tail % PLACES, f_tail, false;
		f_tail = f_tail + 1;
		core_stores!TAIL, f_tail, false
	:: f_tail < INDICES && wharf_work_can_pass() && wharf_work_room() ->
		core_stores!f_tail % PLACES, f_tail, true;
		f_tail = f_tail + 1;
		f_passed_end = f_tail;
		core_stores!TAIL, f_tail, false
	:: f_tail == INDICES && f_item[0] == NOBODY && f_item[1] == NOBODY -> break
	od
}

inline place_group()
{
	assert(index_at[k_head % PLACES] == k_head);
	if
#ifdef PASS_INTO_A_SLOT
	:: true ->
#else
	:: !passes_at[k_head % PLACES] ->
#endif
		assert(slot[k_head % PLACES] == 0);
		slot[k_head % PLACES] = k_head + 1
#ifndef PASS_INTO_A_SLOT
	:: else ->
#ifndef PASS_WITHOUT_COUNTING
		k_passed = k_passed + 1
#else
		skip
#endif
#endif
	fi
}

active proctype kernel()
{
	byte k_head;

	do
	:: tail != k_head ->
		atomic { place_group() };
		k_head = k_head + 1;
		kernel_stores!k_head
	:: k_head == INDICES && k_ended + k_passed == k_head -> break
	od
}

/* The other warps. */
active proctype warps()
{
end:	do
	:: atomic { slot[0] != 0 -> done!slot[0] - 1; slot[0] = 0; k_ended = k_ended + 1 }
	:: atomic { slot[1] != 0 -> done!slot[1] - 1; slot[1] = 0; k_ended = k_ended + 1 }
	od
}
