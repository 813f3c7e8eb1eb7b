/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c: creates and frees the rings, the arena and the tables of a session.
 */
#include "daemon/core/session.h"

#include "daemon/core/file_io.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/list.h"
#include "daemon/core/queues.h"
#include "daemon/core/segment.h"
#include "proto/wharf_job.h"

uint64_t wharf_session_arena_nbytes(const struct wharf_session_options *options)
{
    return wharf_ring_whole_pages(options->arena_nbytes);
}

/* What there is for each entry of the ring. */
static uint64_t job_nbytes(const struct wharf_session_options *options)
{
    return sizeof(struct wharf_job) + (options->has_words ? sizeof(struct wharf_job_words) : 0);
}

/*
 * The descriptors of two rings and an arena are open until the session is freed, beside those that
 * are on their way to the client and that its connection pays for.  The rings and the jobs are
 * mappings.  What the arena is charged as a region, as which it can be let go of, is part of it.
 */
struct wharf_use wharf_session_use(const struct wharf_session_options *options)
{
    bool has_arena = options->arena_nbytes || options->brought_nbytes;

    return (struct wharf_use){
        .n_descriptors = 3 + has_arena,
        .n_jobs = options->n_entries,
        .n_mappings = 3 + has_arena,
        .memory_nbytes = wharf_ring_whole_pages(options->arena_nbytes) + options->brought_nbytes +
                         wharf_ring_c_nbytes(options->n_entries, options->has_words) +
                         wharf_ring_d_nbytes(options->n_entries, options->has_marks) +
                         options->n_entries * job_nbytes(options),
    };
}

/* ---- making -------------------------------------------------------------------------------- */

static int make_rings(struct wharf_session *session, const struct wharf_session_options *options)
{
    size_t c_nbytes = wharf_ring_c_nbytes(options->n_entries, options->has_words);
    size_t d_nbytes = wharf_ring_d_nbytes(options->n_entries, options->has_marks);
    int r = wharf_segment_make(WHARF_SEGMENT_C, c_nbytes, &session->c);

    if (r == 0)
        r = wharf_segment_make(WHARF_SEGMENT_D, d_nbytes, &session->d);
    if (r < 0)
        return r;
    /* The loop must not wait for what a client makes the kernel swap out.  It does without where
     * little can be locked. */
    mlock(session->c.address, c_nbytes);
    mlock(session->d.address, d_nbytes);
    struct wharf_ring_d *d = session->d.address;
    d->magic = WHARF_RING_MAGIC;
    d->layout = WHARF_RING_LAYOUT;
    d->n_entries = options->n_entries;
    d->arena_nbytes = wharf_ring_whole_pages(options->arena_nbytes) + options->brought_nbytes;
    d->generation = options->generation;
    wharf_ring_daemon_init(&session->ring, session->c.address, session->d.address,
                           options->n_entries);
    if (options->has_marks)
        wharf_ring_daemon_use_marks(&session->ring);
    if (options->has_words)
        wharf_ring_daemon_use_words(&session->ring);
    session->ring_flags = WHARF_RING_CPU_ONLY;
    wharf_ring_store_flags(&d->flags, session->ring_flags);
    /* Nobody looks before the client has rung: see wharf_session_ring_is_whole. */
    wharf_ring_daemon_await(&session->ring);
    return 0;
}

static int make_regions(struct wharf_session *session, const struct wharf_session_options *options)
{
    session->n_regions = options->n_regions + 1;
    session->regions = calloc(session->n_regions, sizeof(*session->regions));
    session->n_models = options->n_models;
    session->models = calloc(session->n_models + 1, sizeof(*session->models));
    if (!session->regions || !session->models) {
        wharf_segment_free(options->pooled);
        return -ENOMEM;
    }
    struct wharf_region *arena = &session->regions[0];
    int r = 0;
    if (options->pooled)
        arena->segment = *options->pooled;
    else if (options->brought_fd >= 0)
        r = wharf_segment_adopt(options->brought_fd, options->brought_nbytes, false,
                                &arena->segment);
    else if (options->arena_nbytes)
        r = wharf_segment_make(WHARF_SEGMENT_ARENA, wharf_ring_whole_pages(options->arena_nbytes),
                               &arena->segment);
    arena->is_there = r == 0 && (options->brought_fd >= 0 || options->arena_nbytes);
    return r;
}

