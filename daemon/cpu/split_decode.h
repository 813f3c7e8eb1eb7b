/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_decode.h: one chunk that several workers decode together.
 *
 * If a stream has splits, the worker that decodes it offers parts to idle workers.  Each helper
 * takes half of an even share of the rest, decodes it, and comes back unless it is called to other
 * work.  So a chunk has many ranges on an idle machine, and few, down to one, on a busy one.
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

/* A worker's offer during one decode.  The core lock guards its variable members while it is on the
 * core's list. */
struct wharf_split_decode {
    struct wharf_decode_crew base;
    struct wharf_core *core;
    struct wharf_piece *piece;
    struct wharf_decode_poll *poll; /* the worker's own */
    struct wharf_list link;
    wharf_decode_parts_fn *act;
    void *context;
    uint32_t n_parts;
    uint32_t next_part;
    uint32_t n_helpers; /* helpers that decode now */
    uint64_t helped_ns; /* time that helpers used */
    bool has_failed;    /* read without the lock too */
    bool is_awaited;    /* the worker waits for the last helper, which posts `done` */
    bool *ret_waits;    /* a copy of is_awaited, set under the lock; or NULL */
    sem_t done;
};

/* Prepares an offer, which decoders can make repeatedly for chunks of a piece. */
void wharf_split_decode_init(struct wharf_split_decode *split, struct wharf_core *core,
                             struct wharf_piece *piece, struct wharf_decode_poll *poll);
void wharf_split_decode_deinit(struct wharf_split_decode *split);

/*
 * For an idle worker, under the core lock, which it releases meanwhile: decodes some offered parts.
 * Returns whether there were any.
 */
bool wharf_split_decode_help(struct wharf_core *core, struct wharf_cpu_worker *worker);

#endif
