/* SPDX-License-Identifier: Apache-2.0 */
/* engine_simt.c: the engine of wharfd-simt: the kernels' code on CPU threads. */
#include "daemon/worker/worker.h"
#include "kernels/epoch_streams.h"
#include "proto/wharf_job.h"

const struct wharf_epoch_ops *const wharf_worker_engine = &wharf_simt_epoch;
const struct wharf_stream_ops *const wharf_worker_stream_engine = &wharf_simt_streams;
const uint32_t wharf_worker_engine_number = WHARF_ENGINE_SIMT;

bool wharf_worker_is_beside(int device)
{
    (void)device;
    return false;
}
