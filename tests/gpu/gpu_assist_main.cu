/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_assist_main.cu: the GPU's part of the study of assist warps (tests/bench/assist-study).
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/line/wharf_pick.cuh"
#include "tests/gpu/gpu_assist_data.h"
#include "tests/gpu/gpu_assist_kernels.cuh"
#include "tests/gpu/gpu_compressible.h"
#include "tests/gpu/gpu_energy.h"
extern "C" {
#include "tests/lib/test_file.h"
}
#include "tests/lib/test_help.h"

using namespace wharf;

static const char help[] =
    "usage: wharf_gpu_assist [OPTION]... CONSUMER:CODEC:FILE...\n"
    "\n"
    "Times consumers that read arrays raw and compressed.  An array is the first 4 MiB of FILE\n"
    "again and again, in lines of 128 bytes.  Consumers: sum, filter, histogram, sparse,\n"
    "matrix, and link, which brings the array from the host.  Prints a row of JSON for each:\n"
    "\n"
    "  raw       without compression\n"
    "  ideal     as many bytes as the compressed array has, and nothing to decode\n"
    "  hardware  raw, from memory that the device compresses itself\n"
    "  load      line by line\n"
    "  groups    group by group\n"
    "  assists   six or seven assist warps of a block for the others\n"
    "  picked    raw or groups, as the profiler of wharf_pick.cuh says\n"
    "\n"
    "Each result is compared with the CPU's; ends with 1 if one is wrong.\n"
    "\n"
    "  --mb N       size of an array without compression, in 10^6 bytes (256)\n"
    "  --runs N     timed runs (11)\n"
    "  --hog        another kernel reads memory meanwhile\n"
    "  --energy N   and what N milliseconds of each cost, by NVML\n"
    "  --only HOW   one way and no other, for profilers\n";

namespace
{

#define MUST(call)                                                                                 \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));        \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

struct settings {
    size_t nbytes = 256000000;
    unsigned n_runs = 11;
    bool has_hog = false;
    unsigned energy_ms = 0;
    std::string only;
};

/* Kernels of one consumer and codec. */
struct kernels {
    const char *consumer;
    const char *codec_name;
    enum assist_consumer number;
    uint32_t codec;
    const void *raw, *ideal, *load, *groups, *assists;
    size_t assists_nbytes; /* of shared memory */
    unsigned n_workers;
};

template <typename C, uint32_t CODEC>
kernels kernels_of(const char *name, const char *codec_name, enum assist_consumer number)
{
    return {name,
            codec_name,
            number,
            CODEC,
            reinterpret_cast<const void *>(study_raw_kernel<C, false>),
            reinterpret_cast<const void *>(study_raw_kernel<C, true>),
            reinterpret_cast<const void *>(study_load_kernel<C, CODEC>),
            reinterpret_cast<const void *>(study_groups_kernel<C, CODEC>),
            reinterpret_cast<const void *>(study_assists_kernel<C, CODEC>),
            sizeof(study_assists<CODEC, C::N_WORKERS>),
            C::N_WORKERS};
}

/* Not all pairs, since each takes a minute to compile. */
const kernels KERNELS[] = {
    kernels_of<study_sum, WHARF_CODEC_BDI>("sum", "bdi", ASSIST_SUM),
    kernels_of<study_sum, WHARF_CODEC_FPC>("sum", "fpc", ASSIST_SUM),
    kernels_of<study_sum, WHARF_CODEC_CPACK>("sum", "cpack", ASSIST_SUM),
    kernels_of<study_sum, WHARF_CODEC_BEST>("sum", "best", ASSIST_SUM),
    kernels_of<study_sum, WHARF_CODEC_PALETTE>("sum", "palette", ASSIST_SUM),
    kernels_of<study_filter, WHARF_CODEC_BDI>("filter", "bdi", ASSIST_FILTER),
    kernels_of<study_filter, WHARF_CODEC_FPC>("filter", "fpc", ASSIST_FILTER),
    kernels_of<study_histogram, WHARF_CODEC_BDI>("histogram", "bdi", ASSIST_HISTOGRAM),
    kernels_of<study_histogram, WHARF_CODEC_CPACK>("histogram", "cpack", ASSIST_HISTOGRAM),
    kernels_of<study_sparse, WHARF_CODEC_BDI>("sparse", "bdi", ASSIST_SPARSE),
    kernels_of<study_matrix, WHARF_CODEC_PALETTE>("matrix", "palette", ASSIST_MATRIX),
    kernels_of<study_unpack, WHARF_CODEC_BDI>("link", "bdi", ASSIST_SUM),
    kernels_of<study_unpack, WHARF_CODEC_FPC>("link", "fpc", ASSIST_SUM),
    kernels_of<study_unpack, WHARF_CODEC_CPACK>("link", "cpack", ASSIST_SUM),
    kernels_of<study_unpack, WHARF_CODEC_BEST>("link", "best", ASSIST_SUM),
    kernels_of<study_unpack, WHARF_CODEC_PALETTE>("link", "palette", ASSIST_SUM),
};

cudaDeviceProp device;
bool has_energy;
int n_wrong;

/* ---- the hog -------------------------------------------------------------------------------- */

/* A kernel that reads memory all the time, by one warp and 64 KiB of shared memory on each
 * multiprocessor. */
struct hog {
    static constexpr uint64_t LIMIT_NS = 3000000000;
    static constexpr size_t NBYTES = 512 << 20;
    cudaStream_t stream, stopping;
    u32x4 *quads;
    study_hog_words *d_words;
    double gbps = 0; /* when it ran last */

