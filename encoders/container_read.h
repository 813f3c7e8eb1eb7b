/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_read.h: reads wharf containers (FORMAT.md) from pipes, files and memory.
 *
 * Work is divided so that one thread reads, many decode, and one writes in order:
 *
 *   one thread    wharf_container_reader_init
 *                 wharf_container_seek           for a range: go to the chunk that holds a byte
 *                 wharf_container_next           the next chunk's header, checked
 *   same, or any if the source is random access
 *                 wharf_container_read_payload   its compressed bytes
 *   any thread    wharf_container_decode         its output, verified
 *
 * Nothing here allocates.  Every byte of a container is hostile: next() gives a chunk only after
 * its claims have been held against the limits, its codec and the size of the file, so the caller
 * can take payload_avail and raw_nbytes of memory (each at most 16 MiB) without further thought.
 * What comes first in the file is delivered first: a damaged or missing tail does not take away
 * the good chunks before it.
 */
#ifndef WHARF_ENCODERS_CONTAINER_READ_H
#define WHARF_ENCODERS_CONTAINER_READ_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/codec.h"
#include "encoders/container_format.h"
#include "encoders/container_index.h"
#include "encoders/decode_job.h"

/*
 * Where a container's bytes come from.
 *   read_at   reads nbytes at `offset` into buf.  Returns how many: fewer only where the file
 *             ends (0 behind its end), or -errno.
 *   nbytes    the file's size; or WHARF_CONTAINER_SIZE_UNKNOWN for pipes: then each offset is at or
 *             behind the last read's end, bytes between are to be skipped, and there is no index.
 */
struct wharf_container_source {
    int64_t (*read_at)(void *context, uint64_t offset, void *buf, size_t nbytes);
    void *context;
    uint64_t nbytes;
};
#define WHARF_CONTAINER_SIZE_UNKNOWN UINT64_MAX

/* A container in memory.  The struct and the bytes must outlive the source. */
struct wharf_container_memory {
    const uint8_t *in;
    size_t in_nbytes;
};
struct wharf_container_source wharf_container_source_memory(struct wharf_container_memory *memory);

/* What is wrong with a container, and where. */
struct wharf_container_fault {
    uint32_t result;      /* enum wharf_result; WHARF_OK: nothing is wrong */
    uint32_t reason;      /* enum wharf_reason */
    uint64_t file_offset; /* the byte of the file where the header or the payload at fault begins */
    uint64_t chunk;       /* the chunk's number in the file, from 0; for a fault that is not a
                             chunk's, how many chunks stand before it; 0 in faults of the index
                             that seek and read_totals met */
    uint64_t bit_offset;  /* for faults in a payload: struct wharf_outcome's, from its start */
};

/* One chunk, as its header describes it and the reader found it good. */
struct wharf_container_chunk {
    uint64_t number;         /* in the file, from 0, over all members */
    uint64_t out_offset;     /* where its output begins in the file's output, over all members */
    uint64_t file_offset;    /* where its header begins in the file */
    uint64_t payload_offset; /* where its compressed bytes begin in the file: a multiple of 16 */
    uint32_t payload_nbytes; /* 1 to raw_nbytes */
    uint32_t payload_avail;  /* the same rounded up to 16: what read_payload needs */
    uint32_t raw_nbytes;     /* 1 to reader->chunk_max_nbytes */
    uint32_t output_crc;     /* CRC-32 of the output */
    uint32_t codec;          /* enum wharf_codec */
    const struct wharf_codec_ops *ops;
    uint32_t parameter; /* the codec's */
};

enum wharf_container_item_kind {
    WHARF_CONTAINER_END = 0,   /* the container ended as it should; all of it was good */
    WHARF_CONTAINER_CHUNK = 1, /* item.chunk */
    WHARF_CONTAINER_FAULT = 2, /* item.fault; nothing behind it can be read */
};

struct wharf_container_item {
    uint32_t kind;
    struct wharf_container_chunk chunk;
    struct wharf_container_fault fault;
};

enum wharf_container_reader_state {
    WHARF_CONTAINER_READER_BEFORE_MEMBER = 0, /* at a member's beginning or the file's end */
    WHARF_CONTAINER_READER_IN_MEMBER = 1,     /* at a frame's beginning */
    WHARF_CONTAINER_READER_DONE = 2,          /* `last` is END or FAULT */
};

/* All fields are the reader's own, but for those marked "may be read". */
struct wharf_container_reader {
    struct wharf_container_source source;
    struct wharf_container_item last; /* END or FAULT: given again and again */
    uint64_t offset;                  /* of the next header in the file */
    uint64_t skip_until;              /* give no chunk that ends at or before this output byte */
    uint32_t state;                   /* enum wharf_container_reader_state */

    /* May be read once next() has given the first item. */
    uint32_t chunk_max_nbytes; /* this member's largest chunk, as its header says */
    uint64_t n_members;        /* begun so far, those before a seek's place included */
    uint64_t member_total;     /* this member's output size as its header says, or
                                  WHARF_CONTAINER_SIZE_UNKNOWN: a claim, verified at the end */

