/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BGZF: blocks are found where they are, and what is no block is left to the gzip decoder.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/gzip/bgzf.h"
#include "tests/lib/test_container.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_pack.h"

static void add_le(struct test_bytes *bytes, uint64_t value, size_t nbytes)
{
    uint8_t le[8];

    for (size_t i = 0; i < nbytes; i++)
        le[i] = (uint8_t)(value >> 8 * i);
    test_bytes_add(bytes, le, nbytes);
}

/* What a block's header says, where it is not what it should. */
struct header {
    const void *extra; /* subfields before "BC" */
    size_t extra_nbytes;
    int bsize_off_by;
    int xlen_off_by;
    int isize_off_by;
};

/* Adds raw_nbytes as one block.  Gives its size. */
static size_t add_block(struct test_bytes *file, const struct header *header, const uint8_t *raw,
                        size_t raw_nbytes)
{
    size_t start = file->nbytes;
    size_t nbytes;
    uint8_t *data = test_pack(WHARF_CODEC_DEFLATE, NULL, raw, raw_nbytes, &nbytes);
    size_t whole = 18 + header->extra_nbytes + nbytes + 8;

    add_le(file, 0x04088b1f, 4);
    add_le(file, 0xff0000000000, 6);
    add_le(file, 6 + header->extra_nbytes + (unsigned)header->xlen_off_by, 2);
    test_bytes_add(file, header->extra, header->extra_nbytes);
    test_bytes_add(file, "BC\2", 4);
    add_le(file, whole - 1 + (size_t)header->bsize_off_by, 2);
    test_bytes_add(file, data, nbytes);
    add_le(file, wharf_crc32(0, raw, raw_nbytes), 4);
    add_le(file, raw_nbytes + (size_t)header->isize_off_by, 4);
    free(data);
    return file->nbytes - start;
}

static const struct header plain = {.extra_nbytes = 0};

/* Decodes a block as its job says. */
static struct wharf_outcome decode_block(const struct wharf_bgzf_piece *piece, const uint8_t *in,
                                         uint8_t *out)
{
    struct wharf_decode_job job = wharf_bgzf_block_job(piece, in, out);
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, 0, &outcome);
    return outcome;
}

/* Takes blocks until something else comes, which it returns; *out is their output. */
static struct wharf_bgzf_piece take_blocks(struct wharf_bgzf_splitter *splitter, const uint8_t *in,
                                           size_t in_nbytes, struct test_bytes *out)
{
    static uint8_t block_out[WHARF_BGZF_MAX_OUT_NBYTES];
    struct wharf_bgzf_piece piece;

    for (;;) {
        size_t at = splitter->file_offset;
        wharf_bgzf_next(splitter, in + at, in_nbytes - at, true, &piece);
        cr_assert_eq(piece.file_offset, at);
        if (piece.kind != WHARF_BGZF_BLOCK)
            return piece;
        cr_assert_eq(piece.out_offset, out->nbytes);
        cr_assert_eq(decode_block(&piece, in + at, block_out).result, WHARF_OK);
        test_bytes_add(out, block_out, piece.out_nbytes);
    }
}

/* A file as bgzip makes it: full blocks, a shorter one, the marker. */
static uint8_t *make_file(struct test_bytes *file, size_t raw_nbytes, size_t block_nbytes)
{
    uint8_t *raw = test_data_new(test_data_find("mixed"), 1, raw_nbytes);

    for (size_t at = 0; at < raw_nbytes; at += block_nbytes)
        add_block(file, &plain, raw + at,
                  raw_nbytes - at < block_nbytes ? raw_nbytes - at : block_nbytes);
    test_bytes_add(file, wharf_bgzf_marker, sizeof(wharf_bgzf_marker));
    return raw;
}

Test(bgzf, blocks_of_a_file_join_to_its_output)
{
    static const size_t sizes[] = {0, 1, 65280, 65281, 300000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct wharf_bgzf_splitter splitter = {0};
        struct test_bytes file = {0};
        struct test_bytes out = {0};
        uint8_t *raw = make_file(&file, sizes[i], 65280);
        struct wharf_bgzf_piece last = take_blocks(&splitter, file.data, file.nbytes, &out);

        cr_assert_eq(last.kind, WHARF_BGZF_END);
        cr_assert_eq(last.number, (sizes[i] + 65279) / 65280 + 1);
        cr_assert(splitter.ends_with_marker);
        cr_assert_eq(out.nbytes, sizes[i]);
        cr_assert(sizes[i] == 0 || memcmp(out.data, raw, sizes[i]) == 0);
        test_bytes_free(&file);
        test_bytes_free(&out);
        free(raw);
    }
}