    hog()
    {
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        MUST(cudaStreamCreateWithFlags(&stopping, cudaStreamNonBlocking));
        MUST(cudaMalloc(&quads, NBYTES));
        study_hog_fill_kernel<<<8 * (unsigned)device.multiProcessorCount, STUDY_THREADS>>>(
            quads, (uint32_t)(NBYTES / 16));
        MUST(cudaGetLastError());
        MUST(cudaMalloc(&d_words, sizeof(*d_words)));
        MUST(cudaFuncSetAttribute(study_hog_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)sizeof(study_hog_shared)));
        /* A multiprocessor that had to give shared memory more of its cache for a consumer would
         * first wait for the hog's end. */
        MUST(cudaFuncSetAttribute(study_hog_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared));
    }
    study_hog_words words()
    {
        study_hog_words now;
        MUST(cudaMemcpyAsync(&now, d_words, sizeof(now), cudaMemcpyDeviceToHost, stopping));
        MUST(cudaStreamSynchronize(stopping));
        return now;
    }
    void start()
    {
        unsigned n_blocks = (unsigned)device.multiProcessorCount;
        MUST(cudaMemset(d_words, 0, sizeof(*d_words)));
        MUST(cudaDeviceSynchronize());
        study_hog_kernel<<<n_blocks, WARP_LANES, sizeof(study_hog_shared), stream>>>(
            quads, (uint32_t)(NBYTES / (16 * STUDY_HOG_NQUADS)), d_words, LIMIT_NS);
        MUST(cudaGetLastError());
        while (words().n_begun < n_blocks)
            ;
    }
    void end()
    {
        static const uint32_t one = 1;
        MUST(cudaMemcpyAsync(&d_words->stop, &one, sizeof(one), cudaMemcpyHostToDevice, stopping));
        MUST(cudaStreamSynchronize(stopping));
        MUST(cudaStreamSynchronize(stream));
        study_hog_words last = words();
        if (last.ns >= LIMIT_NS) {
            fprintf(stderr, "wharf_gpu_assist: a consumer did not run beside the hog\n");
            exit(1);
        }
        gbps = (double)last.n_read / (double)last.ns;
    }
};

/* ---- one case ------------------------------------------------------------------------------- */

struct times {
    float median = 0, least = 0, most = 0;
};

