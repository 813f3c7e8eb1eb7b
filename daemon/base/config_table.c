/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_table.c: all settings, with their defaults and limits.
 *
 * Settings of the sections daemon, cpu, gpu, schedule, total and owners are members of struct
 * wharf_config; those of quota (and of tenant and group, which have the same keys) of struct
 * wharf_quota; those of listen of struct wharf_config_listen.
 *
 * TO ADD A SETTING, add a member there (a uint64_t, or an array of chars for a text), a row here,
 * and an item `.It Cm KEY No = DEFAULT` in its section of wharfd.conf(5), followed by `Sy *` if it
 * is AT_START.  The loop thread reads server->config, other threads core->config.  If code keeps a
 * copy of a value that RELOADS, apply_config() of server_loop.c must renew the copy.
 */
#include "daemon/base/config_table.h"

#include "daemon/base/config.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "kernels/memo.h"
#include "proto/wharf_ring.h"

#define US ((uint64_t)1000)
#define KiB ((uint64_t)1 << 10)
#define MiB ((uint64_t)1 << 20)
#define GiB ((uint64_t)1 << 30)
#define TiB ((uint64_t)1 << 40)
#define S ((uint64_t)1000000000)
#define MS ((uint64_t)1000000)
#define HOUR (3600 * S)

const struct wharf_config_suffix wharf_config_byte_suffixes[] = {
    {"", 1},
    {"K", (uint64_t)1 << 10},
    {"M", (uint64_t)1 << 20},
    {"G", (uint64_t)1 << 30},
    {"T", (uint64_t)1 << 40},
    {NULL, 0},
};
const struct wharf_config_suffix wharf_config_duration_suffixes[] = {
    {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"min", 60000000000u}, {NULL, 0},
};

static const struct wharf_setting_choice log_levels[] = {
    {"error", WHARF_LOG_ERROR}, {"warning", WHARF_LOG_WARNING}, {"notice", WHARF_LOG_NOTICE},
    {"info", WHARF_LOG_INFO},   {"debug", WHARF_LOG_DEBUG},     {NULL, 0},
};

static const struct wharf_setting_choice io_kinds[] = {
    {"auto", WHARF_IO_AUTO},
    {"io_uring", WHARF_IO_URING},
    {"epoll", WHARF_IO_EPOLL},
    {NULL, 0},
};

const struct wharf_setting_choice wharf_config_gpu_engines[] = {
    {"auto", WHARF_GPU_AUTO},
    {"cpu", WHARF_GPU_NONE},
    {"cuda", WHARF_GPU_CUDA},
    {"simt", WHARF_GPU_SIMT},
    {NULL, 0},
};

static const struct wharf_setting_choice gpu_kernels[] = {
    {"auto", WHARF_GPU_KERNEL_AUTO},
    {"epoch", WHARF_GPU_KERNEL_EPOCH},
    {"batch", WHARF_GPU_KERNEL_BATCH},
    {NULL, 0},
};

static const struct wharf_setting_choice tenant_kinds[] = {
    {"peer", WHARF_TENANT_BY_PEER},
    {"socket", WHARF_TENANT_BY_SOCKET},
    {NULL, 0},
};

#define DAEMON(member) offsetof(struct wharf_config, member)
#define MAIN_SOCKET(member) (DAEMON(listen) + LISTEN(member))
#define LISTEN(member) offsetof(struct wharf_config_listen, member)
#define QUOTA(member) offsetof(struct wharf_quota, member)

#define COUNT WHARF_SETTING_COUNT
#define BYTES WHARF_SETTING_BYTES
#define DURATION WHARF_SETTING_DURATION
#define MODE WHARF_SETTING_MODE
#define CHOICE WHARF_SETTING_CHOICE
#define TEXT WHARF_SETTING_TEXT
#define GPUS WHARF_SETTING_GPUS
#define UIDS WHARF_SETTING_UIDS
#define CPUS WHARF_SETTING_CPUS
/* Whether a change takes effect on SIGHUP, or only at the next start. */
#define RELOADS true
#define AT_START false

