/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_batch.h: many chunks at once on a device; C and C++.
 *
 * A batch is an array of chunks and an array of outcomes, both where the device can reach them:
 * device or pinned memory for CUDA (cuda_batch.h), any memory for the SIMT layer
 * (simt/simt_batch.h).  Outcomes are those that wharf_decode_job_run gives for the same job, in
 * every member.
 */
#ifndef WHARF_KERNELS_DEVICE_BATCH_H
#define WHARF_KERNELS_DEVICE_BATCH_H

#include <stdint.h>

#include "proto/wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One chunk.  What wharf_decode_job_check looks at must have been looked at: the launch layer
 * itself answers BAD_REQUEST only for a codec without a device decoder (REQUEST_CODEC) and for
 * sizes over WHARF_DEVICE_CHUNK_MAX_NBYTES (REQUEST_SIZE).
 */
struct wharf_device_chunk {
    const uint8_t *in; /* any alignment */
    uint8_t *out;      /* any alignment */
    uint64_t in_nbytes;
    uint64_t out_avail;
    uint32_t codec;     /* enum wharf_codec */
    uint32_t flags;     /* enum wharf_job_flag */
    uint32_t checksum;  /* expected CRC-32 of the output, with WHARF_JOB_CHECKSUM */
    uint32_t parameter; /* the codec's, struct wharf_codec_setting */
    /* 0: the step budget (decoder.cuh) that the sizes give.  Tests give a small one. */
    uint32_t step_budget;
    /* 0, or the enum wharf_reason for which it is refused: it ends as BAD_REQUEST, and neither
     * source nor destination is touched. */
    uint32_t refusal;
    const uint8_t *model; /* the image of a registered model, aligned to 16; NULL: none */
};

/* The most bytes of a chunk, in or out: positions in bits fit 32 bits on the device. */
#define WHARF_DEVICE_CHUNK_MAX_NBYTES (1u << 28)

struct wharf_device_batch {
    const struct wharf_device_chunk *chunks;
    struct wharf_outcome *outcomes;
    uint32_t n_chunks;
    /* The codec of all chunks, whose kernel is then used (others in the batch get REQUEST_CODEC),
     * or WHARF_DEVICE_ANY_CODEC for the kernel that has all decoders.  Blosc has several kernels,
     * one for each phase.  WHARF_DEVICE_SERIAL | codec, for codecs that have it: a baseline to
     * measure, CODAG's scheme, in which all lanes decode the same symbol.  It reads its input
     * through shared memory, or with _REGISTERS without, or with _PREFETCH through shared memory
     * that another warp fills. WHARF_DEVICE_BLOCK | codec, for codecs that have it: all warps of a
     * block decode a chunk together, which is faster when there are few. WHARF_DEVICE_CREW | codec,
     * for codecs that have it: a warp for each chunk as well, and one more in a block that helps
     * them all. WHARF_DEVICE_INDEXED | codec, for codecs that have it: faster for registered models
     * of 16-bit symbols or of several distributions. */
    uint32_t codec;
};
#define WHARF_DEVICE_ANY_CODEC 0xffffffffu
/* Of the launch layer alone, which starts two kernels where one leaves chunks to the other.  QUICK:
 * that one, which leaves chunks that are not as most are, with LEFT as their outcomes' result.
 * LEAVING, with BLOCK: blocks leave chunks for which a warp is as good likewise.  REST: the codec's
 * own decoder behind either, for those that are left. */
#define WHARF_DEVICE_QUICK 0x10000000u
#define WHARF_DEVICE_REST 0x08000000u
#define WHARF_DEVICE_LEAVING 0x04000000u
#define WHARF_DEVICE_LEFT 0xffffffffu
#define WHARF_DEVICE_SERIAL 0x80000000u
#define WHARF_DEVICE_SERIAL_REGISTERS 0xc0000000u
#define WHARF_DEVICE_SERIAL_PREFETCH 0xa0000000u
#define WHARF_DEVICE_BLOCK 0x40000000u
#define WHARF_DEVICE_CREW 0x60000000u
#define WHARF_DEVICE_INDEXED 0x20000000u
/* The bits of a batch's codec that are not the codec's number. */
#define WHARF_DEVICE_KERNEL_BITS 0xfc000000u

#ifdef __cplusplus
}
#endif

#endif
