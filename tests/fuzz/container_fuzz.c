/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers: any bytes, as they are and once more with all checksums of headers made right, so
 * that what stands behind the checksums is reached too.
 *
 * A chunk that is given out keeps all limits.  A file and a pipe give the same chunks and the same
 * fault, from any place where the file has no index that serves.  Where reading everything ends
 * well, reading from any place gives the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/container_frame.h"
#include "encoders/container_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Larger chunks are checked by their headers alone: decoding them only takes time. */
enum { MAX_DECODED_NBYTES = 1 << 16 };

static void check(int good)
{
    if (!good)
        abort();
}

/* ---- sources ---------------------------------------------------------------------------- */

static int64_t read_forward(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    struct wharf_container_source memory = wharf_container_source_memory(context);

    return memory.read_at(memory.context, offset, buf, nbytes);
}

static struct wharf_container_source as_pipe(struct wharf_container_memory *memory)
{
    return (struct wharf_container_source){
        .read_at = read_forward,
        .context = memory,
        .nbytes = WHARF_CONTAINER_SIZE_UNKNOWN,
    };
}

/* ---- reading ---------------------------------------------------------------------------- */

/* What a reading gave: enough to compare two. */
struct summary {
    uint64_t n_chunks;
    uint64_t end; /* of the output */
    uint32_t crc; /* of all chunks that were decoded and good */
    struct wharf_container_fault fault;
};

static void check_limits(const struct wharf_container_source *source,
                         const struct wharf_container_chunk *chunk)
{
    check(chunk->raw_nbytes >= 1 && chunk->raw_nbytes <= WHARF_CONTAINER_CHUNK_MAX_NBYTES);
    check(chunk->payload_nbytes >= 1 && chunk->payload_nbytes <= chunk->raw_nbytes);
    check(chunk->payload_avail - chunk->payload_nbytes < WHARF_CONTAINER_ALIGN);
    check(chunk->payload_offset % WHARF_CONTAINER_ALIGN == 0);
    check(wharf_codec_may_yield(chunk->ops, chunk->payload_nbytes, chunk->raw_nbytes));
    check(source->nbytes == WHARF_CONTAINER_SIZE_UNKNOWN ||
          (chunk->payload_offset <= source->nbytes &&
           chunk->payload_avail <= source->nbytes - chunk->payload_offset));
}

/* Output before byte `from` is left out of the sum. */
static void take_chunk(const struct wharf_container_source *source,
                       const struct wharf_container_chunk *chunk, uint64_t from,
                       struct summary *summary)
{
    uint64_t skip = from > chunk->out_offset ? from - chunk->out_offset : 0;
    uint8_t *payload;
    uint8_t *out;

    check_limits(source, chunk);
    check(skip < chunk->raw_nbytes);
    if (chunk->raw_nbytes > MAX_DECODED_NBYTES) {
        check(wharf_container_pass_payload(source, chunk, &summary->fault) == 0);
        return;
    }
    payload = malloc(chunk->payload_avail);
    out = malloc(chunk->raw_nbytes);
    check(payload && out);
    check(wharf_container_read_payload(source, chunk, payload, &summary->fault) == 0);
    if (summary->fault.result == WHARF_OK)
        wharf_container_decode(chunk, 0, payload, out, &summary->fault);
    if (summary->fault.result == WHARF_OK)
        summary->crc = wharf_crc32(summary->crc, out + skip, chunk->raw_nbytes - skip);
    free(payload);
    free(out);
}

/* Reads from output byte `from` on; all of it, without asking for an index, from 0. */
static struct summary read_from(const struct wharf_container_source *source, uint64_t from,
                                struct wharf_container_fault *ret_index_fault)
{
    struct summary summary = {.fault = {.result = WHARF_OK}};
    struct wharf_container_reader reader;
    struct wharf_container_item item;

