/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h: a copy of a daemon's statistics, and the forms in which they are shown.
 *
 * They come from somebody else: families and labels whose names are not by Prometheus' rules are
 * left out, values may hold any bytes, and there is a limit to how many there may be.
 */
#ifndef WHARF_CLI_METRICS_H
#define WHARF_CLI_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "clientlib/wharf.h"

enum { WHARF_CLI_MAX_LABELS = 16 };

struct wharf_cli_label {
    char *name;
    char *value;
};

struct wharf_cli_sample {
    struct wharf_cli_label labels[WHARF_CLI_MAX_LABELS];
    unsigned n_labels;
    char *suffix;
    double value;
};

struct wharf_cli_family {
    char *name;
    char *help;
    uint32_t type; /* enum wharf_metric_type */
    struct wharf_cli_sample *samples;
    size_t n_samples;
};

struct wharf_cli_metrics {
    struct wharf_cli_family *families;
    size_t n_families;
    size_t n_samples; /* of all */
    int error;        /* of a sample that could not be taken, -errno */
};

/* Asks the daemon.  0, or -errno with nothing to be freed. */
int wharf_cli_metrics_get(struct wharf *wharf, struct wharf_cli_metrics *ret_metrics);

void wharf_cli_metrics_free(struct wharf_cli_metrics *metrics);

/* The family of that name, or NULL. */
const struct wharf_cli_family *wharf_cli_metrics_find(const struct wharf_cli_metrics *metrics,
                                                      const char *family);

/* A label's value, or NULL. */
const char *wharf_cli_sample_label(const struct wharf_cli_sample *sample, const char *name);

/*
 * The sum of a family's samples that have this label with this value; of all for a NULL label.  Of
 * histograms those with the suffix are taken, of others it is "".
 */
double wharf_cli_metrics_sum(const struct wharf_cli_metrics *metrics, const char *family,
                             const char *suffix, const char *label, const char *value);

/* Whether two samples have the same labels, `le` apart: of a histogram they belong together. */
int wharf_cli_samples_belong(const struct wharf_cli_sample *a, const struct wharf_cli_sample *b);

/* The text format of Prometheus; one JSON object, as wharf(1) describes it; lines for people. */
void wharf_cli_metrics_print_prometheus(FILE *to, const struct wharf_cli_metrics *metrics);
void wharf_cli_metrics_print_json(FILE *to, const struct wharf_cli_metrics *metrics);
void wharf_cli_metrics_print_text(FILE *to, const struct wharf_cli_metrics *metrics);

#endif
