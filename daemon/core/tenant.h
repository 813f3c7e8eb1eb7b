/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant.h: who pays for what clients use.
 *
 * A tenant is a user with the uids that are subordinate to this one, a block of uids, or a
 * listening socket as a whole: owner.h says which.  Everything here is guarded by the core lock.
 * Quotas are charged before what they are for is allocated.
 */
#ifndef WHARF_DAEMON_CORE_TENANT_H
#define WHARF_DAEMON_CORE_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/estimate.h"
#include "daemon/core/gpu_latency.h"
#include "daemon/core/limits.h"
#include "daemon/core/queues.h"
#include "daemon/core/rate_probe.h"
#include "daemon/core/stats.h"
#include "daemon/core/totals.h"
#include "proto/wharf_job.h"

/* Whether a tenant's jobs may be what ended the GPU's worker. */
struct wharf_gpu_trust {
    uint32_t n_alone; /* items that it still has to have run alone; 0: it is not suspected */
    uint32_t n_worker_faults;  /* workers that ended while they ran an item of it alone */
    uint64_t suspect_ns;       /* when a worker that had its items last ended */
    uint32_t n_slow;           /* results of its jobs that could not be written for long */
    uint64_t slow_ns;          /* when that was last */
    uint64_t waits_ns;         /* how long all results of its jobs kept a thread waiting, */
    uint64_t waits_since_ns;   /* from then on */
    uint64_t watched_until_ns; /* they are measured; read without the lock too */
    uint32_t n_stalls; /* workers that were killed since they could not register its memory */
    uint64_t stall_ns; /* when the last one was */
    uint64_t banned_until_ns; /* all its jobs run on the CPU */
};

/* What GPUs have pinned of a tenant's memory: gpu_room.h. */
struct wharf_gpu_pins {
    struct wharf_list link; /* in the list of tenants that have some */
    struct wharf_list pins; /* arenas and regions; the one used longest ago is first */
    uint64_t pinned_nbytes;
    uint64_t leaving_nbytes; /* of that: what makes room for others */
    uint64_t in_vain_ns;     /* when room was last looked for in vain, */
    uint64_t in_vain_nbytes; /* for so much, */
    bool is_in_vain_for_now; /* though others will have been pinned for long enough one day */
};

/* Refusals of which the log has a line to come, or had one: refusals.h. */
struct wharf_refusals {
    struct wharf_list link;          /* in the list of tenants of which one is to come */
    uint32_t to_say;                 /* bit i: of limit i */
    uint64_t n_said[WHARF_N_LIMITS]; /* that the last line had counted */
    uint64_t said_ns[WHARF_N_LIMITS];
};

/* What a client is told that is refused, of each limit: it stands as long as the tenant. */
enum { WHARF_OVER_NBYTES = 160 };

struct wharf_fair_party;

