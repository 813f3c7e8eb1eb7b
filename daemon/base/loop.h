/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h: waits for descriptors and times, by io_uring or, where that is refused, by epoll.
 *
 * Both say when a descriptor is ready; reading and writing is the callback's, without blocking.
 * Readiness is by level: what a callback leaves unread makes it be called again.  One thread owns a
 * loop and calls everything here but wharf_loop_wake.
 *
 * A source may belong to a party (fair_queue.h): a tenant.  Ready sources of parties wait for their
 * turns, which parties have by the processor time that their callbacks have taken; so a callback
 * should do one thing and leave the rest for its next turn.  Sources of no party, and timers, are
 * called at once.
 */
#ifndef WHARF_DAEMON_BASE_LOOP_H
#define WHARF_DAEMON_BASE_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/loop_source.h"

/*
 * wharf_loop_new: 0, -ENOMEM, or for io_uring what the kernel said (-EPERM, -ENOSYS, -ENOMEM for
 * too little lockable memory).
 */
int wharf_loop_new(enum wharf_loop_kind kind, struct wharf_loop **ret_loop);
void wharf_loop_free(struct wharf_loop *loop);
enum wharf_loop_kind wharf_loop_kind(const struct wharf_loop *loop);

/*
 * wharf_loop_add: from now on `call` is called when the descriptor is ready as `wanted` says.  The
 * source stays the caller's, at its place.  Returns 0 or -errno.  wharf_loop_add_of: the same for a
 * source of a party, which stays the caller's too and is there until the source is removed.
 * wharf_loop_want: changes what is wanted.
 * wharf_loop_remove: `call` is not called again, and the descriptor may be closed at once.  Does
 * nothing if the source is in no loop.
 */
int wharf_loop_add(struct wharf_loop *loop, struct wharf_source *source, int fd, uint32_t wanted,
                   wharf_source_fn *call);
int wharf_loop_add_of(struct wharf_loop *loop, struct wharf_source *source, int fd, uint32_t wanted,
                      wharf_source_fn *call, struct wharf_fair_party *party);
int wharf_loop_want(struct wharf_loop *loop, struct wharf_source *source, uint32_t wanted);
void wharf_loop_remove(struct wharf_loop *loop, struct wharf_source *source);

/* The processor's time of this thread: by the clock a party would pay for what other programs have
 * of the processor. */
uint64_t wharf_loop_processor_ns(void);

/* What was done for a party beside its turns, in nanoseconds of a processor; NULL is allowed. */
void wharf_loop_charge(struct wharf_loop *loop, struct wharf_fair_party *party, uint64_t used_ns);

/*
 * wharf_timer_set: `call` is called once, at `at_ns` (of wharf_now_ns) or soon after; an earlier
 * setting is forgotten.  A zeroed timer is one that is not set.
 */
void wharf_timer_set(struct wharf_loop *loop, struct wharf_timer *timer, uint64_t at_ns,
                     wharf_timer_fn *call);
void wharf_timer_clear(struct wharf_loop *loop, struct wharf_timer *timer);

/*
 * wharf_loop_turn: waits until something is ready, due or woken, and calls what has to be called.
 * Returns 0, or -errno when waiting does not work any more.
 */
int wharf_loop_turn(struct wharf_loop *loop);

/*
 * wharf_loop_wake: makes the loop call `woken`, soon.  Safe from any thread and with any locks
 * held; several wakes may give one call.
 */
void wharf_loop_wake(struct wharf_loop *loop);
void wharf_loop_on_wake(struct wharf_loop *loop, void (*woken)(void *context), void *context);

#endif
