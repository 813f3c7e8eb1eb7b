/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_files.c: the configuration's file, then the drop-ins of its folder in the order of their
 * names.  Later ones override earlier ones.
 */
#include "daemon/base/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config_report.h"

#define MAX_FILE_NBYTES ((off_t)1 << 20)

/* Whoever can write the file controls the daemon. */
static bool others_may_write(const struct stat *st)
{
    return st->st_mode & S_IWOTH ||
           (st->st_mode & S_IWGRP && st->st_gid != 0 && st->st_gid != getegid()) ||
           (st->st_uid != 0 && st->st_uid != geteuid());
}

static int read_whole(const char *path, struct stat *st, char **ret_text, size_t *ret_nbytes)
{
    WHARF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || fstat(fd, st) < 0)
        return -errno;
    if (!S_ISREG(st->st_mode))
        return -EINVAL;
    if (st->st_size > MAX_FILE_NBYTES)
        return -EFBIG;
    WHARF_CLEANUP_FREE char *text = malloc((size_t)st->st_size + 1);
    if (!text)
        return -ENOMEM;
    ssize_t n = read(fd, text, (size_t)st->st_size);
    if (n < 0)
        return -errno;
    *ret_text = WHARF_STEAL(text);
    *ret_nbytes = (size_t)n;
    return 0;
}

static void load_file(struct wharf_config *config, const char *path,
                      struct wharf_config_report *report)
{
    WHARF_CLEANUP_FREE char *text = NULL;
    size_t nbytes = 0;
    struct stat st;
    int r = read_whole(path, &st, &text, &nbytes);

    wharf_config_report_begin_file(report, path);
    if (r < 0) {
        wharf_config_report_error(report, 0, "%s",
                                  r == -EINVAL ? "this is no regular file" : strerrordesc_np(-r));
        return;
    }
    if (others_may_write(&st))
        wharf_config_report_warn(report, 0, "others than root and the daemon may write this file");
    wharf_config_parse(config, text, nbytes, report);
}

static int is_drop_in(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

/* In the order of bytes, whatever the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Whoever can write to the folder can add and replace files. */
static void check_folder(const char *folder, struct wharf_config_report *report)
{
    struct stat st;

    if (stat(folder, &st) < 0 || !others_may_write(&st))
        return;
    wharf_config_report_begin_file(report, folder);
    wharf_config_report_warn(report, 0, "others than root and the daemon may write in this folder");
}

static void load_drop_ins(struct wharf_config *config, const char *folder,
                          struct wharf_config_report *report)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_drop_in, compare_names);

    if (n < 0 && errno != ENOENT) {
        int saved = errno;
        wharf_config_report_begin_file(report, folder);
        wharf_config_report_error(report, 0, "%s", strerrordesc_np(saved));
    }
    if (n >= 0)
        check_folder(folder, report);
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name) < (int)sizeof(path))
            load_file(config, path, report);
        free(entries[i]);
    }
    free(entries);
}

void wharf_config_load(struct wharf_config *config, const char *path, bool must_exist,
                       struct wharf_config_report *report)
{
    char folder[PATH_MAX];

    if (must_exist || access(path, F_OK) == 0 || errno != ENOENT)
        load_file(config, path, report);
    if (snprintf(folder, sizeof(folder), "%s.d", path) < (int)sizeof(folder))
        load_drop_ins(config, folder, report);
}
