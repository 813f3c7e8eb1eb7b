/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_parts.h: in how many parts a GPU decodes one chunk.
 *
 * Several warps can decode a stream with splits, a part each.  Each part adds some work.  So a
 * chunk gets as many parts as there are idle warps, none shorter than pays, and fewer, down to one,
 * the more work the warps have or the slower the link is.  Only the device finds out how many
 * splits a stream has; parts beyond them end at once.
 *
 * All under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PLACE_PARTS_H
#define WHARF_DAEMON_PLACEMENT_PLACE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_gpu_view;
struct wharf_job;

/* After a chunk that could not be decoded in parts, the session's chunks are decoded whole this
 * long. */
#define WHARF_PARTS_REFUSED_NS 1000000000u

/* Whether a chunk that is too large for one item can be decoded in parts.  Only into host memory,
 * because the CPU has to decode it if the parts fail. */
bool wharf_parts_can_do(const struct wharf_core *core, const struct wharf_job *job);

/* The least number of parts for a job, by its size; 1 for most. */
uint32_t wharf_parts_least(const struct wharf_core *core, const struct wharf_job *job);

/* The number of parts that it should have now on this GPU; 1 for a batch. */
uint32_t wharf_parts_now(const struct wharf_core *core, const struct wharf_job *job,
                         const struct wharf_gpu_view *gpu);

#endif
