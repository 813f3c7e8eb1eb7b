/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_text.c: prints a snapshot in Prometheus' text format.
 */
#include "daemon/control/stats_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/control.h"
#include "proto/utf8.h"

static const char *type_name(Wharf__MetricType type)
{
    switch (type) {
    case WHARF__METRIC_TYPE__METRIC_TYPE_COUNTER:
        return "counter";
    case WHARF__METRIC_TYPE__METRIC_TYPE_GAUGE:
        return "gauge";
    case WHARF__METRIC_TYPE__METRIC_TYPE_HISTOGRAM:
        return "histogram";
    default:
        return "untyped";
    }
}

/* Tenants' names are the configuration's, and may have any bytes. */
static void write_escaped(FILE *to, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        int nbytes = wharf_utf8_nbytes(at);
        if (nbytes == 0)
            fputs("\xef\xbf\xbd", to); /* U+FFFD */
        else if (*at == '\n')
            fputs("\\n", to);
        else if (*at == '\\' || *at == '"')
            fprintf(to, "\\%c", *at);
        else
            fwrite(at, 1, (size_t)nbytes, to);
        at += nbytes ? nbytes : 1;
    }
}

/* The shortest number that is the same. */
static void write_value(FILE *to, double value)
{
    char text[32];

    if (fabs(value) < 1e15 && value == (double)(int64_t)value) {
        fprintf(to, "%lld", (long long)value);
        return;
    }
    for (int n_digits = 6; n_digits <= 17; n_digits++) {
        snprintf(text, sizeof(text), "%.*g", n_digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, to);
}

static void write_sample(FILE *to, const char *name, const Wharf__Sample *sample)
{
    fprintf(to, "%s%s", name, sample->suffix);
    for (size_t i = 0; i < sample->n_labels; i++) {
        fprintf(to, "%s%s=\"", i ? "," : "{", sample->labels[i]->name);
        write_escaped(to, sample->labels[i]->value);
        fputc('"', to);
    }
    fputs(sample->n_labels ? "} " : " ", to);
    write_value(to, sample->value);
    fputc('\n', to);
}

/* `last`: the family that the page before ended with, which may go on here. */
static void write_family(FILE *to, const Wharf__MetricFamily *family, char last[64])
{
    if (family->n_samples == 0)
        return;
    if (strcmp(family->name, last) != 0)
        fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                type_name(family->type));
    snprintf(last, 64, "%s", family->name);
    for (size_t i = 0; i < family->n_samples; i++)
        write_sample(to, family->name, family->samples[i]);
}

static bool write_pages(FILE *to, const uint8_t *bytes, const size_t ends[], size_t n_pages)
{
    char last[64] = "";
    size_t from = 0;

    for (size_t i = 0; i < n_pages; i++) {
        Wharf__StatsReply *page = wharf__stats_reply__unpack(NULL, ends[i] - from, bytes + from);
        if (!page)
            return false;
        for (size_t k = 0; k < page->n_families; k++)
            write_family(to, page->families[k], last);
        wharf__stats_reply__free_unpacked(page, NULL);
        from = ends[i];
    }
    return fputs("# EOF\n", to) >= 0;
}

struct wharf_stats_text *wharf_stats_text_new(const uint8_t *bytes, const size_t ends[],
                                              size_t n_pages)
{
    struct wharf_stats_text *text = calloc(1, sizeof(*text));
    FILE *to = text ? open_memstream(&text->bytes, &text->nbytes) : NULL;

    if (!to) {
        free(text);
        return NULL;
    }
    bool is_good = write_pages(to, bytes, ends, n_pages);
    if (fclose(to) == 0 && is_good)
        return text;
    wharf_stats_text_free(text);
    return NULL;
}

void wharf_stats_text_free(struct wharf_stats_text *text)
{
    if (!text || text->n_references > 0)
        return;
    free(text->bytes);
    free(text);
}
