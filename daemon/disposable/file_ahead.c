/* SPDX-License-Identifier: Apache-2.0 */
/* file_ahead.c: finds sequences of ranges, and counts what was read ahead of them. */
#include "daemon/disposable/file_ahead.h"

#define STEP WHARF_FILE_STEP_NBYTES
/* Jobs that make a sequence. */
#define N_JOBS 3u
/* How far a range may lie beyond the sequence's end, and before it, since others overtake it. */
#define BEYOND_NBYTES ((uint64_t)1 << 20)
#define BEHIND_NBYTES ((uint64_t)8 << 20)
/* What was read ahead is waste, when the sequence's end is so many steps behind it. */
#define N_STEPS_BEHIND 8u
/* After so much of a sequence the earlier half counts for half. */
#define LATE_NBYTES ((uint64_t)16 << 20)
/* A read waits for its file if it takes longer than this, and a nanosecond for each byte.  Many
 * disks answer sooner.  Where the kernel's own readahead is long, waits are far apart, but for
 * those at the beginning, while it grows.  It then reads better than we could make it. */
#define WAIT_NS 500000u
#define APART_NBYTES ((uint64_t)512 << 10)
#define GROWS_NBYTES ((uint64_t)1 << 20)
/* The window at first; it doubles with each job. */
#define FIRST_NBYTES ((uint64_t)512 << 10)

_Static_assert(WHARF_FILE_MOST_AHEAD_NBYTES / STEP + N_STEPS_BEHIND + 2 <= 64, "bits of steps");

/* Of a step, as far as the file goes. */
static uint64_t nbytes_of(const struct wharf_file_ahead *ahead, uint64_t step)
{
    uint64_t left = ahead->size > step * STEP ? ahead->size - step * STEP : 0;

    return left < STEP ? left : STEP;
}

