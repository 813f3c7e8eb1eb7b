/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_snapshot.h: all statistics at one time, as pages ready for sending.
 *
 * Any thread may make one.  It takes the core lock in steps of bounded length, with pauses between.
 * A first pass over all tenants adds up their counters and finds the busiest tenants.  Then it
 * copies as many of these as fit into WHARF_STATS_MOST_TEXT_NBYTES of text, and makes the pages
 * from the copies.  No tenant is dropped meanwhile.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_SNAPSHOT_H
#define WHARF_DAEMON_CONTROL_STATS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/list.h"

struct wharf_core;
struct wharf_stats_text;

/* The largest snapshot, in Prometheus' text format. */
#define WHARF_STATS_MOST_TEXT_NBYTES 5000000u

struct wharf_stats_snapshot {
    struct wharf_list link; /* for stats_maker.c */
    uint64_t number;
    unsigned n_readers;
    bool wants_text;
    struct wharf_stats_text *text; /* for scrapes; NULL: none */
    int error;                     /* -errno if it could not be made or was dropped; else 0 */

    uint8_t *bytes; /* packed StatsReply messages, one after another */
    size_t nbytes, n_room;
    size_t *ends; /* the end of each message */
    size_t n_pages, n_pages_room;

    /* The cost of making it. */
    uint64_t n_steps;     /* holds of the core lock */
    uint64_t n_visits;    /* visits to, or copies of, tenants */
    uint64_t most_visits; /* most visits in one hold */
    size_t n_rows;        /* tenants with samples of their own */
    size_t text_nbytes;   /* upper bound of its text's size */
};

struct wharf_stats_snapshot *wharf_stats_snapshot_new(uint64_t number);
void wharf_stats_snapshot_free(struct wharf_stats_snapshot *snapshot);

/* Frees the pages, and leaves the rest. */
void wharf_stats_snapshot_drop_pages(struct wharf_stats_snapshot *snapshot);

/* Fills a new snapshot, or sets its `error`.  Call it without the core lock.  `io` and
 * `started_ns` are the daemon's. */
void wharf_stats_snapshot_make(struct wharf_stats_snapshot *snapshot, struct wharf_core *core,
                               const char *io, uint64_t started_ns);

/* The value of StatsReply.next and StatsRequest.first that names a page; 0 names page 0. */
uint64_t wharf_stats_snapshot_place(const struct wharf_stats_snapshot *snapshot, size_t page);

/* Finds the page that `first` names; false: it is not a page of this snapshot. */
bool wharf_stats_snapshot_page(const struct wharf_stats_snapshot *snapshot, uint64_t first,
                               size_t *ret_page);

#endif
