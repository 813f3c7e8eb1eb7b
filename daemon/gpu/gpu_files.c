/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_files.c: pieces whose sources are in files, until they are handed over.
 *
 * Such a piece has chunks that lie one behind the other in one file, so a single read brings all of
 * them to the session's staging area (core/file_staging.h).  It goes through these lists:
 *
 *     feed -> fresh -> reading -> read -> ready -> the worker
 *                          again: waiting
 *
 * Nobody waits for a read: the thread looks at heads in shared memory.  A read of several chunks
 * that fails is repeated chunk by chunk, so that each gets the result that it has alone.  A piece
 * whose job was stopped ends at once; its place is left to the read (gpu_stage.c).
 *
 * A read can take long.  Meanwhile a piece has one gpu_piece reserved, not one for each chunk,
 * since all sessions share these: it is cut up when there are as many.
 *
 * If the GPU cannot have a piece after all, the CPU reads and decodes it; unless it is in clients'
 * GPU memory: then it waits for the next worker.
 */
#include "daemon/gpu/gpu_files.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/piece.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/gpu/gpu_stage.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"

/* The most that one read brings, but at least one chunk: enough that asking costs little beside
 * it, and little enough that many threads read at a time. */
#define RUN_NBYTES ((uint64_t)1 << 20)
/* Bytes between two chunks that are read with them: headers and checksums. */
#define GAP_NBYTES 4096u
/* Pieces that are looked at under one hold of the core lock, and in one turn without it. */
#define MOST_LOOKS 64
#define MOST_READ_LOOKS 256
/* A file in the page cache is read within this time.  Other reads are looked at in such pauses. */
#define SOON_NS WHARF_NS_PER_MS

static struct wharf_gpu_piece *first_of(const struct wharf_list *list)
{
    return WHARF_LIST_FIRST(list, struct wharf_gpu_piece, link);
}

static struct wharf_file_staging *staging_of(const struct wharf_job *job)
{
    return job->session->file_io->staging;
}

/* ---- what is read together ----------------------------------------------------------------- */

static bool goes_on(const struct wharf_chunk *chunk, uint64_t begin, uint64_t end)
{
    return chunk->src_offset >= end && chunk->src_offset - end <= GAP_NBYTES &&
           chunk->src_offset + chunk->src_nbytes - begin <= RUN_NBYTES;
}

uint32_t wharf_gpu_files_run(const struct wharf_job *job, uint32_t most, bool *ret_is_file,
                             uint64_t *ret_nbytes)
{
    *ret_is_file = wharf_job_has_file_source(job);
    *ret_nbytes = job->submission.src_nbytes;
    if (!job->batch)
        return 1;
    if (!*ret_is_file)
        return most;
    uint32_t left = job->batch->n_chunks - job->batch->n_handed_out, n = 1;
    const struct wharf_batch_entry *first = &job->batch->entries[job->batch->n_handed_out];
    uint64_t begin = first->chunk.src_offset, end = begin + first->chunk.src_nbytes;

    *ret_is_file = first->source->is_file;
    for (; n < most && n < left; n++) {
        const struct wharf_batch_entry *next = first + n;
        if (*ret_is_file ? next->source != first->source || !goes_on(&next->chunk, begin, end)
                         : next->source->is_file)
            break;
        end = next->chunk.src_offset + next->chunk.src_nbytes;
    }
    *ret_nbytes = end - begin;
    return n;
}

/* The same of a piece, which can have fewer chunks. */
static uint64_t nbytes_of(const struct wharf_piece *piece)
{
    struct wharf_piece_span first = wharf_piece_span_at(piece, 0);
    struct wharf_piece_span last = wharf_piece_span_at(piece, piece->n_chunks - 1);

    return last.src_offset + last.in_nbytes - first.src_offset;
}

/* ---- to be read ---------------------------------------------------------------------------- */

/* The piece is in no list. */
static void begin_read(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                       uint32_t place, uint64_t now_ns)
{
    gpu_piece->piece.begun_ns = now_ns;
    gpu_piece->stage = (struct wharf_gpu_stage){
        .is_there = true,
        .place = place,
        .nbytes = (uint32_t)nbytes_of(&gpu_piece->piece),
    };
    backend->flight.n_without_places++;
    wharf_gpu_room_use(backend->gpu, gpu_piece->piece.job, now_ns);
    wharf_list_append(&backend->files.fresh, &gpu_piece->link);
}

