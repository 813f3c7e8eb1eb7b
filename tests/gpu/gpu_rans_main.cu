/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_rans_main.cu: one large rans stream decoded by all of a GPU, device memory to device memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "encoders/rans/rans_format.h"
#include "kernels/rans_pieces.h"
#include "tests/gpu/gpu_rans_stream.h"
extern "C" {
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
}

static const char help[] =
    "usage: wharf_gpu_rans FILE N TOTAL SPLITS PIECES [RUNS]\n"
    "       wharf_gpu_rans symbols D N TOTAL PIECES [RUNS]\n"
    "\n"
    "Decodes one large rans stream by all of a GPU, device memory to device memory.\n"
    "\n"
    "FILE, repeated until there are TOTAL bytes, becomes one stream with n = N and SPLITS\n"
    "splits, of which PIECES are used (0: as many as is soonest); or 16-bit symbols of D\n"
    "distributions become one, with a registered model and splits of 8192 symbols.  After two\n"
    "runs to warm up, RUNS (10) are timed on the device, from before the launch, and as many\n"
    "that find the GPU at work, so that the host's time to launch is not in them (\"kernel\").\n"
    "Then every byte is compared, and bits are flipped, and outcomes compared with the CPU's:\n"
    "50, of large streams 3, of very large ones none.  Prints one JSON object; ends with 1 if\n"
    "anything was wrong.\n";

namespace
{

enum { WARM_UP_RUNS = 2, N_DAMAGED = 50 };

[[noreturn]] void die(const char *what, const char *why)
{
    fprintf(stderr, "wharf_gpu_rans: %s: %s\n", what, why);
    exit(3);
}

void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        die(what, cudaGetErrorString(error));
}

std::vector<uint8_t> repeated(const char *path, size_t total)
{
    size_t nbytes;
    uint8_t *file = test_file_read(path, &nbytes);
    if (!file || nbytes == 0)
        die(path, file ? "is empty" : strerror(errno));
    std::vector<uint8_t> data(total);
    for (size_t at = 0; at < total; at += nbytes)
        memcpy(&data[at], file, std::min(nbytes, total - at));
    free(file);
    return data;
}

std::vector<uint8_t> encode(const std::vector<uint8_t> &data, uint32_t n_bits, uint32_t splits)
{
    size_t nbytes;
    uint8_t *out = test_rans_encode(data.data(), (uint32_t)data.size(), n_bits, splits, &nbytes);
    std::vector<uint8_t> stream(out, out + nbytes);
    free(out);
    return stream;
}

/* What is decoded. */
struct given {
    std::string name;
    uint32_t n_bits, splits;
    std::vector<uint8_t> data, stream;
    std::vector<uint32_t> image; /* of a registered model; or none */

    const void *model() const { return image.empty() ? nullptr : image.data(); }
};

given make_bytes(char **argv)
{
    given g = {};
    g.name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    g.n_bits = (uint32_t)atoi(argv[1]);
    g.splits = (uint32_t)atoi(argv[3]);
    g.data = repeated(argv[0], strtoull(argv[2], nullptr, 0));
    g.stream = encode(g.data, g.n_bits, g.splits);
    return g;
}

given make_symbols(char **argv)
{
    given g = {};
    g.n_bits = (uint32_t)atoi(argv[1]);
    const gpu_rans_stream made = gpu_rans_stream_of_symbols((uint32_t)atoi(argv[0]), g.n_bits,
                                                            strtoull(argv[2], nullptr, 0));
    g.name = made.name;
    g.splits = (uint32_t)(made.plain_nbytes / 16384);
    g.data.assign(made.plain, made.plain + made.plain_nbytes);
    g.stream.assign(made.stream, made.stream + made.stream_nbytes);
    g.image.resize((made.image_nbytes + 3) / 4);
    memcpy(g.image.data(), made.image, made.image_nbytes);
    return g;
}

