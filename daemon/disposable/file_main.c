/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_main.c: the main function of wharfd-io.
 *
 * Threads take requests from one socket.  Reads and writes go through a queue, so that they never
 * occupy all threads, whatever hangs them.  The process drops all rights first: a file is accessed
 * by its descriptor's mode and nothing else.
 */
#include "daemon/disposable/file_main.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/file_protocol.h"
#include "daemon/disposable/disposable.h"
#include "daemon/disposable/file_ahead.h"
#include "daemon/disposable/file_check.h"

/* The user and group of nobody, on every Linux. */
#define NOBODY 65534u
/* Of a thread, which calls the system and little else. */
#define STACK_NBYTES ((size_t)128 << 10)
/* More than can be unanswered of one kind. */
#define MOST_QUEUED 128u

/* Requests that wait, oldest first. */
struct queue {
    struct {
        struct wharf_file_request request;
        uint64_t number; /* in the order of all */
    } at[MOST_QUEUED];
    uint32_t head, tail;
};

enum queue_kind { SLOTS, STAGED, N_QUEUES };

/* Reads and writes, those that wait and those under way. */
struct passing {
    pthread_mutex_t lock;
    struct queue queues[N_QUEUES];
    uint64_t last_number;
    uint32_t n_running[N_QUEUES];
    uint32_t most, most_staged; /* threads for all of them; for STAGE */
    uint32_t last_file;         /* that was read */
    bool is_ahead;              /* a thread reads ahead */
};

struct files {
    int core;
    /* Of the passing lock: what is read ahead, by place, and how far. */
    struct wharf_file_ahead ahead[WHARF_FILE_MOST];
    struct wharf_file_counts *counts;
    uint64_t window_nbytes;
    uint32_t n_slots, n_units;
    struct wharf_file_slot *slots; /* and then those of the units */
    uint8_t *buffers;
    uint8_t *staging; /* n_units of it */
    /* By place: the number of the last file there, and below it 1 and its descriptor; 0: it is
     * closed. */
    uint64_t open[WHARF_FILE_MOST];
    struct passing passing;
};

/* ---- requests ------------------------------------------------------------------------------ */

