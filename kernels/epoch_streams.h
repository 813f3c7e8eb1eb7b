/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_streams.h: large streams of Deflate, zlib and gzip for the worker, one after the other,
 * each by the whole GPU: kernels/inflate_parts.h beside the epoch kernels.
 *
 * A client can write its source meanwhile, and the kernels read it more than once.  So they read a
 * private copy.  Outputs to GPU memory are built in place: what is read back there decides nothing
 * but other bytes of the output, and a checksum.
 *
 * The kernels wait for room on the GPU, and the epoch kernel stays there.  So before it decodes a
 * stream, the worker has the epoch kernel leave, and start anew on part of the GPU (set_part of
 * epoch.h).
 *
 * For one thread at a time.  Functions return 0 or -errno, as those of epoch.h do.
 */
#ifndef WHARF_KERNELS_EPOCH_STREAMS_H
#define WHARF_KERNELS_EPOCH_STREAMS_H

#include <stdint.h>

#include "kernels/work_queue.h"
#include "proto/wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wharf_epoch;
struct wharf_streams;

struct wharf_stream_task {
    uint64_t src; /* device addresses, any alignment */
    uint64_t dst;
    uint64_t staging; /* device memory of wharf_work_large_nbytes bytes, aligned to 256 */
    uint32_t src_nbytes;
    uint32_t dst_nbytes;
    uint32_t codec;  /* deflate, zlib or gzip */
    uint32_t output; /* enum wharf_work_output */
    uint32_t wants_crc;
    /* Asked now and then by the calling thread; once it said 1, the decode soon ends, with
     * CANCELLED, or its outcome if that was faster. */
    int (*is_stopped)(void *context);
    void *context;
};

struct wharf_stream_ops {
    /* Takes no memory of the GPU to speak of.  `beside`, whose part of the device it shares,
     * outlives it.  *ret_least_nbytes: from this size of a source on it beats a warp.  The SIMT
     * layer has another least size, and parts an eighth of that, if WHARF_SIMT_STREAMS says so, for
     * tests. */
    int (*open)(struct wharf_epoch *beside, struct wharf_streams **ret_streams,
                uint32_t *ret_least_nbytes);
    /* Takes NULL. */
    void (*close)(struct wharf_streams *streams);
    /*
     * Decodes.  The first one takes scratch for all later ones, of streams of up to most_nbytes: a
     * window for each part and a ring for each warp, 1.1 GB on an H100, or less where the GPU has
     * less to give.  -ENOMEM: it has none; the stream was not touched.  *ret_crc: if wants_crc, and
     * the outcome is good, the CRC-32 of the output.
     */
    int (*decode)(struct wharf_streams *streams, const struct wharf_stream_task *task,
                  uint64_t most_nbytes, struct wharf_outcome *ret_outcome, uint32_t *ret_crc);
};

/* As wharf_cuda_epoch and wharf_simt_epoch. */
extern const struct wharf_stream_ops wharf_cuda_streams;
extern const struct wharf_stream_ops wharf_simt_streams;

/* The least source, but for tests. */
#define WHARF_STREAM_LEAST_SRC_NBYTES ((uint32_t)512 << 10)
/* The largest source: a position in bits, of its end too, fits the 32 bits of a completion. */
#define WHARF_STREAM_MAX_SRC_NBYTES (((uint32_t)1 << 29) - 1)

static inline uint8_t *wharf_stream_copy(const struct wharf_stream_task *task)
{
    return (uint8_t *)(uintptr_t)task->staging;
}

/* Where the output is built. */
static inline uint8_t *wharf_stream_output(const struct wharf_stream_task *task)
{
    return task->output == WHARF_WORK_TO_DEVICE
               ? (uint8_t *)(uintptr_t)task->dst
               : wharf_stream_copy(task) + wharf_work_copy_nbytes(task->src_nbytes);
}

#ifdef __cplusplus
}
#endif

#endif
