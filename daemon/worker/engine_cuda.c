/* SPDX-License-Identifier: Apache-2.0 */
/* engine_cuda.c: the engine of wharfd-gpu: kernels on a GPU. */
#include "daemon/worker/worker.h"
#include "kernels/cuda_device.h"
#include "kernels/epoch_streams.h"
#include "proto/wharf_job.h"

const struct wharf_epoch_ops *const wharf_worker_engine = &wharf_cuda_epoch;
const struct wharf_stream_ops *const wharf_worker_stream_engine = &wharf_cuda_streams;
const uint32_t wharf_worker_engine_number = WHARF_ENGINE_GPU;

bool wharf_worker_is_beside(int device)
{
    return wharf_cuda_has_mps(device);
}
