/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_write.h: writes wharf containers (FORMAT.md), in one pass, to anything.
 *
 * Work is divided so that many threads can encode while one writes:
 *
 *   any thread       wharf_container_pack(...)     encodes a chunk, or stores it if that is no
 *                                                  smaller; touches nothing shared
 *   one thread       wharf_container_writer_init
 *                    wharf_container_put           once for each packed chunk, in output order
 *                    wharf_container_finish        index and end frame
 *
 * Nothing here allocates, seeks or looks back: the writer holds at most 256 index entries for each
 * of 8 levels, whatever the size of the file.  The same chunks give the same bytes.
 */
#ifndef WHARF_ENCODERS_CONTAINER_WRITE_H
#define WHARF_ENCODERS_CONTAINER_WRITE_H

#include <stdint.h>
#include <sys/uio.h>

#include "encoders/codec.h"
#include "encoders/container_format.h"
#include "encoders/container_index.h"

/*
 * Where the container goes.  `write` takes all bytes of all parts in their order, or gives
 * -errno, which the writer's function then returns; after that the file is of no use.
 */
struct wharf_container_sink {
    int (*write)(void *context, const struct iovec *parts, int n_parts);
    void *context;
};

/* One chunk, ready to be put. */
struct wharf_container_packed {
    uint32_t codec; /* enum wharf_codec */
    uint32_t payload_nbytes;
    uint32_t raw_nbytes;
    uint32_t output_crc;    /* CRC-32 of the output */
    uint32_t parameter;     /* the codec's */
    const uint8_t *payload; /* in the buffer given to pack, or the raw bytes themselves */
};

/*
 * wharf_container_pack: encodes raw_nbytes (1 to CHUNK_MAX_NBYTES) at `raw` as one chunk.
 *   codec, encoder   of this codec; the encoder may be NULL for WHARF_CODEC_STORED
 *   parameter        the encoder's
 *   buf              at least raw_nbytes; may be NULL for WHARF_CODEC_STORED
 *   ret_packed       written on success.  Its payload lies in buf, or is `raw` where the encoder
 *                    could not make the chunk smaller, or not at all (-EILSEQ): both must live
 *                    until it is put
 * Returns 0, -EINVAL (size, codec, parameter), or what else the encoder gives.
 */
int wharf_container_pack(uint32_t codec, uint32_t parameter, struct wharf_encoder *encoder,
                         const uint8_t *raw, uint32_t raw_nbytes, uint8_t *buf,
                         struct wharf_container_packed *ret_packed);

/* The same of a chunk that was encoded elsewhere.  payload_nbytes is 0 where that made it no
 * smaller, or could not be done; the chunk is stored then. */
struct wharf_container_packed wharf_container_take_packed(uint32_t codec, uint32_t parameter,
                                                          const uint8_t *raw, uint32_t raw_nbytes,
                                                          const uint8_t *payload,
                                                          uint32_t payload_nbytes);

#define WHARF_CONTAINER_TOTAL_UNKNOWN UINT64_MAX

/* 33 KiB.  All fields are the writer's own; n_chunks, raw_nbytes and file_nbytes may be read. */
struct wharf_container_writer {
    struct wharf_container_sink sink;
    uint32_t chunk_max_nbytes;
    uint32_t previous_crc;
    uint64_t total_nbytes;
    uint64_t n_chunks;    /* put so far */
    uint64_t raw_nbytes;  /* their output */
    uint64_t file_nbytes; /* written so far */
    struct wharf_container_index index;
    /* The entries that the index counts, level by level. */
    struct wharf_container_index_entry entries[WHARF_CONTAINER_INDEX_SLOTS][WHARF_CONTAINER_FANOUT];
};

/*
 * wharf_container_writer_init: begins a container and writes its file header.
 *   chunk_max_nbytes   CHUNK_MIN_NBYTES to CHUNK_MAX_NBYTES: the largest chunk that will be put
 *   total_nbytes       all output, or WHARF_CONTAINER_TOTAL_UNKNOWN
 * Returns 0, -EINVAL (sizes), or the sink's error.  There is nothing to deinit.
 */
int wharf_container_writer_init(struct wharf_container_writer *writer,
                                const struct wharf_container_sink *sink, uint32_t chunk_max_nbytes,
                                uint64_t total_nbytes);

/*
 * wharf_container_put: writes the next chunk, and the index nodes that became full.
 * Returns 0, -EINVAL (a size out of its limits), -EFBIG (more output than total_nbytes announced,
 * or than a container can hold), or the sink's error.
 */
int wharf_container_put(struct wharf_container_writer *writer,
                        const struct wharf_container_packed *packed);

/*
 * wharf_container_finish: writes the rest of the index and the end frame.  A file without them
 * counts as cut off.  Returns 0, -EINVAL (less output than total_nbytes announced), or the sink's
 * error.
 */
int wharf_container_finish(struct wharf_container_writer *writer);

#endif
