/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_bench.c: decompression as programs under `wharf run` have it, beside the genuine
 * libraries.
 *
 * It loads libwharf-preload.so as a library of its own.  Both sides make the same calls on the same
 * buffers.  What is declined is measured in a child after fork, in which libwharf-preload passes
 * every call on.
 */
#include <dlfcn.h>
#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: preload_bench [--repetitions N] FILE...\n"
    "\n"
    "Times decompression by the functions of libwharf-preload.so, which is in the folder\n"
    "above this program's, beside the same functions of zlib, libdeflate, libzstd and\n"
    "liblz4, N times each (15).\n"
    "\n"
    "The first 2 MiB of each file are cut into buffers of 16 KiB, 64 KiB and 1 MiB, which\n"
    "the libraries pack one by one; one run decodes all of them, on one core.  Prints one\n"
    "JSON object for each measurement; seconds are processor time.\n";

enum { DATA_NBYTES = 2 << 20, MAX_BUFFER = 1 << 20, CALL_NBYTES = 8 << 10 };

struct functions {
    int (*init)(z_streamp, int, const char *, int);
    int (*inflate)(z_streamp, int);
    int (*end)(z_streamp);
    enum libdeflate_result (*libdeflate)(struct libdeflate_decompressor *, const void *, size_t,
                                         void *, size_t, size_t *);
    size_t (*zstd)(ZSTD_DCtx *, void *, size_t, const void *, size_t);
    int (*lz4)(const char *, char *, int, int);
};

static struct functions genuine = {
    .init = inflateInit2_,
    .inflate = inflate,
    .end = inflateEnd,
    .libdeflate = libdeflate_zlib_decompress,
    .zstd = ZSTD_decompressDCtx,
    .lz4 = LZ4_decompress_safe,
};
static struct functions ours;
static struct libdeflate_decompressor *decompressor;
static ZSTD_DCtx *context;

struct buffer {
    const uint8_t *raw;
    size_t raw_nbytes;
    uint8_t *packed;
    size_t packed_nbytes;
};

/* ---- the libraries ------------------------------------------------------------------------- */

static bool by_zlib(const struct functions *f, const struct buffer *b, uint8_t *out, size_t step)
{
    z_stream s = {.next_in = b->packed, .avail_in = (uInt)b->packed_nbytes, .next_out = out};
    int result = f->init(&s, MAX_WBITS, ZLIB_VERSION, (int)sizeof(s));

    while (result == Z_OK && s.total_out < b->raw_nbytes) {
        size_t left = b->raw_nbytes - s.total_out;
        s.avail_out = (uInt)(left < step ? left : step);
        result = f->inflate(&s, step < b->raw_nbytes ? Z_NO_FLUSH : Z_FINISH);
    }
    f->end(&s);
    return s.total_out == b->raw_nbytes;
}

static bool by_zlib_whole(const struct functions *f, const struct buffer *b, uint8_t *out)
{
    return by_zlib(f, b, out, b->raw_nbytes);
}

static bool by_zlib_calls(const struct functions *f, const struct buffer *b, uint8_t *out)
{
    return by_zlib(f, b, out, CALL_NBYTES);
}

static bool by_libdeflate(const struct functions *f, const struct buffer *b, uint8_t *out)
{
    return f->libdeflate(decompressor, b->packed, b->packed_nbytes, out, b->raw_nbytes, NULL) ==
           LIBDEFLATE_SUCCESS;
}

static bool by_zstd(const struct functions *f, const struct buffer *b, uint8_t *out)
{
    return f->zstd(context, out, b->raw_nbytes, b->packed, b->packed_nbytes) == b->raw_nbytes;
}

static bool by_lz4(const struct functions *f, const struct buffer *b, uint8_t *out)
{
    return f->lz4((const char *)b->packed, (char *)out, (int)b->packed_nbytes,
                  (int)b->raw_nbytes) == (int)b->raw_nbytes;
}

static size_t pack_zlib(const uint8_t *raw, size_t nbytes, uint8_t *packed, size_t room)
{
    uLongf made = room;

    return compress2(packed, &made, raw, nbytes, 6) == Z_OK ? made : 0;
}

static size_t pack_zstd(const uint8_t *raw, size_t nbytes, uint8_t *packed, size_t room)
{
    return ZSTD_compress(packed, room, raw, nbytes, 3);
}

static size_t pack_lz4(const uint8_t *raw, size_t nbytes, uint8_t *packed, size_t room)
{
    return (size_t)LZ4_compress_default((const char *)raw, (char *)packed, (int)nbytes, (int)room);
}

static const struct library {
    const char *name, *codec, *peer;
    int level;
    size_t (*pack)(const uint8_t *raw, size_t nbytes, uint8_t *packed, size_t room);
    bool (*decode)(const struct functions *f, const struct buffer *b, uint8_t *out);
} libraries[] = {
    {"zlib", "zlib", "zlib " ZLIB_VERSION, 6, pack_zlib, by_zlib_whole},
    {"zlib, calls of 8 KiB", "zlib", "zlib " ZLIB_VERSION, 6, pack_zlib, by_zlib_calls},
    {"libdeflate", "zlib", "libdeflate " LIBDEFLATE_VERSION_STRING, 6, pack_zlib, by_libdeflate},
    {"libzstd", "zstd", "libzstd " ZSTD_VERSION_STRING, 3, pack_zstd, by_zstd},
    {"liblz4", "lz4", "liblz4 " LZ4_VERSION_STRING, 1, pack_lz4, by_lz4},
};
enum { N_LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    if (!found)
        bench_die(dlerror());
    memcpy(function, &found, sizeof(found));
}