static void answer(const struct files *files, const struct wharf_file_answer *answer)
{
    ssize_t n;

    do {
        n = send(files->core, answer, sizeof(*answer), MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
}

/* Puts an opened file in its place, unless its turn is over; *ret_old is the former one. */
static bool put(struct files *files, uint32_t file, int fd, uint64_t *ret_old)
{
    uint64_t *word = &files->open[wharf_file_place(file)];
    uint64_t old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    bool is_close = fd < 0, is_turn;

    do {
        uint32_t last = (uint32_t)(old >> 32);
        is_turn = wharf_file_is_later(file, last) || (is_close && file == last);
    } while (is_turn &&
             !__atomic_compare_exchange_n(word, &old, (uint64_t)file << 32 | (uint32_t)(fd + 1),
                                          false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    *ret_old = old;
    return is_turn;
}

/* -1: it is closed, or its turn has not come or is over. */
static int descriptor_of(const struct files *files, uint32_t file)
{
    uint64_t word = __atomic_load_n(&files->open[wharf_file_place(file)], __ATOMIC_ACQUIRE);

    return (uint32_t)(word >> 32) == file ? (int)(uint32_t)word - 1 : -1;
}

static void take(struct files *files, const struct wharf_file_request *request, int fd)
{
    struct wharf_file_answer result = {.op = WHARF_FILE_TAKE, .file = request->file};
    bool write_only = false;
    uint64_t old;

    result.error = fd < 0 ? -EBADF : wharf_file_check(fd, request->nbytes != 0, &write_only);
    result.write_only = write_only;
    if (fd >= 0 && (result.error || !put(files, request->file, fd, &old)))
        close(fd);
    answer(files, &result);
}

static void drop(struct files *files, const struct wharf_file_request *request)
{
    struct wharf_file_answer result = {.op = WHARF_FILE_CLOSE, .file = request->file};
    struct wharf_file_ahead *ahead = &files->ahead[wharf_file_place(request->file)];
    uint64_t old;

    pthread_mutex_lock(&files->passing.lock);
    if (ahead->file == request->file)
        wharf_file_ahead_drop(ahead, files->counts);
    pthread_mutex_unlock(&files->passing.lock);
    if (put(files, request->file, -1, &old) && (uint32_t)(old >> 32) == request->file &&
        (uint32_t)old)
        close((int)(uint32_t)old - 1);
    answer(files, &result);
}

static uint32_t end_of_step(uint32_t begin, uint32_t end)
{
    return end - begin < WHARF_FILE_STEP_NBYTES ? end : begin + (uint32_t)WHARF_FILE_STEP_NBYTES;
}

/* Until all is read or written, at the end of the file, or with an error. */
static void pass(struct files *files, const struct wharf_file_request *request,
                 struct wharf_file_slot *slot, uint8_t *buffer)
{
    int fd = descriptor_of(files, request->file);
    bool is_write = request->op == WHARF_FILE_WRITE;
    uint32_t done = 0, step_end = 0, n_steps = 0;
    int error = 0;

    while (done < request->nbytes) {
        off_t at = (off_t)(request->offset + done);
        if (done == step_end) {
            __atomic_store_n(&slot->n_steps, ++n_steps, __ATOMIC_RELAXED);
            step_end = end_of_step(done, request->nbytes);
        }
        size_t left = step_end - done;
        ssize_t n =
            is_write ? pwrite(fd, buffer + done, left, at) : pread(fd, buffer + done, left, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || (n == 0 && is_write))
            error = n < 0 ? errno : EIO;
        if (n <= 0)
            break;
        done += (uint32_t)n;
    }
    slot->error = error;
    slot->nbytes = done;
    __atomic_store_n(&slot->is_done, 1, __ATOMIC_RELEASE);
}

static void pass_by_slot(struct files *files, const struct wharf_file_request *request)
{
    struct wharf_file_slot *slot = &files->slots[request->slot];

    pass(files, request, slot, files->buffers + request->slot * WHARF_FILE_SLOT_NBYTES);
    syscall(SYS_futex, &slot->is_done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Whoever waits for it polls. */
static void stage(struct files *files, const struct wharf_file_request *request)
{
    pass(files, request, &files->slots[files->n_slots + request->slot],
         files->staging + request->slot * WHARF_FILE_UNIT_NBYTES);
}

/* ---- reading ahead ------------------------------------------------------------------------- */

enum ahead_how { ASKED, IS_THERE, IS_NONE };

/* The kernel reads no more at a time, where a file system says nothing else. */
#define CALL_NBYTES ((off_t)128 << 10)

/* 0: it is not known, or there is none. */
static uint64_t size_of(int fd)
{
    struct stat st;
    uint64_t size;

    if (fstat(fd, &st) < 0)
        return 0;
    if (S_ISBLK(st.st_mode))
        return ioctl(fd, BLKGETSIZE64, &size) < 0 ? 0 : size;
    return st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Whether the byte is in the page cache; false where a file system does not tell. */
static bool is_there(int fd, off_t at)
{
    uint8_t byte;
    struct iovec iov = {&byte, 1};

    return preadv2(fd, &iov, 1, at, RWF_NOWAIT) == 1;
}

/* Has the kernel read a step of a file.  Direct reads find nothing of that. */
static enum ahead_how read_ahead(int fd, uint64_t step, uint64_t size)
{
    const uint64_t begin = step * WHARF_FILE_STEP_NBYTES, left = size - begin;
    off_t end = (off_t)(begin + (left < WHARF_FILE_STEP_NBYTES ? left : WHARF_FILE_STEP_NBYTES));
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || flags & O_DIRECT)
        return IS_NONE;
    if (is_there(fd, end - 1))
        return IS_THERE;
    for (off_t at = (off_t)begin; at < end; at += CALL_NBYTES)
        if (posix_fadvise(fd, at, CALL_NBYTES, POSIX_FADV_WILLNEED) != 0)
            return IS_NONE;
    return ASKED;
}

/* ---- the queue ----------------------------------------------------------------------------- */

static void push(struct passing *passing, const struct wharf_file_request *request)
{
    struct queue *queue = &passing->queues[request->op == WHARF_FILE_STAGE ? STAGED : SLOTS];

    if (queue->tail - queue->head == MOST_QUEUED)
        _exit(1);
    queue->at[queue->tail % MOST_QUEUED].request = *request;
    queue->at[queue->tail++ % MOST_QUEUED].number = ++passing->last_number;
}

/* When the first of a queue came; UINT64_MAX: it is empty. */
static uint64_t first_of(const struct queue *queue)
{
    return queue->head == queue->tail ? UINT64_MAX : queue->at[queue->head % MOST_QUEUED].number;
}

static uint32_t n_busy(const struct passing *passing)
{
    return passing->n_running[SLOTS] + passing->n_running[STAGED] + passing->is_ahead;
}

/* The next one that may begin, which counts as running; false: there is none. */
static bool pick(struct passing *passing, struct wharf_file_request *ret_request)
{
    uint64_t slot = first_of(&passing->queues[SLOTS]);
    uint64_t staged = passing->n_running[STAGED] < passing->most_staged
                          ? first_of(&passing->queues[STAGED])
                          : UINT64_MAX;
    enum queue_kind kind = staged < slot ? STAGED : SLOTS;
    struct queue *queue = &passing->queues[kind];

    if ((slot == UINT64_MAX && staged == UINT64_MAX) || n_busy(passing) >= passing->most)
        return false;
    *ret_request = queue->at[queue->head++ % MOST_QUEUED].request;
    passing->n_running[kind]++;
    return true;
}

/* How often this thread has waited for something else than a processor. */
static long n_waits_now(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : usage.ru_nvcsw;
}

/* Under the lock, which it leaves meanwhile. */
static void run(struct files *files, const struct wharf_file_request *request)
{
    struct passing *passing = &files->passing;
    bool is_staged = request->op == WHARF_FILE_STAGE;

    struct wharf_file_ahead *ahead = &files->ahead[wharf_file_place(request->file)];
    enum wharf_file_watch watch = files->window_nbytes > 0 && request->op != WHARF_FILE_WRITE
                                      ? wharf_file_ahead_watch(ahead, request)
                                      : WHARF_FILE_WATCH_NONE;

    pthread_mutex_unlock(&passing->lock);
    uint64_t begun_ns = watch ? wharf_now_ns() : 0;
    long n_waits = watch == WHARF_FILE_WATCH_WAITS ? n_waits_now() : 0;
    if (is_staged)
        stage(files, request);
    else
        pass_by_slot(files, request);
    uint64_t took_ns = watch ? wharf_now_ns() - begun_ns : 0;
    bool has_waited = watch == WHARF_FILE_WATCH_WAITS && n_waits_now() > n_waits;
    pthread_mutex_lock(&passing->lock);
    passing->n_running[is_staged ? STAGED : SLOTS]--;
    if (watch)
        wharf_file_ahead_took(ahead, request, took_ns, has_waited);
}

/* Whether a step can be read ahead of the file that was read last: nothing waits, and half of the
 * threads do nothing. */
static bool pick_ahead(const struct files *files, uint64_t *ret_step)
{
    const struct passing *passing = &files->passing;

    return first_of(&passing->queues[SLOTS]) == UINT64_MAX &&
           first_of(&passing->queues[STAGED]) == UINT64_MAX && !passing->is_ahead &&
           2 * n_busy(passing) <= passing->most &&
           wharf_file_ahead_next(&files->ahead[wharf_file_place(passing->last_file)],
                                 files->window_nbytes, ret_step);
}

/* Reads a step ahead, or looks how long the file is.  Under the lock, which it leaves meanwhile. */
static void run_ahead(struct files *files, uint64_t step)
{
    struct passing *passing = &files->passing;
    struct wharf_file_ahead *ahead = &files->ahead[wharf_file_place(passing->last_file)];
    bool has_size = ahead->size > 0;
    struct wharf_file_ahead begun = has_size ? wharf_file_ahead_begin(ahead, step) : *ahead;
    enum ahead_how how = IS_NONE;

    passing->is_ahead = true;
    pthread_mutex_unlock(&passing->lock);
    int fd = descriptor_of(files, begun.file);
    if (has_size)
        how = read_ahead(fd, step, begun.size);
    else
        begun.size = size_of(fd);
    pthread_mutex_lock(&passing->lock);
    passing->is_ahead = false;
    if (has_size)
        wharf_file_ahead_end(ahead, &begun, step, how == ASKED, files->counts);
    if (ahead->file != begun.file || ahead->begin != begun.begin)
        return;
    ahead->size = begun.size;
    if (ahead->size == 0 || (has_size && how == IS_NONE))
        wharf_file_ahead_drop(ahead, files->counts);
}

/* Threads that read and write go on with the queue.  So a request waits only while as many as may
 * do that. */
static void enqueue(struct files *files, const struct wharf_file_request *request)
{
    struct passing *passing = &files->passing;
    struct wharf_file_request next;
    uint64_t step;

    pthread_mutex_lock(&passing->lock);
    push(passing, request);
    if (request->op != WHARF_FILE_WRITE) {
        passing->last_file = request->file;
        wharf_file_ahead_note(&files->ahead[wharf_file_place(request->file)], request,
                              files->counts);
    }
    for (;;) {
        if (pick(passing, &next))
            run(files, &next);
        else if (pick_ahead(files, &step))
            run_ahead(files, step);
        else
            break;
    }
    pthread_mutex_unlock(&passing->lock);
}

static bool is_good(const struct files *files, const struct wharf_file_request *request)
{
    if (request->op == WHARF_FILE_STAGE)
        return request->slot < files->n_units &&
               request->nbytes <= (files->n_units - request->slot) * WHARF_FILE_UNIT_NBYTES;
    return request->slot < files->n_slots && request->nbytes <= WHARF_FILE_SLOT_NBYTES;
}

/* The next packet, and its descriptor or -1; false: the core has gone. */
static bool receive(int core, struct wharf_file_request *ret_request, int *ret_fd)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {ret_request, sizeof(*ret_request)};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    do {
        header.msg_control = control;
        header.msg_controllen = sizeof(control);
        n = recvmsg(core, &header, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    *ret_fd = -1;
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&header) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
    return n == (ssize_t)sizeof(*ret_request);
}

static void *serve(void *context)
{
    struct files *files = context;
    struct wharf_file_request request;
    int fd;

    while (receive(files->core, &request, &fd)) {
        if (request.op == WHARF_FILE_TAKE)
            take(files, &request, fd);
        else if (request.op == WHARF_FILE_CLOSE)
            drop(files, &request);
        else if (is_good(files, &request))
            enqueue(files, &request);
    }
    /* Other threads may hang. */
    _exit(0);
}

/* ---- beginning ----------------------------------------------------------------------------- */

/*
 * A descriptor's own mode says what may be done with a file, and nothing that the daemon may: a
 * write by root keeps the file's setuid bit, goes over quotas, and into blocks that are reserved.
 */
static bool drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}}, left[2];

    if (geteuid() == 0) {
        /* Where there is no such user, in a namespace, the capabilities are what counts. */
        (void)!setgroups(0, NULL);
        (void)!setresgid(NOBODY, NOBODY, NOBODY);
        (void)!setresuid(NOBODY, NOBODY, NOBODY);
    }
    /* Under the unit nobody may ask for that, nor has any. */
    syscall(SYS_capset, &header, none);
    return syscall(SYS_capget, &header, left) == 0 && !left[0].effective && !left[0].permitted &&
           !left[1].effective && !left[1].permitted;
}

/* NULL: it is not possible. */
static void *map(size_t nbytes, int fd)
{
    void *memory =
        fd < 0 ? MAP_FAILED : mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool take_memory(struct files *files)
{
    struct wharf_file_request begin;
    int fd;

    if (!receive(files->core, &begin, &fd) || begin.op != WHARF_FILE_BEGIN ||
        begin.slot > WHARF_FILE_MOST_SLOTS || begin.nbytes > WHARF_FILE_MOST_UNITS)
        return false;
    files->n_slots = begin.slot;
    files->n_units = begin.nbytes;
    files->window_nbytes = begin.offset;
    files->slots = map(wharf_file_memory_nbytes(begin.slot, begin.nbytes), fd);
    if (!files->slots)
        return false;
    files->buffers =
        (uint8_t *)files->slots + wharf_file_heads_nbytes(files->n_slots, files->n_units);
    files->counts = (void *)(files->slots + files->n_slots + files->n_units);
    if (files->n_units == 0)
        return true;
    if (!receive(files->core, &begin, &fd) || begin.op != WHARF_FILE_STAGING)
        return false;
    files->staging = map(files->n_units * WHARF_FILE_UNIT_NBYTES, fd);
    return files->staging != NULL;
}

/* STAGE leaves a quarter of the threads to READ and WRITE. */
static void set_most(struct passing *passing, uint32_t n_threads)
{
    pthread_mutex_lock(&passing->lock);
    passing->most = n_threads ? n_threads : 1;
    passing->most_staged = passing->most - passing->most / 4;
    pthread_mutex_unlock(&passing->lock);
}

/* As many as there are slots, since each can wait in a file; this one is one of them, and one more
 * takes and closes files meanwhile. */
static void start_threads(struct files *files)
{
    struct passing *passing = &files->passing;
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_mutex_init(&passing->lock, NULL);
    /* Before the first one: what it leaves in the queue for want of others, nobody else takes. */
    set_most(passing, files->n_slots);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_NBYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (uint32_t i = 0; i < files->n_slots; i++) {
        if (pthread_create(&thread, &attributes, serve, files) == 0)
            continue;
        set_most(passing, i);
        break;
    }
    pthread_attr_destroy(&attributes);
}

int wharf_file_main(int fd, pid_t parent)
{
    static struct files files;

    /* First, since with another user's rights comes another parent's death signal: none. */
    if (!drop_rights() || !wharf_disposable_begin("wharfd-io", parent))
        return 1;
    signal(SIGXFSZ, SIG_IGN);
    files.core = fd;
    if (!take_memory(&files))
        return 1;
    start_threads(&files);
    serve(&files);
    return 0;
}
