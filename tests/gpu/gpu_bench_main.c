/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_bench_main.c: device decoders timed on one file, device memory to device memory.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/rans/rans_format.h"
#include "kernels/simt/simt_batch.h"
#include "tests/gpu/gpu_device.h"
#include "tests/gpu/gpu_pack.h"
#include "tests/gpu/gpu_symbols.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: wharf_gpu_bench [OPTION]... speed CODEC[:TYPE] FILE CHUNK TOTAL [RUNS]\n"
    "       wharf_gpu_bench [OPTION]... few CODEC[:TYPE] FILE CHUNK N [RUNS]\n"
    "       wharf_gpu_bench [OPTION]... sweep CODEC[:TYPE] FILE [RUNS]\n"
    "       wharf_gpu_bench [OPTION]... symbols D CHUNK TOTAL [RUNS]\n"
    "\n"
    "Times device decoders on one file, device memory to device memory.  The modes:\n"
    "\n"
    "  speed     until TOTAL bytes of output are there\n"
    "  few       N chunks alone on the GPU\n"
    "  sweep     chunks of 16 KiB to 1 MiB, 1 to 10000 of them\n"
    "  symbols   rans, 16-bit symbols of D distributions\n"
    "\n"
    "  --engine library|cuda|simt\n"
    "                    libwharf-cuda's public call (the default, but where a kernel is\n"
    "                    named), the kernel alone, or the SIMT layer in the GPU's place:\n"
    "                    tries the program out, times nothing\n"
    "  --beside          a second row for each: the kernel alone, by turns with the library's\n"
    "                    call\n"
    "  --graph           each call becomes a CUDA graph, whose replay is timed\n"
    "  --any-codec       the kernel that has all decoders\n"
    "  --serial, --serial-registers, --serial-prefetch\n"
    "                    the kernel that decodes one symbol a step, as CODAG does, with input\n"
    "                    through shared memory, through registers, or through shared memory\n"
    "                    that another warp fills; of codecs that have one\n"
    "  --block, --crew, --indexed, --warp\n"
    "                    the kernel in which a block's warps decode a chunk together, that\n"
    "                    of a warp for each chunk and one more that helps them, that for\n"
    "                    registered models with indexes, or that of a warp for each chunk;\n"
    "                    without these the better one for the chunks\n"
    "  --level N         of the encoder, but for Deflate, zlib and gzip; for rans the bits of\n"
    "                    its probabilities, without this 11; for others without this 9, or\n"
    "                    their own where they have no 9\n"
    "  --registered      symbols: the model is a registered one\n"
    "\n"
    "FILE is cut into chunks of CHUNK bytes (what is left over at the end is not used, unless\n"
    "it is all there is), which are repeated until there are enough; each copy has its own\n"
    "memory.  Deflate, zlib and gzip are made by zlib, level 9, memory level 9; other codecs\n"
    "by their first encoder, or by the one that stands in TYPE's place.  Symbols are made as "
    "gpu_symbols.h says, with n = 12 if no level\n"
    "is given.  After two runs to warm up, RUNS (10) are timed on the device, and then every\n"
    "byte of output is compared once.  Prints one JSON object for each measurement; ends with\n"
    "1 if any output was wrong.\n";

enum { ALIGN_NBYTES = 256, WARM_UP_RUNS = 2, MAX_RUNS = 1000 };
/* The most output of one measurement of a sweep. */
#define SWEEP_MAX_NBYTES ((size_t)2 << 30)

struct bench {
    const struct gpu_device_ops *device;
    const char *data_name;
    bool any_codec;
    bool choose;                /* the kernel by the number of chunks */
    bool beside;                /* times the kernel alone by turns with the library's call */
    uint32_t serial;            /* WHARF_DEVICE_SERIAL or such, or 0 */
    struct gpu_symbols symbols; /* of mode symbols */
    const uint8_t *d_model;     /* NULL: none */
    unsigned n_runs;
    bool wrong;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "wharf_gpu_bench: %s: %s\n", what, why);
    exit(3);
}

