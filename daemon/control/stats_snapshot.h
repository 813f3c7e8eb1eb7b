/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_snapshot.h: all statistics of one time, as pages that are ready to be sent.
 *
 * Making one takes the core lock in steps of bounded length, with pauses between them, and may be
 * done by any thread.  A first walk over all tenants sums up what they count and finds the busiest.
 * The busiest are then copied, as many as fit into WHARF_STATS_MOST_TEXT_NBYTES of text, and the
 * pages are made from the copies.  No tenant is dropped meanwhile.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_SNAPSHOT_H
#define WHARF_DAEMON_CONTROL_STATS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/list.h"

struct wharf_core;
struct wharf_stats_text;

/* The largest snapshot, as the text that Prometheus reads. */
#define WHARF_STATS_MOST_TEXT_NBYTES 5000000u

struct wharf_stats_snapshot {
    struct wharf_list link; /* stats_maker.c's */
    uint64_t number;
    unsigned n_readers;
    bool wants_text;
    struct wharf_stats_text *text; /* for those who want that; NULL: there is none */
    int error; /* why it could not be made, or is gone, -errno; 0: it is there */

    uint8_t *bytes; /* packed StatsReply messages, one after another */
    size_t nbytes, n_room;
    size_t *ends; /* where each of them ends */
    size_t n_pages, n_pages_room;

    /* What it took. */
    uint64_t n_steps;     /* holds of the core lock */
    uint64_t n_visits;    /* looks at, or copies of, tenants */
    uint64_t most_visits; /* of one hold */
    size_t n_rows;        /* tenants that have samples of their own */
    size_t text_nbytes;   /* at most, of all of it */
};

struct wharf_stats_snapshot *wharf_stats_snapshot_new(uint64_t number);
void wharf_stats_snapshot_free(struct wharf_stats_snapshot *snapshot);

/* Frees the pages, and leaves the rest. */
void wharf_stats_snapshot_drop_pages(struct wharf_stats_snapshot *snapshot);

/* Fills a new snapshot, or sets its `error`.  Call it without the core lock.  `io` and
 * `started_ns` are the daemon's. */
void wharf_stats_snapshot_make(struct wharf_stats_snapshot *snapshot, struct wharf_core *core,
                               const char *io, uint64_t started_ns);

/* What StatsReply.next says of a page, and StatsRequest.first asks for; 0 asks for page 0. */
uint64_t wharf_stats_snapshot_place(const struct wharf_stats_snapshot *snapshot, size_t page);

/* Finds the page that `first` asks for; false: it is no page of this snapshot. */
bool wharf_stats_snapshot_page(const struct wharf_stats_snapshot *snapshot, uint64_t first,
                               size_t *ret_page);

#endif
