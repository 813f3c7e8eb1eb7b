/* SPDX-License-Identifier: Apache-2.0 */
/* config_check.c: warns of settings that are valid by themselves but contradict each other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"
#include "daemon/base/config_table.h"
#include "daemon/base/config_value.h"
#include "daemon/base/uid_ranges.h"
#include "kernels/memo.h"
#include "proto/wharf_ring.h"

/* Pairs of limits: if the first one is above the second one, it can never be reached. */
static const struct {
    const char *part, *whole;
    size_t in_part, in_whole;
} pairs[] = {
    {"max_arena", "max_memory", offsetof(struct wharf_quota, max_arena_nbytes),
     offsetof(struct wharf_quota, max_memory_nbytes)},
    {"max_job", "max_memory", offsetof(struct wharf_quota, max_job_nbytes),
     offsetof(struct wharf_quota, max_memory_nbytes)},
    {"max_entries", "max_jobs", offsetof(struct wharf_quota, max_entries),
     offsetof(struct wharf_quota, max_jobs)},
};

static const struct wharf_setting *setting_of(const char *key)
{
    const struct wharf_setting *setting = wharf_settings;

    while (strcmp(setting->section, "quota") != 0 || strcmp(setting->key, key) != 0)
        setting++;
    return setting;
}

/* Warns only of values that were set.  A default may be above a value that was set. */
static void check_quota(const char *section, const struct wharf_quota *quota,
                        struct wharf_config_report *report)
{
    char part_text[WHARF_CONFIG_NUMBER_TEXT], whole_text[WHARF_CONFIG_NUMBER_TEXT];

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        uint64_t part, whole;
        memcpy(&part, (const char *)quota + pairs[i].in_part, sizeof(part));
        memcpy(&whole, (const char *)quota + pairs[i].in_whole, sizeof(whole));
        bool has_part = wharf_config_report_find(report, section, pairs[i].part) != NULL;
        bool has_whole = wharf_config_report_find(report, section, pairs[i].whole) != NULL;
        bool is_written = has_part || wharf_config_report_find(report, "quota", pairs[i].part);
        if (part <= whole || !is_written || (!has_part && !has_whole))
            continue;
        wharf_config_report_of(
            report, false, section, has_part ? pairs[i].part : pairs[i].whole,
            "[%s] %s is %s, but %s is %s: so much cannot be had", section, pairs[i].part,
            wharf_config_value_number(setting_of(pairs[i].part), part, part_text), pairs[i].whole,
            wharf_config_value_number(setting_of(pairs[i].whole), whole, whole_text));
    }
}

/* Programs that ask for no queue size share what is left, so max_jobs should exceed a single
 * default size. */
static void check_jobs(const char *section, const struct wharf_quota *quota,
                       struct wharf_config_report *report)
{
    if (quota->max_jobs < WHARF_RING_DEFAULT_ENTRIES &&
        wharf_config_report_find(report, section, "max_jobs"))
        wharf_config_report_of(report, false, section, "max_jobs",
                               "[%s] max_jobs is %" PRIu64
                               ", less than the %u of a queue of the default size: the "
                               "first program that asks for no size takes most of them",
                               section, quota->max_jobs, WHARF_RING_DEFAULT_ENTRIES);
}

static void check_limits(const char *section, const struct wharf_quota *quota,
                         struct wharf_config_report *report)
{
    check_quota(section, quota, report);
    check_jobs(section, quota, report);
}

static const struct wharf_config_listen *find_listen(const struct wharf_config *config,
                                                     const char *name)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (strcmp(config->listens[i].name, name) == 0)
            return &config->listens[i];
    return NULL;
}

/* Whether a block of uids begins at uid. */
static bool is_block(const struct wharf_config *config, uid_t uid)
{
    struct wharf_uid_ranges blocks;

    if (wharf_uid_ranges_parse(config->owners.blocks, &blocks))
        return false;
    const struct wharf_uid_range *range = wharf_uid_ranges_find(&blocks, uid);
    return range && (uid - range->first) % config->owners.block_n_uids == 0;
}

