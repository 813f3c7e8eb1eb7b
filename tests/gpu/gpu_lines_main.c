/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_lines_main.c: how fast libwharf-cuda encodes and decodes codecs of lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "clientlib/cuda/wharf_cuda.h"
#include "encoders/codec.h"
#include "tests/gpu/gpu_device.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_lines.h"

static const char help[] =
    "usage: wharf_gpu_lines [MIB [KIB]]\n"
    "\n"
    "Times wharf_cuda_encode and wharf_cuda_decode of the codecs of lines, device memory to\n"
    "device memory, on chunks of 1 MiB, MIB of them (256).  A share is that of the rate at which\n"
    "the device copies as much, bytes read plus bytes written, taken in turns with the calls.\n"
    "Checks every byte once.  Prints a row of JSON for each; ends with 1 if a byte was wrong.\n";

enum { N_RUNS = 9, RAW_NBYTES = 1 << 20 };

/* All arrays of a batch of chunks, in memory of the device. */
struct batch {
    size_t n;
    size_t stride; /* of streams */
    uint8_t *raw, *streams, *decoded;
    void **raw_at, **stream_at, **decoded_at; /* arrays of the device */
    size_t *raw_nbytes, *stream_avail, *stream_nbytes;
    struct wharf_outcome *outcomes;
    void *scratch;
    struct wharf_cuda_encoding encoding;
    struct wharf_cuda_batch decoding;
};

struct timing {
    float call[N_RUNS], copy[N_RUNS]; /* milliseconds */
};

static const struct gpu_device_ops *device = &gpu_device_cuda;
static struct wharf_cuda *cuda;
static size_t chunk_nbytes = 64 << 10;

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "wharf_gpu_lines: %s: error %d: %s\n", what, rc, wharf_cuda_error_message());
    exit(3);
}

static void *must_alloc(size_t nbytes)
{
    void *p = malloc(nbytes);
    if (!p) {
        fputs("wharf_gpu_lines: out of memory\n", stderr);
        exit(3);
    }
    return p;
}

static int start_encode(void *argument, struct CUstream_st *stream)
{
    const struct batch *b = argument;
    return wharf_cuda_encode(cuda, &b->encoding, stream);
}

static int start_decode(void *argument, struct CUstream_st *stream)
{
    const struct batch *b = argument;
    return wharf_cuda_decode(cuda, &b->decoding, stream);
}

