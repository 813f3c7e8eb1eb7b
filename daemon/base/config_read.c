/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_read.c: reads configuration files into struct wharf_config by the table of settings.
 */
#include "daemon/base/config.h"

#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config_report.h"
#include "daemon/base/config_table.h"
#include "daemon/base/config_value.h"
#include "daemon/base/ini.h"
#include "daemon/base/nearest.h"

/* ---- sections ------------------------------------------------------------------------------ */

/* The name of a section's rows in the table. */
static const char *table_section(const char *section)
{
    return strcmp(section, "tenant") == 0 || strcmp(section, "group") == 0 ? "quota" : section;
}

static bool has_name(const char *section)
{
    return strcmp(section, "tenant") == 0 || strcmp(section, "group") == 0 ||
           strcmp(section, "listen") == 0;
}

static const struct wharf_setting *find_setting(const char *section, const char *key)
{
    section = table_section(section);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->section, section) == 0 && (!key || strcmp(s->key, key) == 0))
            return s;
    return NULL;
}

static void set_defaults(const char *section, void *base)
{
    struct wharf_config_why why;

    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->section, section) == 0)
            wharf_config_value_set(s, base, s->otherwise, &why);
}

/* The state of reading a file. */
struct reader {
    struct wharf_config *config;
    struct wharf_config_report *report;
    size_t n_tenants, n_groups, n_listens; /* those of earlier files */
    /* The present section: its name, the struct that its settings are members of, and a mask of
     * those set. */
    char section[WHARF_CONFIG_NAME_NBYTES + sizeof("tenant ")];
    void *base;
    uint64_t *set;
    /* Stand-ins for a section without effect: its settings are checked all the same. */
    struct wharf_config_quota unused_quota;
    struct wharf_config_listen unused_listen;
};

#define ERROR(reader, number, ...) wharf_config_report_error((reader)->report, number, __VA_ARGS__)

static bool begin_unused_quota(struct reader *reader)
{
    reader->base = &reader->unused_quota.quota;
    reader->set = &reader->unused_quota.set;
    return true;
}

/* The section of that name in a list, which is added if new.  A file may have each section once. */
static bool begin_quota(struct reader *reader, const struct wharf_ini_line *line, const char *name,
                        struct wharf_config_quota **list, size_t *n, size_t n_earlier)
{
    snprintf(reader->section, sizeof(reader->section), "%s %s", line->section, name);
    for (size_t i = 0; i < *n; i++) {
        struct wharf_config_quota *known = &(*list)[i];
        if (strcmp(known->name, name) != 0)
            continue;
        if (i >= n_earlier)
            ERROR(reader, line->number, "[%s] has a section already", reader->section);
        reader->base = &known->quota;
        reader->set = &known->set;
        return true;
    }
    struct wharf_config_quota *grown = reallocarray(*list, *n + 1, sizeof(*grown));
    if (!grown) {
        reader->report->is_out_of_memory = true;
        return false;
    }
    *list = grown;
    struct wharf_config_quota *quota = &grown[(*n)++];
    memset(quota, 0, sizeof(*quota));
    snprintf(quota->name, sizeof(quota->name), "%s", name);
    reader->base = &quota->quota;
    reader->set = &quota->set;
    return true;
}

enum tenant_name { NAME_IS_GOOD, NAME_IS_BAD, NAME_OF_NOBODY };

/* Finds a tenant's name.  "uid:1000", "block:100000", "socket:pods" and "unknown" are names
 * already; "user:alice" is looked up. */
static enum tenant_name resolve_tenant(const char *argument, char *ret_name)
{
    const char *number = strchr(argument, ':');
    uint64_t uid;

    if (strncmp(argument, "user:", 5) == 0) {
        const struct passwd *user = getpwnam(argument + 5);
        if (!user)
            return NAME_OF_NOBODY;
        snprintf(ret_name, WHARF_CONFIG_NAME_NBYTES, "uid:%u", (unsigned)user->pw_uid);
        return NAME_IS_GOOD;
    }
    if (strcmp(argument, "unknown") == 0 || (strncmp(argument, "socket:", 7) == 0 && argument[7])) {
        strcpy(ret_name, argument);
        return NAME_IS_GOOD;
    }
    if (!number || !wharf_config_value_is_uid(number + 1, &uid) ||
        (strncmp(argument, "uid:", 4) != 0 && strncmp(argument, "block:", 6) != 0))
        return NAME_IS_BAD;
    snprintf(ret_name, WHARF_CONFIG_NAME_NBYTES, "%.*s:%" PRIu64, (int)(number - argument),
             argument, uid);
    return NAME_IS_GOOD;
}

