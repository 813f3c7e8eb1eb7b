/* SPDX-License-Identifier: Apache-2.0 */
/* worker_main.c: wharfd-gpu's main function: starts the engine, and handles the core's messages. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/segment.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/worker/worker.h"
#include "kernels/simt/simt_batch.h"
#include "proto/control.h"
#include "proto/wharf_job.h"

/* ---- beginning ----------------------------------------------------------------------------- */

/* Makes the process end with the core's thread that started it, and ignore a terminal's signals. */
static int tame_process(pid_t parent)
{
    prctl(PR_SET_NAME, "wharfd-gpu");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The parent may have died before that. */
    if (getppid() != parent)
        return -ESRCH;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    /* Loads all kernels at the start.  Loading one later would wait for a resident kernel. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    /* Numbers GPUs as nvidia-smi does. */
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
    return 0;
}

static int map_queue(struct wharf_worker *worker, int fd)
{
    uint32_t n_entries = worker->setup.n_entries;

    if (fd < 0 || !wharf_work_entries_good(n_entries))
        return -EINVAL;
    int r = wharf_segment_adopt(fd, wharf_worker_queues_nbytes(n_entries), false,
                                &worker->queue_memory);
    if (r < 0)
        return r;
    worker->main.worker = worker->large.worker = worker->encode.worker = worker;
    worker->streams.kernels.worker = worker;
    worker->main.part = 100;
    worker->main.queue = wharf_work_queue_at(worker->queue_memory.address, n_entries);
    worker->large.queue =
        wharf_work_queue_at(wharf_worker_large_queue(worker->queue_memory.address, n_entries),
                            WHARF_WORKER_LARGE_ENTRIES);
    worker->encode.queue =
        wharf_work_queue_at(wharf_worker_encode_queue(worker->queue_memory.address, n_entries),
                            WHARF_WORKER_ENCODE_ENTRIES);
    worker->streams.kernels.queue =
        wharf_work_queue_at(wharf_worker_stream_queue(worker->queue_memory.address, n_entries),
                            WHARF_WORKER_STREAM_ENTRIES);
    return 0;
}

/* Refuses a core of another build, whose structs may differ. */
static void check_version(const struct wharf_worker_setup *setup)
{
    if (strncmp(setup->version, WHARF_VERSION, sizeof(setup->version)) != 0 ||
        setup->engine != wharf_worker_engine_number)
        wharf_worker_fail(
            WHARF_WORKER_EXIT_NO_DEVICE, EPROTO, "starting",
            "wharfd is not of this build, or wants another engine; this is " WHARF_VERSION);
}

static uint32_t microseconds(uint64_t ns)
{
    return ns / 1000 < UINT32_MAX ? (uint32_t)(ns / 1000) : UINT32_MAX;
}

/* Up to this many items for each block, a block for each item answers sooner than a warp for each.
 * The SIMT layer runs a block's warps one after the other. */
#define FEW 4

/* Kernels must not stay resident where something waits for the end of each: blocking launches, and
 * tools that CUDA loads into the process. */
static bool must_not_stay(void)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING"), *tool = getenv("CUDA_INJECTION64_PATH");

    return (blocking && *blocking && strcmp(blocking, "0") != 0) || (tool && *tool);
}

/* Reports the number of devices.  If there is none, or no driver, the next step fails and says
 * so. */
static void tell_devices(struct wharf_worker *worker)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_DEVICES};
    int n;

    if (worker->ops->count_devices(&n) < 0 || n <= 0)
        return;
    message.number = (uint32_t)n;
    wharf_worker_say(&message);
}

/* Threads of the SIMT layer that encode. */
#define MOST_SIMT_ENCODE 2u

/* Warps of the epoch that encodes, with the one that polls; 0: there is none. */
static uint32_t encode_warps(const struct wharf_worker_setup *setup)
{
    uint32_t n_warps = setup->encode_warps;

    if (setup->engine == WHARF_ENGINE_SIMT && n_warps > MOST_SIMT_ENCODE)
        n_warps = MOST_SIMT_ENCODE;
    return n_warps > 0 ? n_warps + 1 : 0;
}

static uint32_t encode_blocks(const struct wharf_worker_setup *setup)
{
    return (encode_warps(setup) + WHARF_EPOCH_ENCODE_WARPS - 1) / WHARF_EPOCH_ENCODE_WARPS;
}