struct wharf_tenant {
    char name[WHARF_CONFIG_NAME_NBYTES];  /* uid:1000, block:100000, socket:NAME, or unknown */
    char group[WHARF_CONFIG_NAME_NBYTES]; /* the first one with settings that it is in; "": none */
    struct wharf_tenants *tenants;        /* of which it is one; NULL: none, in tests */
    struct wharf_list link;               /* in the list of all */
    struct wharf_tenant *next;            /* with the same hash */
    struct wharf_list idle_link;          /* in the list of those that nobody refers to */
    uint64_t idle_ns;                     /* since when nobody does */
    uint64_t number;                      /* counts up: later tenants have higher ones */
    bool is_configured;                   /* it has settings of its own */
    struct wharf_quota quota;
    struct wharf_use used;
    struct wharf_totals *totals; /* of all tenants */
    bool has_reservation;        /* of the minimum of every total: totals.h */
    uint32_t n_hung_filters;     /* processes that its descriptors have hung */
    uint32_t n_gate_hangs;       /* how often they did of late */
    uint64_t fd_filter_hang_ns;  /* when they last did */
    uint32_t n_hung_files;       /* processes for files that its files hang; loop thread */
    struct wharf_gpu_trust gpu_trust;
    struct wharf_gpu_pins gpu_pins;
    uint32_t n_gpu_leaving;     /* pieces of memory that GPUs are to let go of */
    uint32_t n_gpu_items;       /* that workers of GPUs have of its jobs */
    uint64_t not_here_until_ns; /* its chunks are not the loop thread's (cpu_here.h) */
    uint32_t n_blocked;         /* workers blocked in its memory */
    uint64_t blocked_since_ns;  /* since when it does, or did */
    uint64_t suspended_until_ns;
    bool is_suspended;                     /* its jobs are not begun */
    struct wharf_list suspended_link;      /* in the core's list, then */
    uint32_t n_references;                 /* by what is not charged to it */
    uint32_t n_gpu_models[WHARF_MAX_GPUS]; /* places of models that it has on each (gpu_models.h) */
    uint32_t n_active;      /* its sessions that are watched or have jobs, or did so just before */
    uint64_t active_weight; /* its weight when the first of them was */
    struct wharf_sched_tenant sched[WHARF_N_POOLS];
    struct wharf_estimates estimates;                 /* of a processor */
    struct wharf_estimates encoding;                  /* likewise, for jobs that compress */
    struct wharf_gpu_costs gpu_costs[WHARF_MAX_GPUS]; /* of each GPU */
    struct wharf_rate_probe probes[WHARF_N_CODECS];   /* of what passes most in a flood */
    struct wharf_tenant_stats stats;
    struct wharf_refusals refusals;
    char over_texts[WHARF_N_SHARED_LIMITS][WHARF_OVER_NBYTES];
    /* Time that it may still use in the interactive lane. */
    int64_t interactive_ns;
    uint64_t interactive_at_ns; /* when that was so */
    /* The loop thread's alone: what the loop knows it by, since its first connection. */
    struct wharf_fair_party *loop_party;
    /* Likewise, of what is coming back (room.h): connections, of which so many are over the quota
     * for now, and sessions and segments that are being freed. */
    struct wharf_list connections;
    uint32_t n_over;
    uint32_t n_endings;
    /* The model maker's, under its own lock: when it last had a turn there; 0: never. */
    uint64_t model_turn;
};

/* Chains of tenants by name, a power of two. */
#define WHARF_TENANTS_N_CHAINS 4096

struct wharf_tenants {
    /* What new tenants' estimates begin with. */
    uint32_t cpu_ns_per_kib[WHARF_N_CODECS];
    struct {
        uint32_t ns_per_kib[WHARF_N_CODECS]; /* 0: not known */
        uint64_t latency_ns;
    } gpus[WHARF_MAX_GPUS];
    struct wharf_totals totals;
    struct wharf_list list; /* by number */
    struct wharf_tenant *chains[WHARF_TENANTS_N_CHAINS];
    struct wharf_list refused; /* tenants whose refusals the log is to tell */
    uint32_t n_refused;        /* these; changed under the lock, read without it too */
    struct wharf_list idle; /* that nobody refers to, mostly the one for the longest time first */
    uint32_t n;
    uint32_t n_idle;    /* changed under the lock, read without it too */
    uint32_t n_walks;   /* while there is one nobody is dropped */
    uint32_t n_to_tidy; /* that wharf_tenants_tidy_on has not looked at yet */
    uint64_t last_number;
    struct wharf_tenant_stats dropped; /* what those counted that are gone */
};

/* How many idle tenants are kept for a while: what was learnt of them is of use when they come
 * back, and their counters can be seen. */
#define WHARF_TENANTS_REMEMBERED 256

/* deinit frees all tenants, whatever they use. */
void wharf_tenants_init(struct wharf_tenants *tenants);
void wharf_tenants_deinit(struct wharf_tenants *tenants);

/*
 * Returns the tenant of that name, a new one if need be, with a reference that the caller has to
 * give back.  NULL: out of memory.  A tenant stays while it uses something, somebody has a
 * reference, or it has settings of its own, and then until its debts are over.
 */
struct wharf_tenant *wharf_tenants_get(struct wharf_tenants *tenants, const char *name,
                                       const struct wharf_config *config);

/* A reference keeps a tenant that uses nothing. */
void wharf_tenant_ref(struct wharf_tenant *tenant);
void wharf_tenant_unref(struct wharf_tenant *tenant);

/* What the loop knows the tenant by; NULL: out of memory.  It outlives the tenant's connections, or
 * who connects anew would owe nothing.  Loop thread. */
struct wharf_fair_party *wharf_tenant_party(struct wharf_tenant *tenant);

/* A process that the tenant's descriptors hung has ended. */
void wharf_tenant_forget_hang(struct wharf_tenant *tenant);

