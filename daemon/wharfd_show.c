/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_show.c: prints the effective configuration. */
#include "daemon/wharfd_show.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"
#include "daemon/base/config_table.h"
#include "daemon/base/config_value.h"
#include "daemon/base/cpu_set.h"
#include "daemon/base/machine.h"
#include "daemon/core/totals.h"

/* What is derived from the machine. */
struct derived {
    struct wharf_totals totals;
    bool has_totals;
    uint32_t n_workers;
};

/* A column for the values, and one for where they come from. */
static void print_line(FILE *out, const char *key, const char *value, const char *from)
{
    char line[1024];

    snprintf(line, sizeof(line), "%s = %s", key, value);
    fprintf(out, "%-48s # %s\n", line, from);
}

/* "FILE:LINE" of the first of the sections that gives the setting its value.  Returns `text`. */
static const char *find_origin(const struct wharf_config_report *report,
                               const char *const *sections, const char *key, char text[],
                               size_t nbytes)
{
    for (; *sections; sections++) {
        const struct wharf_config_source *source = wharf_config_report_find(report, *sections, key);
        if (!source)
            continue;
        snprintf(text, nbytes, "%s:%u", source->file, source->line);
        return text;
    }
    return "default";
}

/* ---- what the machine decides -------------------------------------------------------------- */

static void derive(const struct wharf_config *config, struct derived *ret_derived)
{
    struct wharf_machine machine;
    char message[512];
    cpu_set_t cpus;

    wharf_machine_raise_open_files();
    wharf_machine_read(&machine);
    *ret_derived = (struct derived){.n_workers = 0};
    ret_derived->has_totals =
        wharf_totals_init(&ret_derived->totals, config, &machine, message, sizeof(message)) == 0;
    if (wharf_cpu_set_choose(config, &cpus, &ret_derived->n_workers) < 0)
        ret_derived->n_workers = 0;
}

static bool is(const struct wharf_setting *setting, const char *section, const char *key)
{
    return strcmp(setting->section, section) == 0 && strcmp(setting->key, key) == 0;
}

/* The value that a setting is replaced by; false: by none. */
static bool find_derived(const struct derived *derived, const struct wharf_setting *setting,
                         uint64_t *ret_value)
{
    static const struct {
        const char *key;
        enum wharf_total_kind kind;
    } totals[] = {
        {"max_connections", WHARF_TOTAL_CONNECTIONS},
        {"max_descriptors", WHARF_TOTAL_DESCRIPTORS},
        {"max_jobs", WHARF_TOTAL_JOBS},
        {"max_mappings", WHARF_TOTAL_MAPPINGS},
        {"max_memory", WHARF_TOTAL_MEMORY},
        {"max_gpu_memory", WHARF_TOTAL_GPU_MEMORY},
        {"max_tasks", WHARF_TOTAL_TASKS},
    };

    *ret_value = derived->n_workers;
    if (is(setting, "cpu", "workers"))
        return derived->n_workers > 0;
    *ret_value = derived->totals.pinned_nbytes;
    if (is(setting, "gpu", "memory"))
        return derived->has_totals;
    *ret_value = derived->totals.n_reservations;
    if (is(setting, "total", "owners"))
        return derived->has_totals;
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        *ret_value = derived->totals.of[totals[i].kind].total;
        if (is(setting, "total", totals[i].key))
            return derived->has_totals;
    }
    return false;
}

/* ---- sections ------------------------------------------------------------------------------ */

static void show_setting(FILE *out, const struct wharf_setting *setting, const void *base,
                         const struct wharf_config_report *report, const char *section,
                         const struct derived *derived)
{
    const char *const sections[] = {section, NULL};
    char text[WHARF_CONFIG_NUMBER_TEXT], from[512];
    uint64_t value, is_set = 0;

    const char *origin = find_origin(report, sections, setting->key, from, sizeof(from));
    if (!wharf_setting_is_text(setting))
        memcpy(&is_set, (const char *)base + setting->offset, sizeof(is_set));
    if (derived && find_derived(derived, setting, &value) && value != is_set)
        print_line(out, setting->key, wharf_config_value_number(setting, value, text), "derived");
    else
        print_line(out, setting->key, wharf_config_value_text(setting, base, text), origin);
}

/* All settings of one section of the table. */
static void show_section(FILE *out, const char *table, const void *base,
                         const struct wharf_config_report *report, const char *section,
                         const struct derived *derived)
{
    fprintf(out, "\n[%s]\n", section);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->section, table) == 0)
            show_setting(out, s, base, report, section, derived);
}

/* The limits of a tenant, or of a group's members, wherever they come from. */
static void show_quota(FILE *out, const struct wharf_quota *quota, const char *section,
                       const char *group, const struct wharf_config_report *report)
{
    const char *const sections[] = {section, *group ? group : "quota", "quota", NULL};
    char text[WHARF_CONFIG_NUMBER_TEXT], from[512];

    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->section, "quota") == 0)
            print_line(out, s->key, wharf_config_value_text(s, quota, text),
                       find_origin(report, sections, s->key, from, sizeof(from)));
}

static void show_tenant(FILE *out, const struct wharf_config *config, const char *name,
                        const struct wharf_config_report *report)
{
    struct wharf_quota quota = wharf_config_quota_of(config, name, "");
    const struct passwd *user = NULL;
    char section[WHARF_CONFIG_NAME_NBYTES + sizeof("tenant ")];

    snprintf(section, sizeof(section), "tenant %s", name);
    if (strncmp(name, "uid:", 4) == 0)
        user = getpwuid((uid_t)strtoul(name + 4, NULL, 10));
    fprintf(out, "\n[%s]%s%s\n", section, user ? " # " : "", user ? user->pw_name : "");
    show_quota(out, &quota, section, "", report);
}

static void show_group(FILE *out, const struct wharf_config *config, const char *name,
                       const struct wharf_config_report *report)
{
    struct wharf_quota quota = wharf_config_quota_of(config, "", name);
    char section[WHARF_CONFIG_NAME_NBYTES + sizeof("group ")];

    snprintf(section, sizeof(section), "group %s", name);
    fprintf(out, "\n[%s]\n", section);
    show_quota(out, &quota, section, "", report);
}

void wharf_show_config(FILE *out, const struct wharf_config *config,
                       const struct wharf_config_report *report)
{
    char section[WHARF_CONFIG_NAME_NBYTES + sizeof("listen ")];
    const char *last = "";
    struct derived derived;

    derive(config, &derived);
    fputs("# The configuration in effect, and where each value comes from.  What is derived is so\n"
          "# from this machine, by the limits of this process.\n",
          out);
    for (size_t i = 0; i < report->n_files; i++)
        fprintf(out, "# %s\n", report->files[i]);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++) {
        if (strcmp(s->section, last) == 0 || strcmp(s->section, "listen") == 0)
            continue;
        last = s->section;
        if (strcmp(last, "quota") == 0)
            show_section(out, last, &config->quota, report, last, NULL);
        else
            show_section(out, last, config, report, last, &derived);
    }
    for (size_t i = 0; i < config->n_listens; i++) {
        snprintf(section, sizeof(section), "listen %s", config->listens[i].name);
        show_section(out, "listen", &config->listens[i], report, section, NULL);
    }
    for (size_t i = 0; i < config->n_groups; i++)
        show_group(out, config, config->groups[i].name, report);
    for (size_t i = 0; i < config->n_tenants; i++)
        show_tenant(out, config, config->tenants[i].name, report);
}
