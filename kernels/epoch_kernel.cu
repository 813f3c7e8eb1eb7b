/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_kernel.cu: epoch kernels on a GPU. */

/* The input that decoders see is a copy that the kernel itself has made. */
#define WHARF_INPUT_IS_COPIED

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "kernels/cuda_device.h"
#include "kernels/cuda_error.h"
#include "kernels/cuda_partition.h"
#include "kernels/epoch.h"
#include "kernels/epoch_block_kernel.h"
#include "kernels/epoch_import.h"
#include "kernels/epoch_stream_place.h"
#include "kernels/epoch_warp.cuh"
#include "kernels/work_queue_ops.h"
#include "proto/relax.h"

using namespace wharf;

namespace
{

using shape = kernel_shape<any_codec>;

/* Pinned in pieces: one call for much memory stops other calls of the driver for as long.  They end
 * at multiples of this, so that an address tells where its piece does: no copy may cross that. */
constexpr uintptr_t PIECE_NBYTES = 256u << 20;

__global__ void __launch_bounds__(shape::THREADS, shape::BLOCKS_PER_SM)
    epoch_kernel(const __grid_constant__ epoch_params params)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    unsigned in_block = uniform(threadIdx.x / 32);
    auto &s = *reinterpret_cast<any_codec::shared *>(s_memory + in_block * shape::SHARED_NBYTES);
    run_epoch_warp<any_codec, false>(s, params, blockIdx.x * shape::WARPS + in_block);
}

} // namespace

struct wharf_epoch {
    wharf_epoch_config config;
    wharf_epoch_info info;
    epoch_params params;
    wharf_work_queue queue; /* by the host's addresses */
    bool queue_mapped;
    wharf_block_kernel kernel;       /* a warp for each item */
    unsigned n_blocks;               /* at most */
    wharf_cuda_partition *partition; /* or NULL: all multiprocessors */
    wharf_block_kernel block_kernel;
    unsigned n_block_blocks; /* of that */
    unsigned part;           /* percent of both's blocks that the next kernel has */
    uint32_t n_few;          /* items that are for it */
    kernel_history history;
    uint64_t left_ns; /* when the last kernel was seen to have left */
    cudaStream_t stream, model_stream;
    uint64_t models[WHARF_EPOCH_MAX_MODELS]; /* as params.models, which is the device's */
};

static uint64_t host_ns()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

size_t wharf_cuda_host_piece(const void *at, size_t nbytes)
{
    size_t room = PIECE_NBYTES - reinterpret_cast<uintptr_t>(at) % PIECE_NBYTES;
    return nbytes < room ? nbytes : room;
}

static int cuda_unmap_host(wharf_epoch *epoch, void *at, size_t nbytes);

static int cuda_map_host(wharf_epoch *epoch, void *at, size_t nbytes, int read_only,
                         uint64_t *ret_address)
{
    unsigned flags = cudaHostRegisterMapped | cudaHostRegisterPortable;
    flags |= read_only ? cudaHostRegisterReadOnly : 0;
    WHARF_CUDA_TRY(cudaSetDevice(epoch->config.device));
    for (size_t done = 0, step; done < nbytes; done += step) {
        char *piece = static_cast<char *>(at) + done;
        void *d_piece;
        int rc = 0;
        step = wharf_cuda_host_piece(piece, nbytes - done);
        cudaError_t error = cudaHostRegister(piece, step, flags);
        if (error != cudaSuccess) {
            rc = wharf_cuda_fail(error, "cudaHostRegister");
            nbytes = done;
        } else if ((error = cudaHostGetDevicePointer(&d_piece, piece, 0)) != cudaSuccess ||
                   d_piece != piece) {
            /* Contiguous addresses need the host's own, which all 64-bit Linux drivers give. */
            rc = wharf_cuda_fail(error != cudaSuccess ? error : cudaErrorNotSupported,
                                 "looking for the host's address on the device");
            nbytes = done + 1;
        }
        if (rc) {
            (void)cuda_unmap_host(epoch, at, nbytes);
            return rc;
        }
    }
    *ret_address = reinterpret_cast<uintptr_t>(at);
    return 0;
}

