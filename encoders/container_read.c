/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_read.c: a container from its first byte to its last, frame after frame.
 *
 * Every frame's header says what comes before it: its place, and the CRC of the header before.
 * The reader computes the index on its way and compares each node with it.  So a file is good only
 * if all of it is what a writer would have written.
 */
#include "encoders/container_read.h"

#include <string.h>

#include "encoders/checksum.h"
#include "encoders/container_frame.h"

/* ---- sources ---------------------------------------------------------------------------- */

static int64_t read_memory(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    const struct wharf_container_memory *memory = context;
    size_t left = offset < memory->in_nbytes ? memory->in_nbytes - (size_t)offset : 0;
    size_t n = nbytes < left ? nbytes : left;

    if (n > 0)
        memcpy(buf, memory->in + offset, n);
    return (int64_t)n;
}

struct wharf_container_source wharf_container_source_memory(struct wharf_container_memory *memory)
{
    return (struct wharf_container_source){
        .read_at = read_memory,
        .context = memory,
        .nbytes = memory->in_nbytes,
    };
}

static int64_t read_at(const struct wharf_container_source *source, uint64_t offset, void *buf,
                       size_t nbytes)
{
    return source->read_at(source->context, offset, buf, nbytes);
}

/* ---- the reader's ends ------------------------------------------------------------------ */

void wharf_container_reader_init(struct wharf_container_reader *reader,
                                 const struct wharf_container_source *source)
{
    *reader = (struct wharf_container_reader){
        .source = *source,
        .member_total = WHARF_CONTAINER_SIZE_UNKNOWN,
    };
}

/* Ends reading with a fault in the header or payload that begins at file_offset. */
static void stop_at(struct wharf_container_reader *reader, struct wharf_container_verdict verdict,
                    uint64_t file_offset)
{
    reader->state = WHARF_CONTAINER_READER_DONE;
    reader->last = (struct wharf_container_item){
        .kind = WHARF_CONTAINER_FAULT,
        .fault =
            {
                .result = verdict.result,
                .reason = verdict.reason,
                .file_offset = file_offset,
                .chunk = reader->member_chunk + reader->sequence,
            },
    };
}

static void stop_bad(struct wharf_container_reader *reader, uint32_t reason)
{
    struct wharf_container_verdict verdict = {WHARF_BAD_DATA, reason};

    stop_at(reader, verdict, reader->offset);
}

static void stop_good(struct wharf_container_reader *reader)
{
    reader->state = WHARF_CONTAINER_READER_DONE;
    reader->last = (struct wharf_container_item){.kind = WHARF_CONTAINER_END};
}

/* ---- members ---------------------------------------------------------------------------- */

static void enter_member(struct wharf_container_reader *reader,
                         const struct wharf_container_file_header *header)
{
    int is_total_known = header->flags & WHARF_CONTAINER_FLAG_TOTAL_KNOWN;

    reader->state = WHARF_CONTAINER_READER_IN_MEMBER;
    reader->n_members++;
    reader->chunk_max_nbytes = header->chunk_max_nbytes;
    reader->member_total = is_total_known ? header->total_nbytes : WHARF_CONTAINER_SIZE_UNKNOWN;
    reader->member_offset = reader->offset;
    reader->member_out_offset += reader->raw_offset;
    reader->member_chunk += reader->sequence;
    reader->sequence = 0;
    reader->raw_offset = 0;
    reader->previous_crc = header->header_crc;
    reader->is_index_known = 1;
    reader->is_resumed = 0;
    reader->is_finishing = 0;
    memset(&reader->index, 0, sizeof(reader->index));
    reader->offset += sizeof(*header);
}

static int begin_member(struct wharf_container_reader *reader)
{
    struct wharf_container_file_header header;
    int64_t n = read_at(&reader->source, reader->offset, &header, sizeof(header));
    struct wharf_container_verdict verdict;

    if (n < 0)
        return (int)n;
    if (n == 0 && reader->n_members > 0) {
        stop_good(reader);
        return 0;
    }
    verdict = wharf_container_check_file_header(&header, (size_t)n);
    if (verdict.result != WHARF_OK)
        stop_at(reader, verdict, reader->offset);
    else
        enter_member(reader, &header);
    return 0;
}

/* ---- chunks ----------------------------------------------------------------------------- */

static int is_behind_source(const struct wharf_container_reader *reader, uint64_t end)
{
    return end > reader->source.nbytes;
}