    wharf_container_reader_init(&reader, source);
    if (from > 0)
        check(wharf_container_seek(&reader, from, ret_index_fault) == 0);
    for (;;) {
        check(wharf_container_next(&reader, &item) == 0);
        if (item.kind != WHARF_CONTAINER_CHUNK)
            break;
        take_chunk(source, &item.chunk, from, &summary);
        if (summary.fault.result != WHARF_OK)
            return summary;
        summary.n_chunks++;
        summary.end = item.chunk.out_offset + item.chunk.raw_nbytes;
    }
    summary.fault = item.fault;
    return summary;
}

static void check_same_chunks(const struct summary *file, const struct summary *pipe)
{
    check(file->n_chunks == pipe->n_chunks && file->end == pipe->end && file->crc == pipe->crc);
    check(memcmp(&file->fault, &pipe->fault, sizeof(file->fault)) == 0);
}

static void try_container(uint8_t *data, size_t nbytes)
{
    struct wharf_container_memory memory = {data, nbytes};
    struct wharf_container_source file = wharf_container_source_memory(&memory);
    struct wharf_container_source pipe = as_pipe(&memory);
    struct summary all = read_from(&file, 0, NULL);
    struct summary piped = read_from(&pipe, 0, NULL);
    struct wharf_container_totals totals;
    struct wharf_container_fault fault;

    check_same_chunks(&all, &piped);
    check(wharf_container_read_totals(&file, &totals, &fault) == 0);
    if (all.fault.result == WHARF_OK)
        check(fault.result == WHARF_OK && totals.raw_nbytes == all.end &&
              totals.n_chunks == all.n_chunks);
    for (uint64_t from = all.end + 1; from > 0; from /= 3) {
        struct summary seeked = read_from(&file, from, &fault);
        struct summary walked = read_from(&pipe, from, NULL);
        if (fault.result != WHARF_OK)
            check_same_chunks(&seeked, &walked);
        if (all.fault.result == WHARF_OK) {
            check(seeked.fault.result == WHARF_OK && walked.fault.result == WHARF_OK);
            check(seeked.crc == walked.crc && seeked.end == walked.end);
        }
    }
}

/* ---- checksums made right --------------------------------------------------------------- */

static void mend_node(struct wharf_container_frame_header *header, const uint8_t *payload,
                      size_t avail)
{
    if (header->marker == WHARF_CONTAINER_MARKER_INDEX && header->payload_nbytes <= avail)
        header->content_crc = wharf_crc32(0, payload, header->payload_nbytes);
}

/* Gives the header's size, or more than nbytes if it is not whole. */
static size_t mend_file_header(uint8_t *data, size_t nbytes, uint32_t *ret_crc)
{
    struct wharf_container_file_header header;

    if (nbytes >= sizeof(header)) {
        memcpy(&header, data, sizeof(header));
        wharf_container_seal_file_header(&header);
        memcpy(data, &header, sizeof(header));
        *ret_crc = header.header_crc;
    }
    return sizeof(header);
}

/* Goes from header to header as far as they lead. */
static void mend(uint8_t *data, size_t nbytes)
{
    struct wharf_container_frame_header header;
    uint32_t previous_crc = 0;
    size_t at = mend_file_header(data, nbytes, &previous_crc);

    while (at <= nbytes && nbytes - at >= sizeof(header)) {
        memcpy(&header, data + at, sizeof(header));
        mend_node(&header, data + at + sizeof(header), nbytes - at - sizeof(header));
        header.previous_crc = previous_crc;
        wharf_container_seal_frame(&header);
        memcpy(data + at, &header, sizeof(header));
        previous_crc = header.header_crc;
        at += sizeof(header) + wharf_container_pad(header.payload_nbytes);
        if (header.marker == WHARF_CONTAINER_MARKER_END && at <= nbytes)
            at += mend_file_header(data + at, nbytes - at, &previous_crc);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    uint8_t *copy = malloc(nbytes + 1);

    check(copy != NULL);
    if (nbytes > 0)
        memcpy(copy, data, nbytes);
    try_container(copy, nbytes);
    mend(copy, nbytes);
    try_container(copy, nbytes);
    free(copy);
    return 0;
}
