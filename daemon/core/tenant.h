/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant.h: the unit to which quotas and shares belong.
 *
 * A tenant is a user with all subordinate uids, a block of uids, or a listening socket as a whole;
 * owner.h decides.  The core lock guards everything here.  Quotas are charged before allocation.
 */
#ifndef WHARF_DAEMON_CORE_TENANT_H
#define WHARF_DAEMON_CORE_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/core/estimate.h"
#include "daemon/core/gpu_latency.h"
#include "daemon/core/limits.h"
#include "daemon/core/queues.h"
#include "daemon/core/rate_probe.h"
#include "daemon/core/stats.h"
#include "daemon/core/totals.h"
#include "proto/wharf_job.h"

/* Whether the tenant's jobs are suspected of ending GPU workers. */
struct wharf_gpu_trust {
    uint32_t n_alone;          /* items that still have to run alone; 0: no suspect */
    uint32_t n_worker_faults;  /* workers that ended while they ran one of its items alone */
    uint64_t suspect_ns;       /* when a worker that had its items last ended */
    uint32_t n_slow;           /* results of its jobs whose writing blocked for long */
    uint64_t slow_ns;          /* when that was last */
    uint64_t waits_ns;         /* total time for which its results blocked a thread, */
    uint64_t waits_since_ns;   /* since then */
    uint64_t watched_until_ns; /* until then that is measured; also read without the lock */
    uint32_t n_stalls;         /* workers that were killed because registering its memory hung */
    uint64_t stall_ns;         /* when the last one was */
    uint64_t banned_until_ns;  /* until then all its jobs run on the CPU */
};

/* The tenant's pinned memory: gpu_room.h. */
struct wharf_gpu_pins {
    struct wharf_list link; /* in the list of tenants with pinned memory */
    struct wharf_list pins; /* arenas and regions, in least recently used order */
    uint64_t pinned_nbytes;
    uint64_t leaving_nbytes; /* part of that which is being evicted */
    uint64_t in_vain_ns;     /* the last failed search for room: its time, */
    uint64_t in_vain_nbytes; /* the bytes that were wanted, */
    bool is_in_vain_for_now; /* and whether it can succeed later */
};

/* The tenant's jobs that wait for their start words, and what polling these may cost: starts.h. */
struct wharf_tenant_starts {
    struct wharf_list sessions;  /* that have such jobs */
    struct wharf_list young;     /* in the core's list of tenants for whom threads poll */
    struct wharf_heap_node look; /* in the core's heap, while it has such sessions */
    uint64_t newest_ns;          /* when the last such job began to wait */
    int64_t left_ns;             /* time that polling may still take, as of left_at_ns */
    uint64_t left_at_ns;
};

/* Log lines about refusals, written or due: refusals.h. */
struct wharf_refusals {
    struct wharf_list link;          /* in the list of tenants with a line due */
    uint32_t to_say;                 /* bit i: a line about limit i is due */
    uint64_t n_said[WHARF_N_LIMITS]; /* the count in the last line */
    uint64_t said_ns[WHARF_N_LIMITS];
};

/* The text for refused clients, for each limit; it lives as long as the tenant. */
enum { WHARF_OVER_NBYTES = 160 };

struct wharf_fair_party;

