/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_print.c: statistics for Prometheus, for programs and for people. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "clientlib/cli/json.h"
#include "clientlib/cli/metrics.h"
#include "proto/utf8.h"

static const char *type_name(uint32_t type)
{
    switch (type) {
    case WHARF_METRIC_COUNTER:
        return "counter";
    case WHARF_METRIC_GAUGE:
        return "gauge";
    case WHARF_METRIC_HISTOGRAM:
        return "histogram";
    default:
        return "untyped";
    }
}

/* ---- Prometheus: text format 0.0.4 --------------------------------------------------------- */

/* Escaped, in UTF-8; quotes only in labels. */
static void print_escaped(FILE *to, const char *text, bool is_label)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        int nbytes = wharf_utf8_nbytes(at);

        if (nbytes == 0)
            fputs("\xef\xbf\xbd", to); /* U+FFFD */
        else if (*at == '\n')
            fputs("\\n", to);
        else if (*at == '\\' || (is_label && *at == '"'))
            fprintf(to, "\\%c", *at);
        else
            fwrite(at, 1, (size_t)nbytes, to);
        at += nbytes ? nbytes : 1;
    }
}

static void print_prometheus_value(FILE *to, double value)
{
    if (isnan(value))
        fputs("NaN", to);
    else if (isinf(value))
        fputs(value < 0 ? "-Inf" : "+Inf", to);
    else
        wharf_cli_json_number(to, value);
}

static void print_prometheus_sample(FILE *to, const struct wharf_cli_family *family,
                                    const struct wharf_cli_sample *sample)
{
    fprintf(to, "%s%s", family->name, sample->suffix);
    for (unsigned i = 0; i < sample->n_labels; i++) {
        fprintf(to, "%s%s=\"", i ? "," : "{", sample->labels[i].name);
        print_escaped(to, sample->labels[i].value, true);
        fputc('"', to);
    }
    fputs(sample->n_labels ? "} " : " ", to);
    print_prometheus_value(to, sample->value);
    fputc('\n', to);
}

void wharf_cli_metrics_print_prometheus(FILE *to, const struct wharf_cli_metrics *metrics)
{
    for (size_t i = 0; i < metrics->n_families; i++) {
        const struct wharf_cli_family *family = &metrics->families[i];

        fprintf(to, "# HELP %s ", family->name);
        print_escaped(to, family->help, false);
        fprintf(to, "\n# TYPE %s %s\n", family->name, type_name(family->type));
        for (size_t k = 0; k < family->n_samples; k++)
            print_prometheus_sample(to, family, &family->samples[k]);
    }
}

/* ---- samples that belong together ---------------------------------------------------------- */

/* How many from `first` on: of a histogram all with the same labels, otherwise one. */
static size_t group_size(const struct wharf_cli_family *family, size_t first)
{
    size_t n = 1;

    if (family->type != WHARF_METRIC_HISTOGRAM)
        return 1;
    while (first + n < family->n_samples &&
           wharf_cli_samples_belong(&family->samples[first], &family->samples[first + n]))
        n++;
    return n;
}

static double value_of(const struct wharf_cli_sample *samples, size_t n, const char *suffix)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(samples[i].suffix, suffix) == 0)
            return samples[i].value;
    return NAN;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void print_json_labels(FILE *to, const struct wharf_cli_sample *sample)
{
    unsigned n = 0;

    fputs("{\"labels\":{", to);
    for (unsigned i = 0; i < sample->n_labels; i++) {
        if (strcmp(sample->labels[i].name, "le") == 0)
            continue;
        fprintf(to, "%s\"%s\":", n++ ? "," : "", sample->labels[i].name);
        wharf_cli_json_string(to, sample->labels[i].value);
    }
    fputc('}', to);
}

