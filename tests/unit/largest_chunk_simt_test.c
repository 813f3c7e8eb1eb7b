/* SPDX-License-Identifier: Apache-2.0 */
/*
 * largest_chunk_simt_test: device decoders on chunks of the largest size, whose positions in bits
 * go to 2^31: they must say of the last bytes what the CPU engine says.
 *
 * Nobody needs 2^28 bytes of memory for that.  The input is 4096 times the same 64 KiB, a stored
 * block and its header, but for the last time; the output is a few pages over and over.
 */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"

enum { PIECE_NBYTES = 65536, STORED_HEADER_NBYTES = 5, TAIL_NBYTES = 24000 };
#define CHUNK_NBYTES ((size_t)WHARF_DEVICE_CHUNK_MAX_NBYTES)

static int new_memory(size_t nbytes)
{
    int fd = memfd_create("largest chunk", MFD_CLOEXEC);
    cr_assert(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0);
    return fd;
}

/* CHUNK_NBYTES that are the same piece over and over. */
static uint8_t *map_repeated(int fd)
{
    uint8_t *p =
        mmap(NULL, CHUNK_NBYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(p, MAP_FAILED);
    for (size_t at = 0; at < CHUNK_NBYTES; at += PIECE_NBYTES)
        cr_assert_neq(
            mmap(p + at, PIECE_NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
            MAP_FAILED);
    return p;
}

/* The last piece, in memory of its own: stored bytes that end where a packed stream begins, whose
 * last byte is the chunk's last.  Returns what that one decodes to. */
static size_t make_tail(uint8_t *piece)
{
    static uint8_t plain[TAIL_NBYTES];
    uint8_t packed[PIECE_NBYTES];
    struct test_random random = {28};
    z_stream z = {0};

    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] =
            (uint8_t) "abcdefgh"[test_random_below(&random, 8) & test_random_below(&random, 8)];
    cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, -15, 5, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = plain;
    z.avail_in = sizeof(plain);
    z.next_out = packed;
    z.avail_out = sizeof(packed);
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t packed_nbytes = z.total_out;
    deflateEnd(&z);
    size_t n = PIECE_NBYTES - STORED_HEADER_NBYTES - packed_nbytes;
    memset(piece, 0, PIECE_NBYTES);
    piece[1] = (uint8_t)n;
    piece[2] = (uint8_t)(n >> 8);
    piece[3] = (uint8_t)~n;
    piece[4] = (uint8_t)(~n >> 8);
    memcpy(piece + STORED_HEADER_NBYTES + n, packed, packed_nbytes);
    return n + sizeof(plain);
}

static void compare(uint32_t kernel, uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail)
{
    const struct wharf_codec_setting setting = {0};
    uint32_t codec = kernel & ~WHARF_DEVICE_KERNEL_BITS;
    struct wharf_device_chunk chunk = {
        .in = in, .in_nbytes = in_nbytes, .out = out, .out_avail = out_avail, .codec = codec};
    struct wharf_outcome want;
    struct wharf_outcome got;
    struct wharf_device_batch batch = {&chunk, &got, 1, kernel};
    wharf_codec_find(codec)->ops->decode(in, in_nbytes, out, out_avail, &setting, &want);
    cr_assert_eq(wharf_simt_decode_batch(&batch, WHARF_SIMT_ASCENDING, 0, NULL), 0);
    cr_assert(test_outcome_same(&got, &want), "kernel %x: %s; not %s", kernel,
              test_outcome_text(&got).text, test_outcome_text(&want).text);
}

Test(largest_chunk_simt, positions_near_2_to_the_31_bits_are_right)
{
    static const uint32_t kernels[] = {
        WHARF_CODEC_DEFLATE,
        WHARF_DEVICE_SERIAL | WHARF_CODEC_DEFLATE,
        WHARF_DEVICE_SERIAL_REGISTERS | WHARF_CODEC_DEFLATE,
    };
    int in_fd = new_memory(PIECE_NBYTES);
    uint8_t *in = map_repeated(in_fd);
    uint8_t *out = map_repeated(new_memory(PIECE_NBYTES));
    const size_t n_stored = PIECE_NBYTES - STORED_HEADER_NBYTES;
    const uint8_t header[STORED_HEADER_NBYTES] = {0, (uint8_t)n_stored, (uint8_t)(n_stored >> 8),
                                                  (uint8_t)~n_stored, (uint8_t)(~n_stored >> 8)};
    memcpy(in, header, sizeof(header));
    uint8_t *last = in + CHUNK_NBYTES - PIECE_NBYTES;
    cr_assert_neq(mmap(last, PIECE_NBYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  MAP_FAILED);
    size_t out_nbytes = (CHUNK_NBYTES / PIECE_NBYTES - 1) * n_stored + make_tail(last);
    cr_assert_leq(out_nbytes, CHUNK_NBYTES);
    for (unsigned k = 0; k < 3; k++)
        compare(kernels[k], in, CHUNK_NBYTES, out, CHUNK_NBYTES);
    compare(WHARF_CODEC_DEFLATE, in, CHUNK_NBYTES, out, out_nbytes - 1);
    compare(WHARF_CODEC_DEFLATE, in, CHUNK_NBYTES - 1, out, CHUNK_NBYTES);
    compare(WHARF_CODEC_STORED, in, CHUNK_NBYTES, out, CHUNK_NBYTES);
    compare(WHARF_CODEC_STORED, in, CHUNK_NBYTES, out, CHUNK_NBYTES - 1);
}
