/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_io.c: reads and writes a session's files through its wharfd-io process.
 *
 * A caller takes a slot, sends a packet, and waits on the slot's futex.  A slot that its caller
 * abandoned stays reserved until the process has answered, because the process may still write
 * there.
 */
#include "daemon/core/file_io.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/core/file_patience.h"
#include "daemon/core/file_staging.h"
#include "proto/control.h"
#include "proto/relax.h"

/* A file in the page cache is read within some microseconds, which is less than falling asleep. */
#define N_LOOKS 200
/* How often a thread that waits looks whether it is to go on. */
#define LOOK_NS (10 * (uint64_t)WHARF_NS_PER_MS)
#define NO_SLOT_NS WHARF_NS_PER_MS
/* The longest wait while threads are short. */
#define SHORT_NS (100 * (uint64_t)WHARF_NS_PER_MS)

/* ---- beginning and end --------------------------------------------------------------------- */

static struct wharf_file_slot *head_of(const struct wharf_file_io *io, uint32_t slot)
{
    return (struct wharf_file_slot *)io->memory.address + slot;
}

static int begin(struct wharf_file_io *io, uint64_t ahead_nbytes)
{
    const uint32_t n_units = io->staging ? WHARF_FILE_MOST_UNITS : 0;
    struct wharf_file_request request = {
        .op = WHARF_FILE_BEGIN, .slot = io->n_slots, .nbytes = n_units, .offset = ahead_nbytes};
    int r = wharf_segment_make(WHARF_SEGMENT_FILES, wharf_file_memory_nbytes(io->n_slots, n_units),
                               &io->memory);

    if (r < 0)
        return r;
    r = wharf_control_send(io->socket, (const uint8_t *)&request, sizeof(request), &io->memory.fd,
                           1, MSG_DONTWAIT);
    io->memory.fd = wharf_close_fd(io->memory.fd);
    if (r < 0 || !io->staging)
        return r;
    io->staging->heads = head_of(io, io->n_slots);
    request.op = WHARF_FILE_STAGING;
    return wharf_control_send(io->socket, (const uint8_t *)&request, sizeof(request),
                              &io->staging->memory.fd, 1, MSG_DONTWAIT);
}

int wharf_file_io_new(int socket, const struct wharf_file_io_options *options,
                      struct wharf_file_staging *staging, struct wharf_file_io **ret_io)
{
    struct wharf_file_io *io = calloc(1, sizeof(*io));

    if (!io) {
        wharf_close_fd(socket);
        return -ENOMEM;
    }
    io->socket = socket;
    io->staging = staging;
    io->memory.fd = -1;
    io->n_slots = options->n_slots;
    io->timeout_ns = options->timeout_ns;
    io->is_short = options->is_short;
    io->free_slots = UINT64_MAX >> (64 - io->n_slots);
    int r = begin(io, options->ahead_nbytes);
    if (r < 0) {
        io->staging = NULL;
        wharf_file_io_free(io);
        return r;
    }
    *ret_io = io;
    return 0;
}

void wharf_file_io_free(struct wharf_file_io *io)
{
    if (!io)
        return;
    wharf_close_fd(io->socket);
    wharf_segment_free(&io->memory);
    wharf_file_staging_free(io->staging);
    free(io);
}

struct wharf_shared_charge *wharf_file_io_charge(const struct wharf_file_io *io)
{
    return io && io->staging ? io->staging->charge : NULL;
}

/* What came since the last time; the process's counters only grow. */
static uint64_t more_of(const uint64_t *counter, uint64_t *counted)
{
    uint64_t now = __atomic_load_n(counter, __ATOMIC_RELAXED);
    uint64_t more = now > *counted ? now - *counted : 0;

    *counted += more;
    return more;
}

