/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_message.h: the messages between the core and a GPU's worker.
 *
 * A SOCK_SEQPACKET packet is one struct wharf_worker_message.  Both programs must be of the same
 * build, which they check first.  Items do not go this way: they are in the queue's memory.  A
 * worker decodes hostile bytes, so the core checks each message before it relies on it.
 */
#ifndef WHARF_DAEMON_GPU_WORKER_MESSAGE_H
#define WHARF_DAEMON_GPU_WORKER_MESSAGE_H

#include <stdint.h>

#include "daemon/core/estimate.h"
#include "kernels/work_queue.h"

/* The descriptors that a worker starts with. */
enum { WHARF_WORKER_SOCKET_FD = 3, WHARF_WORKER_PROMISE_FD = 4 };

/* Its exit status. */
enum {
    WHARF_WORKER_EXIT_OK = 0,        /* the core has closed its socket */
    WHARF_WORKER_EXIT_FAILED = 1,    /* it could not start, or a device fault ended it */
    WHARF_WORKER_EXIT_NO_DEVICE = 3, /* there is no such engine, or no device for it */
};

/* The queue's memory holds four queues; the second is for large items, the third for items that
 * are encoded, the fourth for large items that are streams for the whole GPU. */
#define WHARF_WORKER_LARGE_ENTRIES WHARF_WORK_MIN_ENTRIES
#define WHARF_WORKER_ENCODE_ENTRIES 1024u
#define WHARF_WORKER_STREAM_ENTRIES WHARF_WORK_MIN_ENTRIES
/* The most places for large items. */
#define WHARF_WORKER_MOST_LARGE 2u

static inline size_t wharf_worker_queues_nbytes(uint32_t n_entries)
{
    return wharf_work_queue_nbytes(n_entries) +
           wharf_work_queue_nbytes(WHARF_WORKER_LARGE_ENTRIES) +
           wharf_work_queue_nbytes(WHARF_WORKER_ENCODE_ENTRIES) +
           wharf_work_queue_nbytes(WHARF_WORKER_STREAM_ENTRIES);
}

static inline void *wharf_worker_large_queue(void *queue, uint32_t n_entries)
{
    return (char *)queue + wharf_work_queue_nbytes(n_entries);
}

static inline void *wharf_worker_encode_queue(void *queue, uint32_t n_entries)
{
    return (char *)wharf_worker_large_queue(queue, n_entries) +
           wharf_work_queue_nbytes(WHARF_WORKER_LARGE_ENTRIES);
}

static inline void *wharf_worker_stream_queue(void *queue, uint32_t n_entries)
{
    return (char *)wharf_worker_encode_queue(queue, n_entries) +
           wharf_work_queue_nbytes(WHARF_WORKER_ENCODE_ENTRIES);
}

/* Bit i: workers encode codec i, if they encode at all. */
#define WHARF_WORKER_ENCODERS                                                                      \
    ((uint64_t)1 << WHARF_CODEC_BDI | (uint64_t)1 << WHARF_CODEC_FPC |                             \
     (uint64_t)1 << WHARF_CODEC_CPACK | (uint64_t)1 << WHARF_CODEC_BEST |                          \
     (uint64_t)1 << WHARF_CODEC_PALETTE)

/* The size of a place for a source and destination of nbytes in total. */
static inline uint64_t wharf_worker_large_place_nbytes(uint64_t nbytes)
{
    return (nbytes + 1023) / 256 * 256;
}

enum wharf_worker_kind {
    /* From the core. */
    WHARF_WORKER_SETUP = 1,    /* begin; with the memfd of the queue */
    WHARF_WORKER_REGISTER = 2, /* make memory reachable; with its memfd */
    WHARF_WORKER_FORGET = 3,   /* let go of it */
    WHARF_WORKER_IMPORT = 4,   /* REGISTER, of GPU memory by a client's descriptor */
    WHARF_WORKER_MODEL = 5,    /* REGISTER, of the image of a model: copy it */
    WHARF_WORKER_LEAVE = 6,    /* have the kernel, which has nothing to do, leave at once */
    /* From the worker. */
    WHARF_WORKER_DEVICES = 15,     /* `number` says how many GPUs the driver shows */
    WHARF_WORKER_READY = 16,       /* takes items from now on */
    WHARF_WORKER_REGISTERED = 17,  /* or not: error */
    WHARF_WORKER_FORGOTTEN = 18,   /* it cannot be written any more */
    WHARF_WORKER_REGISTERING = 20, /* begins with this, which its client's memory can make long */
    WHARF_WORKER_FAILED = 19,      /* cannot begin or go on, error and text say why, and ends */
};

struct wharf_worker_setup {
    char version[16];      /* WHARF_VERSION */
    uint32_t engine;       /* enum wharf_engine: GPU or SIMT */
    uint32_t counts;       /* not 0: tell how many GPUs there are */
    uint32_t share;        /* percent of its multiprocessors */
    uint32_t n_entries;    /* of the queue */
    uint32_t chunk_nbytes; /* the most that a chunk may have, in or out */
    uint32_t kernel;       /* enum wharf_config_gpu_kernel */
    uint32_t has_faults;   /* not 0: items may ask for faults, for tests */
    uint64_t idle_ns;      /* the kernel leaves when there was no work for so long */
    uint64_t stay_ns;      /* or after so long in any case */
    uint64_t large_nbytes; /* of source and destination of a large item; 0: there are none */
    uint32_t encode_warps; /* that encode; 0: there are none */
    uint32_t memo_users;   /* parts of the memory for decoded chunks that are kept, */
    uint64_t memo_nbytes;  /* of so many bytes, 0: none; */
    uint32_t memo_key[2];  /* and its hash's secret */
};

struct wharf_worker_ready {
    char device[64];        /* for people */
    char share[128];        /* likewise: what keeps it to its share; empty if nothing has to */
    uint64_t codecs;        /* bit i: it decodes codec i */
    uint64_t device_nbytes; /* taken from the device's memory */
    uint64_t large;         /* where the device has the places for large items, */
    uint32_t n_large;       /* so many */
    uint32_t n_warps;       /* that decode at the same time */
    uint32_t per_batch;     /* not 0: a kernel for each batch */
    uint32_t place;         /* 1 and its number among all that the driver shows; 0: not known */
    uint32_t is_beside;     /* not 0: other processes' kernels run beside its own, by MPS */
    uint32_t n_encode;      /* warps that encode */
    uint32_t least_stream;  /* the whole GPU decodes streams from so many bytes on; 0: none */
    uint32_t has_memo;      /* not 0: it keeps decoded chunks */
};

struct wharf_worker_message {
    uint32_t kind;   /* enum wharf_worker_kind */
    uint32_t number; /* of the memory, or of GPUs */
    int32_t error;   /* 0 or an errno value, positive */
    uint32_t read_only;
    uint64_t nbytes;
    uint64_t address; /* where the device has it; of a model, the parameter of items */
    union {
        struct wharf_worker_setup setup;
        struct wharf_worker_ready ready;
        char text[320]; /* of FAILED and REGISTERED, ended by 0 */
    };
};

#endif