static int cuda_unmap_host(wharf_epoch *epoch, void *at, size_t nbytes)
{
    /* wait_for_batch may have left some warps on their way out. */
    if (epoch->config.per_batch && epoch->stream)
        WHARF_CUDA_TRY(cudaStreamSynchronize(epoch->stream));
    for (size_t done = 0; done < nbytes;) {
        char *piece = static_cast<char *>(at) + done;
        WHARF_CUDA_TRY(cudaHostUnregister(piece));
        done += wharf_cuda_host_piece(piece, nbytes - done);
    }
    return 0;
}

/* ---- making it ready ------------------------------------------------------------------------- */

/* A part of the multiprocessors if the configuration wants less than all; where that cannot be had,
 * fewer blocks, which then are on any of them.  Returns how many blocks there may be. */
static unsigned take_share(wharf_epoch *epoch, unsigned n_per_sm, unsigned n_sms)
{
    unsigned percent = epoch->config.share, n_own = 0;
    wharf_epoch_info *info = &epoch->info;
    if (percent == 0 || percent == 100 || epoch->config.beside)
        return n_per_sm * n_sms;
    if (wharf_cuda_partition_new(epoch->config.device, percent, &epoch->partition, &n_own) == 0) {
        snprintf(info->share_text, sizeof(info->share_text),
                 "a green context of %u of %u multiprocessors", n_own, n_sms);
        return n_per_sm * n_own;
    }
    snprintf(info->share_text, sizeof(info->share_text),
             "fewer warps, on all multiprocessors, for there is no green context: %.40s",
             wharf_cuda_error_text());
    unsigned n_blocks = n_per_sm * n_sms * percent / 100;
    return n_blocks ? n_blocks : 1;
}

static unsigned warps_of_block(const wharf_epoch *epoch)
{
    return epoch->kernel.n_threads / 32;
}

/* Asks the GPU how many blocks it holds, and takes as many as the configuration wants. */
static int fit_kernel(wharf_epoch *epoch)
{
    if (epoch->config.encodes)
        epoch->kernel = wharf_epoch_encode_kernel();
    else if (epoch->config.memo_nbytes > 0)
        epoch->kernel = wharf_epoch_memo_kernel();
    else
        epoch->kernel = {reinterpret_cast<const void *>(epoch_kernel), shape::THREADS,
                         shape::WARPS * shape::SHARED_NBYTES};
    const void *function = epoch->kernel.function;
    wharf_epoch_info *info = &epoch->info;
    cudaDeviceProp properties;
    cudaFuncAttributes attributes;
    size_t shared = epoch->kernel.shared_nbytes;
    int n = 0;

    WHARF_CUDA_TRY(cudaGetDeviceProperties(&properties, epoch->config.device));
    WHARF_CUDA_TRY(
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    WHARF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &n, function, (int)epoch->kernel.n_threads, shared));
    WHARF_CUDA_TRY(cudaFuncGetAttributes(&attributes, function));
    if (n < 1)
        return wharf_cuda_fail(cudaErrorInvalidConfiguration, "fitting a kernel into this GPU");
    unsigned most = take_share(epoch, (unsigned)n, (unsigned)properties.multiProcessorCount);
    unsigned left = epoch->config.leaves_room, in_block = warps_of_block(epoch);
    most = most > left ? most - left : 1;
    unsigned wanted = (epoch->config.n_warps + in_block - 1) / in_block;
    epoch->n_blocks = wanted && wanted < most ? wanted : most;
    snprintf(info->device_name, sizeof(info->device_name), "%.63s", properties.name);
    info->n_warps = epoch->n_blocks * in_block;
    info->n_warps_per_sm = (unsigned)n * in_block;
    info->n_registers = (unsigned)attributes.numRegs;
    info->n_local_nbytes = (unsigned)attributes.localSizeBytes;
    info->n_shared_nbytes = (unsigned)(shared / in_block);
    if (epoch->config.per_batch_if_watched) {
        int is_watched = 0;
        WHARF_CUDA_TRY(cudaDeviceGetAttribute(&is_watched, cudaDevAttrKernelExecTimeout,
                                              epoch->config.device));
        epoch->config.per_batch |= is_watched;
    }
    info->per_batch = epoch->config.per_batch != 0;
    return 0;
}

