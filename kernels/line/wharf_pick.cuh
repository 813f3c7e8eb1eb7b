/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_pick.cuh: whether a kernel should read an array compressed (wharf_line.cuh) or raw.
 *
 * A kernel gains from a compressed array if it waits for memory and the array shrinks enough; if
 * it is busy computing, it loses.  Which one it is depends on kernel, data and device, so the rule
 * is to try:
 *
 *   1. Both ways run on a sample of the array: all of it, or as much as four times the device's
 *      second-level cache.  Less would come from that cache and tell nothing of memory.
 *   2. Each way runs once to warm up, and then both in turns, three times.
 *   3. The array is read compressed if its shortest time is below 97 % of the raw array's.
 *
 *   host     wharf::line_profile profile;
 *            cudaError_t error = wharf::profile_line_array(
 *                &profile, array, stream,
 *                [&](uint64_t n_groups) { raw_kernel<<<..., stream>>>(d_raw, 4096 * n_groups); },
 *                [&](uint64_t n_groups) { kernel<<<..., stream>>>(array, n_groups); });
 *            if (error == cudaSuccess && wharf::line_pays(profile)) ...
 *
 * It takes as long as eight passes over the sample, once for each kernel and kind of data: some
 * 0.6 ms on an H100.
 */
#ifndef WHARF_KERNELS_LINE_WHARF_PICK_CUH
#define WHARF_KERNELS_LINE_WHARF_PICK_CUH

#include "kernels/line/wharf_line.cuh"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

namespace wharf
{

/* The shortest time of each way on the same sample. */
struct line_profile {
    uint64_t n_groups; /* of the sample, of 4096 bytes without compression */
    float raw_ms;
    float compressed_ms;
};

/* How many groups of an array to try, on a device with so large a second-level cache. */
static inline uint64_t count_line_sample(const line_array &array, uint64_t cache_nbytes)
{
    uint64_t n_groups = (array.raw_nbytes + WHARF_LINE_GROUP_NBYTES - 1) / WHARF_LINE_GROUP_NBYTES;
    uint64_t n_tried = 4 * cache_nbytes / WHARF_LINE_GROUP_NBYTES + 1;
    return n_groups < n_tried ? n_groups : n_tried;
}

/* Adds a turn's times to a profile, whose times are 0 before the first one. */
static inline void add_line_turn(line_profile *profile, float raw_ms, float compressed_ms)
{
    bool is_first = profile->raw_ms == 0 && profile->compressed_ms == 0;
    if (is_first || raw_ms < profile->raw_ms)
        profile->raw_ms = raw_ms;
    if (is_first || compressed_ms < profile->compressed_ms)
        profile->compressed_ms = compressed_ms;
}

/* Whether to read the array compressed. */
static inline bool line_pays(const line_profile &profile)
{
    return profile.compressed_ms < 0.97f * profile.raw_ms;
}

#ifdef __CUDACC__

/* Of launches in a stream, the milliseconds on the device. */
template <typename Launch>
static inline cudaError_t time_line_launch(const cudaEvent_t *events, cudaStream_t stream,
                                           const Launch &launch, uint64_t n_groups, float *ret_ms)
{
    cudaError_t error = cudaEventRecord(events[0], stream);
    if (error == cudaSuccess) {
        launch(n_groups);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess)
        error = cudaEventRecord(events[1], stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(events[1]);
    return error == cudaSuccess ? cudaEventElapsedTime(ret_ms, events[0], events[1]) : error;
}

/*
 * Tries both ways.  raw(n_groups) and compressed(n_groups) start a kernel in `stream` that reads
 * the first n_groups groups of the array; what the kernels write, they write eight times.  A
 * program without the raw array can give any memory of that size.
 *
 * Waits for the stream.  Returns an error of CUDA's calls or of the launches; *ret_profile is
 * written on success only.
 */
template <typename Raw, typename Compressed>
static inline cudaError_t profile_line_array(line_profile *ret_profile, const line_array &array,
                                             cudaStream_t stream, const Raw &raw,
                                             const Compressed &compressed)
{
    cudaEvent_t events[2] = {nullptr, nullptr};
    int device = 0, cache_nbytes = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&cache_nbytes, cudaDevAttrL2CacheSize, device);
    for (unsigned i = 0; i < 2 && error == cudaSuccess; i++)
        error = cudaEventCreate(&events[i]);
    line_profile profile = {count_line_sample(array, (uint64_t)cache_nbytes), 0, 0};
    for (unsigned turn = 0; turn < 4 && error == cudaSuccess; turn++) {
        float raw_ms = 0, compressed_ms = 0;
        error = time_line_launch(events, stream, raw, profile.n_groups, &raw_ms);
        if (error == cudaSuccess)
            error = time_line_launch(events, stream, compressed, profile.n_groups, &compressed_ms);
        if (error == cudaSuccess && turn > 0)
            add_line_turn(&profile, raw_ms, compressed_ms);
    }
    for (cudaEvent_t event : events)
        if (event != nullptr)
            (void)cudaEventDestroy(event);
    if (error == cudaSuccess)
        *ret_profile = profile;
    return error;
}

#endif

} // namespace wharf

#endif
