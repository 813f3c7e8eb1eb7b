/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_report.c: collects the errors and warnings about a configuration, and the origin of each
 * value.
 */
#include "daemon/base/config_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wharf_config_report_init(struct wharf_config_report *report)
{
    memset(report, 0, sizeof(*report));
}

void wharf_config_report_deinit(struct wharf_config_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->n_files; i++)
        free(report->files[i]);
    for (size_t i = 0; i < report->n_problems; i++)
        free(report->problems[i].text);
    for (size_t i = 0; i < report->n_sources; i++)
        free(report->sources[i].section);
    free(report->files);
    free(report->problems);
    free(report->sources);
    wharf_config_report_init(report);
}

/* Grows an array of n elements, which doubles at each power of two, for one more. */
static void *grow(struct wharf_config_report *report, void *array, size_t n, size_t nbytes)
{
    if (n & (n - 1) || (n == 0 && array))
        return array;
    void *grown = reallocarray(array, n ? 2 * n : 1, nbytes);
    if (!grown)
        report->is_out_of_memory = true;
    return grown;
}

void wharf_config_report_begin_file(struct wharf_config_report *report, const char *path)
{
    char **files = grow(report, report->files, report->n_files, sizeof(*files));
    char *copy = strdup(path);

    if (files)
        report->files = files;
    if (!files || !copy) {
        report->is_out_of_memory = true;
        free(copy);
        return;
    }
    report->files[report->n_files++] = copy;
}

/* ---- problems ------------------------------------------------------------------------------ */

static void add_problem(struct wharf_config_report *report, bool is_error, char *text)
{
    *(is_error ? &report->n_errors : &report->n_warnings) += 1;
    if (report->n_problems == WHARF_CONFIG_MOST_PROBLEMS) {
        free(text);
        return;
    }
    struct wharf_config_problem *problems =
        grow(report, report->problems, report->n_problems, sizeof(*problems));
    if (problems)
        report->problems = problems;
    if (!problems || !text) {
        report->is_out_of_memory = true;
        free(text);
        return;
    }
    problems[report->n_problems++] = (struct wharf_config_problem){is_error, text};
}

static void add(struct wharf_config_report *report, bool is_error, const char *file, unsigned line,
                const char *format, va_list arguments)
{
    char *text = NULL;
    char what[1024];

    vsnprintf(what, sizeof(what), format, arguments);
    int n = line   ? asprintf(&text, "%s:%u: %s", file, line, what)
            : file ? asprintf(&text, "%s: %s", file, what)
                   : asprintf(&text, "%s", what);
    add_problem(report, is_error, n < 0 ? NULL : text);
}

static const char *current_file(const struct wharf_config_report *report)
{
    return report->n_files ? report->files[report->n_files - 1] : NULL;
}

void wharf_config_report_error(struct wharf_config_report *report, unsigned line,
                               const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(report, true, current_file(report), line, format, arguments);
    va_end(arguments);
}

void wharf_config_report_warn(struct wharf_config_report *report, unsigned line, const char *format,
                              ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(report, false, current_file(report), line, format, arguments);
    va_end(arguments);
}

void wharf_config_report_of(struct wharf_config_report *report, bool is_error, const char *section,
                            const char *key, const char *format, ...)
{
    const struct wharf_config_source *source = wharf_config_report_find(report, section, key);
    va_list arguments;

    va_start(arguments, format);
    add(report, is_error, source ? source->file : NULL, source ? source->line : 0, format,
        arguments);
    va_end(arguments);
}

void wharf_config_report_list(const struct wharf_config_report *report,
                              void (*print)(bool is_error, const char *text))
{
    char more[64];
    size_t n_more = report->n_errors + report->n_warnings - report->n_problems;

    for (size_t i = 0; i < report->n_problems; i++)
        print(report->problems[i].is_error, report->problems[i].text);
    if (report->is_out_of_memory)
        print(true, "not all of the configuration was read: out of memory");
    snprintf(more, sizeof(more), "%zu more problems", n_more);
    if (n_more > 0 && !report->is_out_of_memory)
        print(wharf_config_report_is_bad(report), more);
}

/* ---- sources ------------------------------------------------------------------------------- */

void wharf_config_report_source(struct wharf_config_report *report,
                                const struct wharf_setting *setting, const char *section,
                                unsigned line)
{
    struct wharf_config_source *sources =
        grow(report, report->sources, report->n_sources, sizeof(*sources));
    char *copy = strdup(section);

    if (sources)
        report->sources = sources;
    if (!sources || !copy) {
        report->is_out_of_memory = true;
        free(copy);
        return;
    }
    sources[report->n_sources++] = (struct wharf_config_source){
        .setting = setting,
        .section = copy,
        .file = current_file(report),
        .line = line,
    };
}

const struct wharf_config_source *wharf_config_report_find(const struct wharf_config_report *report,
                                                           const char *section, const char *key)
{
    for (size_t i = report->n_sources; i-- > 0;) {
        const struct wharf_config_source *source = &report->sources[i];
        if (strcmp(source->section, section) != 0)
            continue;
        if (key ? source->setting && strcmp(source->setting->key, key) == 0 : !source->setting)
            return source;
    }
    return NULL;
}
