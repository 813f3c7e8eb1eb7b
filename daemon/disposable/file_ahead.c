/* SPDX-License-Identifier: Apache-2.0 */
/* file_ahead.c: finds sequences of ranges, and counts what was read ahead of them. */
#include "daemon/disposable/file_ahead.h"

#define STEP WHARF_FILE_STEP_NBYTES
/* Jobs that make a sequence. */
#define N_IN_ORDER 3u
/* Bytes between two ranges that are skipped: headers, or a chunk that nobody wants. */
#define GAP_NBYTES (64u << 10)
/* How far behind the sequence's end a range may lie, since threads overtake each other. */
#define N_STEPS_BEHIND 4u
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
    bool is_next = offset >= ahead->end && offset - ahead->end <= GAP_NBYTES;
    bool is_late = offset < ahead->end && offset >= ahead->begin &&
                   ahead->end - offset <= N_STEPS_BEHIND * STEP;

    if (ahead->n_in_order == 0 || (!is_next && !is_late))
        return false;
    ahead->n_in_order += is_next && !is_more && ahead->n_in_order < UINT32_MAX;
    if (end > ahead->end)
        ahead->end = end;
    return true;
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
        *ahead = (struct wharf_file_ahead){
            .file = request->file, .n_in_order = 1, .begin = offset, .end = end};
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

    if (window_nbytes == 0 || ahead->n_in_order < N_IN_ORDER ||
        (ahead->size && ahead->at * STEP >= ahead->size))
        return false;
    for (uint32_t n = N_IN_ORDER; n < ahead->n_in_order && most < window_nbytes; n++)
        most *= 2;
    if (most > window_nbytes)
        most = window_nbytes;
    *ret_step = ahead->at;
    return ahead->at * STEP < ahead->end + most;
}

static bool is_same(const struct wharf_file_ahead *a, const struct wharf_file_ahead *b)
{
    return a->file == b->file && a->begin == b->begin && a->n_in_order >= b->n_in_order;
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
