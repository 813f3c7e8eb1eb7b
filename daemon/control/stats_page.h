/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_page.h: builds a page of statistics from samples, within the size of a packet.  Names and
 * values of labels must outlive the page, unless wharf_stats_page_text has copied them.
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
    size_t packed_nbytes; /* upper bound of the reply's size, with the first n_measured samples */
    size_t n_measured;
    Wharf__MetricFamily families[WHARF_STATS_PAGE_MOST_FAMILIES];
    Wharf__MetricFamily *family_pointers[WHARF_STATS_PAGE_MOST_FAMILIES];
    size_t n_families;
    Wharf__StatsReply stats;
    Wharf__Reply reply;
};

/* Makes an empty page, as the reply to that request. */
void wharf_stats_page_init(struct wharf_stats_page *page, uint32_t request);

/* Begins a family, or continues the last one if it is the same; false: there is no room for it and
 * n_samples. */
bool wharf_stats_page_begin(struct wharf_stats_page *page, const char *name, const char *help,
                            Wharf__MetricType type, size_t n_samples);

/* Adds a sample to the current family; adds a label to a sample. */
Wharf__Sample *wharf_stats_page_add(struct wharf_stats_page *page, const char *suffix,
                                    double value);
void wharf_stats_page_label(struct wharf_stats_page *page, Wharf__Sample *sample, const char *name,
                            const char *value);

/* A copy of a text that lives as long as the page; truncated if there is no room. */
const char *wharf_stats_page_text(struct wharf_stats_page *page, const char *text);

/* Whether the page still fits a packet, with any `next` and id. */
bool wharf_stats_page_fits(struct wharf_stats_page *page);

/* The state of a page, for undoing additions that do not fit. */
struct wharf_stats_mark {
    size_t n_samples, n_text, n_families, n_family_samples, packed_nbytes;
};
struct wharf_stats_mark wharf_stats_page_mark(const struct wharf_stats_page *page);
void wharf_stats_page_return(struct wharf_stats_page *page, const struct wharf_stats_mark *mark);

#endif
