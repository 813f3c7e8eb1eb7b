/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_parts.h: in how many parts a GPU decodes one chunk.
 *
 * A stream with places to begin at can be decoded by several warps, a part each.  Each part costs
 * some work that one decoder would not have.  So a chunk gets as many parts as warps are idle for
 * it, none too short to be worth it, and fewer, down to one, the more work there is for warps or
 * the longer bytes take on the link.  Only the device finds out whether a stream has so many
 * places; a part beyond them ends at once.
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

/* So long after one of a session's chunks could not be decoded in parts its others are not. */
#define WHARF_PARTS_REFUSED_NS 1000000000u

/* Whether a chunk that is too large for one item can be decoded in parts; into memory of the host
 * alone, since the CPU has to be able to do what cannot be decoded so after all. */
bool wharf_parts_can_do(const struct wharf_core *core, const struct wharf_job *job);

/* The parts that a job has at least, since it is too large for fewer; 1 if it is not. */
uint32_t wharf_parts_least(const struct wharf_core *core, const struct wharf_job *job);

/* How many it is to have now on this GPU: 1 for a batch. */
uint32_t wharf_parts_now(const struct wharf_core *core, const struct wharf_job *job,
                         const struct wharf_gpu_view *gpu);

#endif
