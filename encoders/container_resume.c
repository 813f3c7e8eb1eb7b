/* SPDX-License-Identifier: Apache-2.0 */
/* container_resume.c: reading goes on behind damage, at the next frame that is sound. */
#include "encoders/container_resume.h"

#include <string.h>

#include "encoders/container_frame.h"

static bool look_at_file_header(const uint8_t *in, size_t in_nbytes,
                                struct wharf_container_frame *frame)
{
    struct wharf_container_file_header header;

    if (in_nbytes < sizeof(header))
        return false;
    memcpy(&header, in, sizeof(header));
    frame->is_member = true;
    return wharf_container_check_file_header(&header, sizeof(header)).result == WHARF_OK;
}

static bool look_at_frame(const uint8_t *in, size_t in_nbytes, struct wharf_container_frame *frame)
{
    struct wharf_container_frame_header header;

    if (in_nbytes < sizeof(header))
        return false;
    memcpy(&header, in, sizeof(header));
    frame->sequence = header.sequence;
    frame->raw_offset = header.raw_offset;
    frame->raw_nbytes = header.raw_nbytes;
    frame->previous_crc = header.previous_crc;
    return header.marker != WHARF_CONTAINER_MARKER_INDEX &&
           header.raw_offset <= WHARF_CONTAINER_OFFSET_MAX &&
           wharf_container_check_frame(&header).result == WHARF_OK;
}

bool wharf_container_look(const uint8_t *in, size_t in_nbytes, uint64_t file_offset,
                          struct wharf_container_frame *ret_frame)
{
    struct wharf_container_frame frame = {.file_offset = file_offset};
    bool is_header;

    if (in_nbytes < 1)
        return false;
    is_header = in[0] == (uint8_t)WHARF_CONTAINER_MAGIC[0]
                    ? look_at_file_header(in, in_nbytes, &frame)
                    : look_at_frame(in, in_nbytes, &frame);
    if (is_header)
        *ret_frame = frame;
    return is_header;
}

bool wharf_container_fits(const struct wharf_container_reader *reader,
                          const struct wharf_container_frame *frame)
{
    uint64_t n_missing = frame->sequence - reader->sequence;
    uint64_t n_missing_bytes = frame->raw_offset - reader->raw_offset;

    /* Of a member whose header is lost nothing is known. */
    if (frame->is_member || reader->n_members == 0)
        return true;
    if (frame->sequence < reader->sequence || frame->raw_offset < reader->raw_offset ||
        frame->raw_nbytes > reader->chunk_max_nbytes || n_missing > n_missing_bytes)
        return false;
    /* As a quotient: the product may not be a number that fits. */
    return n_missing_bytes == 0 || (n_missing_bytes - 1) / reader->chunk_max_nbytes < n_missing;
}

/* The member's header is lost. */
static void begin_unknown_member(struct wharf_container_reader *reader)
{
    reader->n_members++;
    reader->chunk_max_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES;
    reader->member_out_offset += reader->raw_offset;
    reader->member_chunk += reader->sequence;
    reader->sequence = 0;
    reader->raw_offset = 0;
}

uint64_t wharf_container_resume(struct wharf_container_reader *reader,
                                const struct wharf_container_frame *frame, bool is_new)
{
    uint64_t n_missing_bytes;

    reader->offset = frame->file_offset;
    if (frame->is_member) {
        reader->state = WHARF_CONTAINER_READER_BEFORE_MEMBER;
        return 0;
    }
    if (is_new || reader->n_members == 0)
        begin_unknown_member(reader);
    n_missing_bytes = frame->raw_offset - reader->raw_offset;
    reader->state = WHARF_CONTAINER_READER_IN_MEMBER;
    reader->sequence = frame->sequence;
    reader->raw_offset = frame->raw_offset;
    reader->previous_crc = frame->previous_crc;
    reader->member_total = WHARF_CONTAINER_SIZE_UNKNOWN;
    reader->is_index_known = 0;
    reader->is_resumed = 1;
    reader->is_finishing = 0;
    return n_missing_bytes;
}