/* Whether the header is that of the chunk that has to come here. */
static uint32_t check_place(const struct wharf_container_reader *reader,
                            const struct wharf_container_frame_header *header, uint64_t next_offset)
{
    if (header->sequence != reader->sequence || header->raw_offset != reader->raw_offset ||
        header->raw_nbytes > reader->chunk_max_nbytes || reader->is_finishing)
        return WHARF_REASON_CONTAINER_CHUNK;
    if (reader->is_index_known && wharf_container_index_due(&reader->index, 0) != 0)
        return WHARF_REASON_CONTAINER_INDEX;
    if (header->raw_offset > WHARF_CONTAINER_OFFSET_MAX ||
        reader->member_out_offset > WHARF_CONTAINER_OFFSET_MAX ||
        next_offset > WHARF_CONTAINER_OFFSET_MAX ||
        header->raw_nbytes > reader->member_total - reader->raw_offset)
        return WHARF_REASON_CONTAINER_CHUNK;
    if (is_behind_source(reader, next_offset))
        return WHARF_REASON_CONTAINER_TRUNCATED;
    return WHARF_REASON_NONE;
}

static void describe_chunk(const struct wharf_container_reader *reader,
                           const struct wharf_container_frame_header *header,
                           struct wharf_container_chunk *ret_chunk)
{
    *ret_chunk = (struct wharf_container_chunk){
        .number = reader->member_chunk + reader->sequence,
        .out_offset = reader->member_out_offset + reader->raw_offset,
        .file_offset = reader->offset,
        .payload_offset = reader->offset + sizeof(*header),
        .payload_nbytes = header->payload_nbytes,
        .payload_avail = (uint32_t)wharf_container_pad(header->payload_nbytes),
        .raw_nbytes = header->raw_nbytes,
        .output_crc = header->content_crc,
        .codec = header->codec_or_level,
        .ops = wharf_codec_find(header->codec_or_level)->ops,
    };
    struct wharf_container_chunk_parameters parameters;
    memcpy(&parameters, header->parameters, sizeof(parameters));
    ret_chunk->parameter = parameters.codec_parameter;
}

/* Takes a chunk's header: returns 1 with *ret_chunk filled, or 0 when reading has stopped. */
static int take_chunk(struct wharf_container_reader *reader,
                      const struct wharf_container_frame_header *header,
                      struct wharf_container_chunk *ret_chunk)
{
    uint64_t next_offset =
        reader->offset + sizeof(*header) + wharf_container_pad(header->payload_nbytes);
    struct wharf_container_index_entry entry = {
        .frame_offset = reader->offset - reader->member_offset,
        .raw_offset = reader->raw_offset,
    };
    uint32_t reason = check_place(reader, header, next_offset);

    if (reason != WHARF_REASON_NONE) {
        stop_bad(reader, reason);
        return 0;
    }
    describe_chunk(reader, header, ret_chunk);
    if (reader->is_index_known)
        wharf_container_index_add(&reader->index, 1, reader->sequence, &entry);
    reader->sequence++;
    reader->raw_offset += header->raw_nbytes;
    reader->previous_crc = header->header_crc;
    reader->offset = next_offset;
    return 1;
}

/* ---- index and end ---------------------------------------------------------------------- */

/* Compares a node with the one that the chunks so far call for. */
static int is_node_due(struct wharf_container_reader *reader,
                       const struct wharf_container_frame_header *header)
{
    uint32_t level = wharf_container_index_due(&reader->index, 0);
    const struct wharf_container_level *node;

    if (level == 0) {
        reader->is_finishing = 1;
        level = wharf_container_index_due(&reader->index, 1);
    }
    if (level == 0 || header->codec_or_level != level)
        return 0;
    node = &reader->index.levels[level - 1];
    return header->payload_nbytes == node->n_entries * sizeof(struct wharf_container_index_entry) &&
           header->sequence == node->sequence && header->raw_offset == node->first.raw_offset &&
           header->content_crc == node->crc;
}

/* Reads the entries and compares their CRC.  1: good, 0: reading has stopped, or -errno. */
static int verify_entries(struct wharf_container_reader *reader,
                          const struct wharf_container_frame_header *header)
{
    struct wharf_container_index_entry entries[WHARF_CONTAINER_FANOUT];
    int64_t n =
        read_at(&reader->source, reader->offset + sizeof(*header), entries, header->payload_nbytes);

    if (n < 0)
        return (int)n;
    if (n < header->payload_nbytes)
        stop_bad(reader, WHARF_REASON_CONTAINER_TRUNCATED);
    else if (wharf_crc32(0, entries, header->payload_nbytes) != header->content_crc)
        stop_bad(reader, WHARF_REASON_CONTAINER_INDEX);
    return reader->state != WHARF_CONTAINER_READER_DONE;
}

static void close_node(struct wharf_container_reader *reader, uint32_t level)
{
    uint64_t sequence = reader->index.levels[level - 1].sequence;
    struct wharf_container_index_entry entry = wharf_container_index_close_node(
        &reader->index, level, reader->offset - reader->member_offset);

    wharf_container_index_add(&reader->index, level + 1, sequence, &entry);
}