/* Files are joined, so markers stand in the middle too; only the last block counts. */
Test(bgzf, missing_marker_is_noticed)
{
    struct wharf_bgzf_splitter splitter = {0};
    struct test_bytes file = {0};
    struct test_bytes out = {0};

    test_bytes_add(&file, wharf_bgzf_marker, sizeof(wharf_bgzf_marker));
    add_block(&file, &plain, (const uint8_t *)"a", 1);
    cr_assert_eq(take_blocks(&splitter, file.data, file.nbytes, &out).kind, WHARF_BGZF_END);
    cr_assert(!splitter.ends_with_marker);
    /* An empty block is not the marker: it is another packer's. */
    splitter = (struct wharf_bgzf_splitter){0};
    out.nbytes = 0;
    add_block(&file, &(struct header){.extra = "XX\0", .extra_nbytes = 4}, NULL, 0);
    cr_assert_eq(take_blocks(&splitter, file.data, file.nbytes, &out).kind, WHARF_BGZF_END);
    cr_assert(!splitter.ends_with_marker);
    splitter = (struct wharf_bgzf_splitter){0};
    out.nbytes = 0;
    test_bytes_add(&file, wharf_bgzf_marker, sizeof(wharf_bgzf_marker));
    cr_assert_eq(take_blocks(&splitter, file.data, file.nbytes, &out).kind, WHARF_BGZF_END);
    cr_assert(splitter.ends_with_marker);
    test_bytes_free(&file);
    test_bytes_free(&out);
}

/* Byte by byte: MORE until it can be said, each time for more than there is and no more than a
 * block can have; and then the same that is said of the whole file. */
Test(bgzf, says_the_same_however_little_comes_at_a_time)
{
    struct test_bytes file = {0};
    uint8_t *raw = make_file(&file, 500, 100);
    struct wharf_bgzf_splitter splitter = {0};
    struct wharf_bgzf_splitter all = {0};
    struct wharf_bgzf_piece piece;
    struct wharf_bgzf_piece expected;
    size_t have = 0;

    do {
        size_t at = splitter.file_offset;
        wharf_bgzf_next(&all, file.data + at, file.nbytes - at, true, &expected);
        for (;;) {
            wharf_bgzf_next(&splitter, file.data + at, have - at, have == file.nbytes, &piece);
            if (piece.kind != WHARF_BGZF_MORE)
                break;
            cr_assert_gt(piece.nbytes, have - at);
            cr_assert_leq(piece.nbytes, WHARF_BGZF_MAX_NBYTES);
            have++;
        }
        cr_assert(piece.kind == expected.kind && piece.nbytes == expected.nbytes &&
                  piece.out_nbytes == expected.out_nbytes);
        cr_assert(piece.number == expected.number && piece.file_offset == expected.file_offset &&
                  piece.out_offset == expected.out_offset);
    } while (piece.kind == WHARF_BGZF_BLOCK);
    cr_assert_eq(piece.kind, WHARF_BGZF_END);
    test_bytes_free(&file);
    free(raw);
}

/* Whole blocks are blocks; what was cut off, behind its first byte already, goes to the gzip
 * decoder, which says what is missing. */
Test(bgzf, every_prefix_gives_its_whole_blocks)
{
    struct test_bytes file = {0};
    uint8_t *raw = make_file(&file, 300, 100);
    size_t ends[5] = {0};
    struct wharf_bgzf_piece piece;
    struct wharf_bgzf_splitter splitter = {0};
    size_t n_ends = 1;

    while (ends[n_ends - 1] < file.nbytes) {
        wharf_bgzf_next(&splitter, file.data + ends[n_ends - 1], file.nbytes - ends[n_ends - 1],
                        true, &piece);
        ends[n_ends++] = splitter.file_offset;
    }
    cr_assert_eq(n_ends, 5);
    for (size_t n = 0; n <= file.nbytes; n++) {
        struct test_bytes out = {0};
        size_t n_blocks = 0;

        splitter = (struct wharf_bgzf_splitter){0};
        piece = take_blocks(&splitter, file.data, n, &out);
        while (n_blocks < 4 && ends[n_blocks + 1] <= n)
            n_blocks++;
        cr_assert_eq(splitter.n_blocks, n_blocks);
        cr_assert_eq(splitter.ends_with_marker, n_blocks == 4);
        cr_assert_eq(piece.kind, n == ends[n_blocks] ? WHARF_BGZF_END : WHARF_BGZF_STREAM);
        cr_assert(out.nbytes == 0 || memcmp(out.data, raw, out.nbytes) == 0);
        test_bytes_free(&out);
    }
    test_bytes_free(&file);
    free(raw);
}

/* The kind of a single member, and of what follows it where it is a block. */
static void expect_kinds(const struct test_bytes *file, uint32_t first, uint32_t second)
{
    struct wharf_bgzf_splitter splitter = {0};
    struct wharf_bgzf_piece piece;

    wharf_bgzf_next(&splitter, file->data, file->nbytes, true, &piece);
    cr_assert_eq(piece.kind, first);
    if (first != WHARF_BGZF_BLOCK)
        return;
    wharf_bgzf_next(&splitter, file->data + piece.nbytes, file->nbytes - piece.nbytes, true,
                    &piece);
    cr_assert_eq(piece.kind, second);
}

