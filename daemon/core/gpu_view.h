/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_view.h: what is known of GPUs and their workers.
 */
#ifndef WHARF_DAEMON_CORE_GPU_VIEW_H
#define WHARF_DAEMON_CORE_GPU_VIEW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/gpu_list.h"
#include "daemon/base/list.h"

struct wharf_gpu_backend;

/*
 * What placement knows of one GPU and its worker.  Its backend keeps it up to date.  What concerns
 * several of them at once is in bits of the core's, one for each GPU: gpus_up and the like.
 */
struct wharf_gpu_view {
    uint32_t number;                   /* its place in front->fleet.gpus */
    char name[WHARF_GPU_NAME_NBYTES];  /* by which the configuration calls it */
    struct wharf_gpu_backend *backend; /* NULL: it is gone */
    int wake_fd;                       /* an eventfd, for the backend's thread */
    uint64_t busy_since_ns;            /* which is awake; WHARF_NEVER: it sleeps */
    struct wharf_list memories;        /* gpu_memory.h: all that it could use */
    uint32_t place;                    /* what its worker said of it; 0: nothing */
    bool may_come;                     /* there is a worker, or will be */
    bool is_lost;                      /* worker after worker does not get ready */
    bool is_alone;                     /* it has a suspect's item, and takes nothing beside it */
    uint32_t n_warps;                  /* that decode at the same time, at least 1 while it is up */
    uint64_t latency_ns;               /* from handing over a job of no size until it is noticed */
    uint32_t n_large, n_large_free;    /* its worker's places for large chunks */
    uint32_t n_in_flight;              /* items that the worker has */
    uint64_t in_flight_ns;             /* the time that warps will take for them, all together */
    uint64_t in_flight_nbytes;         /* of their sources and capacities */
    uint64_t flow_ps_per_kib; /* of which so much time passes for each KiB when there is plenty */
    int64_t lead_ns;          /* what pool ANY has had more of it than the GPUs' own pools */
    int64_t own_lead_ns;      /* what its own pool has had more of it than that of all GPUs */
    struct wharf_list models; /* gpu_models.h: that it has, the one used longest ago first */
    uint32_t most_models;     /* that it has places for */
    uint32_t n_models;        /* that are in use, and of how many tenants */
    uint32_t n_model_tenants;
    uint32_t n_leaving_models; /* that are being let go for others */
    uint64_t n_ups;            /* workers that have been ready */
    uint64_t n_ended;          /* workers that have ended, ready or not */
    uint64_t n_own_ends;       /* of these, by no SIGKILL of somebody else's */
    uint64_t n_chunks;         /* that it has decoded, good or bad */
    uint64_t busy_ns;          /* of its warps, for these */
    uint64_t away_ns;          /* for which these were away, each from when it was handed over */
    uint64_t out_nbytes;       /* that it has decoded to */
    uint64_t n_copied;         /* chunks whose output the copy engine took */
    uint64_t n_given_up;       /* chunks that it had for too long, which the CPU has done */
    uint64_t n_lost;           /* chunks that they had then */
    uint64_t n_large_chunks;   /* decoded in its places for large ones */
};

/* All of them; gpu/ and placement/ keep it up to date. */
struct wharf_gpu_fleet {
    struct wharf_gpu_view gpus[WHARF_MAX_GPUS];
    uint32_t n_gpus;             /* that there are, or may be */
    pthread_cond_t gpus_changed; /* what became of a worker */
    uint32_t gpu_engine;         /* enum wharf_engine: GPU or SIMT; AUTO: none, nor will be */
    uint64_t gpu_codecs;         /* bit i: workers decode codec i; 0: none was ready yet */
    uint32_t gpus_up;            /* bits: whose worker takes items */
    uint32_t gpus_asleep;        /* whose thread sleeps */
    uint32_t gpus_looking;       /* whose thread is awake and looks at the rings */
    uint32_t gpus_wanted;        /* whose thread has something to look at */
    uint32_t gpus_left;          /* which a CPU thread left a job to */
    uint32_t gpus_called;        /* whose thread is woken when the lock is left */
    bool gpu_was_up;             /* some worker has been ready: what engines take is known */
    uint32_t n_gpu_tenants;      /* that have items with GPUs */
    uint64_t n_parted_chunks;    /* that GPUs have decoded in parts */
    uint64_t n_parts;            /* in so many */
    uint64_t n_parts_refused;    /* chunks that could not be decoded so, and were decoded whole */
    uint32_t n_gpus_there;       /* that the machine shows, or the configuration names */
};

#endif
