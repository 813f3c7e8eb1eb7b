/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: keeps a copy of a daemon's statistics (metrics.h). */
#include "clientlib/cli/metrics.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Far above what a daemon with thousands of tenants has (some 200 for each). */
enum { MAX_SAMPLES = 4000000 };

/* ---- taking -------------------------------------------------------------------------------- */

/* [a-zA-Z_][a-zA-Z0-9_]*, of metrics also with colons. */
static bool is_name(const char *name, bool is_metric)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t n = strspn(name, letters);

    if (n == 0 && !(is_metric && *name == ':'))
        return false;
    for (; *name; name++)
        if (!strchr(letters, *name) && !(*name >= '0' && *name <= '9') &&
            !(is_metric && *name == ':'))
            return false;
    return true;
}

static bool is_sound(const struct wharf_metric *metric)
{
    if (!is_name(metric->family, true) || metric->n_labels > WHARF_CLI_MAX_LABELS ||
        (*metric->suffix && !is_name(metric->suffix, true)))
        return false;
    for (uint32_t i = 0; i < metric->n_labels; i++)
        if (!is_name(metric->labels[i].name, false))
            return false;
    return true;
}

/* Another element at the end of an array that grows by doubling; NULL without memory. */
static void *grow(void **array, size_t *n, size_t nbytes)
{
    if ((*n & (*n - 1)) == 0) {
        size_t avail = *n ? 2 * *n : 1;
        void *larger = realloc(*array, avail * nbytes);
        if (!larger)
            return NULL;
        *array = larger;
    }
    void *element = (char *)*array + (*n)++ * nbytes;
    memset(element, 0, nbytes);
    return element;
}

static struct wharf_cli_family *find(const struct wharf_cli_metrics *metrics, const char *name)
{
    /* Samples come by family: it is mostly the last one. */
    for (size_t i = metrics->n_families; i-- > 0;)
        if (strcmp(metrics->families[i].name, name) == 0)
            return &metrics->families[i];
    return NULL;
}

static struct wharf_cli_family *family_of(struct wharf_cli_metrics *metrics,
                                          const struct wharf_metric *metric)
{
    struct wharf_cli_family *family = find(metrics, metric->family);
    void *families = metrics->families;
    char *name, *help;

    if (family)
        return family;
    name = strdup(metric->family);
    help = strdup(metric->help);
    family = name && help ? grow(&families, &metrics->n_families, sizeof(*family)) : NULL;
    metrics->families = families;
    if (!family) {
        free(name);
        free(help);
        return NULL;
    }
    family->name = name;
    family->help = help;
    family->type = metric->type;
    return family;
}

static int add_sample(struct wharf_cli_metrics *metrics, const struct wharf_metric *metric)
{
    struct wharf_cli_family *family = family_of(metrics, metric);
    struct wharf_cli_sample *sample = NULL;

    if (family) {
        void *samples = family->samples;
        sample = grow(&samples, &family->n_samples, sizeof(*sample));
        family->samples = samples;
    }
    if (!sample)
        return -ENOMEM;
    sample->value = metric->value;
    sample->suffix = strdup(metric->suffix);
    sample->n_labels = metric->n_labels;
    bool is_whole = sample->suffix != NULL;
    for (uint32_t i = 0; i < metric->n_labels; i++) {
        sample->labels[i].name = strdup(metric->labels[i].name);
        sample->labels[i].value = strdup(metric->labels[i].value);
        is_whole = is_whole && sample->labels[i].name && sample->labels[i].value;
    }
    metrics->n_samples++;
    return is_whole ? 0 : -ENOMEM;
}

static void take(void *data, const struct wharf_metric *metric)
{
    struct wharf_cli_metrics *metrics = data;

    if (metrics->error || !is_sound(metric))
        return;
    metrics->error = metrics->n_samples == MAX_SAMPLES ? -EFBIG : add_sample(metrics, metric);
}

static void free_sample(struct wharf_cli_sample *sample)
{
    for (unsigned i = 0; i < sample->n_labels; i++) {
        free(sample->labels[i].name);
        free(sample->labels[i].value);
    }
    free(sample->suffix);
}

void wharf_cli_metrics_free(struct wharf_cli_metrics *metrics)
{
    for (size_t i = 0; i < metrics->n_families; i++) {
        struct wharf_cli_family *family = &metrics->families[i];
        for (size_t k = 0; k < family->n_samples; k++)
            free_sample(&family->samples[k]);
        free(family->samples);
        free(family->name);
        free(family->help);
    }
    free(metrics->families);
    *metrics = (struct wharf_cli_metrics){NULL, 0, 0, 0};
}

int wharf_cli_metrics_get(struct wharf *wharf, struct wharf_cli_metrics *ret_metrics)
{
    struct wharf_cli_metrics metrics = {NULL, 0, 0, 0};
    int r = wharf_stats(wharf, take, &metrics);

    if (r == 0)
        r = metrics.error;
    if (r < 0)
        wharf_cli_metrics_free(&metrics);
    else
        *ret_metrics = metrics;
    return r;
}

/* ---- looking ------------------------------------------------------------------------------- */

const struct wharf_cli_family *wharf_cli_metrics_find(const struct wharf_cli_metrics *metrics,
                                                      const char *family)
{
    return find(metrics, family);
}

const char *wharf_cli_sample_label(const struct wharf_cli_sample *sample, const char *name)
{
    for (unsigned i = 0; i < sample->n_labels; i++)
        if (strcmp(sample->labels[i].name, name) == 0)
            return sample->labels[i].value;
    return NULL;
}

double wharf_cli_metrics_sum(const struct wharf_cli_metrics *metrics, const char *family,
                             const char *suffix, const char *label, const char *value)
{
    const struct wharf_cli_family *found = find(metrics, family);
    double sum = 0;

    for (size_t i = 0; found && i < found->n_samples; i++) {
        const struct wharf_cli_sample *sample = &found->samples[i];
        const char *has = label ? wharf_cli_sample_label(sample, label) : NULL;

        if (strcmp(sample->suffix, suffix) == 0 && (!label || (has && strcmp(has, value) == 0)))
            sum += sample->value;
    }
    return sum;
}

/* Each label of `a` but `le` is one of `b`. */
static bool has_labels_of(const struct wharf_cli_sample *a, const struct wharf_cli_sample *b)
{
    for (unsigned i = 0; i < a->n_labels; i++) {
        const char *value = wharf_cli_sample_label(b, a->labels[i].name);
        if (strcmp(a->labels[i].name, "le") != 0 &&
            (!value || strcmp(value, a->labels[i].value) != 0))
            return false;
    }
    return true;
}

int wharf_cli_samples_belong(const struct wharf_cli_sample *a, const struct wharf_cli_sample *b)
{
    return has_labels_of(a, b) && has_labels_of(b, a);
}