static void *must_alloc(size_t nbytes)
{
    void *p = malloc(nbytes ? nbytes : 1);
    if (!p)
        die("memory", strerror(ENOMEM));
    return p;
}

static size_t aligned(size_t nbytes)
{
    return (nbytes + ALIGN_NBYTES - 1) / ALIGN_NBYTES * ALIGN_NBYTES;
}

/* ---- one measurement ------------------------------------------------------------------------ */

struct measurement {
    size_t n_chunks;
    size_t in_nbytes; /* of all chunks, without the gaps between them */
    size_t stride;    /* from one output to the next */
    uint8_t *d_in, *d_out;
    struct wharf_device_chunk *d_chunks;
    struct wharf_outcome *d_outcomes;
    float ms[MAX_RUNS];
    float ms_alone[MAX_RUNS]; /* the kernel's */
};

static void load(const struct bench *bench, const struct gpu_source *source, struct measurement *m)
{
    const struct gpu_device_ops *device = bench->device;
    size_t image_nbytes = 0;
    for (size_t i = 0; i < m->n_chunks; i++)
        image_nbytes += aligned(source->packed[i % source->n_chunks].nbytes);
    uint8_t *image = must_alloc(image_nbytes);
    struct wharf_device_chunk *chunks = must_alloc(m->n_chunks * sizeof(*chunks));

    m->stride = aligned(gpu_chunk_nbytes(source));
    m->d_in = device->alloc(image_nbytes);
    m->d_out = device->alloc(m->n_chunks * m->stride);
    m->d_chunks = device->alloc(m->n_chunks * sizeof(*chunks));
    m->d_outcomes = device->alloc(m->n_chunks * sizeof(*m->d_outcomes));
    m->in_nbytes = 0;
    size_t at = 0;
    for (size_t i = 0; i < m->n_chunks; i++) {
        const struct gpu_packed *packed = &source->packed[i % source->n_chunks];
        memcpy(image + at, packed->data, packed->nbytes);
        chunks[i] = (struct wharf_device_chunk){
            .in = m->d_in + at,
            .in_nbytes = packed->nbytes,
            .out = m->d_out + i * m->stride,
            .out_avail = gpu_chunk_nbytes(source),
            .codec = source->codec_number,
            .parameter = source->parameter,
            .model = bench->d_model,
        };
        m->in_nbytes += packed->nbytes;
        at += aligned(packed->nbytes);
    }
    device->write(m->d_in, image, image_nbytes);
    device->write(m->d_chunks, chunks, m->n_chunks * sizeof(*chunks));
    device->set(m->d_out, 0, m->n_chunks * m->stride);
    free(image);
    free(chunks);
}

static void unload(const struct gpu_device_ops *device, struct measurement *m)
{
    device->free(m->d_in);
    device->free(m->d_out);
    device->free(m->d_chunks);
    device->free(m->d_outcomes);
}

