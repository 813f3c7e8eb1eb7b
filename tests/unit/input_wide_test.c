/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the command reads by several threads, and what it expects them to decode to. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/cli/input_wide.h"
#include "clientlib/cli/progress.h"
#include "clientlib/cli/stream_size.h"
#include "encoders/little_endian.h"
#include "encoders/wharf_codec.h"
#include "tests/lib/test_data.h"

enum { NBYTES = (9 << 20) + 4321 };

/* Messages hide it, and nothing here shows it. */
void wharf_cli_progress_hide(void) {}

static char path[] = "/tmp/wharf-wide.XXXXXX";

static void write_file(const void *data, size_t nbytes)
{
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, nbytes), (ssize_t)nbytes);
    close(fd);
}

/* However many threads read, and whatever the file has lost since its size was asked for. */
Test(input_wide, reads_what_is_there)
{
    static const size_t lost[] = {0, 1, 3 << 20, NBYTES - 100, NBYTES};
    uint8_t *data = test_data_new(test_data_find("text"), 1, NBYTES), *got = malloc(NBYTES);
    struct wharf_cli_input input;

    cr_assert(got);
    write_file(data, NBYTES);
    for (unsigned i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
        cr_assert_eq(wharf_cli_input_open(&input, path), 0);
        cr_assert_eq(truncate(path, (off_t)(NBYTES - lost[i])), 0);
        for (unsigned n_threads = 1; n_threads <= 6; n_threads += 5) {
            for (size_t offset = 0; offset <= 77; offset += 77) {
                int64_t want = (int64_t)(NBYTES - lost[i]) - (int64_t)offset;
                memset(got, 0x5a, NBYTES);
                int64_t n =
                    wharf_cli_input_read_wide(&input, offset, got, NBYTES - offset, n_threads);
                cr_assert_eq(n, want > 0 ? want : 0, "%u, %u threads: %lld", i, n_threads,
                             (long long)n);
                cr_expect(n == 0 || memcmp(got, data + offset, (size_t)n) == 0);
            }
        }
        wharf_cli_input_close(&input);
    }
    unlink(path);
    free(data);
    free(got);
}

Test(input_wide, errors_are_told)
{
    struct wharf_cli_input input;
    uint8_t *got = malloc(NBYTES);

    cr_assert(got);
    write_file("x", 1);
    cr_assert_eq(truncate(path, NBYTES), 0);
    cr_assert_eq(wharf_cli_input_open(&input, path), 0);
    int fd = input.fd;
    input.fd = 1 << 20;
    for (unsigned n_threads = 1; n_threads <= 4; n_threads += 3)
        cr_expect_eq(wharf_cli_input_read_wide(&input, 0, got, NBYTES, n_threads), -EBADF);
    input.fd = fd;
    wharf_cli_input_close(&input);
    unlink(path);
    free(got);
}

Test(stream_size, ends_of_streams_are_guesses)
{
    uint8_t end[4];

    wharf_store_le32(end, 3000000);
    cr_expect_eq(wharf_cli_stream_guess(WHARF_CODEC_GZIP, 1000000, end), 3000000);
    cr_expect_eq(wharf_cli_stream_guess(WHARF_CODEC_ZLIB, 1000000, end), 4000000 + (1 << 20));
    cr_expect_eq(wharf_cli_stream_guess(WHARF_CODEC_GZIP, 1000000, NULL), 4000000 + (1 << 20));
    /* Less than the source, or as much as a liar likes. */
    wharf_store_le32(end, 999999);
    cr_expect_eq(wharf_cli_stream_guess(WHARF_CODEC_GZIP, 1000000, end), 4000000 + (1 << 20));
    wharf_store_le32(end, UINT32_MAX);
    cr_expect_eq(wharf_cli_stream_guess(WHARF_CODEC_GZIP, 1000000, end), 4000000 + (1 << 20));
}

/* Nothing is expected of what is no large file of one stream; and nobody waits for a pipe. */
Test(stream_size, only_large_files_of_a_stream_are_expected)
{
    static const uint8_t gzip[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    uint8_t *data = calloc(1, 2 << 20);

    cr_assert(data);
    memcpy(data, gzip, sizeof(gzip));
    wharf_store_le32(data + (2 << 20) - 4, 5000000);
    write_file(data, 2 << 20);
    cr_expect_eq(wharf_cli_stream_file_guess(path, false), (2 << 20) + 5000000);
    cr_expect_eq(wharf_cli_stream_file_guess(path, true), 2 << 20);
    cr_assert_eq(truncate(path, 1000000), 0);
    cr_expect_eq(wharf_cli_stream_file_guess(path, false), 0);
    unlink(path);
    cr_expect_eq(wharf_cli_stream_file_guess(path, false), 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(wharf_cli_stream_file_guess(path, false), 0);
    unlink(path);
    strcpy(path, "/tmp/wharf-wide.XXXXXX");
    memset(data, 'x', 16);
    write_file(data, 2 << 20);
    cr_expect_eq(wharf_cli_stream_file_guess(path, false), 0);
    unlink(path);
    cr_expect_eq(wharf_cli_stream_file_guess("/", true), 0);
    free(data);
}
