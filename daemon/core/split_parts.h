/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_parts.h: chunks that several warps can decode together, a part each.
 */
#ifndef WHARF_DAEMON_CORE_SPLIT_PARTS_H
#define WHARF_DAEMON_CORE_SPLIT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* The least output of a part that pays for the work that every part repeats: fetching and parsing
 * the stream's fields and building its tables, which cost a warp as much as some KiB of output. */
#define WHARF_PARTS_LEAST_NBYTES ((uint64_t)16 << 10)

/* Whether the codec's streams can have splits. */
bool wharf_parts_has_splits(uint32_t codec);

/* How many parts a lone chunk of nbytes, input plus output, probably gets on an idle GPU; used
 * before anything is learnt. */
uint64_t wharf_parts_alone(uint32_t codec, uint64_t nbytes);

#endif
