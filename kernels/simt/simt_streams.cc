/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_streams.cc: kernels/epoch_streams.h on the SIMT layer.  A thread of its own runs the
 * device's code, while the caller's thread looks whether it is to stop.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <new>

#include "kernels/epoch_streams.h"
#include "kernels/simt/simt_inflate.h"

struct wharf_streams {
    wharf_inflate_shape shape;
};

namespace
{

constexpr long POLL_NS = 1000000;

struct run {
    wharf_inflate_job job;
    wharf_outcome outcome;
    uint64_t stop;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_over;
};

void *run_main(void *argument)
{
    run &r = *static_cast<run *>(argument);
    wharf_simt_inflate(&r.job);
    pthread_mutex_lock(&r.lock);
    r.is_over = true;
    pthread_cond_signal(&r.ended);
    pthread_mutex_unlock(&r.lock);
    return nullptr;
}

/* Until the decode has ended. */
void watch(run &r, const wharf_stream_task *task)
{
    pthread_mutex_lock(&r.lock);
    while (!r.is_over) {
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&r.ended, &r.lock, &until);
        if (task->is_stopped(task->context))
            __atomic_store_n(&r.stop, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&r.lock);
}

int decode_in_thread(run &r, const wharf_stream_task *task)
{
    pthread_t thread;
    pthread_mutex_init(&r.lock, nullptr);
    pthread_cond_init(&r.ended, nullptr);
    int rc = pthread_create(&thread, nullptr, run_main, &r);
    if (rc == 0) {
        watch(r, task);
        pthread_join(thread, nullptr);
    }
    pthread_cond_destroy(&r.ended);
    pthread_mutex_destroy(&r.lock);
    return rc ? -ENOMEM : 0;
}

/* Of a part, whose search looks some bytes back. */
constexpr uint64_t LEAST_PART_NBYTES = 64;

int simt_open_streams(wharf_epoch *, wharf_streams **ret_streams, uint32_t *ret_least_nbytes)
{
    const char *least = getenv("WHARF_SIMT_STREAMS");
    wharf_streams *streams = new (std::nothrow) wharf_streams{wharf_simt_inflate_shape};
    if (!streams)
        return -ENOMEM;
    *ret_least_nbytes = WHARF_STREAM_LEAST_SRC_NBYTES;
    if (least) {
        *ret_least_nbytes = (uint32_t)strtoul(least, nullptr, 10);
        uint64_t part = *ret_least_nbytes / 8;
        streams->shape.least_part_nbytes = part > LEAST_PART_NBYTES ? part : LEAST_PART_NBYTES;
    }
    *ret_streams = streams;
    return 0;
}

void simt_close_streams(wharf_streams *streams)
{
    delete streams;
}

/* Scratch is of its exact size, so that the sanitizer sees what goes past it. */
int simt_decode_stream(wharf_streams *streams, const wharf_stream_task *task, uint64_t,
                       wharf_outcome *ret_outcome, uint32_t *ret_crc)
{
    run r = {};
    void *scratch;
    r.job.in = wharf_stream_copy(task);
    r.job.out = wharf_stream_output(task);
    r.job.in_nbytes = task->src_nbytes;
    r.job.out_avail = task->dst_nbytes;
    r.job.codec = task->codec;
    r.job.outcome = &r.outcome;
    r.job.stop = &r.stop;
    r.job.stop_value = 1;
    r.job.wants_crc = task->wants_crc;
    if (posix_memalign(&scratch, 256, wharf_inflate_plan(&r.job, &streams->shape)))
        return -ENOMEM;
    wharf_inflate_lend(&r.job, scratch);
    memcpy(wharf_stream_copy(task), reinterpret_cast<const void *>(task->src), task->src_nbytes);
    int rc = decode_in_thread(r, task);
    if (rc == 0 && task->output == WHARF_WORK_TO_HOST && r.outcome.result == WHARF_OK)
        memcpy(reinterpret_cast<void *>(task->dst), r.job.out, r.outcome.out_nbytes);
    *ret_crc = r.job.control->out_crc;
    free(scratch);
    *ret_outcome = r.outcome;
    return rc;
}

} // namespace

const struct wharf_stream_ops wharf_simt_streams = {simt_open_streams, simt_close_streams,
                                                    simt_decode_stream};