/* How many chunks did not come out as they went in. */
static size_t count_wrong(const struct bench *bench, const struct gpu_source *source,
                          const struct measurement *m)
{
    size_t n_wrong = 0;
    size_t nbytes = gpu_chunk_nbytes(source);
    struct wharf_outcome *outcomes = must_alloc(m->n_chunks * sizeof(*outcomes));
    uint8_t *out = must_alloc(m->n_chunks * m->stride);
    bench->device->read(outcomes, m->d_outcomes, m->n_chunks * sizeof(*outcomes));
    bench->device->read(out, m->d_out, m->n_chunks * m->stride);
    for (size_t i = 0; i < m->n_chunks; i++) {
        const uint8_t *plain = source->file + i % source->n_chunks * source->chunk_nbytes;
        n_wrong += outcomes[i].result != WHARF_OK || outcomes[i].out_nbytes != nbytes ||
                   memcmp(out + i * m->stride, plain, nbytes) != 0;
    }
    free(outcomes);
    free(out);
    return n_wrong;
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

static uint32_t batch_codec(const struct bench *bench, const struct gpu_source *source,
                            size_t n_chunks)
{
    uint32_t codec = source->codec_number;
    if (bench->any_codec)
        return WHARF_DEVICE_ANY_CODEC;
    if (bench->choose && bench->d_model)
        return WHARF_DEVICE_INDEXED | codec;
    return bench->choose ? bench->device->choose_kernel(codec, n_chunks) : bench->serial | codec;
}

static const char *kernel_name(uint32_t batch_codec)
{
    if (batch_codec == WHARF_DEVICE_ANY_CODEC)
        return "any codec";
    switch (batch_codec & WHARF_DEVICE_KERNEL_BITS) {
    case WHARF_DEVICE_SERIAL:
        return "serial";
    case WHARF_DEVICE_SERIAL_REGISTERS:
        return "serial, registers";
    case WHARF_DEVICE_SERIAL_PREFETCH:
        return "serial, prefetch";
    case WHARF_DEVICE_BLOCK:
        return "block";
    case WHARF_DEVICE_CREW:
        return "crew";
    case WHARF_DEVICE_INDEXED:
        return "indexed";
    default:
        return "own";
    }
}

/* `ms` are sorted. */
static void print_row(const struct bench *bench, const char *mode, const struct gpu_source *source,
                      const struct measurement *m, const float *ms, const char *call,
                      size_t n_wrong)
{
    size_t out_nbytes = m->n_chunks * gpu_chunk_nbytes(source);
    uint32_t codec = batch_codec(bench, source, m->n_chunks);
    double mb = (double)out_nbytes / 1e6;
    char level[100] = "";

    if (bench->symbols.n_distributions)
        snprintf(level, sizeof(level),
                 ",\"level\":%u,\"symbol_nbytes\":2,\"distributions\":%u,\"alphabet\":%u,"
                 "\"registered\":%s",
                 bench->symbols.n_bits, bench->symbols.n_distributions, bench->symbols.alphabet,
                 bench->d_model ? "true" : "false");
    else if (source->level)
        snprintf(level, sizeof(level), ",\"level\":%d", source->level);
    printf("{\"peer\":\"wharf\",\"mode\":\"%s\",\"codec\":\"%s\",\"data\":\"%s\"%s,\"chunk\":%zu,"
           "\"chunks\":%zu,\"bytes\":%zu,\"ratio\":%.3f,\"GBps_median\":%.2f,\"GBps_min\":%.2f,"
           "\"GBps_max\":%.2f,\"us_median\":%.1f,\"runs\":%u,\"wrong\":%zu,\"device\":\"%s\","
           "\"call\":\"%s\",\"gpu_kernel\":\"%s\"%s}\n",
           mode, source->codec->name, bench->data_name, level, source->chunk_nbytes, m->n_chunks,
           out_nbytes, (double)out_nbytes / (double)m->in_nbytes, mb / ms[bench->n_runs / 2],
           mb / ms[bench->n_runs - 1], mb / ms[0], ms[bench->n_runs / 2] * 1e3, bench->n_runs,
           n_wrong, bench->device->name(), call, kernel_name(codec),
           bench->device->kernel_facts(codec));
    fflush(stdout);
}

static void measure(struct bench *bench, const char *mode, const struct gpu_source *source,
                    size_t n_chunks)
{
    static struct measurement m;
    m.n_chunks = n_chunks;
    load(bench, source, &m);
    struct wharf_device_batch batch = {
        .chunks = m.d_chunks,
        .outcomes = m.d_outcomes,
        .n_chunks = (uint32_t)n_chunks,
        .codec = batch_codec(bench, source, n_chunks),
    };
    for (unsigned i = 0; i < WARM_UP_RUNS; i++)
        bench->device->decode(&batch);
    for (unsigned i = 0; i < bench->n_runs; i++) {
        if (bench->beside)
            m.ms_alone[i] = gpu_device_cuda.decode(&batch);
        m.ms[i] = bench->device->decode(&batch);
    }
    qsort(m.ms, bench->n_runs, sizeof(m.ms[0]), by_size);
    qsort(m.ms_alone, bench->n_runs, sizeof(m.ms_alone[0]), by_size);
    size_t n_wrong = count_wrong(bench, source, &m);
    bench->wrong |= n_wrong > 0;
    bool is_library = bench->device == &gpu_device_library;
    print_row(bench, mode, source, &m, m.ms, is_library ? "wharf_cuda_decode" : "kernel", n_wrong);
    if (bench->beside)
        print_row(bench, mode, source, &m, m.ms_alone, "kernel", n_wrong);
    unload(bench->device, &m);
}

static void sweep(struct bench *bench, struct gpu_source *source, size_t file_nbytes)
{
    static const size_t chunks[] = {16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20};
    static const size_t counts[] = {1, 10, 100, 1000, 4000, 10000};
    for (size_t k = 0; k < sizeof(chunks) / sizeof(chunks[0]); k++) {
        gpu_pack(source, file_nbytes, chunks[k], counts[5]);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            if (counts[i] * chunks[k] <= SWEEP_MAX_NBYTES)
                measure(bench, "sweep", source, counts[i]);
        gpu_source_free(source);
    }
}

/* 16-bit symbols; so many chunks, and a model for all of them. */
static void measure_symbols(struct bench *bench, struct gpu_source *source, size_t chunk,
                            size_t n_chunks)
{
    struct gpu_symbols *symbols = &bench->symbols;

    gpu_symbols_pack(symbols, source, chunk, n_chunks);
    bench->data_name = symbols->name;
    if (symbols->is_registered) {
        bench->d_model = bench->device->add_model(symbols->image, symbols->image_nbytes);
    }
    measure(bench, "speed", source, n_chunks);
    gpu_source_free(source);
    if (bench->d_model)
        bench->device->remove_model(bench->d_model);
    gpu_symbols_free(symbols);
}

/* ---- the command line ----------------------------------------------------------------------- */

static size_t number(const char *text, size_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (!*text || *end || errno || value == 0 || value > most) {
        fprintf(stderr, "wharf_gpu_bench: %s: not a number from 1 to %zu\n", text, most);
        exit(2);
    }
    return (size_t)value;
}

/* A kernel is named: the library would choose its own. */
static void use_kernels(struct bench *bench)
{
    if (bench->device == &gpu_device_library)
        bench->device = &gpu_device_cuda;
}

static const struct gpu_device_ops *device_called(const char *name)
{
    return strcmp(name, "simt") == 0   ? &gpu_device_simt
           : strcmp(name, "cuda") == 0 ? &gpu_device_cuda
                                       : &gpu_device_library;
}

/* Takes an option: how many words it is, or 0 if it is none. */
static int take_option(struct bench *bench, struct gpu_source *source, int argc, char **argv)
{
    static const struct {
        const char *option;
        uint32_t kernel;
    } kernels[] = {
        {"--serial", WHARF_DEVICE_SERIAL},
        {"--serial-registers", WHARF_DEVICE_SERIAL_REGISTERS},
        {"--serial-prefetch", WHARF_DEVICE_SERIAL_PREFETCH},
        {"--block", WHARF_DEVICE_BLOCK},
        {"--crew", WHARF_DEVICE_CREW},
        {"--indexed", WHARF_DEVICE_INDEXED},
        {"--warp", 0},
    };

    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(argv[0], kernels[i].option) == 0) {
            bench->serial = kernels[i].kernel;
            bench->choose = false;
            use_kernels(bench);
            return 1;
        }
    if (argc > 1 && strcmp(argv[0], "--engine") == 0) {
        bench->device = device_called(argv[1]);
        return 2;
    }
    if (argc > 1 && strcmp(argv[0], "--level") == 0) {
        source->level = (int)number(argv[1], 16);
        return 2;
    }
    if (strcmp(argv[0], "--any-codec") == 0) {
        bench->any_codec = true;
        use_kernels(bench);
    } else if (strcmp(argv[0], "--graph") == 0)
        gpu_device_use_graphs();
    else if (strcmp(argv[0], "--beside") == 0)
        bench->beside = true;
    else if (strcmp(argv[0], "--registered") == 0)
        bench->symbols.is_registered = true;
    else
        return 0;
    return 1;
}

