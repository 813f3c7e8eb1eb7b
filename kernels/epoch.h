/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.h: epoch kernels, as the worker sees them: one engine for a GPU, one for the SIMT layer.
 *
 * An epoch kernel stays on the device while there is work.  Its first warp polls a work queue
 * (work_queue.h) and hands items to all other warps, which fetch the input, decode, move the output
 * and complete.  The kernel leaves when it has been idle for a while, when it is parked, when its
 * stay has ended, or when the other kind has to follow: for few items, a block of warps decodes
 * each.  In steps, with `ops` one of the two engines:
 *
 *     ops->open(&config, &epoch)          once: memory is allocated, nothing runs
 *     ops->map_host(...)                  for each region that items name, now or later
 *     for (;;) {
 *         until woken by the core, or while wharf_work_must_start(&queue):
 *             sleep
 *         ops->start(epoch)               a kernel runs now, if none did
 *         ops->wait(epoch)                until it has left
 *     }
 *
 * One thread starts and waits.  All other calls are for any thread, one at a time.  Mapping and
 * allocating memory works while a kernel runs; to unmap or free, park the kernel and wait.
 *
 * Functions return 0 or -errno: -ENOMEM, -ENODEV, -EBUSY, -EIO (sticky: the process must end),
 * -EINVAL, as cuda_error.h says; error_text() has the words.
 */
#ifndef WHARF_KERNELS_EPOCH_H
#define WHARF_KERNELS_EPOCH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/memo.h"
#include "kernels/work_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wharf_epoch;

struct wharf_epoch_config {
    int device;            /* from find_device */
    uint32_t share;        /* percent of the device's multiprocessors; 0 is 100 */
    uint32_t n_entries;    /* of the queue */
    void *queue;           /* where this process has mapped it */
    uint32_t n_warps;      /* the first polls; 0: as many as the device holds.  At least 2. */
    uint32_t chunk_nbytes; /* the most that an item may read, and write; at most 256 MiB.  Each warp
                              has twice this in device memory.  It does not limit stored items, nor
                              DECODE_LARGE, which has its own memory. */
    uint32_t idle_us;      /* leave after this time without work */
    uint32_t stay_us; /* take nothing more after this time, and leave when all is done; 0: never */
    int per_batch;    /* a kernel for what is in the queue when it starts, then leave: for
                         launches that block, profilers, display watchdogs.  Ignores the two. */
    int per_batch_if_watched; /* also if a display watchdog would end kernels that stay */
    uint32_t few;      /* use the kernel for few items up to this many for each of its blocks;
                          0: never */
    uint32_t most_out; /* warps that store outputs to host memory at the same time; 0: no limit, but
                          WHARF_EPOCH_MOST_OUT is better */
    uint32_t leaves_room; /* leaves room on the device for so many blocks of other epochs */
    int encodes;          /* the items are WHARF_WORK_ENCODE, and warps need no memory */
    /* Memory of the device for decoded chunks that are kept (memo.h), 0: none; in how many parts, 1
     * to WHARF_MEMO_MOST_PARTS, each of at least WHARF_MEMO_LEAST_NBYTES; and the hash's secret. If
     * the device has no such memory, nothing is kept. */
    uint64_t memo_nbytes;
    uint32_t memo_parts;
    uint32_t memo_key[2];
    /* Another epoch of this process, which outlives this one, or NULL.  This one shares its models
     * and its part of the device, and `share` is ignored. */
    struct wharf_epoch *beside;
    int faults;    /* let WHARF_WORK_FAULT and WHARF_WORK_HANG do what they say: for tests */
    uint64_t seed; /* of the SIMT layer's random order */
};

/*
 * More do not make the link faster: 64 warps of an H100 have 256 KiB in flight, five microseconds
 * of the link.  More fill the queues to the link, in which the accesses of decoding warps wait too;
 * 32 leave the link idle when blocks decode.
 */
#define WHARF_EPOCH_MOST_OUT 64u

/* The warps of a block of an epoch that encodes. */
#define WHARF_EPOCH_ENCODE_WARPS 3u

/* The longest idle_us and stay_us: kernels count nanoseconds, and differences, in 32 bits. */
#define WHARF_EPOCH_MAX_US 1000000u

static inline int wharf_epoch_config_good(const struct wharf_epoch_config *config)
{
    return wharf_work_entries_good(config->n_entries) && config->queue && config->n_warps != 1 &&
           config->share <= 100 && config->chunk_nbytes > 0 && config->chunk_nbytes <= 1u << 28 &&
           config->idle_us <= WHARF_EPOCH_MAX_US && config->stay_us <= WHARF_EPOCH_MAX_US &&
           (config->memo_nbytes == 0 ||
            (config->memo_parts > 0 && config->memo_parts <= WHARF_MEMO_MOST_PARTS &&
             config->memo_nbytes / config->memo_parts >= WHARF_MEMO_LEAST_NBYTES));
}

