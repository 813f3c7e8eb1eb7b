/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_report.h: what came out while a configuration was read: all that is wrong with it, and
 * where each value stands.
 */
#ifndef WHARF_DAEMON_BASE_CONFIG_REPORT_H
#define WHARF_DAEMON_BASE_CONFIG_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/config_table.h"

/* More than anybody reads; what is beyond is only counted. */
#define WHARF_CONFIG_MOST_PROBLEMS 100

struct wharf_config_problem {
    bool is_error; /* else a warning: the configuration can be used */
    char *text;    /* "FILE:LINE: ..." where it stands in a file */
};

/* A line that gives a setting its value; of several the last one counts. */
struct wharf_config_source {
    const struct wharf_setting *setting;
    char *section; /* of one with a name: "tenant uid:1000"; else as the setting's */
    const char *file;
    unsigned line;
};

struct wharf_config_report {
    char **files; /* that were read; the last one is being read */
    size_t n_files;
    struct wharf_config_problem *problems;
    size_t n_problems;
    size_t n_errors, n_warnings; /* those that were not kept included */
    struct wharf_config_source *sources;
    size_t n_sources;
    bool is_out_of_memory; /* then it counts as an error */
};

void wharf_config_report_init(struct wharf_config_report *report);
void wharf_config_report_deinit(struct wharf_config_report *report);

/* What follows stands in this file. */
void wharf_config_report_begin_file(struct wharf_config_report *report, const char *path);

/* Line 0: of the file as a whole. */
void wharf_config_report_error(struct wharf_config_report *report, unsigned line,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));
void wharf_config_report_warn(struct wharf_config_report *report, unsigned line, const char *format,
                              ...) __attribute__((format(printf, 3, 4)));

/* The same of a setting, or of a section (key NULL), wherever that stands; `section` with its name.
 */
void wharf_config_report_of(struct wharf_config_report *report, bool is_error, const char *section,
                            const char *key, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A line of the file gives a setting its value, or begins a section (setting NULL). */
void wharf_config_report_source(struct wharf_config_report *report,
                                const struct wharf_setting *setting, const char *section,
                                unsigned line);

/* Where a setting has its value from; NULL: nowhere.  Key NULL: where the section begins. */
const struct wharf_config_source *wharf_config_report_find(const struct wharf_config_report *report,
                                                           const char *section, const char *key);

/* Whether the configuration cannot be used. */
static inline bool wharf_config_report_is_bad(const struct wharf_config_report *report)
{
    return report->n_errors > 0 || report->is_out_of_memory;
}

/* Calls `print` for each problem that was kept, and for how many were not. */
void wharf_config_report_list(const struct wharf_config_report *report,
                              void (*print)(bool is_error, const char *text));

#endif