/* That there is a kernel for it. */
static void check_codec(const struct bench *bench, const struct gpu_source *source,
                        const char *name)
{
    if (!wharf_simt_can_decode(bench->serial | source->codec_number))
        die(name, bench->serial ? "has no such kernel" : "has no device decoder");
}

/* symbols DISTRIBUTIONS CHUNK TOTAL */
static void run_symbols(struct bench *bench, struct gpu_source *source, char **argv)
{
    size_t chunk = number(argv[2], WHARF_DEVICE_CHUNK_MAX_NBYTES);

    bench->symbols.n_distributions = (uint32_t)number(argv[1], WHARF_RANS_MAX_DISTRIBUTIONS);
    bench->symbols.n_bits = source->level ? (uint32_t)source->level : 12;
    gpu_source_choose(source, "rans:u16");
    check_codec(bench, source, "rans");
    bench->device->open();
    measure_symbols(bench, source, chunk, (number(argv[3], SIZE_MAX) - 1) / chunk + 1);
    bench->device->close();
}

/* speed CODEC FILE CHUNK TOTAL, few CODEC FILE CHUNK N, or sweep CODEC FILE */
static void run_file(struct bench *bench, struct gpu_source *source, char **argv)
{
    const char *path = argv[2], *slash = strrchr(path, '/');
    size_t file_nbytes;

    gpu_source_choose(source, argv[1]);
    check_codec(bench, source, argv[1]);
    uint8_t *file = test_file_read(path, &file_nbytes);
    if (!file || file_nbytes == 0)
        die(path, file ? "is empty" : strerror(errno));
    source->file = file;
    bench->data_name = slash ? slash + 1 : path;
    bench->device->open();
    if (strcmp(argv[0], "sweep") == 0) {
        sweep(bench, source, file_nbytes);
    } else {
        size_t chunk = number(argv[3], WHARF_DEVICE_CHUNK_MAX_NBYTES);
        size_t amount = number(argv[4], SIZE_MAX);
        size_t n_chunks = strcmp(argv[0], "speed") == 0 ? (amount - 1) / chunk + 1 : amount;
        gpu_pack(source, file_nbytes, chunk, n_chunks);
        measure(bench, argv[0], source, n_chunks);
        gpu_source_free(source);
    }
    bench->device->close();
    free(file);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    static const struct {
        const char *name;
        int n_words; /* RUNS may follow */
        void (*run)(struct bench *bench, struct gpu_source *source, char **argv);
    } modes[] = {
        {"speed", 5, run_file},
        {"few", 5, run_file},
        {"sweep", 3, run_file},
        {"symbols", 4, run_symbols},
    };
    struct bench bench = {.device = &gpu_device_library, .choose = true, .n_runs = 10};
    struct gpu_source source = {0};

    for (argv++, argc--; argc > 0 && strncmp(argv[0], "--", 2) == 0;) {
        int n = take_option(&bench, &source, argc, argv);
        if (n == 0)
            return test_usage(help);
        argv += n;
        argc -= n;
    }
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && argc > 0; i++) {
        int n_words = modes[i].n_words;
        bool clash =
            (bench.any_codec && bench.serial) ||
            (bench.beside && (bench.device != &gpu_device_library || modes[i].run == run_symbols));
        if (strcmp(argv[0], modes[i].name) != 0 || clash ||
            (argc != n_words && argc != n_words + 1))
            continue;
        if (argc > n_words)
            bench.n_runs = (unsigned)number(argv[n_words], MAX_RUNS);
        modes[i].run(&bench, &source, argv);
        return bench.wrong;
    }
    return test_usage(help);
}
