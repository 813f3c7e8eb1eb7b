/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_epoch.cc: epoch kernels on the SIMT layer: each warp on a thread of its own.  The threads
 * are made once and wait for epochs, since a thread's first warp costs a millisecond for its
 * stacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

#include "kernels/epoch.h"
#include "kernels/epoch_block.cuh"
#include "kernels/epoch_encode.cuh"
#include "kernels/work_queue_ops.h"

using namespace wharf;

namespace
{

/* One that polls, and two that work at the same time. */
constexpr uint32_t DEFAULT_WARPS = 3;
constexpr uint32_t MAX_WARPS = 64;

thread_local char error_text[128];

int fail(int error, const char *what)
{
    snprintf(error_text, sizeof(error_text), "%s: %s", what, strerror(-error));
    return error;
}

struct warp_thread {
    struct wharf_epoch *epoch;
    uint32_t number;
    pthread_t thread;
};

} // namespace

struct wharf_epoch {
    wharf_epoch_config config;
    epoch_params params;
    uint64_t device_nbytes;
    uint32_t n_few; /* items that are for the kernel of blocks; 0: there is none */
    kernel_history history;
    warp_thread warps[MAX_WARPS];
    uint32_t n_threads; /* that run */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by the lock. */
    uint32_t n_started; /* epochs */
    uint32_t n_inside;  /* warps of the epoch started last that have not left */
    bool closing;

    uint64_t left_ns; /* when all warps were last seen to have left */
};

