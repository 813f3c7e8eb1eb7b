/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/stream_size.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "encoders/little_endian.h"
#include "encoders/source_kind.h"
#include "encoders/wharf_codec.h"

/* Without a better guess: this and four times the input. */
enum { BESIDE_NBYTES = 1 << 20, RATIO = 4 };

/* Shorter files fit what commands have room for anyway. */
enum { LEAST_FILE_NBYTES = 1 << 20 };

/* Enough for all but some headers with fields of their own, which need no better guess. */
enum { DETECT_NBYTES = 512 };

uint64_t wharf_cli_stream_guess(uint32_t codec, uint64_t in_nbytes, const uint8_t *end)
{
    uint64_t guess = RATIO * in_nbytes + BESIDE_NBYTES;
    uint64_t told;

    if (codec != WHARF_CODEC_GZIP || !end)
        return guess;
    /* Of several members this is the last one's, and less than the source cannot be right. */
    told = wharf_load_le32(end);
    return told >= in_nbytes && told < guess ? told : guess;
}

/* The codec of a job for the file, or -1. */
static int codec_of(const uint8_t *first, size_t nbytes)
{
    switch (wharf_source_detect(first, nbytes, false)) {
    case WHARF_SOURCE_GZIP:
        return WHARF_CODEC_GZIP;
    case WHARF_SOURCE_ZLIB:
        return WHARF_CODEC_ZLIB;
    case WHARF_SOURCE_ZSTD:
        return WHARF_CODEC_ZSTD;
    default:
        return -1;
    }
}

static uint64_t guess_of(int fd, uint64_t nbytes, bool discards)
{
    uint8_t first[DETECT_NBYTES], end[WHARF_CLI_STREAM_END_NBYTES];
    int codec;

    if (pread(fd, first, sizeof(first), 0) != (ssize_t)sizeof(first) ||
        pread(fd, end, sizeof(end), (off_t)(nbytes - sizeof(end))) != (ssize_t)sizeof(end))
        return 0;
    codec = codec_of(first, sizeof(first));
    if (codec < 0)
        return 0;
    if (discards && codec != WHARF_CODEC_ZSTD)
        return nbytes;
    return nbytes + wharf_cli_stream_guess((uint32_t)codec, nbytes, end);
}

uint64_t wharf_cli_stream_file_guess(const char *path, bool discards)
{
    struct stat status;
    uint64_t guess;
    int fd;

    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size < LEAST_FILE_NBYTES)
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return 0;
    guess = guess_of(fd, (uint64_t)status.st_size, discards);
    close(fd);
    return guess;
}