static int start_copy(void *argument, struct CUstream_st *stream)
{
    const struct batch *b = argument;
    return (int)cudaMemcpyAsync(b->decoded, b->raw, b->n * chunk_nbytes, cudaMemcpyDeviceToDevice,
                                stream);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The call and the copy by turns; sorted. */
static struct timing measure(gpu_start_fn *start, struct batch *b)
{
    struct timing t;
    device->run(start, b);
    device->run(start_copy, b);
    for (unsigned i = 0; i < N_RUNS; i++) {
        t.copy[i] = device->run(start_copy, b);
        t.call[i] = device->run(start, b);
    }
    qsort(t.call, N_RUNS, sizeof(t.call[0]), by_size);
    qsort(t.copy, N_RUNS, sizeof(t.copy[0]), by_size);
    return t;
}

static void *device_array(const void *from, size_t nbytes)
{
    void *p = device->alloc(nbytes);
    device->write(p, from, nbytes);
    return p;
}

static void make_arrays(struct batch *b, size_t n, size_t stride)
{
    void **at = must_alloc(n * sizeof(*at));
    size_t *nbytes = must_alloc(n * sizeof(*nbytes));
    b->n = n;
    b->stride = stride;
    b->raw = device->alloc(n * chunk_nbytes);
    b->decoded = device->alloc(n * chunk_nbytes);
    b->streams = device->alloc(n * stride);
    for (size_t i = 0; i < n; i++)
        at[i] = b->raw + i * chunk_nbytes;
    b->raw_at = device_array(at, n * sizeof(*at));
    for (size_t i = 0; i < n; i++)
        at[i] = b->decoded + i * chunk_nbytes;
    b->decoded_at = device_array(at, n * sizeof(*at));
    for (size_t i = 0; i < n; i++)
        at[i] = b->streams + i * stride;
    b->stream_at = device_array(at, n * sizeof(*at));
    for (size_t i = 0; i < n; i++)
        nbytes[i] = chunk_nbytes;
    b->raw_nbytes = device_array(nbytes, n * sizeof(*nbytes));
    for (size_t i = 0; i < n; i++)
        nbytes[i] = stride;
    b->stream_avail = device_array(nbytes, n * sizeof(*nbytes));
    b->stream_nbytes = device->alloc(n * sizeof(*nbytes));
    b->outcomes = device->alloc(n * sizeof(*b->outcomes));
    free(at);
    free(nbytes);
}

static void free_arrays(struct batch *b)
{
    void *all[] = {b->raw,           b->streams,    b->decoded,    b->raw_at,
                   b->stream_at,     b->decoded_at, b->raw_nbytes, b->stream_avail,
                   b->stream_nbytes, b->outcomes,   b->scratch};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        device->free(all[i]);
}

/* How many of the batch's outcomes are not WHARF_OK; *ret_sum is what they say is there. */
static size_t count_bad(const struct batch *b, size_t *ret_sum)
{
    struct wharf_outcome *outcomes = must_alloc(b->n * sizeof(*outcomes));
    size_t *nbytes = must_alloc(b->n * sizeof(*nbytes)), n_bad = 0;
    device->read(outcomes, b->outcomes, b->n * sizeof(*outcomes));
    *ret_sum = 0;
    for (size_t i = 0; i < b->n; i++) {
        n_bad += outcomes[i].result != WHARF_OK;
        nbytes[i] = outcomes[i].out_nbytes;
        *ret_sum += nbytes[i];
    }
    device->write(b->stream_nbytes, nbytes, b->n * sizeof(*nbytes));
    free(outcomes);
    free(nbytes);
    return n_bad;
}

static void print_row(const char *what, const struct wharf_line_choice *choice, const char *data,
                      const struct batch *b, size_t packed, const struct timing *t, size_t n_wrong)
{
    double raw = (double)b->n * chunk_nbytes, moved = raw + (double)packed;
    double copy = 2 * raw / t->copy[N_RUNS / 2], middle = moved / t->call[N_RUNS / 2];
    printf("{\"what\": \"line %s\", \"codec\": \"%s\", \"data\": \"%s\", \"line_nbytes\": %u, "
           "\"slots\": %s, \"call\": \"wharf_cuda_%s\", \"ratio\": %.3f, \"chunk\": %zu, "
           "\"chunks\": %zu, \"runs\": %d, \"ms_median\": %.4f, \"ms_min\": %.4f, \"ms_max\": "
           "%.4f, \"GBps_raw\": %.0f, \"GBps_moved\": %.0f, \"GBps_copy\": %.0f, "
           "\"share_of_copy\": %.3f, \"wrong\": %zu, \"device\": \"%s\"}\n",
           what, wharf_codec_find(choice->codec)->name, data, choice->line_nbytes,
           choice->layout == WHARF_LINE_SLOTS ? "true" : "false", what, raw / (double)packed,
           chunk_nbytes, b->n, N_RUNS, t->call[N_RUNS / 2], t->call[0], t->call[N_RUNS - 1],
           raw / t->call[N_RUNS / 2] / 1e6, middle / 1e6, copy / 1e6, middle / copy, n_wrong,
           device->name());
    fflush(stdout);
}

/* Chunks are the pieces of `raw`, again and again. */
static const uint8_t *piece(const uint8_t *raw, size_t i)
{
    return raw + i * chunk_nbytes % RAW_NBYTES;
}

/* Encodes and decodes; returns how many chunks were wrong. */
static size_t run_case(const struct wharf_line_choice *choice, const char *data, const uint8_t *raw,
                       size_t n)
{
    struct batch b = {.encoding = WHARF_CUDA_ENCODING_INIT, .decoding = WHARF_CUDA_BATCH_INIT};
    b.encoding.codec = choice->codec;
    b.encoding.line_nbytes = choice->line_nbytes;
    b.encoding.layout = choice->layout == WHARF_LINE_SLOTS;
    b.encoding.type = choice->type;
    size_t bound, packed, unpacked, scratch_nbytes;
    must(wharf_cuda_encode_bound(&b.encoding, chunk_nbytes, &bound), "wharf_cuda_encode_bound");
    make_arrays(&b, n, (bound + 255) / 256 * 256);
    for (size_t i = 0; i < n; i++)
        device->write(b.raw + i * chunk_nbytes, piece(raw, i), chunk_nbytes);
    b.encoding.n_chunks = b.decoding.n_chunks = n;
    b.encoding.in = (const void *const *)b.raw_at;
    b.encoding.in_nbytes = b.raw_nbytes;
    b.encoding.out = (void *const *)b.stream_at;
    b.encoding.out_avail = b.stream_avail;
    b.encoding.outcomes = b.decoding.outcomes = b.outcomes;
    b.decoding.codec = choice->codec;
    b.decoding.in = (const void *const *)b.stream_at;
    b.decoding.in_nbytes = b.stream_nbytes;
    b.decoding.out = (void *const *)b.decoded_at;
    b.decoding.out_avail = b.raw_nbytes;
    must(wharf_cuda_decode_scratch(cuda, &b.decoding, &scratch_nbytes), "scratch");
    b.scratch = device->alloc(scratch_nbytes);
    b.decoding.scratch = b.scratch;
    b.decoding.scratch_nbytes = scratch_nbytes;

    struct timing encoding = measure(start_encode, &b);
    size_t n_wrong = count_bad(&b, &packed);
    print_row("encode", choice, data, &b, packed, &encoding, n_wrong);
    struct timing decoding = measure(start_decode, &b);
    n_wrong += count_bad(&b, &unpacked);
    uint8_t *out = must_alloc(n * chunk_nbytes);
    device->read(out, b.decoded, n * chunk_nbytes);
    for (size_t i = 0; i < n; i++)
        n_wrong += memcmp(out + i * chunk_nbytes, piece(raw, i), chunk_nbytes) != 0;
    free(out);
    print_row("decode", choice, data, &b, packed, &decoding, n_wrong);
    free_arrays(&b);
    return n_wrong;
}

static const struct {
    const char *name;
    enum test_lines_kind kind;
} kinds[] = {
    {"bases", TEST_LINES_BASES},     {"words", TEST_LINES_WORDS}, {"near", TEST_LINES_NEAR},
    {"weights", TEST_LINES_WEIGHTS}, {"mixed", TEST_LINES_MIXED}, {"random", TEST_LINES_RANDOM},
};

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    size_t n_mib = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 256, n_wrong = 0;
    size_t n_kib = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 64;
    if (argc > 3 || n_mib == 0 || n_mib > 4096 || n_kib == 0 || 1024 % n_kib != 0)
        return test_usage(help);
    chunk_nbytes = n_kib << 10;
    size_t n = (n_mib << 20) / chunk_nbytes;
    uint8_t *raw = must_alloc(RAW_NBYTES);
    device->open();
    must(wharf_cuda_open(&cuda), "wharf_cuda_open");
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        test_lines_fill(kinds[k].kind, 1, raw, RAW_NBYTES);
        for (unsigned i = 0; i < TEST_LINES_N_CHOICES; i++) {
            struct wharf_line_choice choice = test_lines_choice(i);
            /* Of palette the type that weights have; slots of whole lines alone. */
            bool is_left_out =
                (choice.codec == WHARF_CODEC_PALETTE && choice.type != WHARF_LINE_BF16) ||
                (choice.layout == WHARF_LINE_SLOTS && choice.line_nbytes != 128);
            if (!is_left_out)
                n_wrong += run_case(&choice, kinds[k].name, raw, n);
        }
    }
    wharf_cuda_close(cuda);
    device->close();
    free(raw);
    return n_wrong != 0;
}
