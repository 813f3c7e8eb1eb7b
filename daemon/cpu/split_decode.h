/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_decode.h: one chunk that several workers decode together.
 *
 * Where a stream has places to begin at, the worker that decodes it offers parts of it to idle
 * workers.  Each helper takes half of its even share of what is left, decodes it, and comes again,
 * unless it is called to other work.  So parts are many while all processors are free, and few,
 * down to one, when the machine is busy.
 */
#ifndef WHARF_DAEMON_CPU_SPLIT_DECODE_H
#define WHARF_DAEMON_CPU_SPLIT_DECODE_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "encoders/codec.h"

struct wharf_cpu_worker;
struct wharf_core;
struct wharf_piece;

/* A worker's offer, for the time of one decode; guarded by the core lock while it is on the
 * core's list, but for what does not change. */
struct wharf_split_decode {
    struct wharf_decode_crew base;
    struct wharf_core *core;
    struct wharf_piece *piece;
    struct wharf_decode_poll *poll; /* of the worker itself */
    struct wharf_list link;
    wharf_decode_parts_fn *act;
    void *context;
    uint32_t n_parts;
    uint32_t next_part;
    uint32_t n_helpers; /* others that decode a part now */
    uint64_t helped_ns; /* that they have used */
    bool has_failed;    /* read without the lock too */
    bool is_awaited;    /* the worker waits for the last helper, which posts `done` */
    bool *ret_waits;    /* where else to say so, under the lock; or NULL */
    sem_t done;
};

/* An offer that can be made, again and again, for chunks of a piece; nothing is offered before a
 * decoder asks. */
void wharf_split_decode_init(struct wharf_split_decode *split, struct wharf_core *core,
                             struct wharf_piece *piece, struct wharf_decode_poll *poll);
void wharf_split_decode_deinit(struct wharf_split_decode *split);

/*
 * For a worker that has nothing to do, under the core lock, which it gives up meanwhile: decodes a
 * part of what is offered.  Returns whether there was one.
 */
bool wharf_split_decode_help(struct wharf_core *core, struct wharf_cpu_worker *worker);

#endif