/* A consumer of an array, with all that it needs on the device. */
struct bench {
    const settings &given;
    const kernels &all;
    std::string data;
    struct assist_array array;
    cudaStream_t stream;
    uint8_t *d_raw, *d_stream;
    uint64_t *d_error;
    study_memory memory = {};
    study_input input = {};
    struct gpu_compressible hardware = {};
    hog *beside;
    float raw_ms = 0;

    size_t raw_nbytes() const { return assist_raw_nbytes(&array); }
    double ratio() const { return (double)raw_nbytes() / (double)array.stream_nbytes; }
    uint32_t n_groups() const { return (uint32_t)(raw_nbytes() / WHARF_LINE_GROUP_NBYTES); }

    bench(const settings &its_given, const kernels &its_all, const char *path, hog *its_hog)
        : given(its_given), all(its_all), data(path), beside(its_hog)
    {
        data = data.substr(data.rfind('/') + 1);
        read(path);
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        MUST(cudaMalloc(&d_raw, raw_nbytes()));
        MUST(cudaMalloc(&d_stream, array.stream_nbytes));
        MUST(cudaMalloc(&d_error, 8));
        MUST(cudaMemset(d_error, 0xff, 8));
        MUST(cudaMalloc(&memory.totals, ASSIST_N_TOTALS * sizeof(uint64_t)));
        for (size_t i = 0; i < array.n_units; i++)
            MUST(cudaMemcpy(d_raw + i * array.unit_nbytes, array.unit, array.unit_nbytes,
                            cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(d_stream, array.stream, array.stream_nbytes, cudaMemcpyHostToDevice));
        make_matrix();
        input.raw = reinterpret_cast<const u32x4 *>(d_raw);
        input.share = (uint32_t)std::min(65536.0, 65536.0 / ratio());
        input.n_groups = n_groups();
        input.array = open(d_stream);
    }
    ~bench()
    {
        gpu_compressible_deinit(&hardware);
        for (void *p : {(void *)d_raw, (void *)d_stream, (void *)d_error, (void *)memory.totals,
                        (void *)memory.rows, (void *)memory.vector})
            MUST(cudaFree(p));
        MUST(cudaStreamDestroy(stream));
        assist_array_deinit(&array);
    }
    bench(const bench &) = delete;

    void read(const char *path)
    {
        struct wharf_line_choice choice = {all.codec, 128, WHARF_LINE_PACKED, 0};
        size_t nbytes;
        uint8_t *bytes = test_file_read(path, &nbytes);
        if (bytes == nullptr ||
            assist_array_init(&array, &choice, bytes, nbytes, given.nbytes) < 0) {
            fprintf(stderr, "wharf_gpu_assist: %s: cannot be read, or is too small\n", path);
            exit(3);
        }
        free(bytes);
    }
    line_array open(const uint8_t *at)
    {
        line_array opened;
        if (open_line_array(&opened, array.stream, at, array.stream_nbytes, d_error) != 0)
            exit(3);
        return opened;
    }
    void make_matrix()
    {
        memory.n_rows = assist_n_rows(all.number, &array);
        memory.n_vector = assist_n_vector(all.number, &array);
        if (memory.n_rows == 0)
            return;
        std::vector<float> vector(memory.n_vector);
        float *d_vector;
        for (uint32_t i = 0; i < memory.n_vector; i++)
            vector[i] = assist_vector(all.number, i);
        MUST(cudaMalloc(&memory.rows, memory.n_rows * sizeof(float)));
        MUST(cudaMalloc(&d_vector, vector.size() * sizeof(float)));
        MUST(cudaMemcpy(d_vector, vector.data(), vector.size() * sizeof(float),
                        cudaMemcpyHostToDevice));
        memory.vector = d_vector;
    }

    /* ---- launches ---- */

    unsigned blocks_of(const void *kernel, size_t shared)
    {
        int n = 0;
        if (shared > 48 * 1024)
            MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)shared));
        MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, STUDY_THREADS, shared));
        /* Room for the hog's block, or some of ours would come last and alone. */
        n = std::max(1, n - (beside != nullptr));
        return (unsigned)n * (unsigned)device.multiProcessorCount;
    }
    void launch(const void *kernel, const study_input &its_input, size_t shared = 0)
    {
        void *arguments[] = {const_cast<study_input *>(&its_input), &memory};
        /* As the hog has it: a multiprocessor changes its carve-out only when it is empty. */
        if (beside)
            MUST(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                      cudaSharedmemCarveoutMaxShared));
        MUST(cudaLaunchKernel(kernel, dim3(blocks_of(kernel, shared)), dim3(STUDY_THREADS),
                              arguments, shared, stream));
    }

    /* ---- measuring ---- */

    bool is_right()
    {
        std::vector<uint64_t> totals(ASSIST_N_TOTALS);
        std::vector<float> rows(memory.n_rows);
        uint64_t error;
        MUST(cudaMemcpy(totals.data(), memory.totals, totals.size() * sizeof(uint64_t),
                        cudaMemcpyDeviceToHost));
        if (memory.n_rows > 0)
            MUST(cudaMemcpy(rows.data(), memory.rows, rows.size() * sizeof(float),
                            cudaMemcpyDeviceToHost));
        MUST(cudaMemcpy(&error, d_error, sizeof(error), cudaMemcpyDeviceToHost));
        return error == UINT64_MAX &&
               assist_is_right(all.number, &array, totals.data(), rows.data());
    }
    void clear()
    {
        MUST(cudaMemset(memory.totals, 0, ASSIST_N_TOTALS * sizeof(uint64_t)));
        if (memory.n_rows > 0)
            MUST(cudaMemset(memory.rows, 0, memory.n_rows * sizeof(float)));
        MUST(cudaDeviceSynchronize());
    }
    times measure(const std::function<void()> &run)
    {
        cudaEvent_t begin, end;
        std::vector<float> all_ms;
        MUST(cudaEventCreate(&begin));
        MUST(cudaEventCreate(&end));
        for (unsigned i = 0; i < given.n_runs + 2; i++) {
            float ms;
            MUST(cudaEventRecord(begin, stream));
            run();
            MUST(cudaEventRecord(end, stream));
            MUST(cudaEventSynchronize(end));
            MUST(cudaEventElapsedTime(&ms, begin, end));
            if (i >= 2)
                all_ms.push_back(ms);
        }
        std::sort(all_ms.begin(), all_ms.end());
        MUST(cudaEventDestroy(begin));
        MUST(cudaEventDestroy(end));
        return {all_ms[all_ms.size() / 2], all_ms.front(), all_ms.back()};
    }
    /* `moved`: bytes of memory that one run reads, as far as they are known. */
    void print(const char *how, const times &t, double moved, bool right, const char *more = "")
    {
        n_wrong += !right;
        printf("{\"what\": \"assist study\", \"consumer\": \"%s\", \"how\": \"%s\", \"codec\": "
               "\"%s\", \"data\": \"%s\", \"hog\": %s, \"ratio\": %.3f, \"raw_nbytes\": %zu, "
               "\"moved_nbytes\": %.0f, \"runs\": %u, \"ms_median\": %.4f, \"ms_min\": %.4f, "
               "\"ms_max\": %.4f, \"GBps_raw\": %.0f, \"gain\": %.3f, %s\"right\": %s, "
               "\"device\": \"%s\"}\n",
               all.consumer, how, all.codec_name, data.c_str(), beside ? "true" : "false", ratio(),
               raw_nbytes(), moved, given.n_runs, t.median, t.least, t.most,
               (double)raw_nbytes() / t.median / 1e6, raw_ms / t.median, more,
               right ? "true" : "false", device.name);
        fflush(stdout);
    }
    void take(const char *how, double moved, const std::function<void()> &run,
              const std::string &facts = "")
    {
        if (!given.only.empty() && given.only != how)
            return;
        if (beside) {
            /* CUDA loads a kernel at its first launch, and may wait for the device to do so. */
            run();
            MUST(cudaStreamSynchronize(stream));
            beside->start();
        }
        times t = measure(run);
        std::string more = facts;
        if (beside) {
            beside->end();
            more += "\"hog_GBps\": " + std::to_string((int)beside->gbps) + ", ";
        }
        if (strcmp(how, "raw") == 0)
            raw_ms = t.median;
        clear();
        run();
        MUST(cudaStreamSynchronize(stream));
        print(how, t, moved, strcmp(how, "ideal") == 0 || is_right(), more.c_str());
        if (has_energy)
            take_energy(how, run);
    }
    void take_energy(const char *how, const std::function<void()> &run)
    {
        cudaEvent_t begin, end;
        uint64_t before = 0, after = 0;
        float ms = 0;
        unsigned n = 0;
        MUST(cudaEventCreate(&begin));
        MUST(cudaEventCreate(&end));
        MUST(cudaEventRecord(begin, stream));
        if (!gpu_energy_read(&before))
            return;
        for (; ms < (float)given.energy_ms; n += 64) {
            for (unsigned i = 0; i < 64; i++)
                run();
            MUST(cudaEventRecord(end, stream));
            MUST(cudaEventSynchronize(end));
            MUST(cudaEventElapsedTime(&ms, begin, end));
        }
        gpu_energy_read(&after);
        double joules = (double)(after - before) / 1e3, gb = (double)raw_nbytes() * n / 1e9;
        printf("{\"what\": \"assist energy\", \"consumer\": \"%s\", \"how\": \"%s\", \"codec\": "
               "\"%s\", \"data\": \"%s\", \"ratio\": %.3f, \"repetitions\": %u, \"seconds\": %.3f, "
               "\"joules\": %.2f, \"watts\": %.1f, \"joules_per_GB\": %.4f, \"device\": \"%s\"}\n",
               all.consumer, how, all.codec_name, data.c_str(), ratio(), n, ms / 1e3, joules,
               joules / (ms / 1e3), joules / gb, device.name);
        fflush(stdout);
        MUST(cudaEventDestroy(begin));
        MUST(cudaEventDestroy(end));
    }

    void take_hardware()
    {
        if (gpu_compressible_init(&hardware, raw_nbytes()) < 0) {
            fprintf(stderr, "wharf_gpu_assist: no memory that the device compresses\n");
            return;
        }
        /* What is to be compressed has to be written by a kernel: the consumer that writes. */
        study_memory to = {nullptr, reinterpret_cast<float *>(hardware.data), nullptr, 0, 0};
        study_raw_kernel<study_unpack, false>
            <<<8 * (unsigned)device.multiProcessorCount, STUDY_THREADS, 0, stream>>>(input, to);
        MUST(cudaGetLastError());
        MUST(cudaStreamSynchronize(stream)); /* before anybody may unmap it */
        study_input from = input;
        from.raw = static_cast<const u32x4 *>(hardware.data);
        take("hardware", 0, [&] { launch(all.raw, from); });
    }
    void take_picked()
    {
        line_profile profile;
        auto sample = [&](const void *kernel) {
            return [this, kernel](uint64_t n) {
                study_input part = input;
                part.n_groups = (uint32_t)n;
                launch(kernel, part);
            };
        };
        MUST(
            profile_line_array(&profile, input.array, stream, sample(all.raw), sample(all.groups)));
        bool pays = line_pays(profile);
        double moved = pays ? (double)array.stream_nbytes : (double)raw_nbytes();
        times t = measure([&] { launch(pays ? all.groups : all.raw, input); });
        char more[160];
        snprintf(more, sizeof(more),
                 "\"picked\": \"%s\", \"sample_nbytes\": %.0f, \"profile_raw_ms\": %.4f, "
                 "\"profile_groups_ms\": %.4f, ",
                 pays ? "groups" : "raw", (double)profile.n_groups * WHARF_LINE_GROUP_NBYTES,
                 profile.raw_ms, profile.compressed_ms);
        print("picked", t, moved, true, more);
    }
    void take_all()
    {
        char workers[32];
        snprintf(workers, sizeof(workers), "\"workers\": %u, ", all.n_workers);
        double raw = (double)raw_nbytes(), packed = (double)array.stream_nbytes;
        take("raw", raw, [&] { launch(all.raw, input); });
        take("ideal", raw * input.share / 65536, [&] { launch(all.ideal, input); });
        if (!beside)
            take_hardware();
        take("load", packed, [&] { launch(all.load, input); });
        take("groups", packed, [&] { launch(all.groups, input); });
        take(
            "assists", packed, [&] { launch(all.assists, input, all.assists_nbytes); }, workers);
        if (!beside && given.only.empty())
            take_picked();
    }
};

