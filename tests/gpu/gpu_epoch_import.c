/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_epoch_import.c: outputs in GPU memory of another process: what is refused, that the other
 * process finds the bytes, and that its death harms nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/gpu_epoch.h"
#include "tests/gpu/gpu_export.h"

enum { N_PASSES = 10 };

static void die(const char *what)
{
    fprintf(stderr, "wharf_gpu_epoch: %s: %s\n", what, strerror(errno));
    exit(3);
}

/* Another process, with GPU memory of its own. */
static pid_t start_exporter(int *ret_socket)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        die("socketpair");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 0);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "wharf_gpu_epoch", "export-memory", (char *)NULL);
        _exit(3);
    }
    close(ends[1]);
    *ret_socket = ends[0];
    return pid;
}

static int receive_fd(int socket)
{
    char byte;
    struct iovec part = {&byte, 1};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    int fd = -1;
    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

/* Prints what became of an import that must not succeed.  Closes the descriptor. */
static void must_refuse(struct gpu_epoch *e, const char *what, int fd, size_t nbytes)
{
    uint64_t address = 0;
    double start = gpu_now_us();
    int rc = e->t.ops->import_memory(e->t.epoch, fd, nbytes, &address);
    double us = gpu_now_us() - start;
    e->wrong |= rc != -EINVAL;
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-import-refused\",\"what\":\"%s\",\"rc\":%d,"
           "\"us\":%.1f,\"text\":\"%s\"}\n",
           what, rc, us, rc < 0 ? e->t.ops->error_text() : "imported");
    if (fd >= 0)
        close(fd);
}

static int memory_fd(void)
{
    int fd = memfd_create("not of a GPU", 0);
    if (fd < 0 || ftruncate(fd, GPU_EXPORT_NBYTES) < 0)
        die("memfd");
    return fd;
}

static int pipe_fd(void)
{
    int ends[2];
    if (pipe(ends) < 0)
        die("pipe");
    close(ends[1]);
    return ends[0];
}

static int copy_of(int fd)
{
    int copy = dup(fd);
    if (copy < 0)
        die("dup");
    return copy;
}

/* What is none, and with the descriptor of what is some, sizes that it has not. */
static void refuse_others(struct gpu_epoch *e, int good)
{
    must_refuse(e, "memfd", memory_fd(), GPU_EXPORT_NBYTES);
    must_refuse(e, "pipe", pipe_fd(), GPU_EXPORT_NBYTES);
    must_refuse(e, "eventfd", eventfd(0, 0), GPU_EXPORT_NBYTES);
    must_refuse(e, "/dev/null", open("/dev/null", O_RDWR), GPU_EXPORT_NBYTES);
    must_refuse(e, "/dev/nvidiactl", open("/dev/nvidiactl", O_RDWR), GPU_EXPORT_NBYTES);
    must_refuse(e, "/dev/nvidia-uvm", open("/dev/nvidia-uvm", O_RDWR), GPU_EXPORT_NBYTES);
    must_refuse(e, "no descriptor", INT_MAX, GPU_EXPORT_NBYTES);
    must_refuse(e, "-1", -1, GPU_EXPORT_NBYTES);
    must_refuse(e, "2 MiB too many", copy_of(good), GPU_EXPORT_NBYTES + (2 << 20));
    must_refuse(e, "far too many", copy_of(good), (size_t)1 << 40);
    must_refuse(e, "no size", copy_of(good), 0);
    must_refuse(e, "not a multiple", copy_of(good), GPU_EXPORT_NBYTES - 4096);
}

static bool noop_works(struct gpu_epoch *e)
{
    return test_epoch_run(&e->t, &(struct wharf_work_item){.opcode = WHARF_WORK_NOOP}).result ==
           WHARF_OK;
}

/* What the other process read from its memory, against the chunks, and the filler behind them. */
static size_t count_wrong(int socket, const struct gpu_source *source, size_t n_jobs, size_t stride)
{
    uint8_t *contents = malloc(GPU_EXPORT_NBYTES);
    size_t n_wrong = 0, at = 0, nbytes = gpu_chunk_nbytes(source);
    ssize_t n = 1;
    if (!contents || write(socket, "", 1) != 1)
        die("the other process");
    for (; at < GPU_EXPORT_NBYTES && n > 0; at += (size_t)(n > 0 ? n : 0))
        n = read(socket, contents + at, GPU_EXPORT_NBYTES - at);
    for (size_t i = 0; i < n_jobs; i++)
        n_wrong += memcmp(contents + i * stride,
                          source->file + i % source->n_chunks * source->chunk_nbytes, nbytes) != 0;
    for (size_t i = n_jobs * stride; i < GPU_EXPORT_NBYTES; i++)
        n_wrong += contents[i] != 0xa5;
    free(contents);
    return n_wrong + (at != GPU_EXPORT_NBYTES);
}

void gpu_epoch_import(struct gpu_epoch *e, const struct gpu_source *source)
{
    struct gpu_jobs jobs;
    uint64_t address = 0;
    double us[N_PASSES];
    int socket;
    pid_t pid = start_exporter(&socket);
    int fd = receive_fd(socket);

    if (fd < 0) {
        fprintf(stderr, "wharf_gpu_epoch: the other process offered no memory\n");
        exit(3);
    }
    e->output = WHARF_WORK_TO_DEVICE;
    gpu_jobs_new(e, &jobs, source, GPU_EXPORT_NBYTES / source->chunk_nbytes - 1);
    e->wrong |= !noop_works(e);
    refuse_others(e, fd);
    double start = gpu_now_us();
    gpu_epoch_must(e, "import",
                   e->t.ops->import_memory(e->t.epoch, fd, GPU_EXPORT_NBYTES, &address));
    double import_us = gpu_now_us() - start;
    close(fd);
    for (size_t i = 0; i < jobs.n_jobs; i++)
        jobs.items[i].dst = address + i * jobs.stride;
    size_t n_wrong = gpu_jobs_run(e, &jobs, N_PASSES, us, NULL);
    n_wrong += count_wrong(socket, source, jobs.n_jobs, jobs.stride);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(socket);
    /* The memory outlives its maker as long as it is mapped here. */
    n_wrong += gpu_jobs_run(e, &jobs, 2, NULL, NULL);
    test_epoch_park(&e->t);
    start = gpu_now_us();
    gpu_epoch_must(e, "unimport",
                   e->t.ops->unimport_memory(e->t.epoch, address, GPU_EXPORT_NBYTES));
    double unimport_us = gpu_now_us() - start;
    test_epoch_unpark(&e->t);
    e->wrong |= n_wrong || !noop_works(e);
    struct gpu_latency spread = gpu_latency_of(us, N_PASSES);
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-import\",\"wrong\":%zu,\"import_us\":%.1f,"
           "\"unimport_us\":%.1f,\"GBps_median\":%.2f,%s}\n",
           n_wrong, import_us, unimport_us,
           (double)jobs.n_jobs * (double)gpu_chunk_nbytes(source) / spread.p50_us / 1e3,
           gpu_epoch_facts(e));
    gpu_jobs_free(e, &jobs);
}
