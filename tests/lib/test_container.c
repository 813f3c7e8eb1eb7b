/* SPDX-License-Identifier: Apache-2.0 */
/* test_container.c: makes, reads and damages containers in memory. */
#include "tests/lib/test_container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/container_frame.h"

/* Ends the program if a test cannot continue. */
static void require(int is_true, const char *what)
{
    if (is_true)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* ---- bytes ------------------------------------------------------------------------------ */

void test_bytes_add(struct test_bytes *bytes, const void *data, size_t nbytes)
{
    if (nbytes > bytes->room - bytes->nbytes) {
        bytes->room = 2 * (bytes->nbytes + nbytes);
        bytes->data = realloc(bytes->data, bytes->room);
        require(bytes->data != NULL, "out of memory");
    }
    if (nbytes > 0)
        memcpy(bytes->data + bytes->nbytes, data, nbytes);
    bytes->nbytes += nbytes;
}

void test_bytes_free(struct test_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct test_bytes){0};
}

static int write_bytes(void *context, const struct iovec *parts, int n_parts)
{
    for (int i = 0; i < n_parts; i++)
        test_bytes_add(context, parts[i].iov_base, parts[i].iov_len);
    return 0;
}

struct wharf_container_sink test_container_sink(struct test_bytes *bytes)
{
    return (struct wharf_container_sink){.write = write_bytes, .context = bytes};
}

/* ---- making ----------------------------------------------------------------------------- */

static void add_chunks(struct wharf_container_writer *writer,
                       const struct test_container_options *options, const uint8_t *raw,
                       size_t raw_nbytes)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(options->codec)->ops->encoder;
    uint32_t parameter = options->encoder ? options->encoder->parameter : 0;
    struct wharf_encoder *encoder;
    uint8_t *buf = malloc(options->chunk_nbytes);

    require(buf && ops->new (options->encoder, &encoder) == 0, "no encoder");
    while (raw_nbytes > 0) {
        uint32_t n =
            raw_nbytes < options->chunk_nbytes ? (uint32_t)raw_nbytes : options->chunk_nbytes;
        struct wharf_container_packed packed;
        require(wharf_container_pack(options->codec, parameter, encoder, raw, n, buf, &packed) == 0,
                "pack");
        require(wharf_container_put(writer, &packed) == 0, "put");
        raw += n;
        raw_nbytes -= n;
    }
    ops->free(encoder);
    free(buf);
}

void test_container_add(struct test_bytes *file, const struct test_container_options *options,
                        const uint8_t *raw, size_t raw_nbytes)
{
    uint64_t total_nbytes = options->is_total_known ? raw_nbytes : WHARF_CONTAINER_TOTAL_UNKNOWN;
    struct wharf_container_sink sink = test_container_sink(file);
    struct wharf_container_writer *writer = malloc(sizeof(*writer));

    require(writer && wharf_container_writer_init(writer, &sink, options->chunk_nbytes,
                                                  total_nbytes) == 0,
            "init");
    add_chunks(writer, options, raw, raw_nbytes);
    require(wharf_container_finish(writer) == 0, "finish");
    free(writer);
}

/* ---- reading ---------------------------------------------------------------------------- */

struct pipe {
    const uint8_t *in;
    size_t in_nbytes;
    size_t at;
};

static int64_t read_pipe(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    struct pipe *pipe = context;
    size_t n;

    require(offset >= pipe->at, "the reader looked back in a pipe");
    pipe->at = offset < pipe->in_nbytes ? (size_t)offset : pipe->in_nbytes;
    n = nbytes < pipe->in_nbytes - pipe->at ? nbytes : pipe->in_nbytes - pipe->at;
    memcpy(buf, pipe->in + pipe->at, n);
    pipe->at += n;
    return (int64_t)n;
}

/* Decodes a chunk with both engines, which must agree, and adds its output. */
static void take_chunk(const struct wharf_container_source *source,
                       const struct wharf_container_chunk *chunk, struct test_container_read *read)
{
    uint8_t *payload = malloc(chunk->payload_avail);
    uint8_t *out = malloc(chunk->raw_nbytes);
    struct wharf_container_fault reference;

    require(payload && out, "out of memory");
    require(chunk->payload_offset % 16 == 0, "a payload is not aligned");
    require(wharf_container_read_payload(source, chunk, payload, &read->fault) == 0, "read");
    if (read->fault.result == WHARF_OK) {
        wharf_container_decode(chunk, 1, payload, out, &reference);
        wharf_container_decode(chunk, 0, payload, out, &read->fault);
        require(memcmp(&reference, &read->fault, sizeof(reference)) == 0, "engines differ");
    }
    if (read->fault.result == WHARF_OK) {
        require(chunk->number == 0 || chunk->out_offset > 0, "a chunk without its place");
        test_bytes_add(&read->out, out, chunk->raw_nbytes);
        read->n_chunks++;
    }
    free(payload);
    free(out);
}