/* The kernel for few items, if it fits: as large a part of the GPU as the other one is. */
static int fit_block_kernel(wharf_epoch *epoch)
{
    wharf_block_kernel *kernel = &epoch->block_kernel;
    int n = 0, most = 0;

    *kernel = wharf_epoch_block_kernel();
    if (!kernel->function || epoch->config.few == 0 || epoch->config.encodes)
        return 0;
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                          epoch->config.device));
    if (kernel->shared_nbytes > (size_t)most)
        return 0;
    WHARF_CUDA_TRY(cudaFuncSetAttribute(
        kernel->function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)kernel->shared_nbytes));
    WHARF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &n, kernel->function, (int)kernel->n_threads, kernel->shared_nbytes));
    /* Of as many multiprocessors as the other kernel fills. */
    unsigned all = (unsigned)n * (epoch->info.n_warps / epoch->info.n_warps_per_sm);
    if (all < 2)
        return 0;
    epoch->n_block_blocks = epoch->info.n_blocks = all;
    return 0;
}

template <typename T>
static int take_memory(wharf_epoch *epoch, T **ret, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMalloc(ret, nbytes));
    epoch->info.device_nbytes += nbytes;
    return 0;
}

static int make_models(wharf_epoch *epoch)
{
    epoch_params &p = epoch->params;
    if (epoch->config.beside) {
        p.models = epoch->config.beside->params.models;
        return 0;
    }
    if (int rc = take_memory(epoch, &p.models, sizeof(epoch->models)))
        return rc;
    WHARF_CUDA_TRY(cudaMemset(p.models, 0, sizeof(epoch->models)));
    return 0;
}

/* The memory for chunks that are kept, if the device has it. */
static int make_memo(wharf_epoch *epoch)
{
    const wharf_epoch_config &config = epoch->config;
    uint8_t *memory;
    if (config.memo_nbytes == 0 || take_memory(epoch, &memory, config.memo_nbytes))
        return 0;
    epoch->params.memo =
        memo_area_of(memory, config.memo_nbytes, config.memo_parts, config.memo_key);
    epoch->info.memo_nbytes = config.memo_nbytes;
    WHARF_CUDA_TRY(cudaMemset(memory, 0, config.memo_nbytes));
    return 0;
}

static int make_memory(wharf_epoch *epoch)
{
    epoch_params &p = epoch->params;
    size_t n_entries = epoch->config.n_entries;
    int rc;

    p.scratch_nbytes =
        epoch->config.encodes ? 0 : epoch_scratch_nbytes<any_codec>(epoch->config.chunk_nbytes);
    if ((rc = take_memory(epoch, &p.control, sizeof(*p.control))) ||
        (rc = take_memory(epoch, &p.slots, n_entries * sizeof(*p.slots))) ||
        (rc = take_memory(epoch, &p.tasks, n_entries * MAX_SLICES * sizeof(*p.tasks))) ||
        (p.scratch_nbytes && (rc = take_memory(epoch, &p.scratch, p.n_warps * p.scratch_nbytes))) ||
        (rc = make_models(epoch)) || (rc = make_memo(epoch)))
        return rc;
    WHARF_CUDA_TRY(cudaMemset(p.control, 0, sizeof(*p.control)));
    WHARF_CUDA_TRY(cudaMemset(p.slots, 0, n_entries * sizeof(*p.slots)));
    WHARF_CUDA_TRY(cudaMemset(p.tasks, 0, n_entries * MAX_SLICES * sizeof(*p.tasks)));
    return 0;
}