static int make_jobs(struct wharf_session *session, const struct wharf_session_options *options)
{
    uint32_t n_entries = options->n_entries;

    session->jobs = calloc(n_entries, sizeof(*session->jobs));
    if (options->has_words)
        session->words = calloc(n_entries, sizeof(*session->words));
    if (options->has_chains)
        session->slots = calloc(n_entries, sizeof(*session->slots));
    if (!session->jobs || (options->has_words && !session->words) ||
        (options->has_chains && !session->slots))
        return -ENOMEM;
    for (uint32_t i = 0; i < n_entries; i++) {
        session->jobs[i].session = session;
        session->jobs[i].next_free = i + 1 < n_entries ? i + 1 : UINT32_MAX;
        wharf_list_init(&session->jobs[i].link);
        wharf_list_init(&session->jobs[i].chains);
    }
    return 0;
}

int wharf_session_new(const struct wharf_session_options *options, struct wharf_tenant *tenant,
                      struct wharf_session **ret_session)
{
    struct wharf_session *session = calloc(1, sizeof(*session));

    if (!session) {
        wharf_segment_free(options->pooled);
        return -ENOMEM;
    }
    session->id = options->id;
    session->tenant = tenant;
    session->default_class = options->default_class;
    session->engine = options->engine;
    session->max_job_nbytes = options->max_job_nbytes;
    session->max_batch_chunks = options->max_batch_chunks;
    session->max_compress_nbytes = options->max_compress_nbytes;
    session->max_start_ns = options->max_start_ns;
    session->socket = -1;
    session->c.fd = session->d.fd = -1;
    session->use = wharf_session_use(options);
    wharf_list_init(&session->activity.watch_link);
    wharf_list_init(&session->publish_link);
    wharf_list_init(&session->activity.stale_link);
    wharf_list_init(&session->event_link);
    wharf_list_init(&session->session_link);
    wharf_list_init(&session->placing.waiting);
    wharf_list_init(&session->placing.due);
    wharf_list_init(&session->placing.due_link);
    wharf_list_init(&session->placing.held);
    wharf_list_init(&session->placing.held_link);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_session_init(&session->sched[i]);
    int r = make_regions(session, options);
    if (r == 0)
        r = make_rings(session, options);
    if (r == 0)
        r = make_jobs(session, options);
    if (r < 0) {
        wharf_session_free(session);
        return r;
    }
    *ret_session = session;
    return 0;
}

void wharf_session_free(struct wharf_session *session)
{
    if (!session)
        return;
    wharf_file_io_free(session->file_io);
    wharf_segment_free(&session->c);
    wharf_segment_free(&session->d);
    for (uint32_t i = 0; session->regions && i < session->n_regions; i++)
        if (session->regions[i].is_there)
            wharf_segment_free(&session->regions[i].segment);
    for (uint32_t i = 0; session->models && i < session->n_models; i++)
        if (session->models[i].is_there)
            wharf_segment_free(&session->models[i].segment);
    free(session->regions);
    free(session->models);
    free(session->jobs);
    free(session->words);
    free(session->slots);
    free(session);
}

bool wharf_session_ring_is_whole(struct wharf_session *session)
{
    if (session->ring_is_whole)
        return true;
    session->ring_is_whole = wharf_segment_is_whole(&session->c);
    return session->ring_is_whole;
}

/* ---- regions ------------------------------------------------------------------------------- */

struct wharf_use wharf_region_use(const struct wharf_region *region)
{
    uint64_t nbytes = region->segment.nbytes;

    /* The descriptor is the process's that reads it. */
    if (region->is_file)
        return (struct wharf_use){.n_descriptors = 1};
    /* The descriptor is the GPUs'; the mapping of GPU memory is the worker's. */
    if (region->is_device)
        return (struct wharf_use){
            .n_descriptors = 1, .n_mappings = 1, .gpu_nbytes = nbytes, .n_gpu_regions = 1};
    return (struct wharf_use){.n_descriptors = 1, .n_mappings = 1, .memory_nbytes = nbytes};
}

struct wharf_region *wharf_session_region(struct wharf_session *session, uint32_t number)
{
    struct wharf_region *region = &session->regions[0];

    if (number == WHARF_REGION_ARENA)
        return region->is_there ? region : NULL;
    for (uint32_t i = 1; i < session->n_regions; i++) {
        region = &session->regions[i];
        if (region->is_there && region->number == number)
            return region;
    }
    return NULL;
}

struct wharf_session_model *wharf_session_model(struct wharf_session *session, uint32_t number)
{
    uint32_t place = number - WHARF_FIRST_MODEL;

    return place < session->n_models && session->models[place].is_there ? &session->models[place]
                                                                        : NULL;
}

struct wharf_region *wharf_session_region_place(struct wharf_session *session)
{
    for (uint32_t i = 1; i < session->n_regions; i++)
        if (!session->regions[i].is_there && !session->regions[i].memory)
            return &session->regions[i];
    return NULL;
}
