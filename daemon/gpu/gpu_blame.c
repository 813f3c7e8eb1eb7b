/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_blame.c: finds tenants whose jobs or memory harmed a worker, and applies the consequences.
 *
 * Every tenant with items on a worker that ends is a suspect.  A suspect's items run alone, so the
 * next end has one culprit; after N_ALONE items without harm it is trusted again.  MOST_FAULTS ends
 * during its lone items ban it from the GPU.
 */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/core/core.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/gpu/gpu_state.h"

/* A suspect's items that must run alone without harm before it is trusted again.  And the workers
 * that may end meanwhile before all of its jobs go to the CPU. */
#define N_ALONE 8
#define MOST_FAULTS 3

/* A tenant's memory may block the thread for a hundredth of this window.  One wait counts for half
 * of that at most, since the machine may have caused it; longer waits are also counted as such. */
#define WAITS_WINDOW_NS (10 * (uint64_t)WHARF_NS_PER_S)
#define MOST_WAITS_NS (WAITS_WINDOW_NS / 100)
#define LONGEST_WAIT_NS (MOST_WAITS_NS / 2)

static void ban(const struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                uint64_t now_ns)
{
    tenant->gpu_trust.banned_until_ns = now_ns + backend->core->config.gpu_ban_ns;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "the CPU runs all jobs of this tenant for a while");
}

static void count_fault(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                        uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    trust->n_worker_faults++;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: the worker ended while it ran a job of this tenant alone, %u times now",
              backend->name, trust->n_worker_faults);
    if (trust->n_worker_faults < MOST_FAULTS)
        return;
    trust->n_worker_faults = 0;
    trust->n_alone = N_ALONE;
    ban(backend, tenant, now_ns);
}

void wharf_gpu_recovery_blame_slow(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                   uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    /* Compared as sums, without subtraction: another GPU's thread may have set a later time. */
    if (now_ns > trust->slow_ns + backend->core->config.gpu_ban_ns)
        trust->n_slow = 0;
    trust->slow_ns = now_ns;
    if (++trust->n_slow < MOST_FAULTS)
        return;
    trust->n_slow = 0;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: results of this tenant's jobs could not be written for long, %u times",
              backend->name, MOST_FAULTS);
    ban(backend, tenant, now_ns);
}

void wharf_gpu_recovery_blame_waits(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                    uint64_t waited_ns, uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    __atomic_store_n(&trust->watched_until_ns, now_ns + WAITS_WINDOW_NS, __ATOMIC_RELAXED);
    if (now_ns > trust->waits_since_ns + WAITS_WINDOW_NS) {
        trust->waits_ns = 0;
        trust->waits_since_ns = now_ns;
    }
    trust->waits_ns += waited_ns < LONGEST_WAIT_NS ? waited_ns : LONGEST_WAIT_NS;
    if (trust->waits_ns <= MOST_WAITS_NS || trust->banned_until_ns > now_ns)
        return;
    trust->waits_ns = 0;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: this tenant's memory kept it waiting for results to be written for a "
              "hundredth of the time",
              backend->name);
    ban(backend, tenant, now_ns);
}

void wharf_gpu_recovery_blame_stall(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                    uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    if (now_ns >= trust->stall_ns + backend->core->config.gpu_ban_ns)
        trust->n_stalls = 0;
    trust->stall_ns = now_ns;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: memory of this tenant could not be registered in time", backend->name);
    if (++trust->n_stalls < WHARF_GPU_MOST_STALLS)
        return;
    trust->n_stalls = 0;
    ban(backend, tenant, now_ns);
}

static void blame(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece, bool was_alone,
                  uint64_t now_ns)
{
    struct wharf_tenant *tenant = piece->piece.job->session->tenant;

    if (was_alone)
        count_fault(backend, tenant, now_ns);
    piece->is_faulting = was_alone;
    tenant->gpu_trust.n_alone = N_ALONE;
    tenant->gpu_trust.suspect_ns = now_ns;
}

void wharf_gpu_recovery_blame(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    bool has_usual = !wharf_list_is_empty(&backend->under_way);
    /* A chunk that is aside, and started before, may have been the cause. */
    bool has_aside = backend->large.n_taken > 0 || backend->encode.n_taken > 0;
    bool was_alone = backend->is_alone && !(has_usual && has_aside);

    WHARF_LIST_FOR(link, &backend->under_way)
    {
        blame(backend, WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link), was_alone, now_ns);
    }
    for (uint32_t i = 0; i < backend->large.n_places; i++)
        if (backend->large.places[i].piece)
            blame(backend, backend->large.places[i].piece, was_alone, now_ns);
    WHARF_LIST_FOR(link, &backend->encode.running)
    {
        blame(backend, WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link), was_alone, now_ns);
    }
}