/* Warns of a section for a tenant that cannot exist. */
static void check_tenant(const struct wharf_config *config, const char *name, const char *section,
                         struct wharf_config_report *report)
{
    if (strncmp(name, "socket:", 7) == 0) {
        const struct wharf_config_listen *listen = find_listen(config, name + 7);
        if (!listen)
            wharf_config_report_of(report, false, section, NULL,
                                   "[%s] has no effect: there is no section [listen %s]", section,
                                   name + 7);
        else if (listen->tenant != WHARF_TENANT_BY_SOCKET)
            wharf_config_report_of(report, false, section, NULL,
                                   "[%s] has no effect without tenant = socket in [listen %s]",
                                   section, name + 7);
    } else if (strncmp(name, "block:", 6) == 0) {
        if (!is_block(config, (uid_t)strtoul(name + 6, NULL, 10)))
            wharf_config_report_of(
                report, false, section, NULL,
                "[%s] has no effect: no block of uids begins there, by blocks and block of "
                "[owners]",
                section);
    }
}

/* ---- paths ------------------------------------------------------------------------------- */

/* A setting that is a socket's path. */
struct place {
    const char *path; /* empty: none */
    const char *section, *key;
};

/* Two sockets at one path fail: the second one replaces the first, or neither is created. */
static void check_apart(const struct place *place, const struct place *other,
                        struct wharf_config_report *report)
{
    if (place->path[0] && strcmp(place->path, other->path) == 0)
        wharf_config_report_of(report, true, place->section, place->key,
                               "[%s] %s = %s: [%s] %s has this path already", place->section,
                               place->key, place->path, other->section, other->key);
}

static void check_paths(const struct wharf_config *config, struct wharf_config_report *report)
{
    char section[WHARF_CONFIG_NAME_NBYTES + sizeof("listen ")];
    char other_section[sizeof(section)];
    const struct place main_place = {config->listen.path, "daemon", "socket"};
    const struct place metrics = {config->metrics_socket, "daemon", "metrics_socket"};

    check_apart(&metrics, &main_place, report);
    for (size_t i = 0; i < config->n_listens; i++) {
        const struct place place = {config->listens[i].path, section, "path"};
        snprintf(section, sizeof(section), "listen %s", config->listens[i].name);
        check_apart(&place, &main_place, report);
        check_apart(&place, &metrics, report);
        for (size_t j = 0; j < i; j++) {
            const struct place other = {config->listens[j].path, other_section, "path"};
            snprintf(other_section, sizeof(other_section), "listen %s", config->listens[j].name);
            check_apart(&place, &other, report);
        }
    }
}

/* A part that holds no chunk would be a setting without effect. */
static void check_memo(const struct wharf_config *config, struct wharf_config_report *report)
{
    if (config->gpu_memo_nbytes > 0 &&
        config->gpu_memo_nbytes / config->n_gpu_memo_users < WHARF_MEMO_LEAST_NBYTES)
        wharf_config_report_of(report, true, "gpu", "memo",
                               "[gpu] memo is less than %u KiB for each of memo_users",
                               (unsigned)(WHARF_MEMO_LEAST_NBYTES >> 10));
}

void wharf_config_check(const struct wharf_config *config, struct wharf_config_report *report)
{
    char section[WHARF_CONFIG_NAME_NBYTES + sizeof("tenant ")];

    check_paths(config, report);
    check_memo(config, report);
    check_limits("quota", &config->quota, report);
    for (size_t i = 0; i < config->n_groups; i++) {
        struct wharf_quota quota = wharf_config_quota_of(config, "", config->groups[i].name);
        snprintf(section, sizeof(section), "group %s", config->groups[i].name);
        check_limits(section, &quota, report);
    }
    for (size_t i = 0; i < config->n_tenants; i++) {
        struct wharf_quota quota = wharf_config_quota_of(config, config->tenants[i].name, "");
        snprintf(section, sizeof(section), "tenant %s", config->tenants[i].name);
        check_limits(section, &quota, report);
        check_tenant(config, config->tenants[i].name, section, report);
    }
}
