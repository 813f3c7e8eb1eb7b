/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_resume.h: goes on reading a damaged container (container_read.h) at a header that was
 * found behind the damage.
 *
 * Every header has a CRC of its own and the number and output offset of its chunk, so one that is
 * found tells by itself where it belongs, and how much is missing before it.
 */
#ifndef WHARF_ENCODERS_CONTAINER_RESUME_H
#define WHARF_ENCODERS_CONTAINER_RESUME_H

#include <stdbool.h>

#include "encoders/container_read.h"

/* A header to go on at. */
struct wharf_container_frame {
    uint64_t file_offset;
    bool is_member;      /* a file header; else a chunk's or an end frame's */
    uint64_t sequence;   /* the chunk's number in its member, or how many there are */
    uint64_t raw_offset; /* where its output begins in the member's, or that one's size */
    uint32_t raw_nbytes;
    uint32_t previous_crc;
};

enum { WHARF_CONTAINER_LOOK_NBYTES = WHARF_CONTAINER_FRAME_HEADER_NBYTES };

/*
 * Whether the header of a file, a chunk or an end begins at `in`, right in itself.  Index nodes do
 * not count: nothing can be had of them.
 *   in_nbytes   what of LOOK_NBYTES there is
 */
bool wharf_container_look(const uint8_t *in, size_t in_nbytes, uint64_t file_offset,
                          struct wharf_container_frame *ret_frame);

/* Whether a header can follow in the member in which the reader stands, or begins a member. */
bool wharf_container_fits(const struct wharf_container_reader *reader,
                          const struct wharf_container_frame *frame);

/*
 * Makes next() go on with the header.  Returns how much output is missing before it, by what its
 * member says: nothing vouches for the number.  The index and the sizes that the member's header
 * and its end give are not verified then.
 *   is_new   it is of another member than that in which the reader stood, one whose header is lost
 */
uint64_t wharf_container_resume(struct wharf_container_reader *reader,
                                const struct wharf_container_frame *frame, bool is_new);

#endif