namespace
{

void run_warp_once(const warp_thread &warp, uint32_t n_started)
{
    const wharf_epoch &epoch = *warp.epoch;
    simt::options options = {simt::lane_order::random,
                             epoch.config.seed + n_started * MAX_WARPS + warp.number};
    if (epoch.config.encodes) {
        simt::run_warp<epoch_encode_shared>(options, [&](epoch_encode_shared &s) {
            run_encode_warp(s, epoch.params, warp.number);
        });
        return;
    }
    if (epoch.params.by_blocks) {
        simt::run_block<epoch_block_shared>(
            options, any_block_codec::WARPS, [&](epoch_block_shared &s, unsigned in_block) {
                run_epoch_block<any_codec>(s, epoch.params, warp.number, in_block);
            });
        return;
    }
    simt::run_warp<any_codec::shared>(options, [&](any_codec::shared &s) {
        if (epoch.config.memo_nbytes > 0)
            run_epoch_warp<any_codec, true>(s, epoch.params, warp.number);
        else
            run_epoch_warp<any_codec, false>(s, epoch.params, warp.number);
    });
}

void *warp_main(void *argument)
{
    const warp_thread &warp = *static_cast<warp_thread *>(argument);
    wharf_epoch &epoch = *warp.epoch;
    uint32_t n_run = 0;
    pthread_mutex_lock(&epoch.lock);
    for (;;) {
        while (n_run == epoch.n_started && !epoch.closing)
            pthread_cond_wait(&epoch.changed, &epoch.lock);
        if (n_run == epoch.n_started)
            break;
        n_run++;
        pthread_mutex_unlock(&epoch.lock);
        run_warp_once(warp, n_run);
        pthread_mutex_lock(&epoch.lock);
        if (--epoch.n_inside == 0)
            pthread_cond_broadcast(&epoch.changed);
    }
    pthread_mutex_unlock(&epoch.lock);
    return nullptr;
}

/* Zeroed where it matters, and of its exact size, so that the sanitizer sees what goes past it. */
template <typename T>
bool take_memory(wharf_epoch *epoch, T **ret, size_t nbytes)
{
    void *p;
    if (posix_memalign(&p, 256, nbytes))
        return false;
    memset(p, 0, nbytes);
    epoch->device_nbytes += nbytes;
    *ret = static_cast<T *>(p);
    return true;
}

bool take_models(wharf_epoch *epoch)
{
    epoch_params &p = epoch->params;
    if (!epoch->config.beside)
        return take_memory(epoch, &p.models, WHARF_EPOCH_MAX_MODELS * sizeof(*p.models));
    p.models = epoch->config.beside->params.models;
    return true;
}

int make_memory(wharf_epoch *epoch)
{
    epoch_params &p = epoch->params;
    const wharf_epoch_config &config = epoch->config;
    p.scratch_nbytes = config.encodes ? 0 : epoch_scratch_nbytes<any_codec>(config.chunk_nbytes);
    if (!take_memory(epoch, &p.control, sizeof(*p.control)) ||
        !take_memory(epoch, &p.slots, config.n_entries * sizeof(*p.slots)) ||
        !take_memory(epoch, &p.tasks, (size_t)config.n_entries * MAX_SLICES * sizeof(*p.tasks)) ||
        !take_models(epoch) || !take_memory(epoch, &p.scratch, p.n_warps * p.scratch_nbytes))
        return fail(-ENOMEM, "memory of the device");
    if (uint8_t * memo; config.memo_nbytes && take_memory(epoch, &memo, config.memo_nbytes))
        p.memo = memo_area_of(memo, config.memo_nbytes, config.memo_parts, config.memo_key);
    return 0;
}

int start_threads(wharf_epoch *epoch)
{
    for (uint32_t i = 0; i < epoch->params.n_warps; i++) {
        epoch->warps[i].epoch = epoch;
        epoch->warps[i].number = i;
        int rc = pthread_create(&epoch->warps[i].thread, nullptr, warp_main, &epoch->warps[i]);
        if (rc)
            return fail(-rc, "a warp's thread");
        epoch->n_threads++;
    }
    return 0;
}

int simt_wait(wharf_epoch *epoch)
{
    pthread_mutex_lock(&epoch->lock);
    while (epoch->n_inside)
        pthread_cond_wait(&epoch->changed, &epoch->lock);
    epoch->left_ns = simt::monotonic_ns();
    pthread_mutex_unlock(&epoch->lock);
    return 0;
}

void free_models(wharf_epoch *epoch)
{
    for (uint32_t i = 0; epoch->params.models && i < WHARF_EPOCH_MAX_MODELS; i++)
        free(reinterpret_cast<void *>(epoch->params.models[i]));
    free(epoch->params.models);
}

void simt_close(wharf_epoch *epoch)
{
    if (!epoch)
        return;
    wharf_work_quit(&epoch->params.queue);
    simt_wait(epoch);
    pthread_mutex_lock(&epoch->lock);
    epoch->closing = true;
    pthread_cond_broadcast(&epoch->changed);
    pthread_mutex_unlock(&epoch->lock);
    for (uint32_t i = 0; i < epoch->n_threads; i++)
        pthread_join(epoch->warps[i].thread, nullptr);
    pthread_cond_destroy(&epoch->changed);
    pthread_mutex_destroy(&epoch->lock);
    free(epoch->params.control);
    free(epoch->params.slots);
    free(epoch->params.tasks);
    if (!epoch->config.beside)
        free_models(epoch);
    free(epoch->params.scratch);
    free(epoch->params.memo.memory);
    delete epoch;
}

/* Several of them are for tests of who has several. */
constexpr long N_DEVICES = 16;

int simt_find_device(const char *name, int *ret_device)
{
    /* Each has two names, as GPUs have. */
    const char *digits = strncmp(name, "GPU-", 4) == 0 ? name + 4 : name;
    char *end;
    long number = strtol(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || number >= N_DEVICES) {
        snprintf(error_text, sizeof(error_text), "there is no device %s: they are 0 to %ld", name,
                 N_DEVICES - 1);
        return -ENODEV;
    }
    *ret_device = (int)number;
    return 0;
}

/* Of `all` as well. */
int simt_count_devices(int *ret_n_devices)
{
    const char *n = getenv("WHARF_SIMT_DEVICES");
    *ret_n_devices = n ? atoi(n) : 1;
    return 0;
}

/* As many as the share leaves; one polls, and one has to work. */
uint32_t n_warps_of(const wharf_epoch_config &config)
{
    uint32_t n_warps = config.n_warps ? config.n_warps : DEFAULT_WARPS;
    if (config.share)
        n_warps = n_warps * config.share / 100;
    return n_warps > 2 ? n_warps : 2;
}

int simt_open(const wharf_epoch_config *config, wharf_epoch **ret_epoch)
{
    uint32_t n_warps = n_warps_of(*config);
    if (!wharf_epoch_config_good(config) || n_warps > MAX_WARPS)
        return fail(-EINVAL, "the configuration of the epochs");
    wharf_epoch *epoch = new (std::nothrow) wharf_epoch();
    if (!epoch)
        return fail(-ENOMEM, "memory");
    epoch->config = *config;
    epoch->params = epoch_params_of(*config, config->queue, n_warps);
    epoch->n_few = config->encodes ? 0 : config->few * (n_warps - 1);
    pthread_mutex_init(&epoch->lock, nullptr);
    pthread_cond_init(&epoch->changed, nullptr);
    int rc = make_memory(epoch);
    if (rc == 0)
        rc = start_threads(epoch);
    if (rc < 0) {
        simt_close(epoch);
        return rc;
    }
    *ret_epoch = epoch;
    return 0;
}

const char *simt_error_text(void)
{
    return error_text;
}

void simt_info(const wharf_epoch *epoch, wharf_epoch_info *ret_info)
{
    *ret_info = {};
    snprintf(ret_info->device_name, sizeof(ret_info->device_name), "simt");
    ret_info->n_warps = epoch->params.n_warps;
    if (epoch->config.share && epoch->config.share < 100)
        snprintf(ret_info->share_text, sizeof(ret_info->share_text), "fewer warps");
    ret_info->n_shared_nbytes = sizeof(any_codec::shared);
    ret_info->device_nbytes = epoch->device_nbytes;
    ret_info->memo_nbytes = epoch->params.memo.n_parts ? epoch->config.memo_nbytes : 0;
    ret_info->n_blocks = epoch->n_few ? epoch->params.n_warps : 0;
    ret_info->per_batch = epoch->params.per_batch;
}

/* A driver waits for the pages of what it pins, which somebody may punch holes into: for tests so
 * does this, for ever, for memory of so many bytes. */
bool never_ends(size_t nbytes)
{
    const char *stalls = getenv("WHARF_SIMT_STALLS");
    return stalls && nbytes == strtoull(stalls, nullptr, 10);
}

int simt_map_host(wharf_epoch *, void *at, size_t nbytes, int, uint64_t *ret_address)
{
    while (never_ends(nbytes))
        pause();
    *ret_address = reinterpret_cast<uintptr_t>(at);
    return 0;
}

int simt_unmap_host(wharf_epoch *, void *, size_t)
{
    return 0;
}

int simt_alloc(wharf_epoch *epoch, size_t nbytes, uint64_t *ret_address)
{
    void *p;
    /* With any contents: much of it may never be touched. */
    if (posix_memalign(&p, 256, nbytes ? nbytes : 1))
        return fail(-ENOMEM, "memory of the device");
    epoch->device_nbytes += nbytes;
    *ret_address = reinterpret_cast<uintptr_t>(p);
    return 0;
}

int simt_free(wharf_epoch *, uint64_t address)
{
    free(reinterpret_cast<void *>(address));
    return 0;
}

/* Whose a memfd is: as its name says. */
int device_of(int fd)
{
    char path[64], name[64] = "";
    int device = 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof(name) - 1) < 0 || sscanf(name, "/memfd:gpu:%d ", &device) != 1)
        return 0;
    return device;
}