/* ---- the link ------------------------------------------------------------------------------- */

/* An array from the host's memory to the device's, where it is not compressed. */
struct link_bench : bench {
    static constexpr unsigned N_PARTS = 16;
    uint8_t *h_raw, *h_stream;
    cudaStream_t copying;
    cudaEvent_t came[N_PARTS], may_begin;

    link_bench(const settings &its_given, const kernels &its_all, const char *path)
        : bench(its_given, its_all, path, nullptr)
    {
        MUST(cudaHostAlloc(&h_raw, raw_nbytes(), cudaHostAllocMapped));
        MUST(cudaHostAlloc(&h_stream, array.stream_nbytes, cudaHostAllocMapped));
        assist_array_write_raw(&array, h_raw);
        memcpy(h_stream, array.stream, array.stream_nbytes);
        memory.rows = reinterpret_cast<float *>(d_raw); /* where study_unpack writes */
        MUST(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&may_begin, cudaEventDisableTiming));
        for (cudaEvent_t &event : came)
            MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    ~link_bench()
    {
        memory.rows = nullptr;
        MUST(cudaFreeHost(h_raw));
        MUST(cudaFreeHost(h_stream));
        MUST(cudaStreamDestroy(copying));
        MUST(cudaEventDestroy(may_begin));
        for (cudaEvent_t event : came)
            MUST(cudaEventDestroy(event));
    }

