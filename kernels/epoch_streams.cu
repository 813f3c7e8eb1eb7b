/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_streams.cu: kernels/epoch_streams.h on a GPU.
 *
 * A large output for the host's memory goes there in pieces, each while the next is delivered.  How
 * much output the links of a piece have is known when they are chained; so the host waits for that,
 * and for nothing else before the end.
 */
#include "kernels/epoch_streams.h"

#include <errno.h>
#include <unistd.h>

#include <new>

#include "kernels/cuda_error.h"
#include "kernels/epoch_stream_place.h"
#include "kernels/inflate_parts.h"

namespace
{

/* Pieces of an output are at least so large, and have so many links for each block that delivers.
 */
constexpr uint64_t PIECE_NBYTES = 32 << 20;
constexpr uint32_t MOST_PIECES = 16;
constexpr uint32_t LINKS_A_BLOCK = 4;
/* Slices of a source: to measure one takes the GPU about as long as to copy it, and needs enough
 * parts for all its warps. */
constexpr uint32_t SLICE_NBYTES = 96 << 20;
constexpr uint32_t MOST_SLICES = 2;
constexpr useconds_t POLL_US = 20;
/* With fewer warps the whole GPU is no faster than a block of them. */
constexpr uint32_t LEAST_WARPS = 64;

/* What the device tells, in pinned memory. */
struct told {
    wharf_outcome outcome;
    wharf_inflate_control control;
    uint64_t borders[MOST_PIECES + 1];
    uint64_t stop;
};

struct on_device {
    wharf_outcome outcome;
    uint64_t stop;
};

} // namespace

struct wharf_streams {
    int device;
    cudaStream_t stream, copies, stops;
    cudaEvent_t event;
    wharf_inflate_shape shape;
    void *scratch;
    size_t scratch_nbytes;
    told *h;
    on_device *d;
    uint64_t number; /* of the stream; when d->stop has it, the decode ends */
    bool is_stopping;
};

static void cuda_close(wharf_streams *streams)
{
    if (!streams)
        return;
    /* Failures here are of a context that has failed before, or half made. */
    (void)cudaSetDevice(streams->device);
    for (cudaStream_t stream : {streams->stream, streams->copies, streams->stops})
        if (stream)
            (void)cudaStreamDestroy(stream);
    if (streams->event)
        (void)cudaEventDestroy(streams->event);
    (void)cudaFree(streams->scratch);
    (void)cudaFree(streams->d);
    (void)cudaFreeHost(streams->h);
    delete streams;
}

static int init(wharf_streams *streams, wharf_epoch *beside)
{
    streams->device = wharf_cuda_epoch_device(beside);
    WHARF_CUDA_TRY(cudaSetDevice(streams->device));
    if (int rc = wharf_cuda_load_inflate(&streams->shape))
        return rc;
    if (int rc = wharf_cuda_epoch_stream(beside, &streams->stream))
        return rc;
    WHARF_CUDA_TRY(cudaStreamCreateWithFlags(&streams->copies, cudaStreamNonBlocking));
    WHARF_CUDA_TRY(cudaStreamCreateWithFlags(&streams->stops, cudaStreamNonBlocking));
    WHARF_CUDA_TRY(cudaEventCreateWithFlags(&streams->event, cudaEventDisableTiming));
    WHARF_CUDA_TRY(cudaMallocHost(&streams->h, sizeof(*streams->h)));
    WHARF_CUDA_TRY(cudaMalloc(&streams->d, sizeof(*streams->d)));
    WHARF_CUDA_TRY(cudaMemset(streams->d, 0, sizeof(*streams->d)));
    WHARF_CUDA_TRY(cudaDeviceSynchronize());
    return 0;
}

static int cuda_open(wharf_epoch *beside, wharf_streams **ret_streams, uint32_t *ret_least_nbytes)
{
    wharf_streams *streams = new (std::nothrow) wharf_streams();
    if (!streams)
        return -ENOMEM;
    if (int rc = init(streams, beside)) {
        cuda_close(streams);
        return rc;
    }
    *ret_streams = streams;
    *ret_least_nbytes = WHARF_STREAM_LEAST_SRC_NBYTES;
    return 0;
}

