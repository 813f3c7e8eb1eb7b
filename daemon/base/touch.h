/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touch.h: what is done to clients' memory by loads and stores can fail.
 *
 * A page of a memfd that nobody has touched yet is allocated when it is.  Where the system promises
 * no more memory than it has (vm.overcommit_memory = 2) and has promised all of it, that is a
 * SIGBUS, and so is a page whose memory is found to be broken: for a job the end, for the daemon
 * not.
 */
#ifndef WHARF_DAEMON_BASE_TOUCH_H
#define WHARF_DAEMON_BASE_TOUCH_H

#include <stdbool.h>
#include <stddef.h>

/* Has SIGBUS looked after, for the whole process.  Once or more often, before the first touch.
 * Returns 0 or -errno. */
int wharf_touch_init(void);

/*
 * Calls act(context), which may touch clients' memory.  Returns false if there was no memory to be
 * had: then it was left in the middle, for good.  So while it touches such memory it must hold no
 * lock and own nothing that only it can free.  From any thread; may be nested.
 */
bool wharf_touch(void (*act)(void *context), void *context);

/* memcpy, of which one side is a client's. */
bool wharf_touch_copy(void *to, const void *from, size_t nbytes);

#endif
