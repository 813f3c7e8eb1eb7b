/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h: threads that stand ready to work through a number of items.
 */
#ifndef WHARF_CLI_CREW_H
#define WHARF_CLI_CREW_H

#include <stddef.h>
#include <stdint.h>

struct wharf_cli_crew;

/* What is done with an item: 0 or -errno.  `hand` is the thread's number, from 0. */
typedef int wharf_cli_crew_work(void *context, size_t item, unsigned hand);

/* Starts n_hands threads.  0, or -errno with *ret_crew untouched. */
int wharf_cli_crew_new(unsigned n_hands, struct wharf_cli_crew **ret_crew);

/* Ends them.  Takes NULL. */
void wharf_cli_crew_free(struct wharf_cli_crew *crew);

/*
 * Does items 0 to n_items - 1, each once, on all threads.  0, or the last error that work gave;
 * *ret_ns is the time from the start to the end of the last item.
 */
int wharf_cli_crew_run(struct wharf_cli_crew *crew, wharf_cli_crew_work *work, void *context,
                       size_t n_items, uint64_t *ret_ns);

#endif
