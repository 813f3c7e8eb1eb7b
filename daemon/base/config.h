/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: the daemon's settings.
 *
 * The table in config_table.c is the only place that has a setting's name, default, limits and
 * meaning; `wharfd --print-config` prints it as a configuration file.
 */
#ifndef WHARF_DAEMON_BASE_CONFIG_H
#define WHARF_DAEMON_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/un.h>

#define WHARF_CONFIG_PATH_NBYTES sizeof(((struct sockaddr_un *)0)->sun_path)
#define WHARF_CONFIG_NAME_NBYTES 64
/* The most GPUs of a daemon; sets of GPUs are masks in a uint32_t. */
#define WHARF_MAX_GPUS 16u
/* The most [group] sections. */
#define WHARF_CONFIG_MOST_GROUPS 64

/* The limits of one tenant: of all its clients together, unless a member says otherwise. */
struct wharf_quota {
    uint64_t weight; /* its share of the machine, relative to other tenants */
    uint64_t max_connections;
    uint64_t max_descriptors;       /* descriptors that the daemon holds for it */
    uint64_t max_memory_nbytes;     /* arenas and registered memory */
    uint64_t max_jobs;              /* entries of all its queues together */
    uint64_t max_entries;           /* of one queue */
    uint64_t max_arena_nbytes;      /* of one session */
    uint64_t max_regions;           /* of one session */
    uint64_t max_models;            /* likewise */
    uint64_t max_gpu_models;        /* models on each GPU at a time */
    uint64_t max_gpu_memory_nbytes; /* clients' own GPU memory */
    uint64_t max_gpu_regions;       /* pieces of clients' own GPU memory */
    uint64_t max_job_nbytes;        /* source and destination of one chunk together */
    uint64_t max_batch_chunks;
    uint64_t max_compress_nbytes; /* source of one chunk to compress */
    uint64_t max_start_ns;        /* how long a job may wait for its start word */
};
#define WHARF_QUOTA_N_MEMBERS (sizeof(struct wharf_quota) / sizeof(uint64_t))

enum wharf_config_io { WHARF_IO_AUTO, WHARF_IO_URING, WHARF_IO_EPOLL };
enum wharf_config_gpu_kernel {
    WHARF_GPU_KERNEL_AUTO,
    WHARF_GPU_KERNEL_EPOCH, /* a kernel stays while there is work */
    WHARF_GPU_KERNEL_BATCH, /* a kernel for each batch of work */
};
enum wharf_config_gpu { WHARF_GPU_AUTO, WHARF_GPU_CUDA, WHARF_GPU_SIMT, WHARF_GPU_NONE };
enum wharf_config_tenant { WHARF_TENANT_BY_PEER, WHARF_TENANT_BY_SOCKET };

/* [listen NAME]: a further socket. */
struct wharf_config_listen {
    char name[WHARF_CONFIG_NAME_NBYTES];
    char path[WHARF_CONFIG_PATH_NBYTES];
    char group[WHARF_CONFIG_NAME_NBYTES];
    uint64_t mode;
    uint64_t tenant; /* enum wharf_config_tenant */
};

/* [tenant NAME], [group NAME]: limits that differ from [quota], for one tenant or for each member
 * of a group. */
struct wharf_config_quota {
    char name[WHARF_CONFIG_NAME_NBYTES]; /* the tenant's (struct wharf_tenant) or the group's */
    uint64_t set;                        /* bit i: member i of `quota` is set */
    struct wharf_quota quota;
};

/* [total]: limits of all tenants together; 0: derived from the machine. */
struct wharf_config_totals {
    uint64_t max_connections;
    uint64_t max_descriptors;
    uint64_t max_jobs;
    uint64_t max_mappings;
    uint64_t max_memory_nbytes;
    uint64_t max_gpu_memory_nbytes;
    uint64_t max_tasks;
    uint64_t owners; /* number of tenants that have a reservation */
};

/* [owners]: which users are one tenant. */
struct wharf_config_owners {
    char subuid[256]; /* a file like /etc/subuid; "": /etc/subuid and nsswitch.conf */
    char passwd[256]; /* a file like /etc/passwd; "": the machine's users */
    char group[256];  /* a file like /etc/group; "": the machine's groups */
    char blocks[256]; /* uid_ranges.h */
    uint64_t block_n_uids;
    uint64_t lookup_timeout_ns;
    uint64_t remember_ns;
};

