/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_text.h: a snapshot of statistics in Prometheus' text format.
 *
 * The thread that made the snapshot's pages makes the text from them; any number of scrapes share
 * it.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_TEXT_H
#define WHARF_DAEMON_CONTROL_STATS_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct wharf_stats_text {
    unsigned n_references; /* for the loop thread */
    char *bytes;
    size_t nbytes;
};

/* Makes the text from a snapshot's pages, packed StatsReply messages with these ends.  It has no
 * references yet, and a last line that marks it as complete.  NULL: out of memory. */
struct wharf_stats_text *wharf_stats_text_new(const uint8_t *bytes, const size_t ends[],
                                              size_t n_pages);

/* Frees it if it has no reference; NULL is allowed. */
void wharf_stats_text_free(struct wharf_stats_text *text);

#endif
