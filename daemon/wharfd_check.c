/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_check.c: checks a configuration against this machine (wharfd --check-config). */
#include "daemon/wharfd_check.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"
#include "daemon/base/config_table.h"
#include "daemon/base/cpu_set.h"
#include "daemon/base/machine.h"
#include "daemon/control/served_path.h"
#include "daemon/core/totals.h"
#include "daemon/gpu/gpus.h"

static uint64_t *number(struct wharf_config *config, const struct wharf_setting *setting)
{
    return (uint64_t *)(void *)((char *)config + setting->offset);
}

/* A setting of which all tenants' totals are made. */
static bool is_total(const struct wharf_setting *setting)
{
    return strcmp(setting->section, "total") == 0 ||
           (strcmp(setting->section, "gpu") == 0 && strcmp(setting->key, "memory") == 0);
}

/* Each by itself, with what the machine allows of all others, and then all together. */
static void check_totals(const struct wharf_config *config, struct wharf_config_report *report)
{
    size_t n_before = report->n_errors;
    struct wharf_machine machine;
    struct wharf_totals totals;
    char message[512];

    wharf_machine_raise_open_files();
    wharf_machine_read(&machine);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++) {
        struct wharf_config one = *config;
        if (!is_total(s))
            continue;
        for (const struct wharf_setting *other = wharf_settings; other->section; other++)
            if (is_total(other) && other != s)
                *number(&one, other) = 0;
        if (wharf_totals_init(&totals, &one, &machine, message, sizeof(message)) < 0)
            wharf_config_report_of(report, true, s->section, s->key, "%s", message);
    }
    if (report->n_errors == n_before &&
        wharf_totals_init(&totals, config, &machine, message, sizeof(message)) < 0)
        wharf_config_report_of(report, true, "total", "owners", "%s", message);
}

static void check_cpus(const struct wharf_config *config, struct wharf_config_report *report)
{
    cpu_set_t cpus;
    uint32_t n_workers;

    if (wharf_cpu_set_choose(config, &cpus, &n_workers) == -EINVAL)
        wharf_config_report_of(report, true, "cpu", "cpus", WHARF_CPU_SET_NONE, config->cpus);
}

static void check_gpu(const struct wharf_config *config, struct wharf_config_report *report)
{
    char program[PATH_MAX];
    bool is_asked_for =
        config->gpu_engine == WHARF_GPU_CUDA || config->gpu_engine == WHARF_GPU_SIMT;

    if (config->gpu_engine == WHARF_GPU_NONE || (!is_asked_for && !config->gpu_worker[0]))
        return;
    int r = wharf_gpus_find_program(config, program, sizeof(program));
    if (r < 0)
        wharf_config_report_of(report, is_asked_for, "gpu",
                               config->gpu_worker[0] ? "worker" : "engine",
                               "there is no GPU worker %s: %s", program, strerrordesc_np(-r));
    if (config->gpu_engine == WHARF_GPU_CUDA && !wharf_gpus_have_device_node())
        wharf_config_report_of(report, false, "gpu", "engine",
                               "engine = cuda: the driver of a GPU is not there now");
}

/* One that is not written down may be missing. */
static void check_group(const char *name, const char *section, const char *key, const char *so,
                        struct wharf_config_report *report)
{
    if (name[0] && wharf_config_report_find(report, section, key) && !getgrnam(name))
        wharf_config_report_of(report, false, section, key,
                               "%s = %s: there is no such group, so %s", key, name, so);
}

/* A socket for which there is no folder keeps the daemon from starting; it does without metrics. */
static void check_folder(const char *path, bool is_error, const char *section, const char *key,
                         struct wharf_config_report *report)
{
    char copy[WHARF_CONFIG_PATH_NBYTES];
    struct stat st;

    snprintf(copy, sizeof(copy), "%s", path);
    const char *folder = dirname(copy);
    if (!path[0] || !wharf_config_report_find(report, section, key) ||
        (stat(folder, &st) == 0 && S_ISDIR(st.st_mode)))
        return;
    wharf_config_report_of(report, is_error, section, key, "%s = %s: there is no folder %s", key,
                           path, folder);
}

/* What is not ours is not replaced.  Sockets are not looked at: those of a running daemon are
 * there.  The daemon does not start then, but does without metrics. */
static void check_kind(const char *path, bool is_error, const char *section, const char *key,
                       struct wharf_config_report *report)
{
    const char *kind = wharf_path_other_kind(path, 0);

    if (kind && wharf_config_report_find(report, section, key))
        wharf_config_report_of(report, is_error, section, key,
                               "%s = %s: is %s, which is left as it is", key, path, kind);
}

static void check_place(const char *path, bool is_error, const char *section, const char *key,
                        struct wharf_config_report *report)
{
    check_folder(path, is_error, section, key, report);
    check_kind(path, is_error, section, key, report);
}

/* Whether the daemon makes its sockets itself.  A service of systemd is handed them, so no path
 * keeps it from starting; systemd sets this variable where it has the service reloaded, of which
 * this check is a part. */
static bool makes_sockets(void)
{
    return getenv("MAINPID") == NULL;
}

void wharf_check_machine(const struct wharf_config *config, struct wharf_config_report *report)
{
    static const char own_alone[] = "only the daemon's own user may connect";
    char section[WHARF_CONFIG_NAME_NBYTES + sizeof("listen ")];
    bool is_error = makes_sockets();

    check_totals(config, report);
    check_cpus(config, report);
    check_gpu(config, report);
    check_place(config->listen.path, is_error, "daemon", "socket", report);
    check_group(config->listen.group, "daemon", "socket_group", own_alone, report);
    check_group(config->observer_group, "daemon", "observer_group",
                "only root and the daemon's own user see all tenants", report);
    if (strcmp(config->metrics_socket, "auto") != 0 && strcmp(config->metrics_socket, "none") != 0)
        check_place(config->metrics_socket, false, "daemon", "metrics_socket", report);
    for (size_t i = 0; i < config->n_listens; i++) {
        snprintf(section, sizeof(section), "listen %s", config->listens[i].name);
        check_place(config->listens[i].path, is_error, section, "path", report);
        check_group(config->listens[i].group, section, "group", own_alone, report);
    }
    for (size_t i = 0; i < config->n_groups; i++) {
        snprintf(section, sizeof(section), "group %s", config->groups[i].name);
        if (!getgrnam(config->groups[i].name))
            wharf_config_report_of(report, false, section, NULL,
                                   "[%s] has no effect: there is no such group", section);
    }
}