static void print_json_buckets(FILE *to, const struct wharf_cli_sample *samples, size_t n)
{
    unsigned n_buckets = 0;

    fputs(",\"buckets\":[", to);
    for (size_t i = 0; i < n; i++) {
        const char *bound = wharf_cli_sample_label(&samples[i], "le");
        if (!bound)
            continue;
        fprintf(to, "%s{\"le\":", n_buckets++ ? "," : "");
        wharf_cli_json_string(to, bound);
        fputs(",\"count\":", to);
        wharf_cli_json_number(to, samples[i].value);
        fputc('}', to);
    }
    fputc(']', to);
}

static void print_json_group(FILE *to, const struct wharf_cli_family *family, size_t first,
                             size_t n)
{
    const struct wharf_cli_sample *samples = &family->samples[first];

    print_json_labels(to, samples);
    if (family->type == WHARF_METRIC_HISTOGRAM) {
        fputs(",\"count\":", to);
        wharf_cli_json_number(to, value_of(samples, n, "_count"));
        fputs(",\"sum\":", to);
        wharf_cli_json_number(to, value_of(samples, n, "_sum"));
        print_json_buckets(to, samples, n);
    } else {
        fputs(",\"value\":", to);
        wharf_cli_json_number(to, samples->value);
    }
    fputc('}', to);
}

void wharf_cli_metrics_print_json(FILE *to, const struct wharf_cli_metrics *metrics)
{
    fputs("{\"families\":[", to);
    for (size_t i = 0; i < metrics->n_families; i++) {
        const struct wharf_cli_family *family = &metrics->families[i];

        fprintf(to, "%s\n{\"name\":\"%s\",\"type\":\"%s\",\"help\":", i ? "," : "", family->name,
                type_name(family->type));
        wharf_cli_json_string(to, family->help);
        fputs(",\"samples\":[", to);
        for (size_t first = 0, n; first < family->n_samples; first += n) {
            n = group_size(family, first);
            fputs(first ? ",\n " : "\n ", to);
            print_json_group(to, family, first, n);
        }
        fputs("]}", to);
    }
    fputs("]}\n", to);
}

/* ---- people -------------------------------------------------------------------------------- */

/* For a terminal: nothing in it may be a control character. */
static void print_plain(FILE *to, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, to);
}

static void print_text_labels(FILE *to, const struct wharf_cli_sample *sample)
{
    for (unsigned i = 0; i < sample->n_labels; i++) {
        if (strcmp(sample->labels[i].name, "le") == 0)
            continue;
        fprintf(to, "%s=", sample->labels[i].name);
        print_plain(to, sample->labels[i].value);
        fputc(' ', to);
    }
}

/* The least bound below which at least this part of all stand. */
static const char *quantile(const struct wharf_cli_sample *samples, size_t n, double part)
{
    double count = value_of(samples, n, "_count");

    for (size_t i = 0; i < n; i++) {
        const char *bound = wharf_cli_sample_label(&samples[i], "le");
        if (bound && samples[i].value >= part * count)
            return bound;
    }
    return "+Inf";
}

static void print_text_group(FILE *to, const struct wharf_cli_family *family, size_t first,
                             size_t n)
{
    const struct wharf_cli_sample *samples = &family->samples[first];
    double count = value_of(samples, n, "_count");

    fputs("  ", to);
    print_text_labels(to, samples);
    if (family->type != WHARF_METRIC_HISTOGRAM) {
        fprintf(to, "%.9g", samples->value);
    } else {
        fprintf(to, "count %.0f", count);
        if (count > 0) {
            fprintf(to, ", mean %.3g, half below ", value_of(samples, n, "_sum") / count);
            print_plain(to, quantile(samples, n, 0.5));
            fputs(", 99 % below ", to);
            print_plain(to, quantile(samples, n, 0.99));
        }
    }
    fputc('\n', to);
}

void wharf_cli_metrics_print_text(FILE *to, const struct wharf_cli_metrics *metrics)
{
    for (size_t i = 0; i < metrics->n_families; i++) {
        const struct wharf_cli_family *family = &metrics->families[i];

        fprintf(to, "%s: ", family->name);
        print_plain(to, family->help);
        fputc('\n', to);
        for (size_t first = 0, n; first < family->n_samples; first += n) {
            n = group_size(family, first);
            print_text_group(to, family, first, n);
        }
    }
}