int wharf_cuda_epoch_device(const wharf_epoch *epoch)
{
    return epoch->config.device;
}

int wharf_cuda_epoch_stream(const wharf_epoch *epoch, CUstream_st **ret_stream)
{
    wharf_cuda_partition *partition =
        epoch->config.beside ? epoch->config.beside->partition : epoch->partition;
    if (partition)
        return wharf_cuda_partition_stream(partition, ret_stream);
    WHARF_CUDA_TRY(cudaStreamCreateWithFlags(ret_stream, cudaStreamNonBlocking));
    return 0;
}

/* Streams and events are made before the first kernel, for which they might wait later. */
static int make_streams(wharf_epoch *epoch)
{
    if (int rc = wharf_cuda_epoch_stream(epoch, &epoch->stream))
        return rc;
    WHARF_CUDA_TRY(cudaStreamCreateWithFlags(&epoch->model_stream, cudaStreamNonBlocking));
    WHARF_CUDA_TRY(cudaDeviceSynchronize());
    return 0;
}

static size_t queue_nbytes(const wharf_epoch *epoch)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return round_up(wharf_work_queue_nbytes(epoch->config.n_entries), page);
}

static int init(wharf_epoch *epoch)
{
    uint64_t d_queue;
    int rc;

    if ((rc = wharf_cuda_check_device(epoch->config.device)))
        return rc;
    WHARF_CUDA_TRY(cudaSetDevice(epoch->config.device));
    /* A thread that waits for a kernel sleeps. */
    WHARF_CUDA_TRY(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    if ((rc = fit_kernel(epoch)) || (rc = fit_block_kernel(epoch)) ||
        (rc = cuda_map_host(epoch, epoch->config.queue, queue_nbytes(epoch), 0, &d_queue)))
        return rc;
    epoch->queue_mapped = true;
    epoch->params =
        epoch_params_of(epoch->config, reinterpret_cast<void *>(d_queue), epoch->info.n_warps);
    if ((rc = make_memory(epoch)))
        return rc;
    /* The first one polls. */
    if (epoch->n_block_blocks)
        epoch->n_few = epoch->config.few * (epoch->n_block_blocks - 1);
    return make_streams(epoch);
}

/* Looks at a kernel's state before its stream is asked about it, at some 100 ns each: launch and
 * look of a small batch fit into the first ones, and then others may have the processor. */
constexpr unsigned LOOKS_AT_STATE = 64;
constexpr unsigned BUSY_ROUNDS = 20;
constexpr unsigned ROUND_SLEEP_US = 10;

/* A kernel of a batch that says OUT has done all, and its warps leave: the next one comes behind it
 * in the stream.  To be woken by the end of each would cost some 40 us. */
static int wait_for_batch(wharf_epoch *epoch)
{
    for (unsigned n = 0;; n++) {
        for (unsigned i = 0; i < LOOKS_AT_STATE; i++) {
            uint32_t state = __atomic_load_n(&epoch->queue.kernel->state, __ATOMIC_ACQUIRE);
            if (WHARF_WORK_STATE_OF(state) == WHARF_WORK_OUT ||
                WHARF_WORK_STATE_OF(state) == WHARF_WORK_OUT_MORE)
                return 0;
            wharf_relax();
        }
        cudaError_t error = cudaStreamQuery(epoch->stream);
        if (error != cudaErrorNotReady) {
            WHARF_CUDA_TRY(error);
            return 0;
        }
        if (n > BUSY_ROUNDS)
            usleep(ROUND_SLEEP_US);
    }
}

static int cuda_wait(wharf_epoch *epoch)
{
    if (epoch->config.per_batch) {
        if (int rc = wait_for_batch(epoch))
            return rc;
    } else {
        WHARF_CUDA_TRY(cudaStreamSynchronize(epoch->stream));
    }
    epoch->left_ns = host_ns();
    return 0;
}

static void cuda_close(wharf_epoch *epoch)
{
    if (!epoch)
        return;
    wharf_work_quit(&epoch->queue);
    /* Failures here are of a context that has failed before, or half made. */
    (void)cudaSetDevice(epoch->config.device);
    if (epoch->stream)
        (void)cudaStreamSynchronize(epoch->stream);
    if (epoch->model_stream)
        (void)cudaStreamDestroy(epoch->model_stream);
    if (epoch->stream)
        (void)cudaStreamDestroy(epoch->stream);
    epoch->stream = nullptr;
    wharf_cuda_partition_free(epoch->partition);
    (void)cudaFree(epoch->params.control);
    (void)cudaFree(epoch->params.slots);
    (void)cudaFree(epoch->params.tasks);
    for (uint64_t model : epoch->models)
        (void)cudaFree(reinterpret_cast<void *>(model));
    if (!epoch->config.beside)
        (void)cudaFree(epoch->params.models);
    (void)cudaFree(epoch->params.scratch);
    (void)cudaFree(epoch->params.memo.memory);
    if (epoch->queue_mapped)
        (void)cuda_unmap_host(epoch, epoch->config.queue, queue_nbytes(epoch));
    delete epoch;
}

static int cuda_open(const wharf_epoch_config *config, wharf_epoch **ret_epoch)
{
    if (!wharf_epoch_config_good(config))
        return wharf_cuda_fail(cudaErrorInvalidValue, "the configuration of the epochs");
    wharf_epoch *epoch = new (std::nothrow) wharf_epoch();
    if (!epoch)
        return -ENOMEM;
    epoch->config = *config;
    epoch->part = 100;
    epoch->queue = wharf_work_queue_at(config->queue, config->n_entries);
    if (int rc = init(epoch)) {
        cuda_close(epoch);
        return rc;
    }
    *ret_epoch = epoch;
    return 0;
}

static void cuda_info(const wharf_epoch *epoch, wharf_epoch_info *ret_info)
{
    *ret_info = epoch->info;
}

static int cuda_alloc(wharf_epoch *epoch, size_t nbytes, uint64_t *ret_address)
{
    void *d_memory;
    WHARF_CUDA_TRY(cudaSetDevice(epoch->config.device));
    WHARF_CUDA_TRY(cudaMalloc(&d_memory, nbytes));
    *ret_address = reinterpret_cast<uintptr_t>(d_memory);
    return 0;
}

static int cuda_free(wharf_epoch *, uint64_t address)
{
    WHARF_CUDA_TRY(cudaFree(reinterpret_cast<void *>(address)));
    return 0;
}

static int cuda_import(wharf_epoch *epoch, int fd, size_t nbytes, uint64_t *ret_address)
{
    WHARF_CUDA_TRY(cudaSetDevice(epoch->config.device));
    return wharf_cuda_import(epoch->config.device, fd, nbytes, ret_address);
}

static int cuda_unimport(wharf_epoch *epoch, uint64_t address, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaSetDevice(epoch->config.device));
    if (epoch->config.per_batch)
        WHARF_CUDA_TRY(cudaStreamSynchronize(epoch->stream));
    return wharf_cuda_unimport(address, nbytes);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Beside a kernel: what is here is there when it returns. */
static int copy_in(wharf_epoch *epoch, void *to, const void *from, size_t nbytes)
{
    WHARF_CUDA_TRY(cudaMemcpyAsync(to, from, nbytes, cudaMemcpyHostToDevice, epoch->model_stream));
    WHARF_CUDA_TRY(cudaStreamSynchronize(epoch->model_stream));
    return 0;
}

static int set_model(wharf_epoch *epoch, uint32_t place, uint64_t address)
{
    epoch->models[place] = address;
    return copy_in(epoch, &epoch->params.models[place], &address, sizeof(address));
}

static int cuda_add_model(wharf_epoch *epoch, const void *image, size_t nbytes,
                          uint32_t *ret_parameter)
{
    uint32_t place = 0;
    uint64_t address = 0;
    while (place < WHARF_EPOCH_MAX_MODELS && epoch->models[place])
        place++;
    if (place == WHARF_EPOCH_MAX_MODELS)
        return -ENOSPC;
    if (int rc = cuda_alloc(epoch, nbytes, &address))
        return rc;
    int rc = copy_in(epoch, reinterpret_cast<void *>(address), image, nbytes);
    if (rc == 0)
        rc = set_model(epoch, place, address);
    if (rc == 0)
        *ret_parameter = WHARF_FIRST_MODEL + place;
    return rc;
}

static int cuda_remove_model(wharf_epoch *epoch, uint32_t parameter)
{
    uint32_t place = parameter - WHARF_FIRST_MODEL;
    uint64_t address = epoch->models[place];
    if (int rc = set_model(epoch, place, 0))
        return rc;
    return cuda_free(epoch, address);
}

/* ---- running --------------------------------------------------------------------------------- */

/* A kernel for one batch need not be larger than that: the polling warp, and one for each slice. */
static unsigned n_blocks_now(const wharf_epoch *epoch)
{
    if (!epoch->config.per_batch)
        return epoch->n_blocks;
    size_t n_warps = 1 + (size_t)wharf_work_pending(&epoch->queue) * MAX_SLICES;
    size_t in_block = warps_of_block(epoch), n_blocks = (n_warps + in_block - 1) / in_block;
    return n_blocks < epoch->n_blocks ? (unsigned)n_blocks : epoch->n_blocks;
}

/* At least two: the first block's first warp polls, and where blocks decode, all of it does. */
static unsigned part_of(const wharf_epoch *epoch, unsigned n_blocks)
{
    unsigned n = n_blocks * epoch->part / 100;
    return n >= 2 || n_blocks < 2 ? n : 2;
}

static int cuda_start(wharf_epoch *epoch)
{
    uint32_t number = wharf_work_begin_epoch(&epoch->queue);
    if (number == 0)
        return 0;
    WHARF_CUDA_TRY(cudaSetDevice(epoch->config.device));
    unsigned n_blocks = part_of(epoch, n_blocks_now(epoch));
    epoch->params.epoch = number;
    epoch->params.n_warps = n_blocks * warps_of_block(epoch);
    choose_kernel(epoch->params, epoch->queue, epoch->n_few, host_ns() - epoch->left_ns,
                  epoch->history);
    void *arguments[] = {&epoch->params};
    if (epoch->params.by_blocks) {
        const wharf_block_kernel &kernel = epoch->block_kernel;
        n_blocks = part_of(epoch, epoch->n_block_blocks);
        epoch->params.n_warps = n_blocks;
        WHARF_CUDA_TRY(cudaLaunchKernel(kernel.function, n_blocks, kernel.n_threads, arguments,
                                        kernel.shared_nbytes, epoch->stream));
        return 0;
    }
    WHARF_CUDA_TRY(cudaLaunchKernel(epoch->kernel.function, n_blocks, epoch->kernel.n_threads,
                                    arguments, epoch->kernel.shared_nbytes, epoch->stream));
    return 0;
}

static void cuda_set_stay(wharf_epoch *epoch, uint32_t stay_us)
{
    epoch->params.stay_ns = stay_us * 1000;
}

static void cuda_set_part(wharf_epoch *epoch, uint32_t percent)
{
    epoch->part = percent;
}

const struct wharf_epoch_ops wharf_cuda_epoch = {
    "cuda",
    wharf_cuda_find_device,
    wharf_cuda_count_devices,
    cuda_open,
    cuda_close,
    wharf_cuda_error_text,
    cuda_info,
    cuda_map_host,
    cuda_unmap_host,
    cuda_alloc,
    cuda_free,
    cuda_import,
    cuda_unimport,
    cuda_add_model,
    cuda_remove_model,
    cuda_start,
    cuda_wait,
    cuda_set_stay,
    cuda_set_part,
};