/* clang-format off: one row a setting reads as a table. */
const struct wharf_setting wharf_settings[] = {
    {"daemon", "socket", TEXT, AT_START, MAIN_SOCKET(path), "/run/wharf/wharfd.sock", 1,
     WHARF_CONFIG_PATH_NBYTES, NULL, "Where clients connect, unless systemd hands over sockets."},
    {"daemon", "socket_group", TEXT, AT_START, MAIN_SOCKET(group), "wharf", 0,
     WHARF_CONFIG_NAME_NBYTES, NULL,
     "Who may connect: the socket gets this group if it exists; empty for the daemon's own."},
    {"daemon", "socket_mode", MODE, AT_START, MAIN_SOCKET(mode), "0660", 0, 0777, NULL,
     "The socket's permissions."},
    {"daemon", "log_level", CHOICE, RELOADS, DAEMON(log_level), "info", 0, 0, log_levels,
     "The least important messages that are logged."},
    {"daemon", "io", CHOICE, AT_START, DAEMON(io), "auto", 0, 0, io_kinds,
     "How the daemon waits; auto is io_uring, or epoll where io_uring is refused."},
    {"daemon", "hello_timeout", DURATION, RELOADS, DAEMON(hello_timeout_ns), "10s", MS, HOUR, NULL,
     "How long a new connection may stay silent."},
    {"daemon", "unread_timeout", DURATION, RELOADS, DAEMON(unread_timeout_ns), "60s", MS, HOUR,
     NULL, "How long a connection may wait unread before it is ended; its client may come again."},
    {"daemon", "gate_timeout", DURATION, RELOADS, DAEMON(fd_filter_timeout_ns), "2s", MS, HOUR,
     NULL, "How long looking at a client's descriptor may take before it counts as hung."},
    {"daemon", "file_timeout", DURATION, RELOADS, DAEMON(file_timeout_ns), "30s", MS, HOUR, NULL,
     "How long reading or writing a client's file may take before it counts as hung."},
    {"daemon", "read_ahead", BYTES, RELOADS, DAEMON(read_ahead_nbytes), "8M", 0, 8 * MiB, NULL,
     "How far ahead of jobs in sequence a client's file is read; 0: not at all."},
    {"daemon", "drain_timeout", DURATION, RELOADS, DAEMON(drain_timeout_ns), "5s", 0, HOUR, NULL,
     "How long a stop waits for jobs that were taken; clients resubmit what is left."},
    {"daemon", "stuck_timeout", DURATION, RELOADS, DAEMON(stuck_timeout_ns), "60s", S, HOUR, NULL,
     "A worker that decodes one piece for longer counts as hung: the watchdog is not fed."},
    {"daemon", "keep_tenants", DURATION, RELOADS, DAEMON(keep_tenants_ns), "5min", 0, HOUR, NULL,
     "How long a tenant without connections, debts or settings of its own is remembered."},
    {"daemon", "histogram_tenants", COUNT, RELOADS, DAEMON(n_histogram_tenants), "100", 0, 1000,
     NULL, "How many of the busiest tenants have histograms of their own in the statistics."},
    {"daemon", "observer_group", TEXT, AT_START, DAEMON(observer_group), "", 0,
     WHARF_CONFIG_NAME_NBYTES, NULL,
     "Members of this group see what all tenants do, as root does; empty for nobody else."},
    {"daemon", "metrics_socket", TEXT, AT_START, DAEMON(metrics_socket), "auto", 1,
     WHARF_CONFIG_PATH_NBYTES, NULL,
     "Where observers read metrics by HTTP; auto is metrics.sock in the folder that systemd makes, "
     "or beside the main socket with .metrics behind its name; none: nowhere."},

    {"cpu", "workers", COUNT, AT_START, DAEMON(n_workers), "0", 0, 1024, NULL,
     "Threads that decode; 0 derives their number from share and the processors."},
    {"cpu", "share", COUNT, AT_START, DAEMON(share_percent), "100", 1, 100, NULL,
     "Percent of the processors that decoding may use, at least one."},
    {"cpu", "cpus", CPUS, AT_START, DAEMON(cpus), "", 0, sizeof(((struct wharf_config *)0)->cpus),
     NULL,
     "The processors that decoding may use, as in 0-7,16; empty for all that the daemon may use."},
    {"cpu", "nice", COUNT, AT_START, DAEMON(nice), "0", 0, 19, NULL,
     "The nice value of threads that decode."},
    {"cpu", "spin", DURATION, RELOADS, DAEMON(spin_ns), "200us", 0, 10 * MS, NULL,
     "The longest time that an idle worker watches for a client's next job before it sleeps."},

    {"gpu", "engine", CHOICE, AT_START, DAEMON(gpu_engine), "auto", 0, 0, wharf_config_gpu_engines,
     "What runs jobs beside the CPU: auto is cuda where there is a GPU that can be used, and cpu, "
     "which is nothing, elsewhere; simt is the GPU's code run on the CPU, slowly, for tests."},
    {"gpu", "worker", TEXT, AT_START, DAEMON(gpu_worker), "", 0,
     sizeof(((struct wharf_config *)0)->gpu_worker), NULL,
     "The program that owns a GPU; empty for wharfd-gpu (simt: wharfd-simt) in ../libexec/wharf "
     "or beside wharfd."},
    {"gpu", "device", GPUS, AT_START, DAEMON(gpu_device), "all", 1,
     sizeof(((struct wharf_config *)0)->gpu_device), NULL,
     "Which GPUs: all that the driver shows, or as in 0,2 or 0-3 or GPU-8932f937, numbers and "
     "UUIDs as nvidia-smi -L prints them; of a MIG instance the UUID."},
    {"gpu", "expected", COUNT, RELOADS, DAEMON(n_gpus_expected), "0", 0, WHARF_MAX_GPUS, NULL,
     "How many GPUs there should be: statistics compare them with those that are up; 0: those that "
     "device names, or that the machine shows."},
    {"gpu", "share", COUNT, AT_START, DAEMON(gpu_share_percent), "100", 1, 100, NULL,
     "Percent of each GPU's multiprocessors that decoding may use."},
    {"gpu", "chunk", BYTES, AT_START, DAEMON(gpu_chunk_nbytes), "256K", 4 * KiB, 256 * MiB, NULL,
     "The largest source or output that a warp of a GPU decodes.  Each of some thousand warps "
     "takes "
     "twice this of the GPU's memory.  Larger chunks run on the CPU, except those in clients' GPU "
     "memory and those of sessions that want only a GPU: see large."},
    {"gpu", "large", BYTES, AT_START, DAEMON(gpu_large_nbytes), "256M", MiB, 4 * GiB, NULL,
     "The largest chunk, source plus destination, in clients' GPU memory and in sessions that want "
     "only the GPU.  Each GPU has two places of this size for chunks that exceed chunk."},
    {"gpu", "large_longest", DURATION, RELOADS, DAEMON(gpu_large_longest_ns), "1min", S, HOUR, NULL,
     "A chunk that has such a place for so long ends with QUOTA, or on the CPU if that may decode "
     "it.  With simt it is a thousand times as long."},
    {"gpu", "compress", COUNT, AT_START, DAEMON(gpu_compress_warps), "32", 0, 512, NULL,
     "Warps of each GPU that compress, by bdi, fpc, cpack, best and palette, and do nothing else; "
     "0: GPUs do not compress."},
    {"gpu", "memo", BYTES, AT_START, DAEMON(gpu_memo_nbytes), "0", 0, TiB, NULL,
     "Memory of each GPU for decoded chunks of deflate, zlib and gzip, which are copied instead of "
     "decoded where the same user's jobs have the same chunk again; 0: none."},
    {"gpu", "memo_users", COUNT, AT_START, DAEMON(n_gpu_memo_users), "4", 1, WHARF_MEMO_MOST_PARTS,
     NULL,
     "How many tenants have a part of memo, all of the same size; later ones have none until one "
     "of them is forgotten, as keep_tenants says."},
    {"gpu", "kernel", CHOICE, AT_START, DAEMON(gpu_kernel), "auto", 0, 0, gpu_kernels,
     "epoch: a kernel stays while there is work; batch: one for each batch of work; auto is epoch, "
     "or batch under profilers, launches that block and display watchdogs."},
    {"gpu", "memory", BYTES, RELOADS, DAEMON(gpu_memory_nbytes), "8G", 0, 1024 * TiB, NULL,
     "The most memory of clients that is pinned, for all GPUs together; jobs elsewhere run on the "
     "CPU."},
    {"gpu", "spare", BYTES, RELOADS, DAEMON(gpu_spare_nbytes), "256M", 0, 1024 * TiB, NULL,
     "Arenas that are pinned in advance, of the sizes that were asked for last; part of memory."},
    {"gpu", "pin_after", DURATION, RELOADS, DAEMON(gpu_pin_after_ns), "20ms", 0, HOUR, NULL,
     "How old a client's memory is when it is pinned; at once if its session wants only the GPU."},
    {"gpu", "ahead", DURATION, RELOADS, DAEMON(gpu_ahead_ns), "1ms", 10 * US, S, NULL,
     "How much work, in estimated time, is handed to a GPU beyond what it is doing: the longest "
     "that an interactive job waits there."},
    {"gpu", "idle", DURATION, AT_START, DAEMON(gpu_idle_ns), "200us", 0, S, NULL,
     "How long the kernel stays on the GPU without work.  With kernel = batch, how long the worker "
     "looks for the next batch before it sleeps."},
    {"gpu", "stay", DURATION, AT_START, DAEMON(gpu_stay_ns), "500us", 0, S, NULL,
     "How long the kernel stays before it leaves for a moment, longer where leaving takes long; 0 "
     "for a GPU that only wharfd uses."},
    {"gpu", "longest", DURATION, RELOADS, DAEMON(gpu_longest_ns), "100ms", 0, HOUR, NULL,
     "A chunk that the GPU has for so long goes to the CPU, or in sessions that want only the GPU "
     "to one of the places for large chunks; 0: never.  With simt it is a thousand times as long."},
    {"gpu", "hang_timeout", DURATION, RELOADS, DAEMON(gpu_hang_timeout_ns), "2s", 10 * MS, HOUR,
     NULL,
     "A job that takes so much longer than it may ends the worker, and runs on the CPU; a worker "
     "that does not answer for so long is replaced too."},
    {"gpu", "start_timeout", DURATION, AT_START, DAEMON(gpu_start_timeout_ns), "30s", 100 * MS,
     HOUR, NULL, "How long a worker may take to get ready."},
    {"gpu", "ban", DURATION, RELOADS, DAEMON(gpu_ban_ns), "10min", 0, 24 * HOUR, NULL,
     "How long a tenant is banned from the GPU: its jobs ended the worker three times, its memory "
     "kept results waiting too long, or could not be pinned in time, twice."},

    {"schedule", "interactive_percent", COUNT, RELOADS, DAEMON(interactive_percent), "50", 0, 100,
     NULL,
     "How much of its share a tenant may use for interactive jobs that go before all others."},
    {"schedule", "background_age", DURATION, RELOADS, DAEMON(background_age_ns), "1s", 0, HOUR,
     NULL, "A background job that has waited for so long becomes a normal one."},
    {"schedule", "slice", DURATION, RELOADS, DAEMON(slice_ns), "500us", 10000, S, NULL,
     "How much of a batch, in estimated time, a worker takes at once, and a tenant's turn."},
    {"schedule", "long", DURATION, RELOADS, DAEMON(long_ns), "1ms", 10000, HOUR, NULL,
     "Jobs that are estimated to take longer never occupy all workers."},

    {"quota", "weight", COUNT, RELOADS, QUOTA(weight), "100", 1, 10000, NULL,
     "A tenant's share of the machine, relative to other tenants."},
    {"quota", "max_connections", COUNT, RELOADS, QUOTA(max_connections), "256", 0, 1 << 20, NULL,
     "Of a tenant."},
    {"quota", "max_descriptors", COUNT, RELOADS, QUOTA(max_descriptors), "4096", 0, 1 << 24, NULL,
     "Held by the daemon or sent for a tenant: four a connection, four a queue, one a region "
     "and two a model."},
    {"quota", "max_memory", BYTES, RELOADS, QUOTA(max_memory_nbytes), "9G", 0, 1024 * TiB, NULL,
     "Of a tenant: arenas, registered memory and models."},
    {"quota", "max_jobs", COUNT, RELOADS, QUOTA(max_jobs), "65536", 0, 1 << 24, NULL,
     "Of a tenant: entries of all its queues."},
    {"quota", "max_entries", COUNT, RELOADS, QUOTA(max_entries), "4096", WHARF_RING_MIN_ENTRIES,
     WHARF_RING_MAX_ENTRIES, NULL, "Of one queue."},
    {"quota", "max_arena", BYTES, RELOADS, QUOTA(max_arena_nbytes), "1G", 0, 1024 * TiB, NULL,
     "Of one session."},
    {"quota", "max_regions", COUNT, RELOADS, QUOTA(max_regions), "64", 0, 4096, NULL,
     "Registered memory of one session, its arena not counted."},
    {"quota", "max_gpu_memory", BYTES, RELOADS, QUOTA(max_gpu_memory_nbytes), "64G", 0, 1024 * TiB,
     NULL, "Of a tenant: memory of the GPU that its clients made and registered."},
    {"quota", "max_gpu_regions", COUNT, RELOADS, QUOTA(max_gpu_regions), "256", 0, 1 << 16, NULL,
     "Of a tenant: pieces of such memory, of all its sessions."},
    {"quota", "max_models", COUNT, RELOADS, QUOTA(max_models), "64", 0, 4096, NULL,
     "Registered models of one session."},
    {"quota", "max_gpu_models", COUNT, RELOADS, QUOTA(max_gpu_models), "512", 1, 4096, NULL,
     "Of a tenant: registered models that each GPU has at a time."},
    {"quota", "max_job", BYTES, RELOADS, QUOTA(max_job_nbytes), "256M", 4 * KiB, TiB, NULL,
     "Source plus destination of one chunk."},
    {"quota", "max_batch_chunks", COUNT, RELOADS, QUOTA(max_batch_chunks), "4096", 1, MiB, NULL,
     "Of one batch."},
    {"quota", "max_compress", BYTES, RELOADS, QUOTA(max_compress_nbytes), "1M", 0, 16 * MiB, NULL,
     "Source of one chunk that is compressed; 0: none are."},
    {"quota", "max_start", DURATION, RELOADS, QUOTA(max_start_ns), "10s", 0, HOUR, NULL,
     "How long a job may wait for its client's stream; 0: none do."},

    {"total", "owners", COUNT, RELOADS, DAEMON(totals.owners), "0", 0, 1 << 20, NULL,
     "For how many tenants a minimum of everything below is reserved; 0: 256, or as many as half "
     "of everything is enough for."},
    {"total", "max_connections", COUNT, RELOADS, DAEMON(totals.max_connections), "0", 0, 1 << 20,
     NULL, "Of all tenants; 0: 65536, or what the limit of open files allows."},
    {"total", "max_descriptors", COUNT, RELOADS, DAEMON(totals.max_descriptors), "0", 0, 1 << 30,
     NULL, "Of all tenants; 0: what the limit of open files leaves."},
    {"total", "max_jobs", COUNT, RELOADS, DAEMON(totals.max_jobs), "0", 0, (uint64_t)1 << 40, NULL,
     "Of all tenants: entries of all queues; 0: one for each 4 KiB of memory."},
    {"total", "max_mappings", COUNT, RELOADS, DAEMON(totals.max_mappings), "0", 0, 1 << 30, NULL,
     "Of all tenants: four a queue, one a region and a model; 0: what vm.max_map_count leaves."},
    {"total", "max_memory", BYTES, RELOADS, DAEMON(totals.max_memory_nbytes), "0", 0, 1024 * TiB,
     NULL, "Of all tenants: arenas, registered memory and models; 0: three quarters of memory."},
    {"total", "max_gpu_memory", BYTES, RELOADS, DAEMON(totals.max_gpu_memory_nbytes), "0", 0,
     1024 * TiB, NULL, "Of all tenants: memory of GPUs that clients made and registered; 0: 1T."},
    {"total", "max_tasks", COUNT, RELOADS, DAEMON(totals.max_tasks), "0", 0, 1 << 20, NULL,
     "Of all tenants: threads for files, two for each worker in each session that has any; 0: "
     "65536, or three quarters of what the limit of tasks allows."},

    {"owners", "subuid", TEXT, RELOADS, DAEMON(owners.subuid), "", 0,
     sizeof(((struct wharf_config *)0)->owners.subuid), NULL,
     "A file like /etc/subuid: who owns which subordinate uids; empty for the machine's, and what "
     "nsswitch.conf says."},
    {"owners", "passwd", TEXT, RELOADS, DAEMON(owners.passwd), "", 0,
     sizeof(((struct wharf_config *)0)->owners.passwd), NULL,
     "A file like /etc/passwd: which uids the names there have; empty for the machine's users."},
    {"owners", "group", TEXT, RELOADS, DAEMON(owners.group), "", 0,
     sizeof(((struct wharf_config *)0)->owners.group), NULL,
     "A file like /etc/group: who the members of groups with settings are; empty for the machine's "
     "groups."},
    {"owners", "blocks", UIDS, RELOADS, DAEMON(owners.blocks), "", 0,
     sizeof(((struct wharf_config *)0)->owners.blocks), NULL,
     "Uids, as in 100000-1000099999, that belong to nobody and are charged in blocks: those of "
     "containers."},
    {"owners", "block", COUNT, RELOADS, DAEMON(owners.block_n_uids), "65536", 1, (uint64_t)1 << 32,
     NULL, "Uids of one block."},
    {"owners", "lookup_timeout", DURATION, RELOADS, DAEMON(owners.lookup_timeout_ns), "2s", MS,
     HOUR, NULL,
     "How long looking up a uid's owner may take; then its use is charged to `unknown`."},
    {"owners", "remember", DURATION, RELOADS, DAEMON(owners.remember_ns), "5min", 0, 24 * HOUR,
     NULL, "How long the owner of a uid is taken for known."},

    {"listen", "path", TEXT, AT_START, LISTEN(path), "", 0, WHARF_CONFIG_PATH_NBYTES, NULL,
     "Where it is; empty for a socket of that name that systemd hands over.  One for containers "
     "needs a folder of its own."},
    {"listen", "group", TEXT, AT_START, LISTEN(group), "wharf", 0, WHARF_CONFIG_NAME_NBYTES, NULL,
     "As socket_group."},
    {"listen", "mode", MODE, AT_START, LISTEN(mode), "0660", 0, 0777, NULL, "As socket_mode."},
    {"listen", "tenant", CHOICE, AT_START, LISTEN(tenant), "peer", 0, 0, tenant_kinds,
     "Whom its clients' use is charged to: each peer's user, or the socket as a whole."},
    {NULL, NULL, COUNT, false, 0, NULL, 0, 0, NULL, NULL},
};
/* clang-format on */
