/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_populate.h: gives fresh memory its pages by several threads, before it is registered.
 *
 * A driver that registers memory takes page after page.  Of fresh memory each has to be allocated
 * and cleared then, which takes ten times as long as registering it, and which several processors
 * can do at once.
 */
#ifndef WHARF_DAEMON_WORKER_WORKER_POPULATE_H
#define WHARF_DAEMON_WORKER_WORKER_POPULATE_H

#include <stdbool.h>
#include <stddef.h>

/* Memory below this is left to the driver: to start threads takes as long. */
#define WHARF_POPULATE_LEAST_NBYTES ((size_t)8 << 20)

/* Returns when all pages are there that can be had.  What cannot is told by whoever uses it.
 * Blocks as an access to the memory would.  Whole pages. */
void wharf_worker_populate(void *address, size_t nbytes, bool read_only);

#endif
