/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/stats_fill.h"

#include <stdio.h>
#include <string.h>

#include "daemon/control/stats_families.h"

/* Of a histogram: buckets, sum and count. */
enum { MOST_OF_GROUP = WHARF_STATS_N_BUCKETS + 2 };

/* ---- going through it ---------------------------------------------------------------------- */

static bool has_samples(const struct wharf_engine_stats *stats)
{
    for (unsigned i = 0; i < WHARF_STATS_N_RESULTS; i++)
        if (stats->n_jobs[i])
            return true;
    return false;
}

static void next_family(struct wharf_stats_cursor *cursor)
{
    cursor->family++;
    cursor->at = 0;
    cursor->part = 0;
}

static bool is_of_engine(const struct wharf_stats_family *family)
{
    return family->scope == WHARF_STATS_OF_ENGINE || family->scope == WHARF_STATS_OF_ALL_ENGINE;
}

static bool is_of_class(const struct wharf_stats_family *family)
{
    return family->scope == WHARF_STATS_OF_CLASS || family->scope == WHARF_STATS_OF_ALL_CLASS;
}

/* Engines or classes of one row, or one. */
static unsigned n_parts_of(const struct wharf_stats_family *family)
{
    return is_of_engine(family)  ? WHARF_STATS_N_ENGINES
           : is_of_class(family) ? WHARF_STATS_N_CLASSES
                                 : 1;
}

bool wharf_stats_cursor_is_good(const struct wharf_stats_cursor *cursor)
{
    return cursor->family < wharf_stats_n_families &&
           cursor->part < n_parts_of(&wharf_stats_families[cursor->family]);
}

static void next_group(const struct wharf_stats_family *family, struct wharf_stats_cursor *cursor)
{
    cursor->part++;
    if (cursor->part < n_parts_of(family))
        return;
    cursor->part = 0;
    cursor->at++;
}

static bool is_of_all(const struct wharf_stats_family *family)
{
    return family->scope == WHARF_STATS_OF_ALL_TENANT ||
           family->scope == WHARF_STATS_OF_ALL_ENGINE || family->scope == WHARF_STATS_OF_ALL_CLASS;
}

/* How many rows, or GPUs, the family has. */
static size_t n_rows_of(const struct wharf_stats_source *source,
                        const struct wharf_stats_family *family)
{
    if (family->scope == WHARF_STATS_OF_GPU)
        return source->daemon.n_gpus;
    if (is_of_all(family))
        return source->all ? 1 : 0;
    return family->scope == WHARF_STATS_OF_DAEMON ? 1 : source->n_rows;
}

/* Of what no engine ran there are no times. */
static bool is_missing(const struct wharf_stats_family *family,
                       const struct wharf_stats_group *group, unsigned part)
{
    if (family->type == WHARF__METRIC_TYPE__METRIC_TYPE_HISTOGRAM && !group->row->has_histograms)
        return true;
    if (is_of_class(family))
        return !is_of_all(family) && group->latency->sum_ns == 0;
    if (!is_of_engine(family))
        return false;
    return !has_samples(group->stats) ||
           (family->type == WHARF__METRIC_TYPE__METRIC_TYPE_HISTOGRAM && part == WHARF_ENGINE_AUTO);
}

static const char *const class_names[WHARF_STATS_N_CLASSES] = {
    [WHARF_CLASS_INTERACTIVE - 1] = "interactive",
    [WHARF_CLASS_NORMAL - 1] = "normal",
    [WHARF_CLASS_BACKGROUND - 1] = "background",
};

/* The group at the cursor, whose family has that row; false if it has no samples. */
static bool take_group(const struct wharf_stats_source *source,
                       const struct wharf_stats_cursor *cursor, struct wharf_stats_group *group)
{
    const struct wharf_stats_family *family = &wharf_stats_families[cursor->family];
    unsigned part = cursor->part, gpu = 0;

    *group = (struct wharf_stats_group){.source = source};
    if (family->scope == WHARF_STATS_OF_GPU) {
        gpu = (unsigned)cursor->at;
        group->gpu = source->daemon.gpus[gpu].name;
    } else if (is_of_all(family)) {
        group->row = source->all;
    } else if (family->scope != WHARF_STATS_OF_DAEMON) {
        group->row = &source->rows[cursor->at];
        group->tenant = group->row->name;
    }
    if (is_of_engine(family)) {
        group->stats = &group->row->stats.engines[part];
        group->engine = part == WHARF_ENGINE_AUTO ? "none" : wharf_engine_name(part);
    } else if (is_of_class(family)) {
        group->latency = &group->row->stats.latency[part];
        group->job_class = class_names[part];
    }
    if (is_missing(family, group, part))
        return false;
    if (family->value)
        group->value = family->value(source, gpu, group->row, group->stats);
    return true;
}

