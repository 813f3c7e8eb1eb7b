/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that make and end handles. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/job_words.h"
#include "clientlib/link.h"
#include "clientlib/link_drive.h"
#include "clientlib/now.h"
#include "clientlib/sized_struct.h"
#include "encoders/codec.h"

/* The sizes of the first version's structs.  They never change, whatever is added later. */
enum {
    OPTIONS_NBYTES_0_1 = offsetof(struct wharf_options, reserved) + sizeof(uint32_t),
    INFO_NBYTES_0_1 = offsetof(struct wharf_info, daemon_version) + 32,
};

/* One place of the ring is for cancels. */
enum { MAX_JOBS = WHARF_RING_MAX_ENTRIES - 1 };
_Static_assert(WHARF_DEFAULT_MAX_JOBS == WHARF_RING_DEFAULT_ENTRIES - 1, "the default queue");

/* ---- options ------------------------------------------------------------------------------- */

static const char *socket_path_of(const struct wharf_options *own)
{
    const char *path = own->socket_path ? own->socket_path : secure_getenv("WHARF_SOCKET");

    return path && *path ? path : WHARF_DEFAULT_SOCKET;
}

static int check_engine(const struct wharf_options *own)
{
    int needs_daemon = own->engine == WHARF_ENGINE_GPU || own->engine == WHARF_ENGINE_SIMT;

    if (own->engine > WHARF_ENGINE_SIMT)
        return wharf_client_fail(-EINVAL, "%u is no engine", own->engine);
    if (needs_daemon && (own->flags & WHARF_OPEN_EMBEDDED))
        return wharf_client_fail(-EOPNOTSUPP,
                                 "the engine %s needs a daemon: the embedded ones are cpu and "
                                 "reference",
                                 wharf_engine_name(own->engine));
    return 0;
}

static int check_options(const struct wharf_options *own)
{
    const uint32_t flags = WHARF_OPEN_EMBEDDED | WHARF_OPEN_DAEMON;

    if ((own->flags & ~flags) || own->flags == flags || own->reserved)
        return wharf_client_fail(-EINVAL, "the options have unknown or contradicting flags");
    if (own->default_class > WHARF_CLASS_BACKGROUND)
        return wharf_client_fail(-EINVAL, "%u is no class", own->default_class);
    if (own->max_jobs > MAX_JOBS)
        return wharf_client_fail(-EINVAL, "max_jobs is %u, and %u are possible", own->max_jobs,
                                 MAX_JOBS);
    if (own->arena_nbytes > PTRDIFF_MAX - WHARF_RING_PAGE_NBYTES)
        return wharf_client_fail(-EINVAL, "arena_nbytes is more than there can be");
    if (strlen(socket_path_of(own)) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return wharf_client_fail(-EINVAL, "the socket's path is longer than paths of sockets can "
                                          "be");
    return check_engine(own);
}

static int copy_options(struct wharf_options *own, const struct wharf_options *options)
{
    *own = (struct wharf_options)WHARF_OPTIONS_INIT;
    if (options) {
        int r =
            wharf_client_copy_struct(own, sizeof(*own), OPTIONS_NBYTES_0_1, options, "the options");
        if (r < 0)
            return r;
    }
    return check_options(own);
}

/* ---- making -------------------------------------------------------------------------------- */

static void init_locks(struct wharf *wharf)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wharf->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&wharf->lock, NULL);
    pthread_mutex_init(&wharf->request_lock, NULL);
}

static uint64_t ns_of(uint32_t value, uint32_t default_value, uint64_t unit_ns)
{
    return (value ? value : default_value) * unit_ns;
}

/* A handle without a way to run jobs. */
static struct wharf *new_handle(const struct wharf_options *own)
{
    struct wharf *wharf = calloc(1, sizeof(*wharf));

    if (!wharf)
        return NULL;
    if (wharf_client_fork_guard_init(&wharf->guard) < 0) {
        free(wharf);
        return NULL;
    }
    wharf->engine = own->engine;
    wharf->flags = own->flags;
    wharf->default_class = own->default_class ? own->default_class : WHARF_CLASS_NORMAL;
    if (own->spin_us != WHARF_SPIN_NEVER)
        wharf->spin_ns = ns_of(own->spin_us, WHARF_DEFAULT_SPIN_US, 1000);
    wharf->arena.fd = -1;
    wharf->link.socket = -1;
    wharf_client_wakeup_fd_init(&wharf->wakeup);
    init_locks(wharf);
    return wharf;
}