bool wharf_gpu_files_feed(struct wharf_gpu_backend *backend, struct wharf_job *job,
                          uint32_t n_chunks, uint64_t nbytes, uint64_t now_ns)
{
    uint32_t place;

    if (!wharf_gpu_may_keep(backend, 1))
        return false;
    if (!wharf_file_staging_take(staging_of(job), nbytes, &place)) {
        /* The job is placed anew, and others are next. */
        staging_of(job)->is_full = true;
        return true;
    }
    struct wharf_gpu_piece *gpu_piece = first_of(&backend->free_pieces);
    wharf_list_remove(&gpu_piece->link);
    gpu_piece->is_faulting = false;
    gpu_piece->warp_ns = wharf_core_take_for_gpu(backend->core, backend->gpu, job, n_chunks, now_ns,
                                                 &gpu_piece->piece);
    begin_read(backend, gpu_piece, place, now_ns);
    return true;
}

void wharf_gpu_files_publish(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_piece *gpu_piece;

    while ((gpu_piece = first_of(&backend->files.fresh))) {
        struct wharf_piece_span chunk = wharf_piece_span_at(&gpu_piece->piece, 0);
        struct wharf_gpu_stage *stage = &gpu_piece->stage;
        wharf_list_remove(&gpu_piece->link);
        wharf_list_append(&backend->files.reading, &gpu_piece->link);
        backend->files.asked_ns = wharf_now_ns();
        stage->patience = (struct wharf_file_patience){.since_ns = backend->files.asked_ns};
        wharf_file_io_stage(gpu_piece->piece.job->session->file_io, chunk.source->file,
                            chunk.src_offset, stage->nbytes, stage->place,
                            gpu_piece->piece.first_chunk > 0);
    }
}

/* Whether nothing more is waited for. */
static bool has_ended(struct wharf_gpu_piece *gpu_piece, uint64_t now_ns)
{
    const struct wharf_job *job = gpu_piece->piece.job;
    struct wharf_gpu_stage *stage = &gpu_piece->stage;

    if (wharf_file_io_is_staged(job->session->file_io, stage->place, &stage->patience, now_ns,
                                stage->nbytes, &stage->end))
        return true;
    stage->end = (struct wharf_file_end){.how = WHARF_FILE_STOPPED};
    return __atomic_load_n(&job->stopped, __ATOMIC_RELAXED);
}

void wharf_gpu_files_reap(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_list *reading = &backend->files.reading;
    const struct wharf_list *last = reading->prev;
    bool is_last = wharf_list_is_empty(reading);

    for (unsigned n = 0; n < MOST_READ_LOOKS && !is_last; n++) {
        struct wharf_gpu_piece *gpu_piece = first_of(reading);
        is_last = &gpu_piece->link == last;
        if (!has_ended(gpu_piece, now_ns)) {
            wharf_list_rotate(reading);
            continue;
        }
        wharf_list_remove(&gpu_piece->link);
        wharf_list_append(&backend->files.read, &gpu_piece->link);
    }
}

/* ---- what becomes of it -------------------------------------------------------------------- */

/* Takes a piece with a place out of its list: it is the caller's. */
static void take_out(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    wharf_list_remove(&gpu_piece->link);
    backend->flight.n_without_places--;
    if (!gpu_piece->stage.is_there)
        return;
    wharf_gpu_end_use(backend, gpu_piece->piece.job);
    wharf_gpu_stage_release(backend, gpu_piece);
}

static void end(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                const struct wharf_outcome *outcome)
{
    take_out(backend, gpu_piece);
    wharf_gpu_results_end(backend, gpu_piece, WHARF_ENGINE_AUTO, outcome);
}

/* Whether each of a piece's chunks can be a piece. */
static bool can_be_cut_up(const struct wharf_gpu_backend *backend,
                          const struct wharf_gpu_piece *gpu_piece)
{
    return gpu_piece->piece.n_chunks == 1 ||
           wharf_gpu_may_keep(backend, gpu_piece->piece.n_chunks - 1);
}

