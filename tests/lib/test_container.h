/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_container.h: whole containers in memory: made, read, and damaged with right checksums.
 */
#ifndef WHARF_TESTS_TEST_CONTAINER_H
#define WHARF_TESTS_TEST_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/container_read.h"
#include "encoders/container_write.h"

/* Bytes that grow. */
struct test_bytes {
    uint8_t *data;
    size_t nbytes;
    size_t room;
};
void test_bytes_add(struct test_bytes *bytes, const void *data, size_t nbytes);
void test_bytes_free(struct test_bytes *bytes);

struct test_container_options {
    uint32_t codec;
    uint32_t chunk_nbytes; /* also the largest chunk that the header announces */
    int is_total_known;
    const struct wharf_encoder_options *encoder; /* may be NULL */
};

/* Writes into struct test_bytes, its context. */
struct wharf_container_sink test_container_sink(struct test_bytes *bytes);

/* Adds a member that holds raw_nbytes at `raw` to `file`. */
void test_container_add(struct test_bytes *file, const struct test_container_options *options,
                        const uint8_t *raw, size_t raw_nbytes);

/* What came of reading. */
struct test_container_read {
    struct wharf_container_fault fault; /* WHARF_OK: the end was good */
    uint64_t n_chunks;                  /* verified */
    struct test_bytes out;              /* theirs */
};
void test_container_read_free(struct test_container_read *read);

enum test_container_way {
    TEST_CONTAINER_FILE, /* size known */
    TEST_CONTAINER_PIPE, /* forward only; aborts if the reader looks back */
};

/* Reads and decodes chunk after chunk up to the end or the first fault, from output byte
 * `out_offset` on; *ret_index_fault (may be NULL) is what seek said. */
struct test_container_read test_container_read_from(const uint8_t *in, size_t in_nbytes,
                                                    enum test_container_way way,
                                                    uint64_t out_offset,
                                                    struct wharf_container_fault *ret_index_fault);
struct test_container_read test_container_read_all(const uint8_t *in, size_t in_nbytes,
                                                   enum test_container_way way);

/* The frames of a member without damage: their offsets in it, the end frame's last. */
enum { TEST_CONTAINER_MAX_FRAMES = 1 << 10 };
struct test_container_frames {
    size_t offsets[TEST_CONTAINER_MAX_FRAMES];
    size_t n_frames;
};
void test_container_list_frames(const uint8_t *member, struct test_container_frames *ret_frames);

/* The frame header at `offset`, to be changed in place. */
struct wharf_container_frame_header *test_container_frame(uint8_t *member, size_t offset);

/* Makes all checksums of headers and index nodes right again, and the chain from frame to frame,
 * so that only the changed fields themselves are wrong.  The frames stand where the list says. */
void test_container_reseal(uint8_t *member, const struct test_container_frames *frames);

#endif