static void find_ours(void)
{
    char path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

    if (n < 0)
        bench_die("/proc/self/exe");
    path[n] = 0;
    *strrchr(path, '/') = 0;
    strcat(path, "/../libwharf-preload.so");
    /* By default it leaves some libraries alone. */
    setenv("WHARF_PRELOAD_SKIP", "", 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        bench_die(dlerror());
    /* Not inflateInit_, whose inner call would find zlib's here. */
    find(library, "inflateInit2_", &ours.init);
    find(library, "inflate", &ours.inflate);
    find(library, "inflateEnd", &ours.end);
    find(library, "libdeflate_zlib_decompress", &ours.libdeflate);
    find(library, "ZSTD_decompressDCtx", &ours.zstd);
    find(library, "LZ4_decompress_safe", &ours.lz4);
}

/* ---- one file in buffers of one size ------------------------------------------------------- */

struct side {
    const struct library *library;
    const struct functions *functions;
    const struct buffer *buffers;
    size_t n;
    bool compares;
};

static void run_side(void *argument)
{
    static uint8_t out[MAX_BUFFER];
    const struct side *side = argument;

    for (size_t i = 0; i < side->n; i++) {
        const struct buffer *b = &side->buffers[i];
        if (!side->library->decode(side->functions, b, out) ||
            (side->compares && memcmp(out, b->raw, b->raw_nbytes) != 0))
            bench_die("wrong output");
    }
}

static void compare(const char *what, const char *data, const struct library *library,
                    const struct buffer *buffers, size_t n, unsigned repetitions)
{
    struct side of[2] = {{library, &ours, buffers, n, true}, {library, &genuine, buffers, n, true}};
    struct bench_side sides[] = {{run_side, &of[0]}, {run_side, &of[1]}};
    struct bench_times times[2];
    char whole[80];
    struct bench_row row = {
        .what = whole,
        .codec = library->codec,
        .data = data,
        .level = library->level,
        .threads = 1,
        .repetitions = repetitions,
        .chunk_nbytes = buffers[0].raw_nbytes,
        .peer = library->peer,
    };

    run_side(&of[0]);
    run_side(&of[1]);
    of[0].compares = of[1].compares = false;
    bench_compare(sides, 2, repetitions, times);
    snprintf(whole, sizeof(whole), "%s: %s", what, library->name);
    for (size_t i = 0; i < n; i++) {
        row.in_nbytes += buffers[i].packed_nbytes;
        row.out_nbytes += buffers[i].raw_nbytes;
    }
    row.times = times[0];
    row.peer_times = times[1];
    bench_print_row(stdout, &row);
}

/* In a child, which ends. */
static void compare_declined(const char *data, const struct library *library,
                             const struct buffer *buffers, size_t n, unsigned repetitions)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        compare("preload declines", data, library, buffers, n, repetitions);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("the child failed");
}

static void measure(const char *data, const struct library *library, const uint8_t *raw,
                    size_t nbytes, size_t size, unsigned repetitions)
{
    const size_t n = nbytes / size, room = size + size / 8 + 1024;
    struct buffer *buffers = bench_check(calloc(n, sizeof(*buffers)));

    for (size_t i = 0; i < n; i++) {
        struct buffer *b = &buffers[i];
        b->raw = raw + i * size;
        b->raw_nbytes = size;
        b->packed = bench_check(malloc(room));
        b->packed_nbytes = library->pack(b->raw, size, b->packed, room);
        if (b->packed_nbytes == 0 || b->packed_nbytes > room)
            bench_die("cannot pack");
    }
    compare("preload", data, library, buffers, n, repetitions);
    compare_declined(data, library, buffers, n, repetitions);
    for (size_t i = 0; i < n; i++)
        free(buffers[i].packed);
    free(buffers);
}

static const size_t sizes[] = {16 << 10, 64 << 10, 1 << 20};

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    unsigned repetitions = 15;
    int first = 1;

    if (argc > 2 && strcmp(argv[1], "--repetitions") == 0) {
        repetitions = (unsigned)strtoul(argv[2], NULL, 10);
        first = 3;
    }
    if (first >= argc || repetitions < 1)
        return test_usage(help);
    find_ours();
    decompressor = bench_check(libdeflate_alloc_decompressor());
    context = bench_check(ZSTD_createDCtx());
    bench_compare_by_processor();
    for (int i = first; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/'), *name = slash ? slash + 1 : argv[i];
        size_t nbytes;
        uint8_t *raw = test_file_read(argv[i], &nbytes);
        if (!raw || nbytes == 0)
            bench_die(argv[i]);
        if (nbytes > DATA_NBYTES)
            nbytes = DATA_NBYTES;
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            for (size_t k = 0; nbytes >= sizes[s] && k < N_LIBRARIES; k++)
                measure(name, &libraries[k], raw, nbytes, sizes[s], repetitions);
        free(raw);
    }
    ZSTD_freeDCtx(context);
    libdeflate_free_decompressor(decompressor);
    return 0;
}
