/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broken container is reported at the same place, with the same chunks before it, whether it is
 * read from a file or from a pipe: cut anywhere, flipped, rearranged, and forged with right
 * checksums.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/container_frame.h"
#include "tests/lib/test_container.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"

enum { N_SAMPLES = 4, N_MUTANTS = 20000 };

static const struct {
    uint32_t codec;
    uint32_t chunk_nbytes;
    size_t raw_nbytes;
    int n_members;
} kinds[N_SAMPLES] = {
    {WHARF_CODEC_STORED, 21, 100, 1}, /* payloads with bytes behind them that fill them up */
    {WHARF_CODEC_ZLIB, 200, 1000, 2},
    {WHARF_CODEC_DEFLATE, 700, 600, 3}, /* members of a chunk, without an index */
    {WHARF_CODEC_STORED, 1, 258, 1},    /* two levels of index */
};

struct sample {
    struct test_bytes file;
    size_t raw_nbytes;
    size_t frames[TEST_CONTAINER_MAX_FRAMES];
    size_t n_frames;
};

static void add_member(struct sample *sample, size_t kind, const uint8_t *raw)
{
    struct test_container_options options = {
        .codec = kinds[kind].codec,
        .chunk_nbytes = kinds[kind].chunk_nbytes,
        .is_total_known = 1,
    };
    size_t begin = sample->file.nbytes;
    struct test_container_frames frames;

    test_container_add(&sample->file, &options, raw, kinds[kind].raw_nbytes);
    test_container_list_frames(sample->file.data + begin, &frames);
    for (size_t i = 0; i < frames.n_frames; i++)
        sample->frames[sample->n_frames++] = begin + frames.offsets[i];
    sample->raw_nbytes += kinds[kind].raw_nbytes;
}

static void sample_init(struct sample *sample, size_t kind)
{
    uint8_t *raw = test_data_new(test_data_find("numbers"), 1, kinds[kind].raw_nbytes);

    *sample = (struct sample){.raw_nbytes = 0};
    for (int i = 0; i < kinds[kind].n_members; i++)
        add_member(sample, kind, raw);
    free(raw);
}

static void expect_same(const struct test_container_read *file,
                        const struct test_container_read *pipe, const char *what, size_t number)
{
    cr_assert(
        memcmp(&file->fault, &pipe->fault, sizeof(file->fault)) == 0,
        "%s %zu: from a file %s at byte %zu, chunk %zu; from a pipe %s at byte %zu, chunk %zu",
        what, number, wharf_reason_name(file->fault.reason), (size_t)file->fault.file_offset,
        (size_t)file->fault.chunk, wharf_reason_name(pipe->fault.reason),
        (size_t)pipe->fault.file_offset, (size_t)pipe->fault.chunk);
    cr_assert_eq(file->n_chunks, pipe->n_chunks, "%s %zu", what, number);
    cr_assert_eq(file->out.nbytes, pipe->out.nbytes, "%s %zu", what, number);
    cr_assert(file->out.nbytes == 0 ||
              memcmp(file->out.data, pipe->out.data, file->out.nbytes) == 0);
}

/* From a byte of the output on, or all of it from 0.  Where the index leads a file's reader past
 * what is broken before that byte, there is nothing to compare. */
static void compare(const struct test_bytes *mutant, uint64_t from, const char *what, size_t number)
{
    struct wharf_container_fault index_fault = {.result = WHARF_BAD_DATA};
    struct test_container_read file = test_container_read_from(
        mutant->data, mutant->nbytes, TEST_CONTAINER_FILE, from, from > 0 ? &index_fault : NULL);
    struct test_container_read pipe =
        test_container_read_from(mutant->data, mutant->nbytes, TEST_CONTAINER_PIPE, from, NULL);

    if (index_fault.result != WHARF_OK)
        expect_same(&file, &pipe, what, number);
    test_container_read_free(&file);
    test_container_read_free(&pipe);
}

static void compare_all(const struct sample *sample, const struct test_bytes *mutant,
                        const char *what, size_t number)
{
    compare(mutant, 0, what, number);
    compare(mutant, 1 + number % (sample->raw_nbytes + 2), what, number);
}

Test(container_place, cuts_at_every_place_are_reported_alike)
{
    for (size_t kind = 0; kind < N_SAMPLES; kind++) {
        struct sample sample;

        sample_init(&sample, kind);
        for (size_t n = 0; n < sample.file.nbytes; n += kind == N_SAMPLES - 1 ? 13 : 1) {
            struct test_bytes mutant = {.data = sample.file.data, .nbytes = n};
            compare_all(&sample, &mutant, "cut after byte", n);
        }
        test_bytes_free(&sample.file);
    }
}

/* ---- mutants ---------------------------------------------------------------------------- */

static void cut(struct test_bytes *mutant, struct test_random *random)
{
    mutant->nbytes = test_random_below(random, mutant->nbytes + 1);
}

static void flip(struct test_bytes *mutant, struct test_random *random)
{
    if (mutant->nbytes)
        mutant->data[test_random_below(random, mutant->nbytes)] ^=
            (uint8_t)(1 << test_random_below(random, 8));
}

/* Takes out some multiple of 16 bytes: frames, and parts of them. */
static void take_out(struct test_bytes *mutant, struct test_random *random)
{
    size_t at = 16 * test_random_below(random, mutant->nbytes / 16 + 1);
    size_t n = 16 * (1 + test_random_below(random, 12));

    if (n > mutant->nbytes - at)
        n = mutant->nbytes - at;
    memmove(mutant->data + at, mutant->data + at + n, mutant->nbytes - at - n);
    mutant->nbytes -= n;
}

/* Another field in a header, under a checksum that is right. */
static void forge(struct test_bytes *mutant, const struct sample *sample,
                  struct test_random *random)
{
    struct wharf_container_frame_header header;
    size_t at = sample->frames[test_random_below(random, sample->n_frames)];
    size_t byte = test_random_below(random, sizeof(header) - sizeof(header.header_crc));

    memcpy(&header, mutant->data + at, sizeof(header));
    ((uint8_t *)&header)[byte] ^= (uint8_t)(1 << test_random_below(random, 8));
    wharf_container_seal_frame(&header);
    memcpy(mutant->data + at, &header, sizeof(header));
}

static void mutate(struct test_bytes *mutant, const struct sample *sample,
                   struct test_random *random)
{
    mutant->nbytes = 0;
    test_bytes_add(mutant, sample->file.data, sample->file.nbytes);
    if (test_random_one_in(random, 2))
        forge(mutant, sample, random);
    if (test_random_one_in(random, 4))
        flip(mutant, random);
    if (test_random_one_in(random, 4))
        take_out(mutant, random);
    if (test_random_one_in(random, 3))
        cut(mutant, random);
}

Test(container_place, mutants_are_reported_alike)
{
    struct sample samples[N_SAMPLES];
    struct test_random random = {1};
    struct test_bytes mutant = {0};

    for (size_t i = 0; i < N_SAMPLES; i++)
        sample_init(&samples[i], i);
    for (size_t i = 0; i < N_MUTANTS; i++) {
        /* The last one has many chunks. */
        const struct sample *sample =
            &samples[i % 32 == 0 ? N_SAMPLES - 1 : test_random_below(&random, N_SAMPLES - 1)];
        mutate(&mutant, sample, &random);
        compare_all(sample, &mutant, "mutant", i);
    }
    for (size_t i = 0; i < N_SAMPLES; i++)
        test_bytes_free(&samples[i].file);
    test_bytes_free(&mutant);
}
