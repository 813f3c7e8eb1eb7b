/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h: an event loop that waits for descriptors and times, by io_uring or, where that is
 * refused, by epoll.
 *
 * Both backends report that a descriptor is ready; the callback then reads or writes without
 * blocking.  Readiness is level-triggered: if a callback leaves data unread, it is called again.
 * One thread owns a loop and calls all functions here except wharf_loop_wake.
 *
 * A source may belong to a party (fair_queue.h), a tenant.  Ready sources of parties wait for their
 * turns, which are given by the processor time that the party's callbacks have used.  So a callback
 * should do one thing and leave the rest for its next turn.  Sources without a party, and timers,
 * are called at once.
 */
#ifndef WHARF_DAEMON_BASE_LOOP_H
#define WHARF_DAEMON_BASE_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/loop_source.h"

/*
 * wharf_loop_new: 0, -ENOMEM, or the kernel's error for io_uring (-EPERM, -ENOSYS, -ENOMEM for too
 * little lockable memory).
 */
int wharf_loop_new(enum wharf_loop_kind kind, struct wharf_loop **ret_loop);
void wharf_loop_free(struct wharf_loop *loop);
enum wharf_loop_kind wharf_loop_kind(const struct wharf_loop *loop);

/*
 * wharf_loop_add: from now on, `call` is called when the descriptor is ready as `wanted` says.  The
 * caller owns the source, which must stay at its address.  Returns 0 or -errno.  wharf_loop_add_of:
 * the same for a source of a party, which must exist until the source is removed.  wharf_loop_want:
 * changes what is wanted.  wharf_loop_remove: `call` is not called again, and the descriptor may be
 * closed at once.  Does nothing if the source is in no loop.
 */
int wharf_loop_add(struct wharf_loop *loop, struct wharf_source *source, int fd, uint32_t wanted,
                   wharf_source_fn *call);
int wharf_loop_add_of(struct wharf_loop *loop, struct wharf_source *source, int fd, uint32_t wanted,
                      wharf_source_fn *call, struct wharf_fair_party *party);
int wharf_loop_want(struct wharf_loop *loop, struct wharf_source *source, uint32_t wanted);
void wharf_loop_remove(struct wharf_loop *loop, struct wharf_source *source);

/* The processor time of this thread.  By a clock, a party would also pay for time in which other
 * programs had the processor. */
uint64_t wharf_loop_processor_ns(void);

/* Charges a party for work outside its turns, in nanoseconds of processor time.  NULL is
 * allowed. */
void wharf_loop_charge(struct wharf_loop *loop, struct wharf_fair_party *party, uint64_t used_ns);

/*
 * wharf_timer_set: `call` is called once, at `at_ns` (of wharf_now_ns) or soon after; replaces an
 * earlier setting.  A zeroed timer is not set.
 */
void wharf_timer_set(struct wharf_loop *loop, struct wharf_timer *timer, uint64_t at_ns,
                     wharf_timer_fn *call);
void wharf_timer_clear(struct wharf_loop *loop, struct wharf_timer *timer);

/*
 * wharf_loop_turn: waits until a source is ready, a timer is due or the loop is woken, and makes
 * the calls.  Returns 0, or -errno if waiting fails for good.
 */
int wharf_loop_turn(struct wharf_loop *loop);

/*
 * wharf_loop_wake: makes the loop call `woken` soon.  Safe from any thread and with any locks held.
 * Several wakes may cause one call.
 */
void wharf_loop_wake(struct wharf_loop *loop);
void wharf_loop_on_wake(struct wharf_loop *loop, void (*woken)(void *context), void *context);

#endif
