/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_view.h: the state of each GPU and its worker, as placement and statistics see it.
 */
#ifndef WHARF_DAEMON_CORE_GPU_VIEW_H
#define WHARF_DAEMON_CORE_GPU_VIEW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/gpu_list.h"
#include "daemon/base/list.h"

struct wharf_gpu_backend;

/* An engine's work that takes only what is idle: idle_work.h. */
struct wharf_idle_work {
    uint32_t n_running;   /* pieces that it has now */
    uint32_t n_fewer;     /* how many fewer it may have than it could */
    uint32_t n_calm;      /* pieces that ended since it last delayed another job */
    uint32_t n_reserved;  /* fewest to which n_fewer returns by itself */
    uint32_t n_undelayed; /* other jobs that waited for none of it since n_reserved changed */
    uint32_t n_alone;     /* pieces that ended since another job began */
    uint32_t strain;      /* sum of what recent chunks took beside it, in percent; 0: none did */
    uint64_t n_pieces;    /* begun */
    uint64_t n_throttled;
    uint64_t n_withdrawn; /* pieces that were taken back to be begun again later */
    uint64_t nbytes;      /* of sources of those that ended well */
};

/*
 * One GPU and its worker; the GPU's backend keeps it up to date.  Flags that are checked for all
 * GPUs at once are bits in struct wharf_gpu_fleet, such as gpus_up.
 */
struct wharf_gpu_view {
    uint32_t number;                   /* its index in fleet.gpus */
    char name[WHARF_GPU_NAME_NBYTES];  /* its name in the configuration */
    struct wharf_gpu_backend *backend; /* NULL: it is gone */
    int wake_fd;                       /* an eventfd, for the backend's thread */
    uint64_t busy_since_ns;            /* since when that thread is awake; WHARF_NEVER: it sleeps */
    struct wharf_list memories;        /* all memory that it could use: gpu_memory.h */
    uint32_t place;                    /* as its worker reported; 0: unknown */
    bool may_come;                     /* there is a worker, or there will be one */
    bool is_lost;                      /* several workers in a row did not get ready */
    bool is_alone;                     /* it runs a suspect's item, and nothing else beside it */
    uint32_t n_warps;    /* warps that decode at the same time, at least 1 while it is up */
    uint64_t latency_ns; /* from handing over an empty job until its completion is seen */
    uint32_t n_large, n_large_free;   /* places for large chunks: all, and free ones */
    bool has_streams;                 /* which the whole GPU decodes, in these places */
    uint32_t n_stream_free;           /* streams that could begin at once */
    uint32_t n_encode, n_encode_free; /* warps that compress: all, and those without work */
    struct wharf_idle_work idle_work; /* of these */
    uint32_t n_in_flight;             /* items that the worker has */
    uint64_t in_flight_ns;            /* sum of the warp time estimated for them */
    uint64_t in_flight_nbytes;        /* of their sources and capacities */
    uint64_t flow_ps_per_kib; /* measured time for each KiB of these while the link is saturated */
    int64_t lead_ns;          /* its time for pool ANY minus that for the GPUs' own pools */
    int64_t own_lead_ns;      /* its time for its own pool minus that for the pool of all GPUs */
    struct wharf_list models; /* its models, in least recently used order: gpu_models.h */
    uint32_t most_models;     /* its places for models */
    uint32_t n_models;        /* places in use, and by how many tenants */
    uint32_t n_model_tenants;
    uint32_t n_leaving_models; /* models that are being released for others */
    uint64_t n_ups;            /* workers that have been ready */
    uint64_t n_ended;          /* workers that have ended, ready or not */
    uint64_t n_own_ends;       /* of n_ended: not by an outside SIGKILL */
    uint64_t n_chunks;         /* decoded, good or bad */
    uint64_t busy_ns;          /* warp time for these chunks */
    uint64_t away_ns;          /* sum of these chunks' latencies, from hand-over to completion */
    uint64_t out_nbytes;       /* bytes of output */
    uint64_t n_given_up;       /* chunks withdrawn after `longest`, which the CPU decoded */
    uint64_t n_lost;           /* chunks that workers had when they ended */
    uint64_t n_large_chunks;   /* decoded in places for large chunks */
    uint64_t n_streams;        /* of these by the whole GPU */
    uint64_t n_encoded;        /* chunks compressed, good or bad */
    uint64_t encoded_in_nbytes, encoded_out_nbytes; /* of the good ones */
    uint64_t n_left; /* kernels that were told to leave for clients' streams */
};

/* All GPUs; gpu/ and placement/ keep it up to date.  A mask has a bit for each GPU. */
struct wharf_gpu_fleet {
    struct wharf_gpu_view gpus[WHARF_MAX_GPUS];
    uint32_t n_gpus;             /* GPUs that there are, or may be */
    pthread_cond_t gpus_changed; /* signalled when a worker changes state */
    uint32_t gpu_engine;         /* enum wharf_engine: GPU or SIMT; AUTO: there will be none */
    uint64_t gpu_codecs;         /* bit i: workers decode codec i; 0: no worker was ready yet */
    uint64_t gpu_encoders;       /* bit i: workers encode codec i */
    uint32_t gpus_up;            /* mask: the worker takes items */
    uint32_t gpus_asleep;        /* mask: the thread sleeps */
    uint32_t gpus_looking;       /* mask: the thread is awake and polls the rings */
    uint32_t gpus_wanted;        /* mask: the thread has something to do */
    uint32_t gpus_left;          /* mask: a CPU thread left a job to it */
    uint32_t gpus_called;        /* mask: the thread is woken when the lock is left */
    bool gpu_was_up;             /* some worker has been ready, so costs are known */
    uint32_t n_gpu_tenants;      /* tenants with items on GPUs */
    uint64_t n_parted_chunks;    /* chunks that GPUs decoded in parts */
    uint64_t n_parts;            /* the number of these parts */
    uint64_t n_parts_refused; /* chunks whose parts were refused, so that they were decoded whole */
    uint32_t n_gpus_there;    /* GPUs that the machine shows, or the configuration names */
};

#endif