void wharf_file_io_count(struct wharf_file_io *io, bool is_over, struct wharf_file_counts *to)
{
    const uint32_t n_heads = io->n_slots + (io->staging ? WHARF_FILE_MOST_UNITS : 0);
    const struct wharf_file_counts *counts = (const void *)head_of(io, n_heads);
    struct wharf_file_counts *counted = &io->counted;

    /* In this order, so that no use is counted before what was used. */
    to->waste_nbytes += more_of(&counts->waste_nbytes, &counted->waste_nbytes);
    to->hit_nbytes += more_of(&counts->hit_nbytes, &counted->hit_nbytes);
    to->ahead_nbytes += more_of(&counts->ahead_nbytes, &counted->ahead_nbytes);
    uint64_t used_nbytes = counted->hit_nbytes + counted->waste_nbytes;
    if (!is_over || counted->ahead_nbytes <= used_nbytes)
        return;
    to->waste_nbytes += counted->ahead_nbytes - used_nbytes;
    counted->waste_nbytes += counted->ahead_nbytes - used_nbytes;
}

/* ---- slots --------------------------------------------------------------------------------- */

static uint8_t *buffer_of(const struct wharf_file_io *io, uint32_t slot)
{
    return (uint8_t *)io->memory.address +
           wharf_file_heads_nbytes(io->n_slots, io->staging ? WHARF_FILE_MOST_UNITS : 0) +
           slot * WHARF_FILE_SLOT_NBYTES;
}

static void futex(uint32_t *word, int op, uint32_t value, uint64_t ns)
{
    struct timespec time = {.tv_nsec = (long)ns};

    syscall(SYS_futex, word, op, value, op == FUTEX_WAIT ? &time : NULL, NULL, 0);
}

static void give_back(struct wharf_file_io *io, uint32_t slot)
{
    __atomic_fetch_or(&io->free_slots, (uint64_t)1 << slot, __ATOMIC_RELEASE);
}

static void see_move(struct wharf_file_io *io, uint64_t now_ns)
{
    __atomic_store_n(&io->moved_ns, now_ns, __ATOMIC_RELAXED);
}

/* Slots whose answers have come after nobody waited for them any more. */
static void collect_left(struct wharf_file_io *io)
{
    uint64_t left = __atomic_load_n(&io->left_slots, __ATOMIC_RELAXED);

    for (; left; left &= left - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(left);
        uint64_t bit = (uint64_t)1 << slot;
        if (__atomic_load_n(&head_of(io, slot)->is_done, __ATOMIC_ACQUIRE) &&
            __atomic_fetch_and(&io->left_slots, ~bit, __ATOMIC_RELAXED) & bit) {
            see_move(io, wharf_now_ns());
            give_back(io, slot);
        }
    }
}