/* Once: to free memory would wait for the epoch kernels. */
static int take_scratch(wharf_streams *streams, uint64_t most_nbytes)
{
    while (!streams->scratch) {
        wharf_inflate_job largest = {};
        largest.in_nbytes = most_nbytes;
        streams->scratch_nbytes = wharf_inflate_plan(&largest, &streams->shape);
        cudaError_t error = cudaMalloc(&streams->scratch, streams->scratch_nbytes);
        if (error == cudaSuccess)
            break;
        streams->scratch = nullptr;
        if (error != cudaErrorMemoryAllocation || streams->shape.n_warps < 2 * LEAST_WARPS)
            return wharf_cuda_fail(error, "scratch for large streams");
        (void)cudaGetLastError();
        streams->shape.n_warps /= 2;
    }
    return 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static int stop(wharf_streams *streams)
{
    streams->is_stopping = true;
    streams->h->stop = streams->number;
    WHARF_CUDA_TRY(cudaMemcpyAsync(&streams->d->stop, &streams->h->stop, sizeof(uint64_t),
                                   cudaMemcpyHostToDevice, streams->stops));
    return 0;
}

/* Waits for all that is in a stream. */
static int await(wharf_streams *streams, const wharf_stream_task *task, cudaStream_t stream)
{
    WHARF_CUDA_TRY(cudaEventRecord(streams->event, stream));
    for (;;) {
        cudaError_t error = cudaEventQuery(streams->event);
        if (error != cudaErrorNotReady) {
            WHARF_CUDA_TRY(error);
            return 0;
        }
        if (!streams->is_stopping && task->is_stopped(task->context))
            if (int rc = stop(streams))
                return rc;
        usleep(POLL_US);
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A copy to or from memory of the host, `host`, which is registered in pieces. */
static int copy(void *to, const void *from, uint64_t nbytes, const void *host, cudaStream_t stream)
{
    for (uint64_t done = 0, step; done < nbytes; done += step) {
        step = wharf_cuda_host_piece(static_cast<const char *>(host) + done, nbytes - done);
        WHARF_CUDA_TRY(cudaMemcpyAsync(static_cast<char *>(to) + done,
                                       static_cast<const char *>(from) + done, step,
                                       cudaMemcpyDefault, stream));
    }
    return 0;
}

static int copy_out(const wharf_stream_task *task, uint64_t begin, uint64_t end,
                    cudaStream_t stream)
{
    char *to = reinterpret_cast<char *>(task->dst) + begin;
    return copy(to, wharf_stream_output(task) + begin, end - begin, to, stream);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Copies the source, and finds and measures its parts: of a large one of the host in slices, each
 * while the next is copied. */
static int take_source(wharf_streams *streams, const wharf_stream_task *task, wharf_inflate_job job)
{
    const char *src = reinterpret_cast<const char *>(task->src);
    uint32_t n_slices = task->src_nbytes / SLICE_NBYTES + 1, n_measured = 0;
    n_slices = n_slices < MOST_SLICES ? n_slices : MOST_SLICES;
    job.end_part = 0;
    for (uint32_t i = 0; i < n_slices; i++) {
        uint64_t begin = (uint64_t)task->src_nbytes * i / n_slices;
        uint64_t end = (uint64_t)task->src_nbytes * (i + 1) / n_slices;
        if (int rc = copy(wharf_stream_copy(task) + begin, src + begin, end - begin, src + begin,
                          streams->copies))
            return rc;
        WHARF_CUDA_TRY(cudaEventRecord(streams->event, streams->copies));
        WHARF_CUDA_TRY(cudaStreamWaitEvent(streams->stream, streams->event, 0));
        job.first_part = job.end_part;
        job.end_part = job.n_found = wharf_inflate_parts_within(&job, end);
        if (int rc = wharf_cuda_start_inflate_find(&job, streams->stream))
            return rc;
        wharf_inflate_job measured = job;
        measured.first_part = n_measured;
        measured.end_part = n_measured = wharf_inflate_parts_behind(&job, job.n_found);
        if (int rc = wharf_cuda_start_inflate_measure(&measured, streams->stream))
            return rc;
    }
    return 0;
}

/* Reads where the links begin that are so many equal pieces' first ones. */
static int read_borders(wharf_streams *streams, const wharf_inflate_job &job, uint32_t n_pieces)
{
    told *h = streams->h;
    for (uint32_t i = 1; i < n_pieces; i++) {
        uint32_t link = (uint32_t)((uint64_t)h->control.n_links * i / n_pieces);
        WHARF_CUDA_TRY(cudaMemcpyAsync(&h->borders[i], &job.links[link].out_begin, sizeof(uint64_t),
                                       cudaMemcpyDeviceToHost, streams->copies));
    }
    WHARF_CUDA_TRY(cudaStreamSynchronize(streams->copies));
    h->borders[0] = 0;
    h->borders[n_pieces] = h->control.rest_out;
    return 0;
}

/* How many pieces the output is delivered in. */
static uint32_t count_pieces(const wharf_streams *streams)
{
    const wharf_inflate_control &control = streams->h->control;
    uint64_t by_nbytes = control.rest_out / PIECE_NBYTES + 1;
    uint32_t by_links = control.n_links / (LINKS_A_BLOCK * streams->shape.n_blocks);
    uint32_t n = by_nbytes < MOST_PIECES ? (uint32_t)by_nbytes : MOST_PIECES;
    n = n < by_links ? n : by_links;
    return n > 1 ? n : 1;
}

/* Delivers the links in pieces, and copies each to the host while the next is under way: by blocks,
 * which end in order, and are no slower than the link. */
static int deliver_pieces(wharf_streams *streams, const wharf_stream_task *task,
                          wharf_inflate_job job)
{
    const told *h = streams->h;
    WHARF_CUDA_TRY(cudaMemcpyAsync(&streams->h->control, job.control, sizeof(*job.control),
                                   cudaMemcpyDeviceToHost, streams->stream));
    if (int rc = await(streams, task, streams->stream))
        return rc;
    uint32_t n_links = h->control.n_links, n_pieces = count_pieces(streams);
    if (n_pieces > 1)
        job.n_blocks = streams->shape.n_blocks;
    if (int rc = read_borders(streams, job, n_pieces))
        return rc;
    for (uint32_t i = 0; i < n_pieces; i++) {
        job.first_link = (uint32_t)((uint64_t)n_links * i / n_pieces);
        job.end_link = (uint32_t)((uint64_t)n_links * (i + 1) / n_pieces);
        if (int rc = wharf_cuda_start_inflate_deliver(&job, streams->stream))
            return rc;
        WHARF_CUDA_TRY(cudaEventRecord(streams->event, streams->stream));
        WHARF_CUDA_TRY(cudaStreamWaitEvent(streams->copies, streams->event, 0));
        if (int rc = copy_out(task, h->borders[i], h->borders[i + 1], streams->copies))
            return rc;
    }
    return 0;
}

/* After the rest: what the host has not yet, and the outcome. */
static int finish(wharf_streams *streams, const wharf_stream_task *task,
                  const wharf_inflate_job &job, bool in_pieces)
{
    told *h = streams->h;
    WHARF_CUDA_TRY(cudaMemcpyAsync(&h->outcome, job.outcome, sizeof(h->outcome),
                                   cudaMemcpyDeviceToHost, streams->stream));
    WHARF_CUDA_TRY(cudaMemcpyAsync(&h->control, job.control, sizeof(h->control),
                                   cudaMemcpyDeviceToHost, streams->stream));
    if (int rc = await(streams, task, streams->stream))
        return rc;
    if (task->output == WHARF_WORK_TO_HOST && h->outcome.result == WHARF_OK) {
        uint64_t begin = in_pieces && !h->control.has_failed ? h->control.rest_out : 0;
        if (int rc = copy_out(task, begin, h->outcome.out_nbytes, streams->copies))
            return rc;
    }
    return await(streams, task, streams->copies);
}

static int cuda_decode(wharf_streams *streams, const wharf_stream_task *task, uint64_t most_nbytes,
                       wharf_outcome *ret_outcome, uint32_t *ret_crc)
{
    wharf_inflate_job job = {};
    WHARF_CUDA_TRY(cudaSetDevice(streams->device));
    if (int rc = take_scratch(streams, most_nbytes))
        return rc;
    job.in = wharf_stream_copy(task);
    job.out = wharf_stream_output(task);
    job.in_nbytes = task->src_nbytes;
    job.out_avail = task->dst_nbytes;
    job.codec = task->codec;
    job.outcome = &streams->d->outcome;
    job.stop = &streams->d->stop;
    job.stop_value = ++streams->number;
    job.wants_crc = task->wants_crc;
    streams->is_stopping = false;
    if (wharf_inflate_plan(&job, &streams->shape) > streams->scratch_nbytes)
        return wharf_cuda_fail(cudaErrorInvalidValue, "a stream larger than announced");
    wharf_inflate_lend(&job, streams->scratch);
    bool in_pieces = task->output == WHARF_WORK_TO_HOST && task->dst_nbytes >= PIECE_NBYTES;
    int rc = take_source(streams, task, job);
    if (rc == 0)
        rc = wharf_cuda_start_inflate_chain(&job, streams->stream);
    if (rc == 0)
        rc = in_pieces ? deliver_pieces(streams, task, job)
                       : wharf_cuda_start_inflate_deliver(&job, streams->stream);
    if (rc == 0)
        rc = wharf_cuda_start_inflate_rest(&job, streams->stream);
    if (rc == 0)
        rc = finish(streams, task, job, in_pieces);
    *ret_outcome = streams->h->outcome;
    *ret_crc = streams->h->control.out_crc;
    /* The stream was touched, and may be written to yet. */
    return rc == -ENOMEM ? -EIO : rc;
}

const struct wharf_stream_ops wharf_cuda_streams = {cuda_open, cuda_close, cuda_decode};