/* A read has ended. */
static void see_to_read(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    const struct wharf_job *job = gpu_piece->piece.job;
    struct wharf_gpu_stage *stage = &gpu_piece->stage;
    bool is_one = gpu_piece->piece.n_chunks == 1;
    bool was_answered = stage->is_answered;

    stage->is_answered = stage->end.how == WHARF_FILE_DONE;
    if (stage->is_answered && !was_answered) {
        wharf_file_staging_answered(staging_of(job));
        wharf_gpu_stage_tell_of_room(backend, job->session);
    }
    if (stage->is_answered && !stage->end.error && stage->end.nbytes == stage->nbytes) {
        wharf_list_remove(&gpu_piece->link);
        wharf_list_append(&backend->files.ready, &gpu_piece->link);
        return;
    }
    if (stage->is_answered && !can_be_cut_up(backend, gpu_piece)) {
        wharf_list_rotate(&backend->files.read);
        return;
    }
    if (stage->is_answered && !is_one) {
        take_out(backend, gpu_piece);
        wharf_gpu_retry_cut_up(backend, gpu_piece, wharf_gpu_stage_await);
        return;
    }
    /* Which of several chunks kept it waiting is not known; the client submits them again. */
    if (stage->end.how == WHARF_FILE_LATE && !is_one)
        stage->end.how = WHARF_FILE_LOST;
    struct wharf_outcome outcome = wharf_piece_file_outcome(&stage->end, false, job->stopped);
    end(backend, gpu_piece, &outcome);
}

/* Whether the worker does not have all of the job's memory. */
static bool is_without_memory(const struct wharf_gpu_backend *backend, const struct wharf_job *job)
{
    return backend->state == WHARF_GPU_UP &&
           wharf_gpu_memory_of_job(job, backend->gpu) != WHARF_GPU_MEMORY_READY;
}

/* Ends a piece, or leaves it to the CPU, if this GPU is not to have it any more.  Whether it did.
 */
static bool is_over(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                    uint64_t now_ns)
{
    const struct wharf_job *job = gpu_piece->piece.job;
    struct wharf_outcome outcome = {.result = wharf_gpu_retry_result(backend, gpu_piece, now_ns)};
    bool is_ready = backend->state == WHARF_GPU_UP &&
                    wharf_gpu_memory_of_job(job, backend->gpu) == WHARF_GPU_MEMORY_READY;

    if (!job->stopped && !wharf_place_needs_gpu(job) && (!is_ready || outcome.result)) {
        take_out(backend, gpu_piece);
        wharf_gpu_recovery_requeue(backend, gpu_piece);
        return true;
    }
    if (outcome.result == WHARF_OK)
        return false;
    end(backend, gpu_piece, &outcome);
    return true;
}

/* A piece, first in its list, whose memory has to leave the GPU lets go of it, since that waits for
 * its pieces.  Its chunks are read again, one by one, when the memory is back. */
static void let_go(struct wharf_gpu_backend *backend, struct wharf_list *list,
                   struct wharf_gpu_piece *gpu_piece)
{
    if (!can_be_cut_up(backend, gpu_piece)) {
        wharf_list_rotate(list);
        return;
    }
    take_out(backend, gpu_piece);
    wharf_gpu_retry_cut_up(backend, gpu_piece, wharf_gpu_stage_await);
}

/* Pieces whose reads may be slow do the same. */
static void see_to_reading(struct wharf_gpu_backend *backend)
{
    struct wharf_list *reading = &backend->files.reading;
    const struct wharf_list *last = reading->prev;
    bool is_last =
        wharf_list_is_empty(reading) || backend->core->residency.room.leaving_nbytes == 0;

    for (unsigned n = 0; n < MOST_LOOKS && !is_last; n++) {
        struct wharf_gpu_piece *gpu_piece = first_of(reading);
        is_last = &gpu_piece->link == last;
        if (is_without_memory(backend, gpu_piece->piece.job))
            let_go(backend, reading, gpu_piece);
        else
            wharf_list_rotate(reading);
    }
}

/* Whether it has several chunks, of which each has to run alone. */
static bool is_suspects_run(const struct wharf_gpu_piece *gpu_piece)
{
    return gpu_piece->piece.n_chunks > 1 &&
           gpu_piece->piece.job->session->tenant->gpu_trust.n_alone > 0;
}

/* Whether a piece whose source is there can be handed over; if not, whether all others wait. */
static bool can_go(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *gpu_piece,
                   bool *ret_others_wait)
{
    const struct wharf_job *job = gpu_piece->piece.job;
    uint32_t n = gpu_piece->piece.n_chunks;

    if (backend->state != WHARF_GPU_UP)
        return false;
    wharf_gpu_tell_place(backend);
    *ret_others_wait = backend->is_alone ||
                       !wharf_place_gpu_has_room(backend->core, backend->gpu) ||
                       (job->session->tenant->gpu_trust.n_alone > 0 && backend->flight.n_items > 0);
    if (*ret_others_wait)
        return false;
    /* One of the gpu_pieces for its chunks is reserved already. */
    backend->flight.n_without_places--;
    *ret_others_wait = wharf_gpu_items_free_places(backend, n, n) < n;
    backend->flight.n_without_places++;
    return !*ret_others_wait;
}