static struct test_container_read read_source(const struct wharf_container_source *source,
                                              uint64_t out_offset,
                                              struct wharf_container_fault *ret_index_fault)
{
    struct test_container_read read = {.fault = {.result = WHARF_OK}};
    struct wharf_container_reader reader;
    struct wharf_container_item item = {.kind = WHARF_CONTAINER_CHUNK};
    uint64_t skip = 0;

    wharf_container_reader_init(&reader, source);
    if (out_offset > 0 || ret_index_fault)
        require(wharf_container_seek(&reader, out_offset, ret_index_fault) == 0, "seek");
    while (item.kind == WHARF_CONTAINER_CHUNK && read.fault.result == WHARF_OK) {
        require(wharf_container_next(&reader, &item) == 0, "next");
        if (item.kind == WHARF_CONTAINER_FAULT)
            read.fault = item.fault;
        if (item.kind != WHARF_CONTAINER_CHUNK)
            break;
        if (read.n_chunks == 0)
            skip = out_offset - item.chunk.out_offset;
        take_chunk(source, &item.chunk, &read);
    }
    if (read.out.nbytes > 0) {
        require(skip < read.out.nbytes, "the first chunk does not hold the byte");
        read.out.nbytes -= skip;
        memmove(read.out.data, read.out.data + skip, read.out.nbytes);
    }
    return read;
}

struct test_container_read test_container_read_from(const uint8_t *in, size_t in_nbytes,
                                                    enum test_container_way way,
                                                    uint64_t out_offset,
                                                    struct wharf_container_fault *ret_index_fault)
{
    struct wharf_container_memory memory = {in, in_nbytes};
    struct pipe pipe = {in, in_nbytes, 0};
    struct wharf_container_source source = wharf_container_source_memory(&memory);

    if (way == TEST_CONTAINER_PIPE)
        source = (struct wharf_container_source){
            .read_at = read_pipe,
            .context = &pipe,
            .nbytes = WHARF_CONTAINER_SIZE_UNKNOWN,
        };
    return read_source(&source, out_offset, ret_index_fault);
}

struct test_container_read test_container_read_all(const uint8_t *in, size_t in_nbytes,
                                                   enum test_container_way way)
{
    return test_container_read_from(in, in_nbytes, way, 0, NULL);
}

void test_container_read_free(struct test_container_read *read)
{
    test_bytes_free(&read->out);
}

/* ---- damaging --------------------------------------------------------------------------- */

struct wharf_container_frame_header *test_container_frame(uint8_t *member, size_t offset)
{
    return (struct wharf_container_frame_header *)(member + offset);
}

void test_container_list_frames(const uint8_t *member, struct test_container_frames *ret_frames)
{
    size_t offset = WHARF_CONTAINER_FILE_HEADER_NBYTES;
    uint32_t marker = 0;

    ret_frames->n_frames = 0;
    while (marker != WHARF_CONTAINER_MARKER_END) {
        const struct wharf_container_frame_header *header =
            test_container_frame((uint8_t *)member, offset);
        require(ret_frames->n_frames < TEST_CONTAINER_MAX_FRAMES, "too many frames");
        ret_frames->offsets[ret_frames->n_frames++] = offset;
        marker = header->marker;
        offset += sizeof(*header) + wharf_container_pad(header->payload_nbytes);
    }
}

void test_container_reseal(uint8_t *member, const struct test_container_frames *frames)
{
    struct wharf_container_file_header *file = (struct wharf_container_file_header *)member;
    uint32_t previous_crc;

    wharf_container_seal_file_header(file);
    previous_crc = file->header_crc;
    for (size_t i = 0; i < frames->n_frames; i++) {
        struct wharf_container_frame_header *header =
            test_container_frame(member, frames->offsets[i]);
        if (header->marker == WHARF_CONTAINER_MARKER_INDEX)
            header->content_crc = wharf_crc32(0, header + 1, header->payload_nbytes);
        header->previous_crc = previous_crc;
        wharf_container_seal_frame(header);
        previous_crc = header->header_crc;
    }
}
