/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_write.c: chunks, the nodes of the index as they become due, and the end, in one pass.
 *
 * Nothing is written twice and no size is known beforehand, so the sink can be a pipe.
 */
#include "encoders/container_write.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/container_frame.h"

int wharf_container_pack(uint32_t codec, uint32_t parameter, struct wharf_encoder *encoder,
                         const uint8_t *raw, uint32_t raw_nbytes, uint8_t *buf,
                         struct wharf_container_packed *ret_packed)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);
    size_t payload_nbytes = 0;
    int rc = -ENOSPC;

    if (!row || !wharf_codec_unit_nbytes(row->ops, parameter) ||
        raw_nbytes < WHARF_CONTAINER_CHUNK_MIN_NBYTES ||
        raw_nbytes > WHARF_CONTAINER_CHUNK_MAX_NBYTES)
        return -EINVAL;
    /* With one byte less than the chunk has, no room means no gain. */
    if (codec != WHARF_CODEC_STORED)
        rc = row->ops->encoder->encode(encoder, raw, raw_nbytes, buf, raw_nbytes - 1,
                                       &payload_nbytes);
    if (rc < 0 && rc != -ENOSPC && rc != -EILSEQ)
        return rc;
    *ret_packed = wharf_container_take_packed(codec, parameter, raw, raw_nbytes, buf,
                                              rc == 0 ? (uint32_t)payload_nbytes : 0);
    return 0;
}

struct wharf_container_packed wharf_container_take_packed(uint32_t codec, uint32_t parameter,
                                                          const uint8_t *raw, uint32_t raw_nbytes,
                                                          const uint8_t *payload,
                                                          uint32_t payload_nbytes)
{
    return (struct wharf_container_packed){
        .codec = payload_nbytes ? codec : WHARF_CODEC_STORED,
        .payload_nbytes = payload_nbytes ? payload_nbytes : raw_nbytes,
        .raw_nbytes = raw_nbytes,
        .parameter = payload_nbytes ? parameter : 0,
        .output_crc = wharf_crc32(0, raw, raw_nbytes),
        .payload = payload_nbytes ? payload : raw,
    };
}

/* Seals the frame and writes it with its payload and padding. */
static int write_frame(struct wharf_container_writer *writer,
                       struct wharf_container_frame_header *header, const void *payload)
{
    static const uint8_t zeros[WHARF_CONTAINER_ALIGN];
    uint64_t padded_nbytes = wharf_container_pad(header->payload_nbytes);
    struct iovec parts[3] = {
        {.iov_base = header, .iov_len = sizeof(*header)},
        {.iov_base = (void *)payload, .iov_len = header->payload_nbytes},
        {.iov_base = (void *)zeros, .iov_len = padded_nbytes - header->payload_nbytes},
    };
    int n_parts = 1;
    int rc;

    header->previous_crc = writer->previous_crc;
    wharf_container_seal_frame(header);
    if (header->payload_nbytes > 0)
        n_parts = padded_nbytes > header->payload_nbytes ? 3 : 2;
    rc = writer->sink.write(writer->sink.context, parts, n_parts);
    if (rc < 0)
        return rc;
    writer->previous_crc = header->header_crc;
    writer->file_nbytes += sizeof(*header) + padded_nbytes;
    return 0;
}

static void add_entry(struct wharf_container_writer *writer, uint32_t level, uint64_t sequence,
                      const struct wharf_container_index_entry *entry)
{
    uint32_t n_entries = writer->index.levels[level - 1].n_entries;

    writer->entries[level - 1][n_entries] = *entry;
    wharf_container_index_add(&writer->index, level, sequence, entry);
}

static int write_node(struct wharf_container_writer *writer, uint32_t level)
{
    const struct wharf_container_level *node = &writer->index.levels[level - 1];
    struct wharf_container_frame_header header = {
        .marker = WHARF_CONTAINER_MARKER_INDEX,
        .codec_or_level = (uint16_t)level,
        .payload_nbytes = node->n_entries * (uint32_t)sizeof(struct wharf_container_index_entry),
        .sequence = node->sequence,
        .raw_offset = node->first.raw_offset,
        .content_crc = node->crc,
    };
    struct wharf_container_index_entry entry;
    uint64_t frame_offset = writer->file_nbytes;
    int rc = write_frame(writer, &header, writer->entries[level - 1]);

    if (rc < 0)
        return rc;
    entry = wharf_container_index_close_node(&writer->index, level, frame_offset);
    add_entry(writer, level + 1, header.sequence, &entry);
    return 0;
}

