/* SPDX-License-Identifier: Apache-2.0 */
/* engine_simt.c: the engine of wharfd-simt: the kernels' code on CPU threads. */
#include "daemon/worker/worker.h"
#include "proto/wharf_job.h"

const struct wharf_epoch_ops *const wharf_worker_engine = &wharf_simt_epoch;
const uint32_t wharf_worker_engine_number = WHARF_ENGINE_SIMT;

bool wharf_worker_is_beside(int device)
{
    (void)device;
    return false;
}
