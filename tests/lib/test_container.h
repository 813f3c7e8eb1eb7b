/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_container.h: containers in memory, which are made, read, or damaged with correct checksums.
 */
#ifndef WHARF_TESTS_TEST_CONTAINER_H
#define WHARF_TESTS_TEST_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/container_read.h"
#include "encoders/container_write.h"

/* A growing array of bytes. */
struct test_bytes {
    uint8_t *data;
    size_t nbytes;
    size_t room;
};
void test_bytes_add(struct test_bytes *bytes, const void *data, size_t nbytes);
void test_bytes_free(struct test_bytes *bytes);

struct test_container_options {
    uint32_t codec;
    uint32_t chunk_nbytes; /* also announced as the largest chunk */
    int is_total_known;
    const struct wharf_encoder_options *encoder; /* may be NULL */
};

/* A sink that appends to a struct test_bytes. */
struct wharf_container_sink test_container_sink(struct test_bytes *bytes);

/* Appends a member that holds the raw_nbytes at `raw`. */
void test_container_add(struct test_bytes *file, const struct test_container_options *options,
                        const uint8_t *raw, size_t raw_nbytes);

/* The result of reading. */
struct test_container_read {
    struct wharf_container_fault fault; /* WHARF_OK: up to a good end */
    uint64_t n_chunks;                  /* verified */
    struct test_bytes out;              /* the output of these */
};
void test_container_read_free(struct test_container_read *read);

enum test_container_way {
    TEST_CONTAINER_FILE, /* a file of known size */
    TEST_CONTAINER_PIPE, /* forward only; aborts if the reader goes back */
};

/* Reads and decodes chunks from output byte `out_offset` to the end or to the first fault.
 * *ret_index_fault (may be NULL) is the fault of seeking. */
struct test_container_read test_container_read_from(const uint8_t *in, size_t in_nbytes,
                                                    enum test_container_way way,
                                                    uint64_t out_offset,
                                                    struct wharf_container_fault *ret_index_fault);
struct test_container_read test_container_read_all(const uint8_t *in, size_t in_nbytes,
                                                   enum test_container_way way);

/* The frames of an undamaged member: their offsets in it, the end frame's last. */
enum { TEST_CONTAINER_MAX_FRAMES = 1 << 10 };
struct test_container_frames {
    size_t offsets[TEST_CONTAINER_MAX_FRAMES];
    size_t n_frames;
};
void test_container_list_frames(const uint8_t *member, struct test_container_frames *ret_frames);

/* The frame header at `offset`, to change in place. */
struct wharf_container_frame_header *test_container_frame(uint8_t *member, size_t offset);

/* Recomputes all checksums of headers and index nodes, and the chain between frames, so that only
 * the changed fields are wrong.  The frames must be where the list says. */
void test_container_reseal(uint8_t *member, const struct test_container_frames *frames);

#endif
