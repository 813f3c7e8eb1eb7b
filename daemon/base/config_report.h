/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_report.h: a report about a configuration: all errors and warnings, and the line that set
 * each value.
 */
#ifndef WHARF_DAEMON_BASE_CONFIG_REPORT_H
#define WHARF_DAEMON_BASE_CONFIG_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/config_table.h"

/* More than anybody reads; further problems are only counted. */
#define WHARF_CONFIG_MOST_PROBLEMS 100

struct wharf_config_problem {
    bool is_error; /* false: a warning; the configuration can be used */
    char *text;    /* "FILE:LINE: ..." if it is about a line */
};

/* A line that sets a value.  Of several lines for a setting, the last one counts. */
struct wharf_config_source {
    const struct wharf_setting *setting;
    char *section; /* with its argument, such as "tenant uid:1000" */
    const char *file;
    unsigned line;
};

struct wharf_config_report {
    char **files; /* all files; the last one is being read */
    size_t n_files;
    struct wharf_config_problem *problems;
    size_t n_problems;
    size_t n_errors, n_warnings; /* including those that were not kept */
    struct wharf_config_source *sources;
    size_t n_sources;
    bool is_out_of_memory; /* then it counts as an error */
};

void wharf_config_report_init(struct wharf_config_report *report);
void wharf_config_report_deinit(struct wharf_config_report *report);

/* Begins a file, to which the line numbers that follow belong. */
void wharf_config_report_begin_file(struct wharf_config_report *report, const char *path);

/* Line 0: about the file as a whole. */
void wharf_config_report_error(struct wharf_config_report *report, unsigned line,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));
void wharf_config_report_warn(struct wharf_config_report *report, unsigned line, const char *format,
                              ...) __attribute__((format(printf, 3, 4)));

/* The same about a setting, or about a section if key is NULL, with its line.  `section` includes
 * the argument. */
void wharf_config_report_of(struct wharf_config_report *report, bool is_error, const char *section,
                            const char *key, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Records a line that sets a value, or begins a section (setting NULL). */
void wharf_config_report_source(struct wharf_config_report *report,
                                const struct wharf_setting *setting, const char *section,
                                unsigned line);

/* The line that set a setting, or NULL.  If key is NULL, the line that begins the section. */
const struct wharf_config_source *wharf_config_report_find(const struct wharf_config_report *report,
                                                           const char *section, const char *key);

/* Whether the configuration cannot be used. */
static inline bool wharf_config_report_is_bad(const struct wharf_config_report *report)
{
    return report->n_errors > 0 || report->is_out_of_memory;
}

/* Calls `print` for each problem that was kept, and once with the number of others. */
void wharf_config_report_list(const struct wharf_config_report *report,
                              void (*print)(bool is_error, const char *text));

#endif
