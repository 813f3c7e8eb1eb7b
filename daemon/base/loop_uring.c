/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_uring.c: readiness by io_uring.
 *
 * Each source has at most one poll request in the kernel, which ends when the source is ready.  A
 * new request is made after the source's call, which may have to wait for its turn; it is submitted
 * together with the next wait.  A new request checks the descriptor at once, so that readiness is
 * level-triggered.
 *
 * A request holds a reference to its file.  So it is withdrawn at once when its source is removed:
 * otherwise closing the descriptor would not close the file.
 */
#include <liburing.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/loop_backend.h"

#define N_ENTRIES 256

/* The token of requests whose answers are ignored: no slot has number 0. */
#define TOKEN_NONE 0

/* How soon to retry a request that the kernel did not take. */
#define RETRY_NS (10 * (uint64_t)WHARF_NS_PER_MS)

struct uring_data {
    struct io_uring ring;
    bool has_missed; /* some source that wants something has no request */
};

static int init(struct wharf_loop *loop)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
        .cq_entries = 16 * N_ENTRIES,
    };
    struct uring_data *data = calloc(1, sizeof(*data));

    if (!data)
        return -ENOMEM;
    int r = io_uring_queue_init_params(N_ENTRIES, &data->ring, &params);
    /* Both features are older than the kernel that the daemon's seals need.  Without NODROP,
     * answers could be lost. */
    if (r == 0 && (~params.features & (IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG))) {
        io_uring_queue_exit(&data->ring);
        r = -ENOSYS;
    }
    if (r < 0) {
        free(data);
        return r;
    }
    loop->backend_data = data;
    return 0;
}

static void deinit(struct wharf_loop *loop)
{
    struct uring_data *data = loop->backend_data;

    io_uring_queue_exit(&data->ring);
    free(data);
}

/* If the queue is full, submits it to make room.  NULL if the kernel does not take it. */
static struct io_uring_sqe *next_request(struct uring_data *data)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&data->ring);

    if (!sqe) {
        io_uring_submit(&data->ring);
        sqe = io_uring_get_sqe(&data->ring);
    }
    return sqe;
}

/* If there is no room, arm_missed does it before the next wait. */
static void arm(struct wharf_loop *loop, struct wharf_source *source)
{
    struct uring_data *data = loop->backend_data;
    struct io_uring_sqe *sqe = next_request(data);

    if (!sqe) {
        data->has_missed = true;
        return;
    }
    io_uring_prep_poll_add(sqe, source->fd, source->wanted);
    io_uring_sqe_set_data64(sqe, wharf_loop_token(loop, source));
    source->is_armed = true;
}

static void arm_missed(struct wharf_loop *loop)
{
    struct uring_data *data = loop->backend_data;

    data->has_missed = false;
    for (uint32_t at = 1; at < loop->n_slots && !data->has_missed; at++) {
        struct wharf_source *source = loop->slots[at].source;
        if (source && source->wanted && !source->is_armed &&
            !wharf_list_is_linked(&source->turn_link))
            arm(loop, source);
    }
}

/* Also submits, so that a queued request still refers to the file that its descriptor has now. */
static void withdraw(struct wharf_loop *loop, struct wharf_source *source)
{
    struct uring_data *data = loop->backend_data;
    struct io_uring_sqe *sqe = next_request(data);

    if (sqe) {
        io_uring_prep_poll_remove(sqe, wharf_loop_token(loop, source));
        io_uring_sqe_set_data64(sqe, TOKEN_NONE);
    }
    io_uring_submit(&data->ring);
    source->is_armed = false;
    /* A late answer to the withdrawn request must not be taken for one to a later request. */
    loop->slots[source->slot].use++;
}

static int want(struct wharf_loop *loop, struct wharf_source *source, uint32_t before)
{
    (void)before;
    if (source->is_armed)
        withdraw(loop, source);
    if (source->wanted)
        arm(loop, source);
    return 0;
}

static void take_answer(struct wharf_loop *loop, uint64_t token, int32_t result)
{
    struct wharf_source *source = wharf_loop_source(loop, token);

    if (!source || !source->is_armed)
        return;
    source->is_armed = false;
    if (!wharf_loop_ready(loop, source, result < 0 ? POLLERR : (uint32_t)result))
        return;
    /* The call may have removed the source, or armed it by changing what it wants. */
    source = wharf_loop_source(loop, token);
    if (source && source->wanted && !source->is_armed)
        arm(loop, source);
}

static void again(struct wharf_loop *loop, struct wharf_source *source)
{
    arm(loop, source);
}

/* Takes the answers that are there now, but not those that the calls cause, so that timers get
 * their turn. */
static void take_answers(struct wharf_loop *loop, struct uring_data *data)
{
    unsigned n = io_uring_cq_ready(&data->ring);
    struct io_uring_cqe *cqe;

    while (n-- > 0 && io_uring_peek_cqe(&data->ring, &cqe) == 0) {
        uint64_t token = io_uring_cqe_get_data64(cqe);
        int32_t result = cqe->res;
        io_uring_cqe_seen(&data->ring, cqe);
        take_answer(loop, token, result);
    }
}

static int wait_ready(struct wharf_loop *loop, uint64_t timeout_ns)
{
    struct uring_data *data = loop->backend_data;
    struct io_uring_cqe *cqe;

    if (data->has_missed)
        arm_missed(loop);
    if (data->has_missed && timeout_ns > RETRY_NS)
        timeout_ns = RETRY_NS;
    struct __kernel_timespec timeout = {
        .tv_sec = (long long)(timeout_ns / WHARF_NS_PER_S),
        .tv_nsec = (long long)(timeout_ns % WHARF_NS_PER_S),
    };
    int r = timeout_ns == 0
                ? io_uring_submit_and_get_events(&data->ring)
                : io_uring_submit_and_wait_timeout(
                      &data->ring, &cqe, 1, timeout_ns == WHARF_NEVER ? NULL : &timeout, NULL);

    /* EBUSY: the kernel holds answers that did not fit; taking some makes room. */
    if (r < 0 && r != -ETIME && r != -EINTR && r != -EBUSY && r != -EAGAIN)
        return r;
    take_answers(loop, data);
    return 0;
}

const struct wharf_loop_backend wharf_loop_uring = {init, deinit, want, again, wait_ready};