static int write_due_nodes(struct wharf_container_writer *writer, int is_finishing)
{
    uint32_t level;

    while ((level = wharf_container_index_due(&writer->index, is_finishing)) != 0) {
        int rc = write_node(writer, level);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int wharf_container_writer_init(struct wharf_container_writer *writer,
                                const struct wharf_container_sink *sink, uint32_t chunk_max_nbytes,
                                uint64_t total_nbytes)
{
    int is_total_known = total_nbytes != WHARF_CONTAINER_TOTAL_UNKNOWN;
    struct wharf_container_file_header header = {
        .version = WHARF_CONTAINER_VERSION,
        .flags = is_total_known ? WHARF_CONTAINER_FLAG_TOTAL_KNOWN : 0,
        .chunk_max_nbytes = chunk_max_nbytes,
        .total_nbytes = is_total_known ? total_nbytes : 0,
    };
    struct iovec part = {.iov_base = &header, .iov_len = sizeof(header)};

    if (chunk_max_nbytes < WHARF_CONTAINER_CHUNK_MIN_NBYTES ||
        chunk_max_nbytes > WHARF_CONTAINER_CHUNK_MAX_NBYTES ||
        header.total_nbytes > WHARF_CONTAINER_OFFSET_MAX)
        return -EINVAL;
    memcpy(header.magic, WHARF_CONTAINER_MAGIC, sizeof(header.magic));
    wharf_container_seal_file_header(&header);
    *writer = (struct wharf_container_writer){
        .sink = *sink,
        .chunk_max_nbytes = chunk_max_nbytes,
        .previous_crc = header.header_crc,
        .total_nbytes = total_nbytes,
        .file_nbytes = sizeof(header),
    };
    return sink->write(sink->context, &part, 1);
}

/* The index is less than the chunks, so a file whose chunks end below half of OFFSET_MAX fits. */
static int check_put(const struct wharf_container_writer *writer,
                     const struct wharf_container_packed *packed)
{
    if (packed->raw_nbytes < WHARF_CONTAINER_CHUNK_MIN_NBYTES ||
        packed->raw_nbytes > writer->chunk_max_nbytes || packed->payload_nbytes == 0 ||
        packed->payload_nbytes > packed->raw_nbytes)
        return -EINVAL;
    if (writer->file_nbytes > WHARF_CONTAINER_OFFSET_MAX / 2 ||
        writer->raw_nbytes > WHARF_CONTAINER_OFFSET_MAX / 2 ||
        packed->raw_nbytes > writer->total_nbytes - writer->raw_nbytes)
        return -EFBIG;
    return 0;
}

int wharf_container_put(struct wharf_container_writer *writer,
                        const struct wharf_container_packed *packed)
{
    struct wharf_container_frame_header header = {
        .marker = WHARF_CONTAINER_MARKER_CHUNK,
        .codec_or_level = (uint16_t)packed->codec,
        .payload_nbytes = packed->payload_nbytes,
        .raw_nbytes = packed->raw_nbytes,
        .sequence = writer->n_chunks,
        .raw_offset = writer->raw_nbytes,
        .content_crc = packed->output_crc,
    };
    const struct wharf_container_chunk_parameters parameters = {
        .codec_parameter = (uint16_t)packed->parameter,
    };
    struct wharf_container_index_entry entry = {
        .frame_offset = writer->file_nbytes,
        .raw_offset = writer->raw_nbytes,
    };
    int rc = check_put(writer, packed);

    if (rc < 0)
        return rc;
    memcpy(header.parameters, &parameters, sizeof(parameters));
    rc = write_frame(writer, &header, packed->payload);
    if (rc < 0)
        return rc;
    add_entry(writer, 1, writer->n_chunks, &entry);
    writer->n_chunks++;
    writer->raw_nbytes += packed->raw_nbytes;
    return write_due_nodes(writer, 0);
}

int wharf_container_finish(struct wharf_container_writer *writer)
{
    struct wharf_container_frame_header header = {
        .marker = WHARF_CONTAINER_MARKER_END,
        .sequence = writer->n_chunks,
        .raw_offset = writer->raw_nbytes,
    };
    struct wharf_container_end_parameters end;
    int rc;

    if (writer->total_nbytes != WHARF_CONTAINER_TOTAL_UNKNOWN &&
        writer->total_nbytes != writer->raw_nbytes)
        return -EINVAL;
    rc = write_due_nodes(writer, 1);
    if (rc < 0)
        return rc;
    end.root_offset = wharf_container_index_root(&writer->index);
    end.member_nbytes = writer->file_nbytes + sizeof(header);
    memcpy(header.parameters, &end, sizeof(end));
    return write_frame(writer, &header, NULL);
}