static bool begin_tenant(struct reader *reader, const struct wharf_ini_line *line)
{
    char name[WHARF_CONFIG_NAME_NBYTES];

    switch (resolve_tenant(line->argument, name)) {
    case NAME_IS_BAD:
        ERROR(reader, line->number,
              "[tenant %s]: a tenant is user:NAME, uid:NUMBER, block:NUMBER, socket:NAME or "
              "unknown",
              line->argument);
        return begin_unused_quota(reader);
    case NAME_OF_NOBODY:
        /* A user may have been deleted.  That is no reason not to serve the others. */
        wharf_config_report_warn(reader->report, line->number,
                                 "[tenant %s] has no effect: there is no such user",
                                 line->argument);
        return begin_unused_quota(reader);
    case NAME_IS_GOOD:
        break;
    }
    return begin_quota(reader, line, name, &reader->config->tenants, &reader->config->n_tenants,
                       reader->n_tenants);
}

static bool begin_listen(struct reader *reader, const struct wharf_ini_line *line)
{
    struct wharf_config *config = reader->config;

    for (size_t i = 0; i < config->n_listens; i++) {
        if (strcmp(config->listens[i].name, line->argument) != 0)
            continue;
        if (i >= reader->n_listens)
            ERROR(reader, line->number, "[listen %s] has a section already", line->argument);
        reader->base = &config->listens[i];
        return true;
    }
    struct wharf_config_listen *grown =
        reallocarray(config->listens, config->n_listens + 1, sizeof(*grown));
    if (!grown) {
        reader->report->is_out_of_memory = true;
        return false;
    }
    config->listens = grown;
    struct wharf_config_listen *listen = &grown[config->n_listens++];
    memset(listen, 0, sizeof(*listen));
    strcpy(listen->name, line->argument);
    set_defaults("listen", listen);
    reader->base = listen;
    return true;
}

/* Lists the sections that have such a setting. */
static size_t list_sections(const char *key, char text[], size_t nbytes)
{
    size_t n = 0;

    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->key, key) == 0)
            n += (size_t)snprintf(text + n, nbytes - n, "%s[%s]", n ? " or " : "", s->section);
    return n;
}

/* Lists all sections, each once, in the table's order. */
static void list_all_sections(char text[], size_t nbytes)
{
    const char *last = "";
    size_t n = 0;

    for (const struct wharf_setting *s = wharf_settings; s->section && n < nbytes; s++) {
        if (strcmp(s->section, last) != 0)
            n += (size_t)snprintf(text + n, nbytes - n, "[%s%s], ", s->section,
                                  has_name(s->section) ? " NAME" : "");
        last = s->section;
    }
    if (n < nbytes)
        snprintf(text + n, nbytes - n, "[tenant NAME] and [group NAME]");
}

static void say_no_section(struct reader *reader, const struct wharf_ini_line *line)
{
    struct wharf_nearest nearest;
    char all[160];

    wharf_nearest_begin(&nearest, line->section);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        wharf_nearest_offer(&nearest, s->section);
    wharf_nearest_offer(&nearest, "tenant");
    wharf_nearest_offer(&nearest, "group");
    list_all_sections(all, sizeof(all));
    ERROR(reader, line->number, "there is no such section [%.40s]; %s%s%s", line->section,
          nearest.name ? "did you mean [" : "there are ", nearest.name ? nearest.name : all,
          nearest.name ? "]?" : "");
}

/* Settings of the last release that have no effect any more.  They cause a warning only. */
static const struct {
    const char *section, *key, *instead;
} gone[] = {
    {"gpu", "output", "a GPU's kernel writes all outputs itself"},
    {"gpu", "staging", "a GPU's kernel writes all outputs itself"},
};

static bool say_gone(struct reader *reader, const struct wharf_ini_line *line)
{
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        if (strcmp(line->section, gone[i].section) != 0 || strcmp(line->key, gone[i].key) != 0)
            continue;
        wharf_config_report_warn(reader->report, line->number,
                                 "[%s] %s has no effect: %s; delete the line", gone[i].section,
                                 gone[i].key, gone[i].instead);
        return true;
    }
    return false;
}

static void say_no_setting(struct reader *reader, const struct wharf_ini_line *line)
{
    const char *section = table_section(line->section);
    struct wharf_nearest nearest;
    char others[128] = "";

    if (list_sections(line->key, others, sizeof(others))) {
        ERROR(reader, line->number, "[%s] has no setting `%s`: it is one of %s", line->section,
              line->key, others);
        return;
    }
    wharf_nearest_begin(&nearest, line->key);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        if (strcmp(s->section, section) == 0)
            wharf_nearest_offer(&nearest, s->key);
    if (nearest.name) {
        ERROR(reader, line->number, "[%s] has no setting `%.100s`; did you mean %s?", line->section,
              line->key, nearest.name);
        return;
    }
    for (const struct wharf_setting *s = wharf_settings; s->section; s++)
        wharf_nearest_offer(&nearest, s->key);
    if (nearest.name)
        list_sections(nearest.name, others, sizeof(others));
    ERROR(reader, line->number, "[%s] has no setting `%.100s`%s%s%s%s", line->section, line->key,
          nearest.name ? "; did you mean " : "", nearest.name ? nearest.name : "",
          nearest.name ? " of " : "", nearest.name ? others : "");
}