/* Other subfields may stand before and behind "BC"; they must be sound as far as it. */
Test(bgzf, size_is_found_among_other_subfields)
{
    static const struct {
        const char *extra;
        size_t extra_nbytes;
        uint32_t kind;
    } cases[] = {
        {"XX\0\0", 4, WHARF_BGZF_BLOCK},
        {"XX\1\0z", 5, WHARF_BGZF_BLOCK},
        {"XX\3\0zzzBD\2\0\1\1", 13, WHARF_BGZF_BLOCK},
        {"BC\1\0z", 5, WHARF_BGZF_BLOCK},      /* not 2 long: another's */
        {"XX\2\0z", 5, WHARF_BGZF_STREAM},     /* reaches into "BC" */
        {"XX\xff\xffz", 5, WHARF_BGZF_STREAM}, /* reaches past the field */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct header header = {.extra = cases[i].extra, .extra_nbytes = cases[i].extra_nbytes};
        struct test_bytes file = {0};
        add_block(&file, &header, (const uint8_t *)"abc", 3);
        expect_kinds(&file, cases[i].kind, WHARF_BGZF_END);
        test_bytes_free(&file);
    }
}

/* Members that are good gzip but no blocks: decoded as a stream from there on. */
Test(bgzf, falls_back_where_a_member_is_no_block)
{
    uint8_t member[100];
    size_t nbytes =
        test_pack_into(WHARF_CODEC_GZIP, (const uint8_t *)"x", 1, member, sizeof(member));
    struct test_bytes file = {0};

    test_bytes_add(&file, member, nbytes);
    expect_kinds(&file, WHARF_BGZF_STREAM, 0);
    file.nbytes = 0;
    add_block(&file, &plain, (const uint8_t *)"abc", 3);
    test_bytes_add(&file, member, nbytes);
    expect_kinds(&file, WHARF_BGZF_BLOCK, WHARF_BGZF_STREAM);
    test_bytes_free(&file);
}

/* Behind a block anything but 1f 8b, or 1f at the end, is left alone, as gzip leaves it. */
Test(bgzf, other_bytes_behind_a_block_are_left_alone)
{
    static const char *const rests[] = {"\0", "garbage", "g", "\x1f\x8c", "\x8b\x1f", "\x8b"};

    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
        struct test_bytes file = {0};
        add_block(&file, &plain, (const uint8_t *)"abc", 3);
        test_bytes_add(&file, rests[i], strlen(rests[i]) + (i == 0));
        expect_kinds(&file, WHARF_BGZF_BLOCK, WHARF_BGZF_REST);
        test_bytes_free(&file);
    }
}

/* Promises that no block can keep are not taken for blocks, so no memory is taken for them. */
Test(bgzf, impossible_promises_are_no_blocks)
{
    uint8_t *raw = test_data_new(test_data_find("zeros"), 1, 65537);
    struct test_bytes file = {0};

    add_block(&file, &plain, raw, 65536);
    expect_kinds(&file, WHARF_BGZF_BLOCK, WHARF_BGZF_END);
    file.nbytes = 0;
    add_block(&file, &plain, raw, 65537);
    expect_kinds(&file, WHARF_BGZF_STREAM, 0);
    file.nbytes = 0;
    add_block(&file, &(struct header){.isize_off_by = 60000}, raw, 10);
    expect_kinds(&file, WHARF_BGZF_STREAM, 0);
    file.nbytes = 0;
    /* A size that ends within the header; and a field that leaves no room for a block. */
    add_block(&file, &(struct header){.bsize_off_by = -20}, raw, 1);
    expect_kinds(&file, WHARF_BGZF_STREAM, 0);
    file.nbytes = 0;
    add_block(&file, &(struct header){.xlen_off_by = 65530 - 6}, raw, 1);
    expect_kinds(&file, WHARF_BGZF_STREAM, 0);
    test_bytes_free(&file);
    free(raw);
}

/* A size field that lies gives a block whose job fails, so that the caller takes the other way. */
Test(bgzf, blocks_that_break_their_promise_do_not_decode)
{
    static const struct header lies[] = {
        {.bsize_off_by = 1},  {.bsize_off_by = -1}, {.isize_off_by = 1},
        {.isize_off_by = -1}, {.bsize_off_by = 27}, /* the whole next block, short of a byte */
    };
    static const uint8_t raw[] = "abcdefghijklmnopq";

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct wharf_bgzf_splitter splitter = {0};
        struct wharf_bgzf_piece piece;
        struct test_bytes file = {0};
        static uint8_t out[WHARF_BGZF_MAX_OUT_NBYTES];

        add_block(&file, &lies[i], raw, sizeof(raw));
        test_bytes_add(&file, wharf_bgzf_marker, sizeof(wharf_bgzf_marker));
        wharf_bgzf_next(&splitter, file.data, file.nbytes, true, &piece);
        if (piece.kind == WHARF_BGZF_BLOCK)
            cr_assert_neq(decode_block(&piece, file.data, out).result, WHARF_OK, "lie %zu", i);
        else
            cr_assert_eq(piece.kind, WHARF_BGZF_STREAM, "lie %zu", i);
        test_bytes_free(&file);
    }
}
