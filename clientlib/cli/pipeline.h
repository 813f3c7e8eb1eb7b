/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h: one thread reads, many work, one writes in order.
 *
 * The unit is a slot, whose content is the command's own.  A fixed number of them goes round:
 * filled by the reading thread, worked on by whichever worker comes first, drained in the order
 * of filling by the thread that called, and filled again.  So memory is bounded by the number of
 * slots, however fast any stage is.  What goes wrong in a stage is written into the slot, and told
 * when its turn to be drained comes: so the first failure in the order of the input is the one
 * that counts, whatever happened elsewhere meanwhile.
 */
#ifndef WHARF_CLI_PIPELINE_H
#define WHARF_CLI_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

struct wharf_cli_stages {
    /* Fills a slot; false when there is nothing (more) to fill it with, and no further call. */
    bool (*fill)(void *context, void *slot);
    /* Works on a slot, at the same time as others do on other slots.  `worker` is a number from 0
     * that no other call under way has.  NULL: filling does it all, and there are no workers. */
    void (*work)(void *context, void *slot, unsigned worker);
    /* Takes a slot's result; false ends it all, and no further call is begun. */
    bool (*drain)(void *context, void *slot);
    /* Called once drain said false: makes a fill that waits for something return. */
    void (*stop)(void *context);
    void *context;
};

/* How many slots keep n_workers busy: one under each worker, one waiting for each, one each with
 * the reader and the writer. */
static inline unsigned wharf_cli_pipeline_n_slots(unsigned n_workers)
{
    return 2 * n_workers + 2;
}

/*
 * Runs until everything was drained or drain said false, then ends all its threads.
 *   slots, slot_nbytes   n_slots of them, each of that size, in one array
 * Returns 0, or -errno when no thread could be made (nothing was done then).
 */
int wharf_cli_pipeline_run(const struct wharf_cli_stages *stages, void *slots, size_t slot_nbytes,
                           unsigned n_slots, unsigned n_workers);

#endif