static void hand_over(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                      uint64_t now_ns)
{
    const struct wharf_job *job = gpu_piece->piece.job;

    wharf_list_remove(&gpu_piece->link);
    backend->flight.n_without_places--;
    wharf_gpu_items_hand_over(backend, gpu_piece, gpu_piece->piece.n_chunks, gpu_piece->warp_ns,
                              now_ns);
    /* The items use it now. */
    wharf_gpu_end_use(backend, job);
    backend->is_alone = job->session->tenant->gpu_trust.n_alone > 0;
}

static bool see_to_ready(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_list *ready = &backend->files.ready;
    const struct wharf_list *last = ready->prev;
    bool is_last = wharf_list_is_empty(ready), others_wait = false;

    for (unsigned n = 0; n < MOST_LOOKS && !is_last && !others_wait; n++) {
        struct wharf_gpu_piece *gpu_piece = first_of(ready);
        is_last = &gpu_piece->link == last;
        if (is_over(backend, gpu_piece, now_ns))
            continue;
        if (is_without_memory(backend, gpu_piece->piece.job) || is_suspects_run(gpu_piece))
            let_go(backend, ready, gpu_piece);
        else if (can_go(backend, gpu_piece, &others_wait))
            hand_over(backend, gpu_piece, now_ns);
        else if (!others_wait)
            wharf_list_rotate(ready);
    }
    return !others_wait;
}

/* A piece that waits for a place. */
static void read_again(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                       uint64_t now_ns)
{
    const struct wharf_job *job = gpu_piece->piece.job;
    struct wharf_piece_span chunk = wharf_piece_span_at(&gpu_piece->piece, 0);
    uint32_t place;

    if (backend->state != WHARF_GPU_UP ||
        wharf_gpu_memory_of_job(job, backend->gpu) != WHARF_GPU_MEMORY_READY ||
        !wharf_file_staging_take(staging_of(job), chunk.in_nbytes, &place)) {
        wharf_gpu_room_want(backend->core, job, now_ns);
        wharf_list_rotate(&backend->files.waiting);
        return;
    }
    take_out(backend, gpu_piece);
    gpu_piece->warp_ns = wharf_place_warp_ns(backend->gpu, job, chunk.in_nbytes, chunk.out_avail);
    begin_read(backend, gpu_piece, place, now_ns);
}

static void see_to_waiting(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_list *waiting = &backend->files.waiting;
    const struct wharf_list *last = waiting->prev;
    bool is_last = wharf_list_is_empty(waiting);

    for (unsigned n = 0; n < MOST_LOOKS && !is_last; n++) {
        struct wharf_gpu_piece *gpu_piece = first_of(waiting);
        is_last = &gpu_piece->link == last;
        if (!is_over(backend, gpu_piece, now_ns))
            read_again(backend, gpu_piece, now_ns);
    }
}

bool wharf_gpu_files_pump(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    wharf_gpu_stage_see_to_left(backend, now_ns);
    for (unsigned n = 0; n < MOST_LOOKS && !wharf_list_is_empty(&backend->files.read); n++)
        see_to_read(backend, first_of(&backend->files.read));
    see_to_reading(backend);
    see_to_waiting(backend, now_ns);
    return see_to_ready(backend, now_ns);
}

/* ---- sleeping ------------------------------------------------------------------------------ */

bool wharf_gpu_files_are_idle(const struct wharf_gpu_backend *backend)
{
    const struct wharf_gpu_files *files = &backend->files;

    return wharf_list_is_empty(&files->fresh) && wharf_list_is_empty(&files->reading) &&
           wharf_list_is_empty(&files->read) && wharf_list_is_empty(&files->ready) &&
           wharf_list_is_empty(&files->waiting) && wharf_list_is_empty(&files->left);
}

uint64_t wharf_gpu_files_look_ns(const struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    const struct wharf_gpu_files *files = &backend->files;

    if (!wharf_list_is_empty(&files->fresh) || !wharf_list_is_empty(&files->read) ||
        !wharf_list_is_empty(&files->ready) || !wharf_list_is_empty(&files->waiting))
        return 0;
    if (wharf_list_is_empty(&files->reading))
        return wharf_list_is_empty(&files->left) ? WHARF_NEVER : now_ns + SOON_NS;
    return now_ns < files->asked_ns + SOON_NS ? 0 : now_ns + SOON_NS;
}