    /* The member being read. */
    uint64_t member_offset;     /* its place in the file */
    uint64_t member_out_offset; /* its output's place in the file's output */
    uint64_t member_chunk;      /* the number of its first chunk in the file */
    uint64_t sequence;          /* of the next chunk in the member */
    uint64_t raw_offset;        /* of the next chunk in the member's output */
    uint32_t previous_crc;
    uint32_t is_index_known; /* the member was read from its start, so `index` is true */
    uint32_t is_resumed;     /* part of the member is missing (container_resume.h) */
    uint32_t is_finishing;   /* a node was seen that is not full: no chunk can follow */
    struct wharf_container_index index;
};

/* wharf_container_reader_init: nothing is read yet, nothing can fail, nothing is to be freed. */
void wharf_container_reader_init(struct wharf_container_reader *reader,
                                 const struct wharf_container_source *source);

/*
 * wharf_container_next: checks everything up to and including the next chunk's header.  From a
 * source of unknown size, the payload of the chunk before it must have been read, or passed over by
 * wharf_container_pass_payload: who does neither is told of a cut at the wrong place.
 * Returns 0 with *ret_item filled, or the source's -errno, after which the reader is of no use.
 */
int wharf_container_next(struct wharf_container_reader *reader,
                         struct wharf_container_item *ret_item);

/*
 * wharf_container_seek: makes next() give the chunk that holds byte `out_offset` of the file's
 * output, then those behind it; END if the output is shorter.  Takes the index's way where there
 * is one and it is good, at most 9 reads of 4 KiB for each member behind the byte's; else the
 * reader walks over all headers before it, which finds the same chunk.  For a source of unknown
 * size out_offset must not lie before what next() has given.
 *   ret_index_fault   WHARF_OK, or why the index could not serve (CONTAINER_TRUNCATED,
 *                     CONTAINER_INDEX, ...): worth a warning, since the file is damaged.
 *                     Always OK for a source of unknown size.  May be NULL.
 * Returns 0 or the source's -errno.
 */
int wharf_container_seek(struct wharf_container_reader *reader, uint64_t out_offset,
                         struct wharf_container_fault *ret_index_fault);

/* What the end frames say about a file of known size: unverified claims, for display. */
struct wharf_container_totals {
    uint64_t n_members;
    uint64_t n_chunks;
    uint64_t raw_nbytes;
};

/*
 * wharf_container_read_totals: adds up the end frames, from the last to the first.
 *   ret_fault   WHARF_OK, or what is wrong with the tail; ret_totals is then all 0
 * Returns 0 or the source's -errno; -ESPIPE for a source of unknown size.
 */
int wharf_container_read_totals(const struct wharf_container_source *source,
                                struct wharf_container_totals *ret_totals,
                                struct wharf_container_fault *ret_fault);

/*
 * wharf_container_read_payload: reads a chunk's compressed bytes and the padding behind them.
 *   buf         chunk->payload_avail bytes, aligned as the caller's decoder likes it
 *   ret_fault   WHARF_OK; CONTAINER_TRUNCATED, at the chunk's header, where next() meets it in a
 *               source of known size; or CONTAINER_CHUNK (padding is not zero)
 * From a source of unknown size: after next() gave the chunk and before the next call to it.
 * Otherwise at any time, in any order, from any thread if read_at allows that.
 * Returns 0 or the source's -errno.
 */
int wharf_container_read_payload(const struct wharf_container_source *source,
                                 const struct wharf_container_chunk *chunk, uint8_t *buf,
                                 struct wharf_container_fault *ret_fault);

/* The same of the padding alone, for whom another reads the payload. */
int wharf_container_read_padding(const struct wharf_container_source *source,
                                 const struct wharf_container_chunk *chunk,
                                 struct wharf_container_fault *ret_fault);

/*
 * wharf_container_pass_payload: sees that a payload that is not wanted is there, without looking at
 * it; reads nothing from a source of known size, whose chunks next() gives only if they are whole.
 *   ret_fault   WHARF_OK or CONTAINER_TRUNCATED, as read_payload has it
 * To be called where read_payload would be.  Returns 0 or the source's -errno.
 */
int wharf_container_pass_payload(const struct wharf_container_source *source,
                                 const struct wharf_container_chunk *chunk,
                                 struct wharf_container_fault *ret_fault);

/*
 * wharf_container_decode: decodes a chunk's payload and verifies it: the stream is all of the
 * payload, gives exactly raw_nbytes, and their CRC-32 is the header's.
 *   reference   0 for the CPU engine, 1 for the reference engine
 *   out         raw_nbytes; undefined unless ret_fault says WHARF_OK
 *   ret_fault   WHARF_OK, the decoder's result and reason, or OUTPUT_MISSING, INPUT_LEFT,
 *               JOB_CHECKSUM; BAD_DATA with OUTPUT_FULL when there is more than raw_nbytes
 * Safe from any thread.
 */
void wharf_container_decode(const struct wharf_container_chunk *chunk, int reference,
                            const uint8_t *payload, uint8_t *out,
                            struct wharf_container_fault *ret_fault);

/* The two halves of wharf_container_decode, for decoding by other engines: what to ask for, and
 * what the outcome means. */
struct wharf_decode_job wharf_container_chunk_job(const struct wharf_container_chunk *chunk,
                                                  const uint8_t *payload, uint8_t *out);
struct wharf_container_fault wharf_container_chunk_fault(const struct wharf_container_chunk *chunk,
                                                         const struct wharf_outcome *outcome);

#endif