struct device_memory {
    uint8_t *d_in, *d_out, *d_image;
    wharf_rans_place *d_places;
    wharf_rans_piece_outcome *d_outcomes;
};

/* Keeps the GPU busy for longer than a launch takes. */
__global__ void wait_kernel()
{
    for (long long until = clock64() + 50000; clock64() < until;)
        ;
}

/* The first kernel's microseconds, with the launch or behind another kernel. */
float time_decode(const wharf_rans_stream_job &job, bool is_queued)
{
    cudaEvent_t begin, end;
    float ms;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    if (is_queued)
        wait_kernel<<<1, 1>>>();
    must(cudaEventRecord(begin), "event");
    if (wharf_cuda_decode_rans(&job, nullptr) < 0)
        die("launch", "failed");
    must(cudaEventRecord(end), "event");
    must(cudaEventSynchronize(end), "decoding");
    must(cudaEventElapsedTime(&ms, begin, end), "time");
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return ms * 1e3f;
}

bool settle(const wharf_rans_stream_job &job, const device_memory &memory,
            wharf_outcome *ret_outcome)
{
    std::vector<wharf_rans_piece_outcome> outcomes(job.n_pieces);
    must(cudaMemcpy(outcomes.data(), memory.d_outcomes, job.n_pieces * sizeof(outcomes[0]),
                    cudaMemcpyDeviceToHost),
         "outcomes");
    return wharf_rans_stream_job_settle(&job, outcomes.data(), ret_outcome);
}

/* Decodes once; returns microseconds, or a negative number when the host found the stream bad. */
float decode(const given &g, uint32_t max_pieces, const device_memory &memory, bool is_queued,
             uint32_t *ret_n_pieces, wharf_outcome *ret_outcome)
{
    const wharf_rans_stream_request request = {g.stream.data(), g.stream.size(), 0, g.model(),
                                               g.data.size()};
    std::vector<wharf_rans_place> places(WHARF_RANS_MAX_SPLITS);
    wharf_rans_stream_job job;
    int rc = wharf_rans_stream_job_init(&request, max_pieces, places.data(), WHARF_RANS_MAX_SPLITS,
                                        &job, ret_outcome);
    if (rc < 0)
        return rc == -EILSEQ ? -1.0f : -2.0f;
    job.in = memory.d_in;
    job.model = memory.d_image;
    job.out = memory.d_out;
    job.places = memory.d_places;
    job.outcomes = memory.d_outcomes;
    must(cudaMemcpy(memory.d_places, places.data(), job.layout.n_splits * sizeof(places[0]),
                    cudaMemcpyHostToDevice),
         "places");
    float us = time_decode(job, is_queued);
    if (!settle(job, memory, ret_outcome)) {
        if (wharf_cuda_verify_rans(&job, nullptr) < 0)
            die("launch", "failed");
        if (!settle(job, memory, ret_outcome))
            die("outcomes", "are not settled");
    }
    *ret_n_pieces = job.n_pieces;
    return us;
}

/* By the CPU; whether its engines agree. */
bool decode_by_cpu(const given &g, std::vector<uint8_t> &out, wharf_outcome *ret_outcome)
{
    return !test_rans_decode_either(g.stream.data(), g.stream.size(), 0, g.model(), out.data(),
                                    out.size(), ret_outcome);
}

