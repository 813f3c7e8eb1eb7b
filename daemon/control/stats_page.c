/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_page.c: builds one page of samples within the size of a packet.
 */
#include "daemon/control/stats_page.h"

#include <stdio.h>
#include <string.h>

/* The most, as packets are below 16384 bytes: tag and length; a reply's id, body and next. */
enum { FIELD_NBYTES = 3, REPLY_NBYTES = 6 + FIELD_NBYTES + 11 };

void wharf_stats_page_init(struct wharf_stats_page *page, uint32_t request)
{
    page->n_samples = page->n_text = page->n_families = page->n_measured = 0;
    page->packed_nbytes = REPLY_NBYTES;
    wharf__reply__init(&page->reply);
    wharf__stats_reply__init(&page->stats);
    page->reply.id = request;
    page->reply.body_case = WHARF__REPLY__BODY_STATS;
    page->reply.stats = &page->stats;
    page->stats.families = page->family_pointers;
}

bool wharf_stats_page_begin(struct wharf_stats_page *page, const char *name, const char *help,
                            Wharf__MetricType type, size_t n_samples)
{
    Wharf__MetricFamily *family = &page->families[page->n_families];

    if (page->n_samples + n_samples > WHARF_STATS_PAGE_MOST_SAMPLES)
        return false;
    if (page->n_families && family[-1].name == name)
        return true;
    if (page->n_families == WHARF_STATS_PAGE_MOST_FAMILIES)
        return false;
    wharf__metric_family__init(family);
    family->name = (char *)name;
    family->help = (char *)help;
    family->type = type;
    family->samples = &page->sample_pointers[page->n_samples];
    page->family_pointers[page->n_families++] = family;
    /* Itself, its name, what it is, and of which type. */
    page->packed_nbytes += 4 * FIELD_NBYTES + strlen(name) + strlen(help);
    return true;
}

Wharf__Sample *wharf_stats_page_add(struct wharf_stats_page *page, const char *suffix, double value)
{
    size_t at = page->n_samples++;
    Wharf__Sample *sample = &page->samples[at];

    wharf__sample__init(sample);
    sample->suffix = (char *)suffix;
    sample->value = value;
    sample->labels = page->label_pointers[at];
    page->sample_pointers[at] = sample;
    page->families[page->n_families - 1].n_samples++;
    return sample;
}

void wharf_stats_page_label(struct wharf_stats_page *page, Wharf__Sample *sample, const char *name,
                            const char *value)
{
    size_t at = (size_t)(sample - page->samples);
    Wharf__Label *label = &page->labels[at][sample->n_labels];

    wharf__label__init(label);
    label->name = (char *)name;
    label->value = (char *)value;
    page->label_pointers[at][sample->n_labels++] = label;
}

const char *wharf_stats_page_text(struct wharf_stats_page *page, const char *text)
{
    size_t n_free = sizeof(page->text) - page->n_text;
    char *kept = page->text + page->n_text;
    int n = snprintf(kept, n_free, "%s", text);

    page->n_text += (size_t)n < n_free ? (size_t)n + 1 : n_free - 1;
    return kept;
}

bool wharf_stats_page_fits(struct wharf_stats_page *page)
{
    for (; page->n_measured < page->n_samples; page->n_measured++)
        page->packed_nbytes += FIELD_NBYTES + protobuf_c_message_get_packed_size(
                                                  &page->samples[page->n_measured].base);
    return page->packed_nbytes <= WHARF_CONTROL_MAX_NBYTES;
}

struct wharf_stats_mark wharf_stats_page_mark(const struct wharf_stats_page *page)
{
    return (struct wharf_stats_mark){
        .n_samples = page->n_samples,
        .n_text = page->n_text,
        .n_families = page->n_families,
        .packed_nbytes = page->packed_nbytes,
        .n_family_samples = page->n_families ? page->families[page->n_families - 1].n_samples : 0,
    };
}

void wharf_stats_page_return(struct wharf_stats_page *page, const struct wharf_stats_mark *mark)
{
    page->n_samples = page->n_measured = mark->n_samples;
    page->packed_nbytes = mark->packed_nbytes;
    page->n_text = mark->n_text;
    page->n_families = mark->n_families;
    if (mark->n_families)
        page->families[mark->n_families - 1].n_samples = mark->n_family_samples;
}
