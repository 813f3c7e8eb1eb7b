/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_fill.h: pages of the samples of all metric families, and how long these are as text.
 *
 * Samples are ordered by family, then by tenant or GPU, then by engine or class.  Samples that
 * belong together (a histogram, the counters for all results) form a group.  A page starts at a
 * cursor, a position in that order, and holds as many groups as fit.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_FILL_H
#define WHARF_DAEMON_CONTROL_STATS_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/control/stats_copy.h"
#include "daemon/control/stats_page.h"

struct wharf_stats_cursor {
    unsigned family;
    uint64_t at;   /* number of a row or a GPU; 0 for the daemon as a whole */
    unsigned part; /* an engine, or a class of jobs */
};

bool wharf_stats_cursor_is_good(const struct wharf_stats_cursor *cursor);

/* Fills a page from the cursor on, and moves it to the first group that did not fit.  Returns
 * false if there are no more. */
bool wharf_stats_fill(struct wharf_stats_page *page, const struct wharf_stats_source *source,
                      struct wharf_stats_cursor *cursor);

/*
 * Upper bounds of the size of samples in Prometheus' text format: of one row's samples; of all
 * samples without a row, with the lines that describe each family.  The page is scratch space.
 */
size_t wharf_stats_row_text_nbytes(const struct wharf_stats_source *source,
                                   struct wharf_stats_row *row, struct wharf_stats_page *page);
size_t wharf_stats_other_text_nbytes(const struct wharf_stats_source *source,
                                     struct wharf_stats_page *page);

#endif
