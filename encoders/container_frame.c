/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_frame.c: headers of files and frames: sealed, and checked field by field (FORMAT.md).
 */
#include "encoders/container_frame.h"

#include <stddef.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/codec.h"

typedef struct wharf_container_verdict verdict;

static const verdict good = {WHARF_OK, WHARF_REASON_NONE};

static verdict bad(uint32_t reason)
{
    return (verdict){WHARF_BAD_DATA, reason};
}

static verdict unsupported(uint32_t reason)
{
    return (verdict){WHARF_UNSUPPORTED, reason};
}

static uint32_t file_header_crc(const struct wharf_container_file_header *header)
{
    return wharf_crc32(0, header, offsetof(struct wharf_container_file_header, header_crc));
}

static uint32_t frame_crc(const struct wharf_container_frame_header *header)
{
    return wharf_crc32(0, header, offsetof(struct wharf_container_frame_header, header_crc));
}

void wharf_container_seal_file_header(struct wharf_container_file_header *header)
{
    header->header_crc = file_header_crc(header);
}

void wharf_container_seal_frame(struct wharf_container_frame_header *header)
{
    header->header_crc = frame_crc(header);
}

static int is_total_sound(const struct wharf_container_file_header *header)
{
    if (header->flags & WHARF_CONTAINER_FLAG_TOTAL_KNOWN)
        return header->total_nbytes <= WHARF_CONTAINER_OFFSET_MAX;
    return header->total_nbytes == 0;
}

/* Every version keeps magic, version and the CRC where they are, so that damage can be told from
 * a version that is not known here. */
verdict wharf_container_check_file_header(const struct wharf_container_file_header *header,
                                          size_t nbytes)
{
    size_t n_magic = nbytes < WHARF_CONTAINER_MAGIC_NBYTES ? nbytes : WHARF_CONTAINER_MAGIC_NBYTES;

    if (memcmp(header->magic, WHARF_CONTAINER_MAGIC, n_magic) != 0)
        return bad(WHARF_REASON_CONTAINER_MAGIC);
    if (nbytes < sizeof(*header))
        return bad(WHARF_REASON_CONTAINER_TRUNCATED);
    if (header->header_crc != file_header_crc(header))
        return bad(WHARF_REASON_CONTAINER_HEADER);
    if (header->version != WHARF_CONTAINER_VERSION || header->reserved != 0 ||
        (header->flags & ~WHARF_CONTAINER_FLAG_TOTAL_KNOWN))
        return unsupported(WHARF_REASON_CONTAINER_VERSION);
    if (header->chunk_max_nbytes < WHARF_CONTAINER_CHUNK_MIN_NBYTES ||
        header->chunk_max_nbytes > WHARF_CONTAINER_CHUNK_MAX_NBYTES || !is_total_sound(header))
        return bad(WHARF_REASON_CONTAINER_HEADER);
    return good;
}

static int has_parameters(const struct wharf_container_frame_header *header)
{
    static const uint8_t none[WHARF_CONTAINER_PARAMETERS_NBYTES];

    return memcmp(header->parameters, none, sizeof(none)) != 0;
}

/* A chunk whose parameter its codec does not have is for a wharf that knows more. */
static int has_codec(const struct wharf_container_frame_header *header)
{
    static const uint8_t none[sizeof((struct wharf_container_chunk_parameters){0}.reserved)];
    const struct wharf_codec_row *row = wharf_codec_find(header->codec_or_level);
    struct wharf_container_chunk_parameters parameters;

    memcpy(&parameters, header->parameters, sizeof(parameters));
    return row && wharf_codec_unit_nbytes(row->ops, parameters.codec_parameter) &&
           memcmp(parameters.reserved, none, sizeof(none)) == 0;
}

/* A payload is smaller than its output, or is the output: so one limit bounds both. */
static verdict check_chunk(const struct wharf_container_frame_header *header)
{
    const struct wharf_codec_row *row = wharf_codec_find(header->codec_or_level);
    int is_stored = header->codec_or_level == WHARF_CODEC_STORED;

    if (!has_codec(header))
        return unsupported(WHARF_REASON_CONTAINER_CODEC);
    if (header->raw_nbytes < WHARF_CONTAINER_CHUNK_MIN_NBYTES ||
        header->raw_nbytes > WHARF_CONTAINER_CHUNK_MAX_NBYTES || header->payload_nbytes == 0 ||
        header->payload_nbytes > header->raw_nbytes ||
        is_stored != (header->payload_nbytes == header->raw_nbytes))
        return bad(WHARF_REASON_CONTAINER_CHUNK);
    if (!wharf_codec_may_yield(row->ops, header->payload_nbytes, header->raw_nbytes))
        return bad(WHARF_REASON_CONTAINER_LIMIT);
    return good;
}

static verdict check_node(const struct wharf_container_frame_header *header)
{
    const uint32_t entry_nbytes = sizeof(struct wharf_container_index_entry);

    if (header->codec_or_level < 1 || header->codec_or_level > WHARF_CONTAINER_LEVELS ||
        header->payload_nbytes % entry_nbytes != 0 || header->payload_nbytes == 0 ||
        header->payload_nbytes > WHARF_CONTAINER_FANOUT * entry_nbytes || header->raw_nbytes != 0 ||
        has_parameters(header))
        return bad(WHARF_REASON_CONTAINER_INDEX);
    return good;
}

static verdict check_end(const struct wharf_container_frame_header *header)
{
    if (header->codec_or_level != 0 || header->payload_nbytes != 0 || header->raw_nbytes != 0 ||
        header->content_crc != 0)
        return bad(WHARF_REASON_CONTAINER_INDEX);
    return good;
}

verdict wharf_container_frame_is_damaged(const struct wharf_container_frame_header *header)
{
    if (header->marker == WHARF_CONTAINER_MARKER_INDEX ||
        header->marker == WHARF_CONTAINER_MARKER_END)
        return bad(WHARF_REASON_CONTAINER_INDEX);
    return bad(WHARF_REASON_CONTAINER_CHUNK);
}

verdict wharf_container_check_frame(const struct wharf_container_frame_header *header)
{
    if (header->header_crc != frame_crc(header))
        return wharf_container_frame_is_damaged(header);
    if (header->flags != 0 || header->reserved != 0)
        return unsupported(WHARF_REASON_CONTAINER_VERSION);
    switch (header->marker) {
    case WHARF_CONTAINER_MARKER_CHUNK:
        return check_chunk(header);
    case WHARF_CONTAINER_MARKER_INDEX:
        return check_node(header);
    case WHARF_CONTAINER_MARKER_END:
        return check_end(header);
    default:
        return unsupported(WHARF_REASON_CONTAINER_VERSION);
    }
}
