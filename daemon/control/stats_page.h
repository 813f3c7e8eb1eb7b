/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_page.h: one page of statistics, which is built from samples and fits a packet.  Names and
 * values of labels are the caller's and outlive the page, unless they were kept by its text.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_PAGE_H
#define WHARF_DAEMON_CONTROL_STATS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/control.h"

enum {
    WHARF_STATS_PAGE_MOST_SAMPLES = 96,
    WHARF_STATS_PAGE_MOST_FAMILIES = 8,
    WHARF_STATS_PAGE_MOST_LABELS = 3, /* of a sample */
    WHARF_STATS_PAGE_TEXT_NBYTES = 4096,
};

/* The reply, and everything that it points to. */
struct wharf_stats_page {
    Wharf__Sample samples[WHARF_STATS_PAGE_MOST_SAMPLES];
    Wharf__Sample *sample_pointers[WHARF_STATS_PAGE_MOST_SAMPLES];
    Wharf__Label labels[WHARF_STATS_PAGE_MOST_SAMPLES][WHARF_STATS_PAGE_MOST_LABELS];
    Wharf__Label *label_pointers[WHARF_STATS_PAGE_MOST_SAMPLES][WHARF_STATS_PAGE_MOST_LABELS];
    char text[WHARF_STATS_PAGE_TEXT_NBYTES]; /* labels' values */
    size_t n_text;
    size_t n_samples;
    size_t packed_nbytes; /* that the reply has at most, with so many of the samples */
    size_t n_measured;
    Wharf__MetricFamily families[WHARF_STATS_PAGE_MOST_FAMILIES];
    Wharf__MetricFamily *family_pointers[WHARF_STATS_PAGE_MOST_FAMILIES];
    size_t n_families;
    Wharf__StatsReply stats;
    Wharf__Reply reply;
};

/* An empty one, in reply to that request. */
void wharf_stats_page_init(struct wharf_stats_page *page, uint32_t request);

/* Begins a family, or goes on with the last one if it is that; false: there is no room for it, or
 * for so many samples of it. */
bool wharf_stats_page_begin(struct wharf_stats_page *page, const char *name, const char *help,
                            Wharf__MetricType type, size_t n_samples);

/* A sample of the family that was begun; and a label of it. */
Wharf__Sample *wharf_stats_page_add(struct wharf_stats_page *page, const char *suffix,
                                    double value);
void wharf_stats_page_label(struct wharf_stats_page *page, Wharf__Sample *sample, const char *name,
                            const char *value);

/* Text that lives as long as the page; cut off at its end. */
const char *wharf_stats_page_text(struct wharf_stats_page *page, const char *text);

/* Whether all of it still is a packet, with any `next` and id. */
bool wharf_stats_page_fits(struct wharf_stats_page *page);

/* The state of a page, to return to when what was added is too large. */
struct wharf_stats_mark {
    size_t n_samples, n_text, n_families, n_family_samples, packed_nbytes;
};
struct wharf_stats_mark wharf_stats_page_mark(const struct wharf_stats_page *page);
void wharf_stats_page_return(struct wharf_stats_page *page, const struct wharf_stats_mark *mark);

#endif