/* After a seek the nodes behind it are passed over: they were right or the seek was not theirs. */
static int take_node(struct wharf_container_reader *reader,
                     const struct wharf_container_frame_header *header)
{
    if (reader->is_index_known) {
        int rc;

        if (!is_node_due(reader, header)) {
            stop_bad(reader, WHARF_REASON_CONTAINER_INDEX);
            return 0;
        }
        rc = verify_entries(reader, header);
        if (rc <= 0)
            return rc;
        close_node(reader, header->codec_or_level);
    }
    reader->previous_crc = header->header_crc;
    reader->offset += sizeof(*header) + header->payload_nbytes;
    return 0;
}

static int is_end_sound(const struct wharf_container_reader *reader,
                        const struct wharf_container_frame_header *header)
{
    struct wharf_container_end_parameters end;

    memcpy(&end, header->parameters, sizeof(end));
    if (header->sequence != reader->sequence || header->raw_offset != reader->raw_offset ||
        (!reader->is_resumed &&
         end.member_nbytes != reader->offset + sizeof(*header) - reader->member_offset))
        return 0;
    return !reader->is_index_known ||
           (wharf_container_index_due(&reader->index, 1) == 0 &&
            end.root_offset == wharf_container_index_root(&reader->index));
}

static void take_end(struct wharf_container_reader *reader,
                     const struct wharf_container_frame_header *header)
{
    int is_total_known = reader->member_total != WHARF_CONTAINER_SIZE_UNKNOWN;

    if (!is_end_sound(reader, header)) {
        stop_bad(reader, WHARF_REASON_CONTAINER_INDEX);
    } else if (is_total_known && reader->raw_offset != reader->member_total) {
        struct wharf_container_verdict verdict = {WHARF_BAD_DATA, WHARF_REASON_CONTAINER_HEADER};
        stop_at(reader, verdict, reader->member_offset);
    } else {
        reader->state = WHARF_CONTAINER_READER_BEFORE_MEMBER;
        reader->offset += sizeof(*header);
    }
}

/* ---- one frame after the other ---------------------------------------------------------- */

/* Reads a frame's header and does what it asks.  1: a chunk, in *ret_chunk; 0: something else, or
 * reading has stopped; or -errno. */
static int take_frame(struct wharf_container_reader *reader,
                      struct wharf_container_chunk *ret_chunk)
{
    struct wharf_container_frame_header header;
    int64_t n = read_at(&reader->source, reader->offset, &header, sizeof(header));
    struct wharf_container_verdict verdict;

    if (n < 0)
        return (int)n;
    if (n < (int64_t)sizeof(header)) {
        stop_bad(reader, WHARF_REASON_CONTAINER_TRUNCATED);
        return 0;
    }
    verdict = wharf_container_check_frame(&header);
    if (verdict.result == WHARF_OK && header.previous_crc != reader->previous_crc)
        verdict = wharf_container_frame_is_damaged(&header);
    if (verdict.result != WHARF_OK) {
        stop_at(reader, verdict, reader->offset);
        return 0;
    }
    if (header.marker == WHARF_CONTAINER_MARKER_CHUNK)
        return take_chunk(reader, &header, ret_chunk);
    if (header.marker == WHARF_CONTAINER_MARKER_INDEX)
        return take_node(reader, &header);
    take_end(reader, &header);
    return 0;
}

/* Passes over a chunk that is not asked for; reading stops if it is not all there. */
static int pass_chunk(struct wharf_container_reader *reader,
                      const struct wharf_container_chunk *chunk)
{
    struct wharf_container_fault fault;
    int rc = wharf_container_pass_payload(&reader->source, chunk, &fault);

    if (rc == 0 && fault.result != WHARF_OK) {
        reader->state = WHARF_CONTAINER_READER_DONE;
        reader->last = (struct wharf_container_item){WHARF_CONTAINER_FAULT, .fault = fault};
    }
    return rc;
}

int wharf_container_next(struct wharf_container_reader *reader,
                         struct wharf_container_item *ret_item)
{
    while (reader->state != WHARF_CONTAINER_READER_DONE) {
        const struct wharf_container_chunk *chunk = &ret_item->chunk;
        int rc = reader->state == WHARF_CONTAINER_READER_BEFORE_MEMBER
                     ? begin_member(reader)
                     : take_frame(reader, &ret_item->chunk);
        if (rc > 0 && chunk->out_offset + chunk->raw_nbytes > reader->skip_until) {
            ret_item->kind = WHARF_CONTAINER_CHUNK;
            memset(&ret_item->fault, 0, sizeof(ret_item->fault));
            return 0;
        }
        if (rc > 0)
            rc = pass_chunk(reader, chunk);
        if (rc < 0)
            return rc;
    }
    *ret_item = reader->last;
    return 0;
}

/* ---- payloads --------------------------------------------------------------------------- */

