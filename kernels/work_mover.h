/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_mover.h: the worker's part in items whose output was built in staging memory: copies it
 * by the engine's copy engine and completes the items towards the core.
 *
 * One thread uses it, the one that calls the engine's move and moved.  A copy costs one to two
 * microseconds of the thread's time whatever its size.
 */
#ifndef WHARF_KERNELS_WORK_MOVER_H
#define WHARF_KERNELS_WORK_MOVER_H

#include "kernels/epoch.h"
#include "kernels/work_queue_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wharf_work_mover;

/* wharf_work_mover_new: for an engine's epoch and its queue.  0 or -ENOMEM. */
int wharf_work_mover_new(const struct wharf_epoch_ops *ops, struct wharf_epoch *epoch, void *queue,
                         uint32_t n_entries, struct wharf_work_mover **ret_mover);
/* NULL is allowed.  What is under way is not completed. */
void wharf_work_mover_free(struct wharf_work_mover *mover);

/*
 * wharf_work_mover_step: begins copies for what has come, and completes what was copied.  Does not
 * wait.  *ret_n_posted, if not NULL, is how many items it completed: for those the core may have
 * to be woken.  Returns 1 if there was something to do or copies are under way, 0 if not, or -errno
 * as the engine gave it.
 */
int wharf_work_mover_step(struct wharf_work_mover *mover, uint32_t *ret_n_posted);

#ifdef __cplusplus
}
#endif

#endif