static void open_engine(struct wharf_worker *worker)
{
    const struct wharf_worker_setup *setup = &worker->setup;
    bool is_auto = setup->kernel == WHARF_GPU_KERNEL_AUTO;
    struct wharf_epoch_config config = {
        .share = setup->share,
        .n_entries = setup->n_entries,
        .queue = worker->queue_memory.address,
        .chunk_nbytes = setup->chunk_nbytes,
        .idle_us = microseconds(setup->idle_ns),
        .stay_us = microseconds(setup->stay_ns),
        .per_batch = setup->kernel == WHARF_GPU_KERNEL_BATCH || (is_auto && must_not_stay()),
        .per_batch_if_watched = is_auto,
        .few = setup->engine == WHARF_ENGINE_SIMT ? 0 : FEW,
        .most_out = WHARF_EPOCH_MOST_OUT,
        .memo_nbytes = setup->memo_nbytes,
        .memo_parts = setup->memo_users,
        .memo_key = {setup->memo_key[0], setup->memo_key[1]},
        .leaves_room = (setup->large_nbytes > 0) + encode_blocks(setup),
        .faults = setup->has_faults != 0,
    };

    worker->ops = wharf_worker_engine;
    if (setup->counts)
        tell_devices(worker);
    int r = worker->ops->find_device(worker->gpu, &config.device);
    worker->device = config.device;
    if (r == 0)
        r = worker->ops->open(&config, &worker->main.epoch);
    if (r < 0)
        wharf_worker_fail(r == -ENODEV ? WHARF_WORKER_EXIT_NO_DEVICE : WHARF_WORKER_EXIT_FAILED, -r,
                          "opening the device", worker->ops->error_text());
}

/* The memory for chunks of the second queue's kernel: its items bring their own. */
#define LARGE_CHUNK_NBYTES 4096

/* Makes a kernel of few warps for large items, and their slots.  If the device has no room for
 * them, large items are not offered. */
static void make_large(struct wharf_worker *worker, struct wharf_worker_ready *ret_ready)
{
    const struct wharf_worker_setup *setup = &worker->setup;
    const struct wharf_epoch_config config = {
        .device = worker->device,
        .n_entries = WHARF_WORKER_LARGE_ENTRIES,
        .queue = worker->large.queue.core,
        .n_warps = 1 + WHARF_WORKER_MOST_LARGE,
        .chunk_nbytes = LARGE_CHUNK_NBYTES,
        .idle_us = microseconds(setup->idle_ns),
        .per_batch = (int)ret_ready->per_batch,
        .beside = worker->main.epoch,
        .faults = setup->has_faults != 0,
    };
    uint64_t nbytes =
        WHARF_WORKER_MOST_LARGE * wharf_worker_large_place_nbytes(setup->large_nbytes);
    uint64_t address;

    if (setup->large_nbytes == 0 || worker->ops->alloc(worker->main.epoch, nbytes, &address) < 0)
        return;
    if (worker->ops->open(&config, &worker->large.epoch) < 0) {
        worker->large.epoch = NULL;
        worker->ops->free(worker->main.epoch, address);
        return;
    }
    ret_ready->large = address;
    ret_ready->n_large = WHARF_WORKER_MOST_LARGE;
}

/* Makes the kernel that encodes.  If the device has no room for it, nothing is encoded there. */
static void make_encode(struct wharf_worker *worker, struct wharf_worker_ready *ret_ready)
{
    const struct wharf_worker_setup *setup = &worker->setup;
    const struct wharf_epoch_config config = {
        .device = worker->device,
        .n_entries = WHARF_WORKER_ENCODE_ENTRIES,
        .queue = worker->encode.queue.core,
        .n_warps = encode_warps(setup),
        .encodes = 1,
        .chunk_nbytes = setup->chunk_nbytes,
        .idle_us = microseconds(setup->idle_ns),
        .stay_us = microseconds(setup->stay_ns),
        .per_batch = (int)ret_ready->per_batch,
        .beside = worker->main.epoch,
        .faults = setup->has_faults != 0,
    };
    struct wharf_epoch_info info;

    if (config.n_warps == 0)
        return;
    if (worker->ops->open(&config, &worker->encode.epoch) < 0) {
        worker->encode.epoch = NULL;
        return;
    }
    worker->ops->info(worker->encode.epoch, &info);
    ret_ready->n_encode = info.n_warps - 1;
    ret_ready->device_nbytes += info.device_nbytes;
}

static void describe(const struct wharf_worker *worker, struct wharf_worker_ready *ret_ready)
{
    struct wharf_epoch_info info;

    worker->ops->info(worker->main.epoch, &info);
    snprintf(ret_ready->device, sizeof(ret_ready->device), "%s", info.device_name);
    snprintf(ret_ready->share, sizeof(ret_ready->share), "%s", info.share_text);
    /* One warp polls. */
    ret_ready->n_warps = info.n_warps - 1;
    ret_ready->device_nbytes = info.device_nbytes;
    ret_ready->is_beside = wharf_worker_is_beside(worker->device);
    ret_ready->per_batch = info.per_batch;
    ret_ready->has_memo = info.memo_nbytes > 0;
    /* The driver shows a worker of a MIG instance nothing but that instance. */
    ret_ready->place = strncmp(worker->gpu, "MIG-", 4) == 0 ? 0 : (uint32_t)worker->device + 1;
    for (uint32_t i = 0; i < WHARF_N_CODECS; i++)
        if (wharf_simt_can_decode(i))
            ret_ready->codecs |= (uint64_t)1 << i;
}