/* Facts about an open epoch. */
struct wharf_epoch_info {
    char device_name[64];
    char share_text[128]; /* how the share is enforced; empty if it is 100 % */
    uint32_t n_warps;
    uint32_t n_warps_per_sm;  /* resident warps; 0 without multiprocessors */
    uint32_t n_registers;     /* a thread */
    uint32_t n_local_nbytes;  /* spilled, a thread */
    uint32_t n_shared_nbytes; /* a warp */
    uint32_t per_batch;       /* a kernel is for one batch */
    uint32_t n_blocks;        /* of the kernel for few items; 0: there is none */
    uint64_t device_nbytes;   /* taken from the device's memory */
    uint64_t memo_nbytes;     /* of these, for chunks that are kept */
};

/* The most models at a time. */
#define WHARF_EPOCH_MAX_MODELS 4096u

struct wharf_epoch_ops {
    const char *name; /* "cuda" or "simt" */

    /* The device of that name, as cuda_device.h says: of the SIMT layer "0" to "15", or "GPU-0" to
     * "GPU-15".  -ENODEV if there is none. */
    int (*find_device)(const char *name, int *ret_device);
    /* How many devices there are, with the numbers from 0 on.  The SIMT layer shows one, or for
     * tests as many as WHARF_SIMT_DEVICES says, and has others that can be named. */
    int (*count_devices)(int *ret_n_devices);
    int (*open)(const struct wharf_epoch_config *config, struct wharf_epoch **ret_epoch);
    /* Tells a running kernel to quit, and waits for it.  Takes NULL. */
    void (*close)(struct wharf_epoch *epoch);
    /* The last failed call of this thread, and its error. */
    const char *(*error_text)(void);
    void (*info)(const struct wharf_epoch *epoch, struct wharf_epoch_info *ret_info);

    /*
     * Registers nbytes of mapped host memory for kernels.  `at` and nbytes are
     * multiples of the page size; read_only if the mapping is.  *ret_address is the device's
     * address of `at`, and the rest follows contiguously.  Takes some 50 ms a GiB; on the SIMT
     * layer for ever for memory of as many bytes as WHARF_SIMT_STALLS says, for tests.
     */
    int (*map_host)(struct wharf_epoch *epoch, void *at, size_t nbytes, int read_only,
                    uint64_t *ret_address);
    /* No kernel may be running. */
    int (*unmap_host)(struct wharf_epoch *epoch, void *at, size_t nbytes);
    /* Device memory, for WHARF_WORK_DECODE_LARGE.  Aligned to 256. */
    int (*alloc)(struct wharf_epoch *epoch, size_t nbytes, uint64_t *ret_address);
    /* No kernel may be there. */
    int (*free)(struct wharf_epoch *epoch, uint64_t address);

    /*
     * Device memory that another process made and offers by descriptor: maps its nbytes, for
     * WHARF_WORK_TO_DEVICE.  On a GPU the descriptor is cuMemExportToShareableHandle's, of memory
     * that cuMemCreate made on this device, and nbytes a multiple of its granularity (2 MiB); on
     * the SIMT layer, a memfd's that cannot shrink, and nbytes one of the page size.  The
     * caller keeps the descriptor; the memory stays until it is unmapped here, even if the process
     * that made it ends.  -EXDEV if it belongs to another device; on the SIMT layer a memfd named
     * gpu:N belongs to device N, and any other to the first one.  -EINVAL, without harm, if it is
     * anything else or smaller.  May take some milliseconds, also while a kernel runs.
     */
    int (*import_memory)(struct wharf_epoch *epoch, int fd, size_t nbytes, uint64_t *ret_address);
    /* No kernel may be there.  nbytes as before. */
    int (*unimport_memory)(struct wharf_epoch *epoch, uint64_t address, size_t nbytes);

    /*
     * Copies the image of a registered model (struct wharf_model_ops of encoders/codec.h) into
     * device memory, once for all items that name it: *ret_parameter is what these have as their
     * parameter.  A kernel may be there.  -ENOSPC: there are WHARF_EPOCH_MAX_MODELS.
     */
    int (*add_model)(struct wharf_epoch *epoch, const void *image, size_t nbytes,
                     uint32_t *ret_parameter);
    /* No kernel may be there. */
    int (*remove_model)(struct wharf_epoch *epoch, uint32_t parameter);

    /*
     * Starts a kernel unless one is there; returns at once but with per_batch where launches
     * block.  It sets the queue's state; 0 also if a kernel was there.
     */
    int (*start)(struct wharf_epoch *epoch);
    /* Blocks until the last kernel has left; 0 at once if there is none.  Its writes are visible
     * then. -EIO if it ended by a fault.  With per_batch it may return as soon as the kernel has
     * finished its items: the next one may start, and unmapping memory waits for the rest. */
    int (*wait)(struct wharf_epoch *epoch);

    /* Another stay_us for kernels that are started from now on; no kernel may be there. */
    void (*set_stay)(struct wharf_epoch *epoch, uint32_t stay_us);

    /* From now on kernels have so many percent of the blocks that they may have; from the thread
     * that starts them.  NULL: they always leave room for others. */
    void (*set_part)(struct wharf_epoch *epoch, uint32_t percent);
};

/* The GPU's, in builds with nvcc; and the device's own code on the CPU, everywhere. */
extern const struct wharf_epoch_ops wharf_cuda_epoch;
extern const struct wharf_epoch_ops wharf_simt_epoch;

#ifdef __cplusplus
}
#endif

#endif