/* How many outcomes of damaged streams are not the CPU's.  Kept to what the CPU does quickly. */
unsigned count_wrong_damaged(given g, uint32_t max_pieces, const device_memory &memory)
{
    std::vector<uint8_t> out(g.data.size()), &stream = g.stream;
    test_random random = {1};
    unsigned n_wrong = 0;
    uint32_t n_pieces;
    unsigned n = out.size() > (64 << 20) ? 0 : out.size() > (4 << 20) ? 3 : N_DAMAGED;
    for (unsigned i = 0; i < n; i++) {
        uint64_t bit = test_random_below(&random, 8 * stream.size());
        wharf_outcome got = {}, want = {};
        stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        must(cudaMemcpy(memory.d_in, stream.data(), stream.size(), cudaMemcpyHostToDevice), "in");
        n_wrong += !decode_by_cpu(g, out, &want);
        if (decode(g, max_pieces, memory, false, &n_pieces, &got) > -2)
            n_wrong += !test_outcome_same(&got, &want);
        stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    return n_wrong;
}

} // namespace

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc < 6 || argc > 7)
        return test_usage(help);
    uint32_t max_pieces = (uint32_t)atoi(argv[5]), n_pieces = 0;
    unsigned n_runs = argc > 6 ? (unsigned)atoi(argv[6]) : 10;
    const given g = strcmp(argv[1], "symbols") ? make_bytes(argv + 1) : make_symbols(argv + 2);
    const std::vector<uint8_t> &data = g.data, &stream = g.stream;
    std::vector<uint8_t> out(data.size());
    device_memory memory = {};
    wharf_outcome outcome;
    cudaDeviceProp properties;

    must(cudaGetDeviceProperties(&properties, 0), "GPU");
    if (max_pieces == 0 &&
        wharf_cuda_rans_max_pieces(data.size(), g.image.empty(), &max_pieces) < 0)
        die("kernel", "does not fit");
    must(cudaMalloc(&memory.d_in, stream.size()), "memory");
    must(cudaMalloc(&memory.d_out, data.size()), "memory");
    must(cudaMalloc(&memory.d_places, WHARF_RANS_MAX_SPLITS * sizeof(*memory.d_places)), "memory");
    must(cudaMalloc(&memory.d_outcomes, max_pieces * sizeof(*memory.d_outcomes)), "memory");
    must(cudaMemcpy(memory.d_in, stream.data(), stream.size(), cudaMemcpyHostToDevice), "in");
    must(cudaMemset(memory.d_out, 0, data.size()), "out");
    if (g.model()) {
        size_t nbytes = g.image.size() * sizeof(g.image[0]);
        must(cudaMalloc(&memory.d_image, nbytes), "memory");
        must(cudaMemcpy(memory.d_image, g.model(), nbytes, cudaMemcpyHostToDevice), "model");
    }
    std::vector<float> us, queued;
    for (unsigned i = 0; i < WARM_UP_RUNS + 2 * n_runs; i++) {
        bool is_queued = i % 2 != 0;
        float t = decode(g, max_pieces, memory, is_queued, &n_pieces, &outcome);
        if (t < 0)
            die("stream", "is not one for this decoder");
        if (i >= WARM_UP_RUNS)
            (is_queued ? queued : us).push_back(t);
    }
    std::sort(us.begin(), us.end());
    std::sort(queued.begin(), queued.end());
    must(cudaMemcpy(out.data(), memory.d_out, out.size(), cudaMemcpyDeviceToHost), "out");
    unsigned wrong = outcome.result != WHARF_OK || out != data;
    unsigned wrong_damaged = count_wrong_damaged(g, max_pieces, memory);
    float median = us[us.size() / 2];
    printf("{\"peer\":\"wharf\",\"mode\":\"stream\",\"codec\":\"rans\",\"data\":\"%s\",\"n\":%u,"
           "\"bytes\":%zu,\"ratio\":%.3f,\"splits\":%u,\"pieces\":%u,\"us_median\":%.1f,"
           "\"us_min\":%.1f,\"us_max\":%.1f,\"us_kernel_median\":%.1f,\"GBps_median\":%.2f,"
           "\"GBps_max\":%.2f,\"runs\":%u,"
           "\"wrong\":%u,\"wrong_damaged\":%u,\"device\":\"%s\"}\n",
           g.name.c_str(), g.n_bits, data.size(), (double)data.size() / (double)stream.size(),
           g.splits, n_pieces, median, us[0], us.back(), queued[queued.size() / 2],
           (double)data.size() / median / 1e3, (double)data.size() / us[0] / 1e3, n_runs, wrong,
           wrong_damaged, properties.name);
    return wrong + wrong_damaged > 0;
}