static bool begin_section(struct reader *reader, const struct wharf_ini_line *line)
{
    reader->set = NULL;
    if (!find_setting(line->section, NULL)) {
        say_no_section(reader, line);
        return false;
    }
    if (has_name(line->section) != (*line->argument != 0)) {
        ERROR(reader, line->number,
              *line->argument ? "[%s ...]: this section has no name"
                              : "[%s]: this section needs a name, as in [tenant uid:1000]",
              line->section);
        return false;
    }
    /* The name must fit wherever it is copied: socket names and the quotas' names. */
    if (strlen(line->argument) >= WHARF_CONFIG_NAME_NBYTES - sizeof("socket:")) {
        ERROR(reader, line->number, "the name is too long");
        return false;
    }
    snprintf(reader->section, sizeof(reader->section), "%s%s%s", line->section,
             *line->argument ? " " : "", line->argument);
    reader->base = reader->config;
    if (strcmp(line->section, "quota") == 0)
        reader->base = &reader->config->quota;
    if (strcmp(line->section, "tenant") == 0)
        return begin_tenant(reader, line);
    if (strcmp(line->section, "listen") == 0)
        return begin_listen(reader, line);
    if (strcmp(line->section, "group") == 0 &&
        reader->config->n_groups == WHARF_CONFIG_MOST_GROUPS) {
        ERROR(reader, line->number, "[group %s]: more than %d groups", line->argument,
              WHARF_CONFIG_MOST_GROUPS);
        return begin_unused_quota(reader);
    }
    if (strcmp(line->section, "group") == 0)
        return begin_quota(reader, line, line->argument, &reader->config->groups,
                           &reader->config->n_groups, reader->n_groups);
    return true;
}

static void take_setting(struct reader *reader, const struct wharf_ini_line *line)
{
    const struct wharf_setting *setting = find_setting(line->section, line->key);
    struct wharf_config_why why;

    if (!*line->section)
        ERROR(reader, line->number, "a setting before the first [section]");
    else if (!setting && !say_gone(reader, line))
        say_no_setting(reader, line);
    else if (!setting)
        return;
    else if (!wharf_config_value_set(setting, reader->base, line->value, &why))
        ERROR(reader, line->number, "%s = %.200s: %s", setting->key, line->value, why.text);
    else
        wharf_config_report_source(reader->report, setting, reader->section, line->number);
    if (setting && reader->set)
        *reader->set |= (uint64_t)1 << (setting->offset / sizeof(uint64_t));
}

static bool take_line(void *context, const struct wharf_ini_line *line)
{
    struct reader *reader = context;

    if (line->key) {
        take_setting(reader, line);
        return true;
    }
    bool is_wanted = begin_section(reader, line);
    if (is_wanted)
        wharf_config_report_source(reader->report, NULL, reader->section, line->number);
    return is_wanted;
}

static void take_wrong_line(void *context, unsigned number, const char *what)
{
    struct reader *reader = context;

    ERROR(reader, number, "%s", what);
}

/* ---- whole configurations ------------------------------------------------------------------ */

void wharf_config_init(struct wharf_config *config)
{
    memset(config, 0, sizeof(*config));
    set_defaults("daemon", config);
    set_defaults("cpu", config);
    set_defaults("gpu", config);
    set_defaults("schedule", config);
    set_defaults("total", config);
    set_defaults("owners", config);
    set_defaults("quota", &config->quota);
    strcpy(config->listen.name, "wharfd");
}

void wharf_config_deinit(struct wharf_config *config)
{
    if (!config)
        return;
    free(config->tenants);
    free(config->groups);
    free(config->listens);
    config->tenants = config->groups = NULL;
    config->listens = NULL;
}

void wharf_config_parse(struct wharf_config *config, const char *text, size_t text_nbytes,
                        struct wharf_config_report *report)
{
    struct reader reader = {
        .config = config,
        .report = report,
        .n_tenants = config->n_tenants,
        .n_groups = config->n_groups,
        .n_listens = config->n_listens,
    };

    wharf_ini_parse(text, text_nbytes,
                    &(struct wharf_ini_reader){take_line, take_wrong_line, &reader});
}