static void count(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

/* Forgets the steps before this one: nobody will use them. */
static void forget_before(struct wharf_file_ahead *ahead, uint64_t step,
                          struct wharf_file_counts *counts)
{
    for (; ahead->steps && ahead->first < step; ahead->first++, ahead->steps >>= 1)
        if (ahead->steps & 1)
            count(&counts->waste_nbytes, nbytes_of(ahead, ahead->first));
    if (ahead->first < step)
        ahead->first = step;
}

void wharf_file_ahead_drop(struct wharf_file_ahead *ahead, struct wharf_file_counts *counts)
{
    forget_before(ahead, UINT64_MAX, counts);
    *ahead = (struct wharf_file_ahead){.file = ahead->file};
}

/* Whether the range belongs to the sequence, which then goes on to its end. */
static bool goes_on(struct wharf_file_ahead *ahead, uint64_t offset, uint64_t end, bool is_more)
{
    bool is_next = offset >= ahead->end;

    if (ahead->n_jobs == 0 ||
        (is_next ? offset - ahead->end > BEYOND_NBYTES : ahead->end - offset > BEHIND_NBYTES))
        return false;
    ahead->n_jobs += is_next && !is_more && ahead->n_jobs < UINT32_MAX;
    if (end > ahead->end) {
        ahead->spanned_nbytes += end - ahead->end;
        ahead->end = end;
    }
    ahead->asked_nbytes += end - offset;
    if (ahead->asked_nbytes > ahead->spanned_nbytes)
        ahead->asked_nbytes = ahead->spanned_nbytes;
    if (ahead->spanned_nbytes > LATE_NBYTES) {
        ahead->spanned_nbytes /= 2;
        ahead->asked_nbytes /= 2;
    }
    return true;
}

static bool is_sequence(const struct wharf_file_ahead *ahead)
{
    return ahead->n_jobs >= N_JOBS && 2 * ahead->asked_nbytes >= ahead->spanned_nbytes;
}

enum wharf_file_watch wharf_file_ahead_watch(const struct wharf_file_ahead *ahead,
                                             const struct wharf_file_request *request)
{
    uint64_t from = request->offset, last = ahead->wait_end;

    if (ahead->file != request->file || ahead->has_waited || !is_sequence(ahead) ||
        from + request->nbytes < ahead->begin + GROWS_NBYTES)
        return WHARF_FILE_WATCH_NONE;
    return last > 0 && (from > last ? from - last : last - from) <= APART_NBYTES
               ? WHARF_FILE_WATCH_WAITS
               : WHARF_FILE_WATCH_TIME;
}

void wharf_file_ahead_took(struct wharf_file_ahead *ahead, const struct wharf_file_request *request,
                           uint64_t ns, bool has_waited)
{
    enum wharf_file_watch watch = wharf_file_ahead_watch(ahead, request);

    if (watch == WHARF_FILE_WATCH_NONE || ns < WAIT_NS + request->nbytes)
        return;
    ahead->wait_end = request->offset + request->nbytes;
    ahead->has_waited = watch == WHARF_FILE_WATCH_WAITS && has_waited;
}

/* 0: it is out of reach. */
static uint64_t bit_of(const struct wharf_file_ahead *ahead, uint64_t step)
{
    return step < ahead->first || step - ahead->first >= 64 ? 0
                                                            : (uint64_t)1 << (step - ahead->first);
}

static void use(struct wharf_file_ahead *ahead, uint64_t step, struct wharf_file_counts *counts)
{
    uint64_t bit = bit_of(ahead, step);

    if (ahead->steps & bit)
        count(&counts->hit_nbytes, nbytes_of(ahead, step));
    ahead->steps &= ~bit;
}

void wharf_file_ahead_note(struct wharf_file_ahead *ahead, const struct wharf_file_request *request,
                           struct wharf_file_counts *counts)
{
    uint64_t offset = request->offset, end = offset + request->nbytes;

    if (end == offset)
        return;
    if (ahead->file != request->file || !goes_on(ahead, offset, end, request->is_more)) {
        wharf_file_ahead_drop(ahead, counts);
        *ahead = (struct wharf_file_ahead){.file = request->file,
                                           .n_jobs = 1,
                                           .begin = offset,
                                           .end = end,
                                           .spanned_nbytes = end - offset,
                                           .asked_nbytes = end - offset};
        return;
    }
    for (uint64_t step = offset / STEP; step <= (end - 1) / STEP && ahead->steps; step++)
        use(ahead, step, counts);
    uint64_t at = ahead->end / STEP;
    forget_before(ahead, at > N_STEPS_BEHIND ? at - N_STEPS_BEHIND : 0, counts);
    if (ahead->at < at)
        ahead->at = at;
}

bool wharf_file_ahead_next(const struct wharf_file_ahead *ahead, uint64_t window_nbytes,
                           uint64_t *ret_step)
{
    uint64_t most = FIRST_NBYTES;

    if (window_nbytes == 0 || !ahead->has_waited || !is_sequence(ahead) ||
        (ahead->size && ahead->at * STEP >= ahead->size))
        return false;
    for (uint32_t n = N_JOBS; n < ahead->n_jobs && most < window_nbytes; n++)
        most *= 2;
    if (most > window_nbytes)
        most = window_nbytes;
    *ret_step = ahead->at;
    return ahead->at * STEP < ahead->end + most;
}

static bool is_same(const struct wharf_file_ahead *a, const struct wharf_file_ahead *b)
{
    return a->file == b->file && a->begin == b->begin && a->n_jobs >= b->n_jobs;
}

struct wharf_file_ahead wharf_file_ahead_begin(struct wharf_file_ahead *ahead, uint64_t step)
{
    ahead->at = step + 1;
    ahead->steps |= bit_of(ahead, step);
    return *ahead;
}

void wharf_file_ahead_end(struct wharf_file_ahead *ahead, const struct wharf_file_ahead *begun,
                          uint64_t step, bool is_read, struct wharf_file_counts *counts)
{
    uint64_t bit = is_same(ahead, begun) ? ahead->steps & bit_of(ahead, step) : 0;

    /* What was used or wasted meanwhile counts as read. */
    if (is_read || !bit)
        count(&counts->ahead_nbytes, nbytes_of(begun, step));
    else
        ahead->steps &= ~bit;
}