void wharf_close(struct wharf *wharf)
{
    if (!wharf)
        return;
    int is_forked = wharf_client_is_forked(&wharf->guard);
    if (!is_forked && wharf->is_daemon)
        wharf_client_done_lose(wharf, WHARF_REASON_NONE);
    wharf_client_wakeup_fd_deinit(&wharf->wakeup);
    wharf_client_link_deinit(&wharf->link, is_forked);
    wharf_client_arena_deinit(&wharf->arena, is_forked);
    wharf_client_regions_deinit(&wharf->regions);
    wharf_client_models_deinit(&wharf->models);
    wharf_client_jobs_deinit(&wharf->jobs);
    wharf_client_fork_guard_deinit(&wharf->guard);
    /* A child's copies may be locked, by a thread that it does not have. */
    if (!is_forked) {
        pthread_mutex_destroy(&wharf->lock);
        pthread_mutex_destroy(&wharf->request_lock);
        pthread_cond_destroy(&wharf->changed);
    }
    free(wharf);
}

static int init_jobs(struct wharf *wharf, uint32_t max_jobs)
{
    if (wharf_client_jobs_init(&wharf->jobs, max_jobs) < 0)
        return wharf_client_fail(-ENOMEM, "out of memory");
    return 0;
}

static int make_embedded(struct wharf *wharf, const struct wharf_options *own)
{
    uint64_t arena_nbytes = wharf_ring_whole_pages(own->arena_nbytes);

    if (wharf->engine == WHARF_ENGINE_AUTO)
        wharf->engine = WHARF_ENGINE_CPU;
    if (wharf_client_arena_make(&wharf->arena, &wharf->regions,
                                arena_nbytes ? arena_nbytes : WHARF_DEFAULT_ARENA_NBYTES) < 0)
        return wharf_client_fail(-ENOMEM, "no memory for the arena");
    return init_jobs(wharf, own->max_jobs ? own->max_jobs : WHARF_DEFAULT_MAX_JOBS);
}

/* ---- through a daemon ---------------------------------------------------------------------- */

static int init_link(struct wharf *wharf, const struct wharf_options *own)
{
    struct wharf_client_link *link = &wharf->link;
    const char *name = own->client_name ? own->client_name : program_invocation_short_name;

    if (wharf_client_link_init(link, socket_path_of(own)) < 0)
        return wharf_client_fail(-ENOMEM, "out of memory");
    wharf->is_daemon = 1;
    snprintf(link->client_name, sizeof(link->client_name), "%s", name);
    link->patience_ns = ns_of(own->patience_ms, WHARF_DEFAULT_PATIENCE_MS, 1000000);
    link->arena_nbytes = wharf_ring_whole_pages(own->arena_nbytes);
    if (own->max_jobs) {
        link->n_entries = WHARF_RING_MIN_ENTRIES;
        while (link->n_entries <= own->max_jobs)
            link->n_entries *= 2;
    }
    return 0;
}

/* Until there is a session, the daemon says no, there is none, or patience is over. */
static int connect_first(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;
    uint64_t deadline_ns = wharf_client_now_ns() + link->patience_ns;

    for (;;) {
        wharf_client_link_step(wharf);
        if (link->state == WHARF_CLIENT_LINK_UP)
            return 0;
        if (link->state == WHARF_CLIENT_LINK_BROKEN)
            return wharf_client_link_error(wharf);
        if (link->state == WHARF_CLIENT_LINK_DOWN && link->is_refused)
            return wharf_client_fail(link->error, "%s", link->text);
        if (wharf_client_now_ns() >= deadline_ns)
            return wharf_client_fail(-ETIMEDOUT, "%s", link->text);
        wharf_client_link_sleep(wharf, deadline_ns);
    }
}

static int make_daemon(struct wharf *wharf, const struct wharf_options *own)
{
    int r = init_link(wharf, own);

    if (r == 0) {
        pthread_mutex_lock(&wharf->lock);
        r = connect_first(wharf);
        pthread_mutex_unlock(&wharf->lock);
    }
    if (r == 0)
        r = init_jobs(wharf, own->max_jobs ? own->max_jobs : wharf->link.n_entries - 1);
    return r;
}