static struct wharf_container_fault fault_in_chunk(const struct wharf_container_chunk *chunk,
                                                   uint32_t reason, uint64_t file_offset)
{
    return (struct wharf_container_fault){
        .result = WHARF_BAD_DATA,
        .reason = reason,
        .file_offset = file_offset,
        .chunk = chunk->number,
    };
}

/* As a source of known size has it, whose reader does not give the chunk at all. */
static struct wharf_container_fault fault_of_cut_chunk(const struct wharf_container_chunk *chunk)
{
    return fault_in_chunk(chunk, WHARF_REASON_CONTAINER_TRUNCATED, chunk->file_offset);
}

int wharf_container_pass_payload(const struct wharf_container_source *source,
                                 const struct wharf_container_chunk *chunk,
                                 struct wharf_container_fault *ret_fault)
{
    int64_t n = 1;
    uint8_t last;

    if (source->nbytes == WHARF_CONTAINER_SIZE_UNKNOWN)
        n = read_at(source, chunk->payload_offset + chunk->payload_avail - 1, &last, 1);
    if (n < 0)
        return (int)n;
    *ret_fault = (struct wharf_container_fault){.result = WHARF_OK};
    if (n == 0)
        *ret_fault = fault_of_cut_chunk(chunk);
    return 0;
}

static uint8_t padding_of(const struct wharf_container_chunk *chunk, const uint8_t *padding)
{
    uint8_t all = 0;

    for (uint32_t i = 0; i < chunk->payload_avail - chunk->payload_nbytes; i++)
        all |= padding[i];
    return all;
}

int wharf_container_read_padding(const struct wharf_container_source *source,
                                 const struct wharf_container_chunk *chunk,
                                 struct wharf_container_fault *ret_fault)
{
    uint8_t padding[WHARF_CONTAINER_ALIGN];
    uint32_t nbytes = chunk->payload_avail - chunk->payload_nbytes;
    int64_t n = read_at(source, chunk->payload_offset + chunk->payload_nbytes, padding, nbytes);

    if (n < 0)
        return (int)n;
    *ret_fault = (struct wharf_container_fault){.result = WHARF_OK};
    if (n < nbytes)
        *ret_fault = fault_of_cut_chunk(chunk);
    else if (padding_of(chunk, padding) != 0)
        *ret_fault = fault_in_chunk(chunk, WHARF_REASON_CONTAINER_CHUNK, chunk->payload_offset);
    return 0;
}

int wharf_container_read_payload(const struct wharf_container_source *source,
                                 const struct wharf_container_chunk *chunk, uint8_t *buf,
                                 struct wharf_container_fault *ret_fault)
{
    int64_t n = read_at(source, chunk->payload_offset, buf, chunk->payload_avail);

    if (n < 0)
        return (int)n;
    *ret_fault = (struct wharf_container_fault){.result = WHARF_OK};
    if (n < chunk->payload_avail) {
        *ret_fault = fault_of_cut_chunk(chunk);
        return 0;
    }
    if (padding_of(chunk, buf + chunk->payload_nbytes) != 0)
        *ret_fault = fault_in_chunk(chunk, WHARF_REASON_CONTAINER_CHUNK, chunk->payload_offset);
    return 0;
}

struct wharf_decode_job wharf_container_chunk_job(const struct wharf_container_chunk *chunk,
                                                  const uint8_t *payload, uint8_t *out)
{
    return (struct wharf_decode_job){
        .codec = chunk->codec,
        .flags = WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT | WHARF_JOB_CHECKSUM,
        .checksum = chunk->output_crc,
        .setting.parameter = chunk->parameter,
        .in = payload,
        .in_nbytes = chunk->payload_nbytes,
        .out = out,
        .out_avail = chunk->raw_nbytes,
    };
}

struct wharf_container_fault wharf_container_chunk_fault(const struct wharf_container_chunk *chunk,
                                                         const struct wharf_outcome *outcome)
{
    struct wharf_container_fault fault = {.result = WHARF_OK};

    if (outcome->result != WHARF_OK)
        fault = (struct wharf_container_fault){
            /* The room was what the chunk's header promised: more than that is damage. */
            .result = outcome->result == WHARF_OUTPUT_TOO_SMALL ? WHARF_BAD_DATA : outcome->result,
            .reason = outcome->reason,
            .file_offset = chunk->payload_offset,
            .chunk = chunk->number,
            .bit_offset = outcome->bit_offset,
        };
    return fault;
}

void wharf_container_decode(const struct wharf_container_chunk *chunk, int reference,
                            const uint8_t *payload, uint8_t *out,
                            struct wharf_container_fault *ret_fault)
{
    struct wharf_decode_job job = wharf_container_chunk_job(chunk, payload, out);
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, reference, &outcome);
    *ret_fault = wharf_container_chunk_fault(chunk, &outcome);
}