/* Adds the group; returns whether it fits. */
static bool add_group(struct wharf_stats_page *page, const struct wharf_stats_family *family,
                      const struct wharf_stats_group *group)
{
    struct wharf_stats_mark mark = wharf_stats_page_mark(page);

    if (!wharf_stats_page_begin(page, family->name, family->help, family->type, MOST_OF_GROUP))
        return false;
    family->add(page, group);
    if (wharf_stats_page_fits(page))
        return true;
    wharf_stats_page_return(page, &mark);
    return false;
}

bool wharf_stats_fill(struct wharf_stats_page *page, const struct wharf_stats_source *source,
                      struct wharf_stats_cursor *cursor)
{
    struct wharf_stats_group group;

    while (cursor->family < wharf_stats_n_families) {
        const struct wharf_stats_family *family = &wharf_stats_families[cursor->family];
        if (cursor->at >= n_rows_of(source, family)) {
            next_family(cursor);
            continue;
        }
        if (take_group(source, cursor, &group) && !add_group(page, family, &group))
            return true;
        next_group(family, cursor);
    }
    return false;
}

/* ---- how long it is as text ---------------------------------------------------------------- */

/* NAME{LABEL="VALUE",...} VALUE, where all that has to be escaped is. */
static size_t sample_text_nbytes(const struct wharf_stats_family *family,
                                 const Wharf__Sample *sample)
{
    char value[32];
    size_t nbytes = strlen(family->name) + strlen(sample->suffix) + 4;

    for (size_t i = 0; i < sample->n_labels; i++) {
        nbytes += strlen(sample->labels[i]->name) + 4;
        for (const char *at = sample->labels[i]->value; *at; at++)
            nbytes += *at == '"' || *at == '\\' || *at == '\n' ? 2 : *at & 0x80 ? 3 : 1;
    }
    if (sample->value == (double)(int64_t)sample->value)
        return nbytes + (size_t)snprintf(value, sizeof(value), "%lld", (long long)sample->value);
    return nbytes + 24;
}

static size_t family_text_nbytes(const struct wharf_stats_source *source, unsigned number,
                                 struct wharf_stats_page *page)
{
    const struct wharf_stats_family *family = &wharf_stats_families[number];
    struct wharf_stats_cursor cursor = {.family = number};
    struct wharf_stats_group group;
    size_t nbytes = 0;

    while (cursor.at < n_rows_of(source, family)) {
        wharf_stats_page_init(page, 0);
        if (take_group(source, &cursor, &group))
            add_group(page, family, &group);
        for (size_t i = 0; i < page->n_samples; i++)
            nbytes += sample_text_nbytes(family, &page->samples[i]);
        next_group(family, &cursor);
    }
    return nbytes;
}

static bool is_of_tenant(const struct wharf_stats_family *family)
{
    return family->scope == WHARF_STATS_OF_TENANT || family->scope == WHARF_STATS_OF_ENGINE ||
           family->scope == WHARF_STATS_OF_CLASS;
}

size_t wharf_stats_row_text_nbytes(const struct wharf_stats_source *source,
                                   struct wharf_stats_row *row, struct wharf_stats_page *page)
{
    struct wharf_stats_source one = {.rows = row, .n_rows = 1};
    size_t nbytes = 0;

    one.daemon.n_gpus = source->daemon.n_gpus;
    for (uint32_t i = 0; i < source->daemon.n_gpus; i++)
        one.daemon.gpus[i].name = source->daemon.gpus[i].name;
    for (unsigned i = 0; i < wharf_stats_n_families; i++)
        if (is_of_tenant(&wharf_stats_families[i]))
            nbytes += family_text_nbytes(&one, i, page);
    return nbytes;
}

/* # HELP NAME TEXT, # TYPE NAME histogram */
size_t wharf_stats_other_text_nbytes(const struct wharf_stats_source *source,
                                     struct wharf_stats_page *page)
{
    size_t nbytes = 0;

    for (unsigned i = 0; i < wharf_stats_n_families; i++) {
        nbytes +=
            2 * strlen(wharf_stats_families[i].name) + strlen(wharf_stats_families[i].help) + 28;
        if (!is_of_tenant(&wharf_stats_families[i]))
            nbytes += family_text_nbytes(source, i, page);
    }
    return nbytes;
}
