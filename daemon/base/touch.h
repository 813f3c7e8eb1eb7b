/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touch.h: accesses clients' memory, where a load or store may fail.
 *
 * A page of a memfd is allocated when it is first touched.  If the system does not overcommit
 * memory (vm.overcommit_memory = 2) and none is left, the access raises SIGBUS; so does a page
 * whose memory is broken.  That must end the job, but not the daemon.
 */
#ifndef WHARF_DAEMON_BASE_TOUCH_H
#define WHARF_DAEMON_BASE_TOUCH_H

#include <stdbool.h>
#include <stddef.h>

/* Installs the process's handler of SIGBUS.  Call it before the first touch, once or more often.
 * Returns 0 or -errno. */
int wharf_touch_init(void);

/*
 * Calls act(context), which may access clients' memory.  Returns false if an access failed; then
 * the rest of `act` was skipped.  So while it accesses such memory, it must hold no lock and own
 * nothing that only it can free.  Any thread; may be nested.
 */
bool wharf_touch(void (*act)(void *context), void *context);

/* memcpy with a client's memory on one side. */
bool wharf_touch_copy(void *to, const void *from, size_t nbytes);

#endif