/* A memfd in the GPU memory's place.  One that could shrink would make its reader die of SIGBUS. */
int simt_import(wharf_epoch *epoch, int fd, size_t nbytes, uint64_t *ret_address)
{
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return fail(-EINVAL, "looking for a memfd that cannot shrink");
    if (fstat(fd, &status) < 0)
        return fail(-errno, "fstat");
    if (device_of(fd) != epoch->config.device)
        return fail(-EXDEV, "looking for memory of this device");
    if (nbytes == 0 || nbytes % (size_t)sysconf(_SC_PAGESIZE) || nbytes > (size_t)status.st_size)
        return fail(-EINVAL, "looking for so many bytes");
    void *p = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return fail(errno == ENOMEM ? -ENOMEM : -EINVAL, "mapping a descriptor");
    *ret_address = reinterpret_cast<uintptr_t>(p);
    return 0;
}

int simt_unimport(wharf_epoch *, uint64_t address, size_t nbytes)
{
    return munmap(reinterpret_cast<void *>(address), nbytes) ? fail(-errno, "munmap") : 0;
}

int simt_add_model(wharf_epoch *epoch, const void *image, size_t nbytes, uint32_t *ret_parameter)
{
    uint64_t *models = epoch->params.models;
    uint32_t place = 0;
    uint8_t *copy;
    while (place < WHARF_EPOCH_MAX_MODELS && models[place])
        place++;
    if (place == WHARF_EPOCH_MAX_MODELS)
        return fail(-ENOSPC, "a place for one more model");
    if (!take_memory(epoch, &copy, nbytes))
        return fail(-ENOMEM, "memory of the device");
    memcpy(copy, image, nbytes);
    __atomic_store_n(&models[place], reinterpret_cast<uintptr_t>(copy), __ATOMIC_RELEASE);
    *ret_parameter = WHARF_FIRST_MODEL + place;
    return 0;
}

int simt_remove_model(wharf_epoch *epoch, uint32_t parameter)
{
    uint64_t *model = &epoch->params.models[parameter - WHARF_FIRST_MODEL];
    free(reinterpret_cast<void *>(*model));
    *model = 0;
    return 0;
}

int simt_start(wharf_epoch *epoch)
{
    uint32_t number = wharf_work_begin_epoch(&epoch->params.queue);
    if (number == 0)
        return 0;
    /* The last one has said OUT, but its warps may still be on their way. */
    simt_wait(epoch);
    uint64_t since_ns = simt::monotonic_ns() - epoch->left_ns;
    pthread_mutex_lock(&epoch->lock);
    choose_kernel(epoch->params, epoch->params.queue, epoch->n_few, since_ns, epoch->history);
    epoch->params.epoch = number;
    epoch->n_started++;
    epoch->n_inside = epoch->params.n_warps;
    pthread_cond_broadcast(&epoch->changed);
    pthread_mutex_unlock(&epoch->lock);
    return 0;
}

void simt_set_stay(wharf_epoch *epoch, uint32_t stay_us)
{
    epoch->params.stay_ns = stay_us * 1000;
}

} // namespace

const struct wharf_epoch_ops wharf_simt_epoch = {
    "simt",          simt_find_device, simt_count_devices, simt_open,       simt_close,
    simt_error_text, simt_info,        simt_map_host,      simt_unmap_host, simt_alloc,
    simt_free,       simt_import,      simt_unimport,      simt_add_model,  simt_remove_model,
    simt_start,      simt_wait,        simt_set_stay,      nullptr,
};
