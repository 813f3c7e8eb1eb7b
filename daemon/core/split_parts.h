/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_parts.h: chunks that several warps can decode together, a part each.
 */
#ifndef WHARF_DAEMON_CORE_SPLIT_PARTS_H
#define WHARF_DAEMON_CORE_SPLIT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* Output of a part that is worth what all parts do alike: fetching and taking apart the stream's
 * fields, and making its tables, which take a warp as long as some KiB. */
#define WHARF_PARTS_LEAST_NBYTES ((uint64_t)16 << 10)

/* Whether its streams have places to begin at. */
bool wharf_parts_has_splits(uint32_t codec);

/* How many one of so many bytes, of input and output, has where nothing else is to be done, as far
 * as its codec's streams can have them: what is expected before anything was learnt. */
uint64_t wharf_parts_alone(uint32_t codec, uint64_t nbytes);

#endif
