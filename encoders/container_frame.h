/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_frame.h: headers taken by themselves: sealing them, and checking all that can be
 * checked without knowing where in a container they stand.  For the container's own files.
 */
#ifndef WHARF_ENCODERS_CONTAINER_FRAME_H
#define WHARF_ENCODERS_CONTAINER_FRAME_H

#include <stddef.h>

#include "encoders/container_format.h"
#include "proto/wharf_result.h"

/* What is wrong: a result and its reason; {WHARF_OK, NONE} for nothing. */
struct wharf_container_verdict {
    uint32_t result;
    uint32_t reason;
};

/* Fill in header_crc, when all other fields are set. */
void wharf_container_seal_file_header(struct wharf_container_file_header *header);
void wharf_container_seal_frame(struct wharf_container_frame_header *header);

/*
 * The file header, of which the file has nbytes (fewer than its size where the file ends): magic,
 * whole, CRC, version, fields, in this order.
 */
struct wharf_container_verdict
wharf_container_check_file_header(const struct wharf_container_file_header *header, size_t nbytes);

/*
 * A frame's header: CRC, marker, version, then the fields of its kind.  A chunk that passes has a
 * payload of 1 to raw_nbytes, an output of 1 to CHUNK_MAX_NBYTES, a codec that is known here
 * and can yield so much from so little.  An index node that passes has a level of 1 to LEVELS and
 * 1 to FANOUT entries.  An end frame that passes has no payload.
 */
struct wharf_container_verdict
wharf_container_check_frame(const struct wharf_container_frame_header *header);

/* The verdict on a frame that is not, or is not where, it should be: CONTAINER_INDEX for index and
 * end frames, CONTAINER_CHUNK for the rest. */
struct wharf_container_verdict
wharf_container_frame_is_damaged(const struct wharf_container_frame_header *header);

#endif