struct wharf_config {
    /* [daemon] */
    struct wharf_config_listen listen; /* the main socket */
    uint64_t log_level;                /* enum wharf_log_level */
    uint64_t io;                       /* enum wharf_config_io */
    uint64_t hello_timeout_ns;
    uint64_t unread_timeout_ns;
    uint64_t fd_filter_timeout_ns;
    uint64_t file_timeout_ns;
    uint64_t read_ahead_nbytes;
    uint64_t drain_timeout_ns;
    uint64_t stuck_timeout_ns;
    uint64_t keep_tenants_ns;
    uint64_t n_histogram_tenants;
    char observer_group[WHARF_CONFIG_NAME_NBYTES];
    char metrics_socket[WHARF_CONFIG_PATH_NBYTES];
    /* [cpu] */
    uint64_t n_workers;
    uint64_t share_percent;
    char cpus[256];
    uint64_t nice;
    uint64_t spin_ns;
    /* [gpu] */
    uint64_t gpu_engine; /* enum wharf_config_gpu */
    char gpu_worker[256];
    char gpu_device[768]; /* gpu_list.h */
    uint64_t n_gpus_expected;
    uint64_t gpu_share_percent;
    uint64_t gpu_kernel; /* enum wharf_config_gpu_kernel */
    uint64_t gpu_chunk_nbytes;
    uint64_t gpu_memory_nbytes;
    uint64_t gpu_spare_nbytes;
    uint64_t gpu_pin_after_ns;
    uint64_t gpu_ahead_ns;
    uint64_t gpu_idle_ns;
    uint64_t gpu_stay_ns;
    uint64_t gpu_longest_ns;
    uint64_t gpu_large_nbytes;
    uint64_t gpu_large_longest_ns;
    uint64_t gpu_compress_warps;
    uint64_t gpu_memo_nbytes;
    uint64_t n_gpu_memo_users;
    uint64_t gpu_hang_timeout_ns;
    uint64_t gpu_start_timeout_ns;
    uint64_t gpu_ban_ns;
    /* [schedule] */
    uint64_t interactive_percent;
    uint64_t background_age_ns;
    uint64_t slice_ns;
    uint64_t long_ns;

    struct wharf_config_owners owners;
    struct wharf_config_totals totals;

    struct wharf_quota quota; /* [quota] */
    struct wharf_config_quota *tenants;
    size_t n_tenants;
    struct wharf_config_quota *groups; /* of a tenant's groups, the first one here counts */
    size_t n_groups;
    struct wharf_config_listen *listens;
    size_t n_listens;
};

/* A configuration of all defaults. */
void wharf_config_init(struct wharf_config *config);
void wharf_config_deinit(struct wharf_config *config);

struct wharf_config_report;

/*
 * Reads the text of a file over the values in `config`.  Reports every error, and where each value
 * was set.  After an error, `config` may only be passed to deinit.  Looks up users' names, which
 * may take as long as the directory service takes.
 */
void wharf_config_parse(struct wharf_config *config, const char *text, size_t text_nbytes,
                        struct wharf_config_report *report);

/* The same for a file, which may be missing unless must_exist.  Then reads all files *.conf of the
 * folder FILE.d, in the order of their names. */
void wharf_config_load(struct wharf_config *config, const char *path, bool must_exist,
                       struct wharf_config_report *report);

/* Warns of contradictions in a configuration that was read without errors. */
void wharf_config_check(const struct wharf_config *config, struct wharf_config_report *report);

/* The quota of a tenant.  `group` is its group with settings, or "". */
struct wharf_quota wharf_config_quota_of(const struct wharf_config *config, const char *tenant,
                                         const char *group);

/* A tenant's own settings, or NULL. */
const struct wharf_config_quota *wharf_config_tenant(const struct wharf_config *config,
                                                     const char *tenant);

/* How long a tenant's descriptors are refused after some have hung the descriptor filter. */
static inline uint64_t wharf_config_barred_ns(const struct wharf_config *config)
{
    return 30 * config->fd_filter_timeout_ns;
}

/* Prints a configuration file with every setting, its meaning, its limits and its default. */
void wharf_config_print(FILE *out);

/*
 * Takes the settings from `next` that can change while the daemon runs.  Calls `kept` for each
 * setting that differs but needs a restart.
 */
void wharf_config_reload(struct wharf_config *config, struct wharf_config *next,
                         void (*kept)(const char *section, const char *key));

#endif