/*
 * Drops idle tenants that owe nothing, if they have been idle for keep_tenants or there are more
 * than WHARF_TENANTS_REMEMBERED; what they counted is added to `dropped`.  Looks at n_looks of them
 * at most.  Returns whether there may be more to drop.  Only for the loop thread, and only where it
 * uses no tenant: other threads use tenants that are charged for something or have a reference.
 */
bool wharf_tenants_tidy(struct wharf_tenants *tenants, const struct wharf_config *config,
                        uint64_t now_ns, uint32_t n_looks);

/* How many idle tenants are looked at in one turn of the loop, and under one hold of the lock. */
#define WHARF_TENANTS_TIDIED 32

/*
 * The same for all idle tenants, WHARF_TENANTS_TIDIED of them a call, each at most once: those that
 * owe something are passed over.  Returns whether another call goes on; if not, the next one begins
 * anew.
 */
bool wharf_tenants_tidy_on(struct wharf_tenants *tenants, const struct wharf_config *config,
                           uint64_t now_ns);

/* When all debts, bans and suspensions of a tenant are over; WHARF_NEVER: time alone does not end
 * them. */
uint64_t wharf_tenant_debts_end_ns(const struct wharf_tenant *tenant,
                                   const struct wharf_config *config);

/* Whether there are idle tenants, which are to be dropped now or later.  Needs no lock. */
static inline bool wharf_tenants_has_idle(const struct wharf_tenants *tenants)
{
    return __atomic_load_n(&tenants->n_idle, __ATOMIC_RELAXED) > 0;
}

/* Takes the next tenant whose refusals the log is to tell; NULL: there is none. */
struct wharf_tenant *wharf_tenants_next_refused(struct wharf_tenants *tenants);

/* Whether the log is to say of some that they were refused.  Needs no lock. */
static inline bool wharf_tenants_has_refused(const struct wharf_tenants *tenants)
{
    return __atomic_load_n(&tenants->n_refused, __ATOMIC_RELAXED) > 0;
}

/* Replaces the totals by new ones, of which nothing is used yet, and charges to them what tenants
 * have. */
void wharf_tenants_set_totals(struct wharf_tenants *tenants, const struct wharf_totals *totals);

/* The first group with settings that a tenant is in, "" for none: its quota follows. */
void wharf_tenant_set_group(struct wharf_tenant *tenant, const char *group,
                            const struct wharf_config *config);
/* The same of the tenant of that name, if it is there. */
void wharf_tenants_set_group(struct wharf_tenants *tenants, const char *name, const char *group,
                             const struct wharf_config *config);

/* Takes the quotas of all tenants from the configuration anew. */
void wharf_tenants_reload(struct wharf_tenants *tenants, const struct wharf_config *config);

/*
 * Charges `use`, all of it or nothing.  Returns 0, or -EDQUOT with a text in *ret_text (NULL is
 * allowed) that names the quota or the total which is too small as the configuration does, and
 * lives as long as the totals.  The refusal is counted.
 */
int wharf_tenant_charge(struct wharf_tenant *tenant, const struct wharf_use *use,
                        const char **ret_text);

/* Whether the tenant's quota would grant `use` if `over` of what is used were not there; NULL: all
 * is.
 */
bool wharf_tenant_has_room(const struct wharf_tenant *tenant, const struct wharf_use *use,
                           const struct wharf_use *over);

/* Charges by the totals alone, for what is over the quota for a moment.  Returns as the above. */
int wharf_tenant_charge_over_quota(struct wharf_tenant *tenant, const struct wharf_use *use,
                                   const char **ret_text);

/* Counts a refusal that has another reason than what is charged, and has the log say so. */
void wharf_tenant_count_refusal(struct wharf_tenant *tenant, enum wharf_limit limit);

/* The same without a check, for what is there already: a tenant over its quota gets nothing more
 * until it is below. */
void wharf_tenant_charge_anyway(struct wharf_tenant *tenant, const struct wharf_use *use);

/* Gives back some or all of what was charged. */
void wharf_tenant_give_back(struct wharf_tenant *tenant, const struct wharf_use *use);

/* Of its jobs with these flags. */
static inline struct wharf_estimates *wharf_tenant_estimates(struct wharf_tenant *tenant,
                                                             uint32_t flags)
{
    return flags & WHARF_JOB_COMPRESS ? &tenant->encoding : &tenant->estimates;
}

#endif