    /* Where the content of a group begins; of the group behind the last one, the stream's end. */
    size_t content_of(uint32_t group)
    {
        uint32_t offset;
        if (group >= n_groups())
            return array.stream_nbytes;
        memcpy(&offset,
               array.stream + WHARF_LINE_HEADER_NBYTES + group * input.array.shape.record_nbytes,
               sizeof(offset));
        return input.array.data_at + (size_t)offset * WHARF_LINE_UNIT_NBYTES;
    }
    /* The copy engine brings the next part while a kernel decodes the one before. */
    void bring_by_parts()
    {
        size_t from = 0;
        MUST(cudaEventRecord(may_begin, stream)); /* what is decoded before is not overwritten */
        MUST(cudaStreamWaitEvent(copying, may_begin));
        for (unsigned p = 0; p < N_PARTS; p++) {
            study_input part = input;
            uint32_t end = (uint32_t)((uint64_t)n_groups() * (p + 1) / N_PARTS);
            part.first = (uint32_t)((uint64_t)n_groups() * p / N_PARTS);
            part.n_groups = end - part.first;
            size_t to = content_of(end);
            MUST(cudaMemcpyAsync(d_stream + from, h_stream + from, to - from,
                                 cudaMemcpyHostToDevice, copying));
            MUST(cudaEventRecord(came[p], copying));
            MUST(cudaStreamWaitEvent(stream, came[p]));
            launch(all.groups, part);
            from = to;
        }
    }
    bool came_right()
    {
        study_memory sum = {memory.totals, nullptr, nullptr, 0, 0};
        study_input whole = input;
        whole.raw = reinterpret_cast<const u32x4 *>(d_raw);
        clear();
        study_raw_kernel<study_sum, false>
            <<<8 * (unsigned)device.multiProcessorCount, STUDY_THREADS, 0, stream>>>(whole, sum);
        MUST(cudaGetLastError());
        MUST(cudaStreamSynchronize(stream));
        return is_right();
    }
    void bring(const char *how, double moved, const std::function<void()> &run)
    {
        times t = measure(run);
        if (strcmp(how, "raw by copy engine") == 0)
            raw_ms = t.median;
        MUST(cudaMemset(d_raw, 0xa5, raw_nbytes()));
        run();
        MUST(cudaStreamSynchronize(stream));
        print(how, t, moved, came_right());
    }
    void take_all()
    {
        double raw = (double)raw_nbytes(), packed = (double)array.stream_nbytes;
        bring("raw by copy engine", raw, [&] {
            MUST(cudaMemcpyAsync(d_raw, h_raw, raw_nbytes(), cudaMemcpyHostToDevice, stream));
        });
        bring("compressed by copy engine", packed, [&] { bring_by_parts(); });
        input.raw = reinterpret_cast<const u32x4 *>(h_raw);
        input.array = open(h_stream);
        bring("raw by kernel", raw, [&] { launch(all.raw, input); });
        bring("compressed by kernel", packed, [&] { launch(all.groups, input); });
    }
};