static bool take_slot(struct wharf_file_io *io, uint32_t *ret_slot)
{
    uint64_t bits = __atomic_load_n(&io->free_slots, __ATOMIC_RELAXED);

    while (bits)
        if (__atomic_compare_exchange_n(&io->free_slots, &bits, bits & (bits - 1), false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            *ret_slot = (uint32_t)__builtin_ctzll(bits);
            return true;
        }
    return false;
}

/* ---- waiting ------------------------------------------------------------------------------- */

void wharf_file_io_lose(struct wharf_file_io *io)
{
    __atomic_store_n(&io->is_lost, true, __ATOMIC_SEQ_CST);
    for (uint32_t slot = 0; slot < io->n_slots; slot++)
        futex(&head_of(io, slot)->is_done, FUTEX_WAKE, INT_MAX, 0);
}

/* Whether a step, or the wait for the first one, has exceeded the limit.  head: NULL while there is
 * no slot. */
static bool is_late(struct wharf_file_io *io, const struct wharf_file_slot *head,
                    struct wharf_file_patience *patience, uint64_t now_ns)
{
    uint32_t n_steps = head ? __atomic_load_n(&head->n_steps, __ATOMIC_RELAXED) : 0;

    if (n_steps != patience->n_steps) {
        *patience = (struct wharf_file_patience){.since_ns = now_ns, .n_steps = n_steps};
        see_move(io, now_ns);
    }
    uint64_t moved_ns = __atomic_load_n(&io->moved_ns, __ATOMIC_RELAXED);
    uint64_t since_ns =
        n_steps == 0 && moved_ns > patience->since_ns ? moved_ns : patience->since_ns;
    return now_ns >= since_ns + io->timeout_ns;
}

/* A thread that waits, for a slot or in one. */
struct wait {
    struct wharf_file_io *io;
    const uint8_t *stopped;
    uint64_t since_ns;
    struct wharf_file_patience patience;
    const struct wharf_file_slot *head; /* NULL: it has no slot */
    bool is_write;                      /* that is under way */
};

/* Whether it has waited for long enough, and why.  The time limit ends the process, so what is lost
 * is told after what is late. */
static bool is_over(struct wait *wait, enum wharf_file_how *ret_how)
{
    struct wharf_file_io *io = wait->io;
    uint64_t now_ns = wharf_now_ns();

    *ret_how = WHARF_FILE_STOPPED;
    if (!wait->is_write && __atomic_load_n(wait->stopped, __ATOMIC_RELAXED))
        return true;
    *ret_how = wait->is_write ? WHARF_FILE_UNKNOWN : WHARF_FILE_LOST;
    if (wharf_file_io_is_lost(io))
        return true;
    if (!is_late(io, wait->head, &wait->patience, now_ns) &&
        (now_ns < wait->since_ns + SHORT_NS || !__atomic_load_n(io->is_short, __ATOMIC_RELAXED)))
        return false;
    *ret_how = wait->is_write ? WHARF_FILE_UNKNOWN : WHARF_FILE_LATE;
    __atomic_store_n(&io->is_hung, true, __ATOMIC_RELAXED);
    wharf_file_io_lose(io);
    return true;
}

static enum wharf_file_how await_slot(struct wait *wait, uint32_t *ret_slot)
{
    const struct timespec moment = {.tv_nsec = (long)NO_SLOT_NS};
    enum wharf_file_how how;

    for (;;) {
        if (wharf_file_io_is_lost(wait->io))
            return WHARF_FILE_LOST;
        if (take_slot(wait->io, ret_slot))
            return WHARF_FILE_DONE;
        collect_left(wait->io);
        if (is_over(wait, &how))
            return how;
        nanosleep(&moment, NULL);
    }
}

static bool is_done(const struct wharf_file_slot *head)
{
    return __atomic_load_n(&head->is_done, __ATOMIC_ACQUIRE);
}

static enum wharf_file_how await_answer(struct wait *wait, struct wharf_file_slot *head)
{
    enum wharf_file_how how;

    wait->head = head;
    for (unsigned n = 0; n < N_LOOKS; n++) {
        if (is_done(head))
            return WHARF_FILE_DONE;
        wharf_relax();
    }
    while (!is_done(head)) {
        if (is_over(wait, &how))
            return how;
        futex(&head->is_done, FUTEX_WAIT, 0, LOOK_NS);
    }
    return WHARF_FILE_DONE;
}

/* ---- operations ---------------------------------------------------------------------------- */

/* One packet and its answer.  An impossible answer is none. */
static struct wharf_file_end ask(struct wharf_file_io *io, const struct wharf_file_request *request,
                                 struct wait *wait)
{
    struct wharf_file_slot *head = head_of(io, request->slot);
    struct wharf_file_end end = {.how = WHARF_FILE_LOST};

    __atomic_store_n(&head->n_steps, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&head->is_done, 0, __ATOMIC_RELAXED);
    if (wharf_control_send(io->socket, (const uint8_t *)request, sizeof(*request), NULL, 0,
                           MSG_DONTWAIT) < 0) {
        /* The loop thread hears of its end too. */
        wharf_file_io_lose(io);
        return end;
    }
    wait->is_write = request->op == WHARF_FILE_WRITE;
    end.how = await_answer(wait, head);
    if (end.how != WHARF_FILE_DONE)
        return end;
    wait->is_write = false;
    see_move(io, wharf_now_ns());
    end.error = head->error;
    end.nbytes = head->nbytes < request->nbytes ? head->nbytes : request->nbytes;
    return end;
}

/* One slot's worth. */
static struct wharf_file_end pass(struct wharf_file_io *io, struct wharf_file_request *request,
                                  void *to, const void *from, const uint8_t *stopped)
{
    uint64_t now_ns = wharf_now_ns();
    struct wait wait = {
        .io = io, .stopped = stopped, .since_ns = now_ns, .patience = {.since_ns = now_ns}};
    struct wharf_file_end end = {.how = await_slot(&wait, &request->slot)};

    if (end.how != WHARF_FILE_DONE)
        return end;
    if (from)
        memcpy(buffer_of(io, request->slot), from, request->nbytes);
    end = ask(io, request, &wait);
    if (end.how != WHARF_FILE_DONE) {
        __atomic_fetch_or(&io->left_slots, (uint64_t)1 << request->slot, __ATOMIC_RELAXED);
        return end;
    }
    if (to)
        memcpy(to, buffer_of(io, request->slot), end.nbytes);
    give_back(io, request->slot);
    return end;
}

static struct wharf_file_end pass_all(struct wharf_file_io *io, struct wharf_file_request request,
                                      uint8_t *to, const uint8_t *from, uint64_t nbytes,
                                      const uint8_t *stopped)
{
    const uint64_t first = request.offset;
    struct wharf_file_end end = {.how = WHARF_FILE_DONE};
    uint64_t at = 0;

    while (at < nbytes) {
        uint64_t left = nbytes - at;
        request.nbytes = (uint32_t)(left < WHARF_FILE_SLOT_NBYTES ? left : WHARF_FILE_SLOT_NBYTES);
        request.offset = first + at;
        end = pass(io, &request, to ? to + at : NULL, from ? from + at : NULL, stopped);
        at += end.nbytes;
        request.is_more = true;
        if (end.how != WHARF_FILE_DONE || end.nbytes < request.nbytes)
            break;
    }
    end.nbytes = at;
    return end;
}

struct wharf_file_end wharf_file_io_read(struct wharf_file_io *io, uint32_t file, uint64_t offset,
                                         void *to, uint64_t nbytes, bool is_more,
                                         const uint8_t *stopped)
{
    const struct wharf_file_request request = {
        .op = WHARF_FILE_READ, .file = file, .offset = offset, .is_more = is_more};

    return pass_all(io, request, to, NULL, nbytes, stopped);
}

struct wharf_file_end wharf_file_io_write(struct wharf_file_io *io, uint32_t file, uint64_t offset,
                                          const void *from, uint64_t nbytes, const uint8_t *stopped)
{
    return pass_all(
        io, (struct wharf_file_request){.op = WHARF_FILE_WRITE, .file = file, .offset = offset},
        NULL, from, nbytes, stopped);
}

/* ---- staging ------------------------------------------------------------------------------- */

void wharf_file_io_stage(struct wharf_file_io *io, uint32_t file, uint64_t offset, uint64_t nbytes,
                         uint32_t place, bool is_more)
{
    const struct wharf_file_request request = {
        .op = WHARF_FILE_STAGE,
        .file = file,
        .slot = place,
        .nbytes = (uint32_t)nbytes,
        .offset = offset,
        .is_more = is_more,
    };

    if (wharf_control_send(io->socket, (const uint8_t *)&request, sizeof(request), NULL, 0,
                           MSG_DONTWAIT) < 0)
        wharf_file_io_lose(io);
}

bool wharf_file_io_is_staged(struct wharf_file_io *io, uint32_t place,
                             struct wharf_file_patience *patience, uint64_t now_ns, uint64_t nbytes,
                             struct wharf_file_end *ret_end)
{
    const struct wharf_file_slot *head = &io->staging->heads[place];

    if (is_done(head)) {
        *ret_end = (struct wharf_file_end){WHARF_FILE_DONE, head->error,
                                           head->nbytes < nbytes ? head->nbytes : nbytes};
        see_move(io, now_ns);
        return true;
    }
    if (wharf_file_io_is_lost(io)) {
        *ret_end = (struct wharf_file_end){.how = WHARF_FILE_LOST};
        return true;
    }
    if (!is_late(io, head, patience, now_ns))
        return false;
    __atomic_store_n(&io->is_hung, true, __ATOMIC_RELAXED);
    wharf_file_io_lose(io);
    *ret_end = (struct wharf_file_end){.how = WHARF_FILE_LATE};
    return true;
}
