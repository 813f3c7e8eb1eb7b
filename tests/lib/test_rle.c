/* SPDX-License-Identifier: Apache-2.0 */
/* test_rle.c: writes random groups of ORC's run lengths. */
#include "tests/lib/test_rle.h"

#include <string.h>

#include "encoders/rle2/rle2_format.h"
#include "encoders/wharf_codec.h"

/* The largest group: 512 numbers of 64 bits, 31 patches and a header. */
enum { GROUP_MAX_NBYTES = 4096 + 31 * 8 + 32 };

struct writer {
    struct test_random *random;
    unsigned nbits;
    uint8_t *next;
};

static uint64_t below(struct writer *writer, uint64_t limit)
{
    return test_random_below(writer->random, limit);
}

static void put_byte(struct writer *writer, uint64_t byte)
{
    *writer->next++ = (uint8_t)byte;
}

static void put_noise(struct writer *writer, size_t nbytes)
{
    test_random_fill(writer->random, writer->next, nbytes);
    writer->next += nbytes;
}

/* A number of up to nbits bits; small numbers are more frequent. */
static uint64_t number(struct writer *writer, unsigned nbits)
{
    unsigned n = (unsigned)below(writer, nbits + 1);

    return n == 0 ? 0 : below(writer, UINT64_MAX) >> (64 - n);
}

static void put_varint(struct writer *writer)
{
    uint64_t u = number(writer, test_random_one_in(writer->random, 200) ? 64 : writer->nbits);

    for (; u >= 128; u >>= 7)
        put_byte(writer, u | 128);
    if (test_random_one_in(writer->random, 50)) {
        put_byte(writer, u | 128);
        u = 0;
    }
    put_byte(writer, u);
}

static void put_rle1_group(struct writer *writer)
{
    unsigned control = (unsigned)below(writer, 256);

    if (control >= 128 && test_random_one_in(writer->random, 2))
        control = 255 - (unsigned)below(writer, 8);
    put_byte(writer, control);
    if (control < 128)
        put_byte(writer, below(writer, 3) - 1);
    for (unsigned n = control < 128 ? 1 : 256 - control; n > 0; n--)
        put_varint(writer);
}

static void put_byterle_group(struct writer *writer)
{
    unsigned control = (unsigned)below(writer, 256);

    put_byte(writer, control);
    put_noise(writer, control < 128 ? 1 : 256 - control);
}

static unsigned run_length(struct writer *writer)
{
    return 1 + (unsigned)below(writer, test_random_one_in(writer->random, 4) ? 512 : 40);
}

/* The code of a width of up to writer->nbits. */
static unsigned width_code(struct writer *writer)
{
    return wharf_rle2_width_code((unsigned)below(writer, writer->nbits + 1));
}

static void put_head(struct writer *writer, unsigned kind, unsigned code, unsigned n)
{
    put_byte(writer, kind << 6 | code << 1 | (n - 1) >> 8);
    put_byte(writer, n - 1);
}

static void put_short_repeat(struct writer *writer)
{
    unsigned nbytes = 1 + (unsigned)below(writer, (writer->nbits + 7) / 8);

    put_byte(writer, (nbytes - 1) << 3 | below(writer, 8));
    put_noise(writer, nbytes);
}

static void put_direct(struct writer *writer)
{
    unsigned code = width_code(writer);
    unsigned n = run_length(writer);

    put_head(writer, WHARF_RLE2_DIRECT, code, n);
    put_noise(writer, wharf_rle2_packed_nbytes(n, wharf_rle2_width(code)));
}

static void put_patched_base(struct writer *writer)
{
    unsigned code = wharf_rle2_width_code((unsigned)below(writer, writer->nbits - 2));
    unsigned n = run_length(writer);
    /* At most a third of the values, since gaps are up to 2.  Rarely none, which is an error. */
    unsigned n_patches = 1 + (unsigned)below(writer, n < 90 ? n / 3 + 1 : 31);
    unsigned patch_code = (unsigned)below(writer, 12);
    unsigned gap_nbits = 1 + (unsigned)below(writer, 8);
    unsigned entry_nbits =
        wharf_rle2_width(wharf_rle2_width_code(gap_nbits + wharf_rle2_width(patch_code)));
    unsigned base_nbytes = 1 + (unsigned)below(writer, (writer->nbits + 7) / 8);
    uint64_t bits = 0;
    unsigned n_bits = 0;

    if (test_random_one_in(writer->random, 50))
        n_patches = 0;
    put_head(writer, WHARF_RLE2_PATCHED_BASE, code, n);
    put_byte(writer, (base_nbytes - 1) << 5 | patch_code);
    put_byte(writer, (gap_nbits - 1) << 5 | n_patches);
    /* Not negative, and small enough that sums are within the type. */
    put_byte(writer, below(writer, 32));
    put_noise(writer, base_nbytes - 1);
    put_noise(writer, wharf_rle2_packed_nbytes(n, wharf_rle2_width(code)));
    for (unsigned i = 0; i < n_patches; i++) {
        uint64_t gap = gap_nbits > 1 && test_random_one_in(writer->random, 3) ? 2 : 1;
        bits = bits << entry_nbits | gap << wharf_rle2_width(patch_code) | below(writer, 2);
        for (n_bits += entry_nbits; n_bits >= 8; n_bits -= 8)
            put_byte(writer, bits >> (n_bits - 8));
    }
    if (n_bits)
        put_byte(writer, bits << (8 - n_bits));
}

static void put_delta(struct writer *writer)
{
    /* Large steps only if the type has room for their sum. */
    int is_wide = writer->nbits > 16 || test_random_one_in(writer->random, 20);
    unsigned code =
        !is_wide || test_random_one_in(writer->random, 2) ? 0 : (unsigned)below(writer, 6);
    unsigned n = run_length(writer);

    put_head(writer, WHARF_RLE2_DELTA, code, n);
    put_varint(writer);
    put_byte(writer, is_wide ? below(writer, 5) : 0);
    if (code && n > 2)
        put_noise(writer, wharf_rle2_packed_nbytes(n - 2, wharf_rle2_width(code)));
}

static void put_rle2_run(struct writer *writer)
{
    static void (*const kinds[])(struct writer *) = {
        put_short_repeat, put_direct, put_patched_base, put_delta, put_short_repeat, put_direct};
    kinds[below(writer, 6)](writer);
}

size_t test_rle_stream(struct test_random *random, uint32_t codec, unsigned nbits, uint8_t *out,
                       size_t avail)
{
    uint8_t group[GROUP_MAX_NBYTES];
    size_t n = 0;

    for (;;) {
        struct writer writer = {random, nbits, group};
        if (codec == WHARF_CODEC_RLE1)
            put_rle1_group(&writer);
        else if (codec == WHARF_CODEC_RLE2)
            put_rle2_run(&writer);
        else
            put_byterle_group(&writer);
        size_t nbytes = (size_t)(writer.next - group);
        if (nbytes > avail - n)
            return n;
        memcpy(out + n, group, nbytes);
        n += nbytes;
    }
}