/* ---- the command ---------------------------------------------------------------------------- */

const kernels *find(const std::string &consumer, const std::string &codec)
{
    for (const kernels &one : KERNELS)
        if (consumer == one.consumer && codec == one.codec_name)
            return &one;
    return nullptr;
}

/* CONSUMER:CODEC:FILE.  False if there is no such pair. */
bool run_case(const settings &given, const std::string &text)
{
    size_t first = text.find(':'), second = text.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
        return false;
    const kernels *found = find(text.substr(0, first), text.substr(first + 1, second - first - 1));
    if (found == nullptr)
        return false;
    const char *path = text.c_str() + second + 1;
    if (strcmp(found->consumer, "link") == 0) {
        link_bench(given, *found, path).take_all();
    } else if (given.has_hog) {
        static hog beside;
        bench(given, *found, path, &beside).take_all();
    } else {
        bench(given, *found, path, nullptr).take_all();
    }
    return true;
}

/* The option at argv[i] with its value; how many words it took, 0 for no option. */
int read_option(settings *given, int argc, char **argv, int i)
{
    if (strcmp(argv[i], "--hog") == 0) {
        given->has_hog = true;
        return 1;
    }
    if (i + 1 >= argc)
        return 0;
    if (strcmp(argv[i], "--only") == 0) {
        given->only = argv[i + 1];
        return 2;
    }
    unsigned n = (unsigned)strtoul(argv[i + 1], nullptr, 10);
    if (strcmp(argv[i], "--mb") == 0 && n > 0 && n <= 4096)
        given->nbytes = n * (size_t)1000000;
    else if (strcmp(argv[i], "--runs") == 0 && n > 0 && n <= 1000)
        given->n_runs = n;
    else if (strcmp(argv[i], "--energy") == 0 && n > 0 && n <= 10000)
        given->energy_ms = n;
    else
        return 0;
    return 2;
}

} // namespace

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    settings given;
    char address[32];
    int i = 1, n;
    while (i < argc && (n = read_option(&given, argc, argv, i)) > 0)
        i += n;
    if (i == argc || argv[i][0] == '-')
        return test_usage(help);
    MUST(cudaGetDeviceProperties(&device, 0));
    MUST(cudaDeviceGetPCIBusId(address, sizeof(address), 0));
    if (given.energy_ms > 0 && !(has_energy = gpu_energy_open(address)))
        fprintf(stderr, "wharf_gpu_assist: the card does not tell its energy\n");
    for (; i < argc; i++)
        if (!run_case(given, argv[i])) {
            fprintf(stderr, "wharf_gpu_assist: %s: there is no such consumer of the codec\n",
                    argv[i]);
            return 2;
        }
    return n_wrong > 0;
}
