/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo.h: the memory in which an epoch keeps decoded chunks, as those who set it up see it; C and
 * C++.  epoch_memo.cuh uses it.
 *
 * It is divided into equal parts, each of which the core gives to one owner.  Nothing that happens
 * in one part depends on another, so no owner learns from the time of a decode what others decoded.
 */
#ifndef WHARF_KERNELS_MEMO_H
#define WHARF_KERNELS_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_job.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WHARF_MEMO_MOST_PARTS 64u
/* The least memory of a part. */
#define WHARF_MEMO_LEAST_NBYTES ((uint64_t)64 << 10)

/* Bit i: chunks of codec i are kept.  Decoding takes a warp many times as long as hashing,
 * comparing and copying.  None of them has models, whose numbers come to mean other models. */
#define WHARF_MEMO_CODECS                                                                          \
    ((uint64_t)1 << WHARF_CODEC_DEFLATE | (uint64_t)1 << WHARF_CODEC_ZLIB |                        \
     (uint64_t)1 << WHARF_CODEC_GZIP)

/* An owner's word in an item (work_queue.h): its part, and a number that is not 0 and that no other
 * owner ever had or will have. */
#define WHARF_MEMO_OWNER(part, number) ((uint64_t)(number) << 8 | (part))
#define WHARF_MEMO_PART_OF(owner) ((uint32_t)(owner)&0xffu)

/* What a completion's `part` says of a DECODE with an owner; the rest counts what was evicted. */
#define WHARF_MEMO_LOOKED 1u /* it was searched for */
#define WHARF_MEMO_HIT 2u
#define WHARF_MEMO_KEPT 4u
#define WHARF_MEMO_EVICTED 256u /* for each */

#ifdef __cplusplus
}
#endif

#endif