/* ---- the calls ----------------------------------------------------------------------------- */

/* Returns 0 with *ret_wharf, or an error. */
static int open_as(const struct wharf_options *own,
                   int (*make)(struct wharf *, const struct wharf_options *),
                   struct wharf **ret_wharf)
{
    struct wharf *wharf = new_handle(own);
    int r;

    if (!wharf)
        return wharf_client_fail(-ENOMEM, "out of memory");
    r = make(wharf, own);
    if (r < 0)
        wharf_close(wharf);
    else
        *ret_wharf = wharf;
    return r;
}

int wharf_open(const struct wharf_options *options, struct wharf **ret_wharf)
{
    struct wharf_options own;
    int r;

    if (!ret_wharf)
        return wharf_client_fail(-EINVAL, "the place for the handle is NULL");
    r = copy_options(&own, options);
    if (r < 0)
        return r;
    if (own.flags & WHARF_OPEN_EMBEDDED)
        return open_as(&own, make_embedded, ret_wharf);
    r = open_as(&own, make_daemon, ret_wharf);
    if (r == 0 || (own.flags & WHARF_OPEN_DAEMON) || own.engine == WHARF_ENGINE_GPU ||
        own.engine == WHARF_ENGINE_SIMT)
        return r;
    return open_as(&own, make_embedded, ret_wharf);
}

uint32_t wharf_engine(const struct wharf *wharf)
{
    return wharf->engine;
}

static uint64_t own_codecs(void)
{
    uint64_t codecs = 0;

    for (uint32_t i = 0; i < 64 && wharf_codec_find(i); i++)
        codecs |= (uint64_t)1 << i;
    return codecs;
}

static void fill_info(const struct wharf *wharf, struct wharf_info *info)
{
    const struct wharf_client_link *link = &wharf->link;

    info->is_daemon = (uint32_t)wharf->is_daemon;
    info->max_jobs = wharf->jobs.max_public;
    info->n_in_flight = wharf->jobs.n_public;
    info->arena_nbytes = wharf->arena.nbytes;
    info->arena_taken_nbytes = wharf->arena.extents.taken_nbytes;
    if (!wharf->is_daemon) {
        info->engines = 1u << wharf->engine;
        info->codecs = own_codecs();
        return;
    }
    info->is_connected = link->state == WHARF_CLIENT_LINK_UP;
    info->engines = link->facts.engines;
    info->codecs = link->facts.codecs;
    info->max_job_nbytes = link->facts.max_job_nbytes;
    info->max_batch_chunks = link->facts.max_batch_chunks;
    info->max_gpu_chunk_nbytes = link->facts.max_gpu_chunk_nbytes;
    info->generation = link->facts.generation;
    info->n_reconnects = link->n_ups ? link->n_ups - 1 : 0;
    info->n_resubmitted = link->n_resubmitted;
    info->n_here = wharf->n_here;
    info->max_gpu_large_nbytes = link->facts.max_gpu_large_nbytes;
    info->max_gpu_large_ns = link->facts.max_gpu_large_ns;
    info->max_compress_nbytes = link->facts.max_compress_nbytes;
    info->max_start_ns = link->facts.max_start_ns;
    memcpy(info->daemon_version, link->facts.version, sizeof(info->daemon_version));
}

int wharf_get_info(struct wharf *wharf, struct wharf_info *ret_info)
{
    struct wharf_info info = {0};
    uint32_t nbytes;
    int r = wharf_client_check(wharf);

    if (r < 0)
        return r;
    if (!ret_info || ret_info->struct_nbytes < INFO_NBYTES_0_1)
        return wharf_client_fail(-EINVAL,
                                 "the info's place is NULL or its struct_nbytes too small");
    nbytes = ret_info->struct_nbytes;
    r = wharf_client_enter(wharf);
    if (r < 0)
        return r;
    fill_info(wharf, &info);
    wharf_client_leave(wharf);
    info.struct_nbytes = nbytes < sizeof(info) ? nbytes : (uint32_t)sizeof(info);
    memcpy(ret_info, &info, info.struct_nbytes);
    return 0;
}