static void begin(struct wharf_worker *worker, const struct wharf_worker_message *message, int fd)
{
    struct wharf_worker_message ready = {.kind = WHARF_WORKER_READY};

    worker->setup = message->setup;
    check_version(&worker->setup);
    int r = map_queue(worker, fd);
    if (r < 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, -r, "mapping the queue", "");
    open_engine(worker);
    /* From now on other processes must not look into this one.  Before that, the driver needs to
     * read its own files in /proc. */
    prctl(PR_SET_DUMPABLE, 0);
    describe(worker, &ready.ready);
    worker->is_per_batch = ready.ready.per_batch != 0;
    make_large(worker, &ready.ready);
    make_encode(worker, &ready.ready);
    ready.ready.least_stream = wharf_worker_open_streams(worker);
    wharf_worker_run(worker);
    wharf_worker_say(&ready);
}

/* ---- from the core ------------------------------------------------------------------------ */

/* Receives the next message.  False: none came within timeout_ms (-1: waits).  Ends the process if
 * the core is gone. */
static bool next_message(int timeout_ms, struct wharf_worker_message *ret_message, int *ret_fd)
{
    static struct wharf_control_receiver receiver;
    struct pollfd fd = {.fd = WHARF_WORKER_SOCKET_FD, .events = POLLIN};

    if (poll(&fd, 1, timeout_ms) <= 0)
        return false;
    int r = wharf_control_receive(WHARF_WORKER_SOCKET_FD, &receiver, MSG_DONTWAIT);
    if (r == -EAGAIN)
        return false;
    if (r < 0 || receiver.nbytes != sizeof(*ret_message) || receiver.n_fds > 1)
        _exit(WHARF_WORKER_EXIT_OK);
    memcpy(ret_message, receiver.packet, sizeof(*ret_message));
    *ret_fd = receiver.n_fds ? receiver.fds[0] : -1;
    return true;
}

static bool registers(uint32_t kind)
{
    return kind == WHARF_WORKER_REGISTER || kind == WHARF_WORKER_IMPORT ||
           kind == WHARF_WORKER_MODEL;
}

/* Registrations that wait until the kernel is back.  The core asks for four at a time. */
#define MOST_PUT_OFF 8

struct put_off {
    struct wharf_worker_message messages[MOST_PUT_OFF];
    int fds[MOST_PUT_OFF];
    unsigned n;
};

static void put_off(struct put_off *later, const struct wharf_worker_message *message, int fd)
{
    later->messages[later->n] = *message;
    later->fds[later->n++] = fd;
}

/*
 * Releases all memory that the core wants released, while the kernel is parked once.  Registrations
 * among the messages wait until the kernel is back, since they do not need it parked: for 1 GiB of
 * fresh pages one takes 0.75 s, in which nothing would be decoded.
 */
static void forget_all(struct wharf_worker *worker, const struct wharf_worker_message *first)
{
    struct wharf_worker_message message = *first;
    struct put_off later = {.n = 0};
    int fd = -1;

    wharf_worker_park(worker);
    do {
        if (message.kind == WHARF_WORKER_FORGET)
            wharf_worker_forget(worker, message.number);
        if (registers(message.kind))
            put_off(&later, &message, fd);
        else
            wharf_close_fd(fd);
        fd = -1;
    } while (later.n < MOST_PUT_OFF && next_message(0, &message, &fd));
    wharf_worker_go_on(worker);
    for (unsigned i = 0; i < later.n; i++) {
        wharf_worker_register(worker, &later.messages[i], later.fds[i]);
        wharf_close_fd(later.fds[i]);
    }
}

/* Other processes wait for the GPU, and no work is in flight.  The next item starts a kernel
 * again. */
static void leave(struct wharf_worker *worker)
{
    wharf_worker_park(worker);
    wharf_worker_go_on(worker);
}

static void serve(struct wharf_worker *worker)
{
    for (;;) {
        struct wharf_worker_message message;
        WHARF_CLEANUP_FD int fd = -1;
        if (!next_message(-1, &message, &fd))
            continue;
        if (message.kind == WHARF_WORKER_SETUP && !worker->ops)
            begin(worker, &message, fd);
        else if (registers(message.kind) && worker->ops)
            wharf_worker_register(worker, &message, fd);
        else if (message.kind == WHARF_WORKER_FORGET && worker->ops)
            forget_all(worker, &message);
        else if (message.kind == WHARF_WORKER_LEAVE && worker->ops)
            leave(worker);
        else
            wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, EPROTO, "listening to the core", "");
    }
}

int main(int argc, char **argv)
{
    static struct wharf_worker worker;

    if (argc != 4 || strcmp(argv[1], "--worker") != 0) {
        fputs("wharfd-gpu is started by wharfd, not by people: see wharfd(8).\n", stderr);
        return 2;
    }
    if (tame_process((pid_t)atoi(argv[2])) < 0)
        return WHARF_WORKER_EXIT_OK;
    worker.gpu = argv[3];
    for (unsigned i = 0; i < WHARF_WORKER_N_CHAINS; i++)
        wharf_list_init(&worker.memories[i]);
    pthread_mutex_init(&worker.lock, NULL);
    pthread_cond_init(&worker.changed, NULL);
    serve(&worker);
}