struct wharf_tenant {
    char name[WHARF_CONFIG_NAME_NBYTES];  /* uid:1000, block:100000, socket:NAME, or unknown */
    char group[WHARF_CONFIG_NAME_NBYTES]; /* its first group with settings; "": none */
    struct wharf_tenants *tenants;        /* the table that it is in; NULL in tests */
    struct wharf_list link;               /* in the list of all */
    struct wharf_tenant *next;            /* next in its hash chain */
    struct wharf_list idle_link;          /* in the list of idle tenants */
    uint64_t idle_ns;                     /* since when it is idle */
    uint64_t number;                      /* counts up: later tenants have higher ones */
    bool is_configured;                   /* it has settings of its own */
    struct wharf_quota quota;
    struct wharf_use used;
    struct wharf_totals *totals; /* of all tenants */
    bool has_reservation;        /* of the minimum of every total: totals.h */
    uint32_t n_hung_filters;     /* filters that its descriptors hang now */
    uint32_t n_filter_hangs;     /* how often one has hung, as long as it is barred for that */
    uint64_t filter_hang_ns;     /* when one last hung */
    /* Set by the loop thread, atomically for threads that copy them. */
    uint32_t n_files;          /* registered files */
    uint32_t n_file_processes; /* wharfd-io processes, those about to end included */
    uint32_t n_hung_files;     /* wharfd-io processes that its files hang */
    struct wharf_gpu_trust gpu_trust;
    struct wharf_gpu_pins gpu_pins;
    struct wharf_tenant_starts starts;
    uint32_t n_gpu_leaving;     /* pieces of memory that GPUs have to release */
    uint32_t n_gpu_items;       /* items of its jobs on GPUs */
    uint64_t not_here_until_ns; /* until then no inline decode of its chunks (cpu_here.h) */
    uint32_t n_blocked;         /* workers blocked in its memory */
    uint64_t blocked_since_ns;  /* since when any is, or last was */
    uint64_t suspended_until_ns;
    bool is_suspended;                     /* its jobs do not start */
    struct wharf_list suspended_link;      /* in the core's list of suspended tenants */
    uint32_t n_references;                 /* held by users that are not charged to it */
    uint64_t memo_owner;                   /* of decoded chunks that GPUs keep (memo.h); 0: none */
    uint32_t n_gpu_models[WHARF_MAX_GPUS]; /* its models' places on each GPU (gpu_models.h) */
    uint32_t n_active;                     /* its sessions that are active or were until recently */
    uint64_t active_weight;                /* its weight when the first of them became active */
    struct wharf_sched_tenant sched[WHARF_N_POOLS];
    struct wharf_estimates estimates;                 /* of a processor */
    struct wharf_estimates encoding;                  /* likewise, for jobs that compress */
    struct wharf_gpu_costs gpu_costs[WHARF_MAX_GPUS]; /* of each GPU */
    struct wharf_rate_probe probes[WHARF_N_CODECS];   /* of the best policy under load */
    struct wharf_tenant_stats stats;
    struct wharf_refusals refusals;
    char over_texts[WHARF_N_SHARED_LIMITS][WHARF_OVER_NBYTES];
    /* Time that it may still use in the interactive lane, as of interactive_at_ns. */
    int64_t interactive_ns;
    uint64_t interactive_at_ns; /* see interactive_ns */
    /* Loop thread only: its party in the loop, since its first connection. */
    struct wharf_fair_party *loop_party;
    /* Loop thread only: until when its starts of wharfd-io processes are paid for (room.h). */
    uint64_t starts_paid_ns;
    /* Loop thread only, for room.h: its connections, how many of these are over the quota for now,
     * and the number of sessions and segments that are being freed, and of wharfd-io processes that
     * end. */
    struct wharf_list connections;
    uint32_t n_over;
    uint32_t n_endings;
    /* For the model maker, under its own lock: when it last had a turn; 0: never. */
    uint64_t model_turn;
};

/* Chains of tenants by name, a power of two. */
#define WHARF_TENANTS_N_CHAINS 4096

struct wharf_tenants {
    /* The initial estimates of new tenants. */
    uint32_t cpu_ns_per_kib[WHARF_N_CODECS];
    struct {
        uint32_t ns_per_kib[WHARF_N_CODECS]; /* 0: not known */
        uint64_t latency_ns;
    } gpus[WHARF_MAX_GPUS];
    struct wharf_totals totals;
    struct wharf_list list; /* by number */
    struct wharf_tenant *chains[WHARF_TENANTS_N_CHAINS];
    struct wharf_list refused; /* tenants whose refusals have to be logged */
    uint32_t n_refused;     /* length of `refused`; changed under the lock, also read without it */
    struct wharf_list idle; /* idle tenants, roughly in the order in which they became idle */
    uint32_t n;
    uint32_t n_idle;    /* changed under the lock, also read without it */
    uint32_t n_walks;   /* iterations in progress, during which no tenant is dropped */
    uint32_t n_to_tidy; /* tenants that wharf_tenants_tidy_on has not visited yet */
    uint64_t last_number;
    uint64_t memo_parts; /* bit i: some tenant has part i of the memory for chunks that are kept */
    struct wharf_tenant_stats dropped; /* sums of dropped tenants */
};

/* How many idle tenants are kept: their estimates are useful when they return, and their counters
 * stay visible. */
#define WHARF_TENANTS_REMEMBERED 256

/* deinit frees all tenants, whatever they use. */
void wharf_tenants_init(struct wharf_tenants *tenants);
void wharf_tenants_deinit(struct wharf_tenants *tenants);

/*
 * Returns the tenant of that name, a new one if necessary, with a reference for the caller.  NULL:
 * out of memory.  A tenant exists while it uses something, is referenced, or has settings of its
 * own, and afterwards until its debts are over.
 */
struct wharf_tenant *wharf_tenants_get(struct wharf_tenants *tenants, const char *name,
                                       const struct wharf_config *config);

/* A reference keeps a tenant that uses nothing. */
void wharf_tenant_ref(struct wharf_tenant *tenant);
void wharf_tenant_unref(struct wharf_tenant *tenant);

/* The tenant's party in the loop; NULL: out of memory.  It outlives the tenant's connections, so
 * that reconnecting sheds no debt.  Loop thread. */
