/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_text.h: a snapshot of statistics in Prometheus' text format.
 *
 * It is made from the snapshot's pages by the thread that made these, and read by any number of
 * scrapes, which share it.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_TEXT_H
#define WHARF_DAEMON_CONTROL_STATS_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct wharf_stats_text {
    unsigned n_references; /* the loop thread's */
    char *bytes;
    size_t nbytes;
};

/* The text of a snapshot by its pages, packed StatsReply messages each of which ends where `ends`
 * says, without references, and with a last line that tells that it is whole.  NULL: out of memory.
 */
struct wharf_stats_text *wharf_stats_text_new(const uint8_t *bytes, const size_t ends[],
                                              size_t n_pages);

/* Frees it if nobody has a reference; NULL is allowed. */
void wharf_stats_text_free(struct wharf_stats_text *text);

#endif