struct wharf_fair_party *wharf_tenant_party(struct wharf_tenant *tenant);

/* A filter that the tenant's descriptors hung has ended. */
void wharf_tenant_forget_hang(struct wharf_tenant *tenant);

/*
 * Drops idle tenants without debts, if they were idle for keep_tenants or there are more than
 * WHARF_TENANTS_REMEMBERED; adds their counters to `dropped`.  Visits at most n_looks.  Returns
 * whether there may be more to drop.  For the loop thread, while it uses no tenant; other threads
 * use only tenants that are charged or referenced.
 */
bool wharf_tenants_tidy(struct wharf_tenants *tenants, const struct wharf_config *config,
                        uint64_t now_ns, uint32_t n_looks);

/* How many idle tenants are visited in one turn of the loop, and under one hold of the lock. */
#define WHARF_TENANTS_TIDIED 32

/*
 * The same for all idle tenants, each at most once, WHARF_TENANTS_TIDIED in each call; skips those
 * with debts.  Returns whether another call continues; if not, the next call starts over.
 */
bool wharf_tenants_tidy_on(struct wharf_tenants *tenants, const struct wharf_config *config,
                           uint64_t now_ns);

/* When all debts, bans and suspensions of a tenant are over; WHARF_NEVER: time alone does not end
 * them. */
uint64_t wharf_tenant_debts_end_ns(const struct wharf_tenant *tenant,
                                   const struct wharf_config *config);

/* Whether there are idle tenants.  Needs no lock. */
static inline bool wharf_tenants_has_idle(const struct wharf_tenants *tenants)
{
    return __atomic_load_n(&tenants->n_idle, __ATOMIC_RELAXED) > 0;
}

/* Takes the next tenant whose refusals have to be logged; NULL: none. */
struct wharf_tenant *wharf_tenants_next_refused(struct wharf_tenants *tenants);

/* Whether there is such a tenant.  Needs no lock. */
static inline bool wharf_tenants_has_refused(const struct wharf_tenants *tenants)
{
    return __atomic_load_n(&tenants->n_refused, __ATOMIC_RELAXED) > 0;
}

/* Replaces the totals by unused ones, and charges all tenants' use to them. */
void wharf_tenants_set_totals(struct wharf_tenants *tenants, const struct wharf_totals *totals);

/* Sets a tenant's first group with settings ("": none), and its quota accordingly. */
void wharf_tenant_set_group(struct wharf_tenant *tenant, const char *group,
                            const struct wharf_config *config);
/* The same for the tenant of that name, if it exists. */
void wharf_tenants_set_group(struct wharf_tenants *tenants, const char *name, const char *group,
                             const struct wharf_config *config);

/* Sets the quotas of all tenants from a new configuration. */
void wharf_tenants_reload(struct wharf_tenants *tenants, const struct wharf_config *config);

/*
 * Charges all of `use`, or nothing.  Returns 0; or -EDQUOT, and in *ret_text (NULL is allowed) a
 * text that names the exceeded quota or total by its setting and lives as long as the totals.
 * Counts the refusal.
 */
int wharf_tenant_charge(struct wharf_tenant *tenant, const struct wharf_use *use,
                        const char **ret_text);

/* Whether the tenant's quota would grant `use` if `over` (NULL: nothing) were not in use. */
bool wharf_tenant_has_room(const struct wharf_tenant *tenant, const struct wharf_use *use,
                           const struct wharf_use *over);

/* Charges against the totals only, for use that exceeds the quota for a moment.  Returns as
 * above. */
int wharf_tenant_charge_over_quota(struct wharf_tenant *tenant, const struct wharf_use *use,
                                   const char **ret_text);

/* Counts a refusal for a limit that is not charged, and has it logged. */
void wharf_tenant_count_refusal(struct wharf_tenant *tenant, enum wharf_limit limit);

/* Charges without a check, for what exists already.  A tenant over its quota gets nothing more
 * until it is below. */
void wharf_tenant_charge_anyway(struct wharf_tenant *tenant, const struct wharf_use *use);

/* Returns some or all of the charge. */
void wharf_tenant_give_back(struct wharf_tenant *tenant, const struct wharf_use *use);

/* Whose the chunks are that GPUs keep for the tenant, who then has one of n_parts for as long as it
 * exists; 0: there is none left, or its users are not known. */
uint64_t wharf_tenant_memo_owner(struct wharf_tenants *tenants, struct wharf_tenant *tenant,
                                 uint32_t n_parts);

/* The estimates for its jobs with these flags. */
static inline struct wharf_estimates *wharf_tenant_estimates(struct wharf_tenant *tenant,
                                                             uint32_t flags)
{
    return flags & WHARF_JOB_COMPRESS ? &tenant->encoding : &tenant->estimates;
}

#endif
