/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals.c: charges tenants against totals with reservations; totals.h has the rule and its proof.
 *
 * A charge looks at the tenant and the totals only, so it takes constant time.
 */
#include "daemon/core/totals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- uses ---------------------------------------------------------------------------------- */

/* A struct of numbers: what is done with one is done with each. */
#define N_NUMBERS (sizeof(struct wharf_use) / sizeof(uint64_t))

void wharf_use_add(struct wharf_use *sum, const struct wharf_use *more)
{
    for (size_t i = 0; i < N_NUMBERS; i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)more)[i];
}

void wharf_use_subtract(struct wharf_use *sum, const struct wharf_use *less)
{
    for (size_t i = 0; i < N_NUMBERS; i++)
        ((uint64_t *)sum)[i] -= ((const uint64_t *)less)[i];
}

bool wharf_use_is_nothing(const struct wharf_use *use)
{
    static const struct wharf_use nothing;

    return memcmp(use, &nothing, sizeof(nothing)) == 0;
}

/* ---- kinds --------------------------------------------------------------------------------- */

struct kind {
    const char *setting;
    size_t in_use;    /* offset in struct wharf_use */
    size_t in_config; /* offset in struct wharf_config_totals */
    uint64_t floor;   /* what a session of libwharf's defaults needs: the least minimum */
    const char *limit;
};

#define KIND(name, use, member, least, what)                                                       \
    {                                                                                              \
        name, offsetof(struct wharf_use, use), offsetof(struct wharf_config_totals, member),       \
            least, what                                                                            \
    }

static const struct kind kinds[WHARF_N_TOTALS] = {
    [WHARF_TOTAL_CONNECTIONS] = KIND("max_connections", n_connections, max_connections, 1,
                                     "the limit of open files (LimitNOFILE=, ulimit -n)"),
    [WHARF_TOTAL_DESCRIPTORS] = KIND("max_descriptors", n_descriptors, max_descriptors, 8,
                                     "the limit of open files (LimitNOFILE=, ulimit -n)"),
    [WHARF_TOTAL_JOBS] = KIND("max_jobs", n_jobs, max_jobs, 256, "the memory that there is"),
    [WHARF_TOTAL_MAPPINGS] =
        KIND("max_mappings", n_mappings, max_mappings, 4, "sysctl vm.max_map_count"),
    [WHARF_TOTAL_MEMORY] = KIND("max_memory", memory_nbytes, max_memory_nbytes, (uint64_t)34 << 20,
                                "the memory that there is (of the control group, MemoryMax=)"),
    [WHARF_TOTAL_GPU_MEMORY] =
        KIND("max_gpu_memory", gpu_nbytes, max_gpu_memory_nbytes, 0, "what can be counted"),
    [WHARF_TOTAL_TASKS] = KIND("max_tasks", n_tasks, max_tasks, 0,
                               "the limit of tasks (TasksMax=, --pids-limit, ulimit -u)"),
};

static uint64_t of_use(const struct wharf_use *use, unsigned kind)
{
    return *(const uint64_t *)(const void *)((const char *)use + kinds[kind].in_use);
}

uint64_t wharf_total_used(enum wharf_total_kind kind, const struct wharf_use *use)
{
    return of_use(use, kind);
}

static uint64_t of_config(const struct wharf_config *config, unsigned kind)
{
    return *(const uint64_t *)(const void *)((const char *)&config->totals + kinds[kind].in_config);
}

/* ---- what there is ------------------------------------------------------------------------- */

/* Open files that no tenant is charged for: the daemon's own, more of them where there are many
 * files, which GPUs' threads then have; and sockets that wait to be closed, or for their owner. */
#define LEAST_OWN_FILES 64
#define MOST_OWN_FILES 192
#define MOST_WAITING_SOCKETS 1024

/* Of memory all clients have three quarters: the rest is for the daemon's threads and workers, for
 * pages that describe others, and for other programs. */
#define OTHERS_MEMORY_PART 4

/* What one job takes of memory, with its entries in the rings; jobs get an eighth of all. */
#define JOB_NBYTES 512

/* Tasks that are not for files: workers, spare ones, all other threads and processes. */
#define OTHERS_TASKS_PART 4

/* The daemon's own mappings: libraries, stacks, what is allocated. */
#define OWN_MAPPINGS_PART 8

#define DEFAULT_CONNECTIONS 65536
#define DEFAULT_GPU_NBYTES ((uint64_t)1 << 40)
#define DEFAULT_TASKS 65536
#define DEFAULT_RESERVATIONS 256
#define DEFAULT_PINNED_NBYTES ((uint64_t)8 << 30)

uint64_t wharf_totals_waiting_sockets(const struct wharf_machine *machine)
{
    uint64_t part = machine->n_files / 8;

    return part < MOST_WAITING_SOCKETS ? part : MOST_WAITING_SOCKETS;
}

static uint64_t files_for_tenants(const struct wharf_machine *machine)
{
    uint64_t part = machine->n_files / 8, own = part;

    if (own > MOST_OWN_FILES)
        own = MOST_OWN_FILES;
    if (own < LEAST_OWN_FILES)
        own = LEAST_OWN_FILES;
    own += 2 * wharf_totals_waiting_sockets(machine);
    return machine->n_files > own ? machine->n_files - own : 1;
}

/* The most that the machine allows. */
static uint64_t most_of(unsigned kind, const struct wharf_machine *machine)
{
    switch (kind) {
    case WHARF_TOTAL_CONNECTIONS: {
        uint64_t most = files_for_tenants(machine) / kinds[WHARF_TOTAL_DESCRIPTORS].floor;
        return most ? most : 1;
    }
    case WHARF_TOTAL_DESCRIPTORS:
        return files_for_tenants(machine);
    case WHARF_TOTAL_JOBS:
        return machine->memory_nbytes / JOB_NBYTES;
    case WHARF_TOTAL_MAPPINGS:
        return machine->n_mappings - machine->n_mappings / OWN_MAPPINGS_PART;
    case WHARF_TOTAL_MEMORY:
        return machine->memory_nbytes;
    case WHARF_TOTAL_TASKS:
        return machine->n_tasks - machine->n_tasks / OTHERS_TASKS_PART;
    default:
        return UINT64_MAX;
    }
}

static uint64_t otherwise(unsigned kind, uint64_t most)
{
    if (kind == WHARF_TOTAL_CONNECTIONS)
        return most < DEFAULT_CONNECTIONS ? most : DEFAULT_CONNECTIONS;
    if (kind == WHARF_TOTAL_JOBS)
        return most / 8;
    if (kind == WHARF_TOTAL_MEMORY)
        return most - most / OTHERS_MEMORY_PART;
    if (kind == WHARF_TOTAL_TASKS)
        return most < DEFAULT_TASKS ? most : DEFAULT_TASKS;
    return kind == WHARF_TOTAL_GPU_MEMORY ? DEFAULT_GPU_NBYTES : most;
}

/* The most reservations that leave half of every total in the pool. */
static uint64_t reservations_that_fit(const struct wharf_totals *totals, unsigned *ret_kind)
{
    uint64_t n = UINT64_MAX;

    for (unsigned i = 0; i < WHARF_N_TOTALS; i++) {
        if (kinds[i].floor == 0 || totals->of[i].total / 2 / kinds[i].floor >= n)
            continue;
        n = totals->of[i].total / 2 / kinds[i].floor;
        *ret_kind = i;
    }
    return n;
}

static int choose_reservations(struct wharf_totals *totals, uint64_t wanted, char *message,
                               size_t message_nbytes)
{
    unsigned kind = 0;
    uint64_t most = reservations_that_fit(totals, &kind);

    if (wanted > most) {
        snprintf(message, message_nbytes,
                 "[total] owners = %" PRIu64 " does not fit: %s, %" PRIu64
                 ", is enough for %" PRIu64,
                 wanted, kinds[kind].setting, totals->of[kind].total, most);
        return -EINVAL;
    }
    totals->n_reservations = wanted                        ? wanted
                             : most < DEFAULT_RESERVATIONS ? most
                                                           : DEFAULT_RESERVATIONS;
    return 0;
}

/* Where there is little memory the default leaves half of it to all else. */
static int choose_pinned(struct wharf_totals *totals, uint64_t wanted, uint64_t memory_nbytes,
                         char *message, size_t message_nbytes)
{
    if (wanted == DEFAULT_PINNED_NBYTES && wanted > memory_nbytes / 2)
        wanted = memory_nbytes / 2;
    if (wanted > memory_nbytes) {
        snprintf(message, message_nbytes, "[gpu] memory = %" PRIu64 " does not fit: %s is %" PRIu64,
                 wanted, kinds[WHARF_TOTAL_MEMORY].limit, memory_nbytes);
        return -EINVAL;
    }
    totals->pinned_nbytes = wanted;
    return 0;
}

/* A quarter of each total is reserved, or more if a reservation would be too little to work
 * with. */
static void choose_minimum(struct wharf_totals *totals, unsigned kind)
{
    struct wharf_total *total = &totals->of[kind];

    if (totals->n_reservations == 0)
        return;
    total->minimum = total->total / 4 / totals->n_reservations;
    if (total->minimum < kinds[kind].floor)
        total->minimum = kinds[kind].floor;
}

static void write_text(struct wharf_totals *totals, unsigned kind)
{
    struct wharf_total *total = &totals->of[kind];

    snprintf(total->text, sizeof(total->text),
             "over [total] %s, %" PRIu64 ", of all users: what is not kept for the first %" PRIu64
             " of them ([total] owners) is taken",
             kinds[kind].setting, total->total, totals->n_reservations);
}

int wharf_totals_init(struct wharf_totals *totals, const struct wharf_config *config,
                      const struct wharf_machine *machine, char *message, size_t message_nbytes)
{
    *totals = (struct wharf_totals){.n_reservations = 0};
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++) {
        uint64_t most = most_of(i, machine), wanted = of_config(config, i);
        if (wanted > most) {
            snprintf(message, message_nbytes,
                     "[total] %s = %" PRIu64 " does not fit: %s allows %" PRIu64, kinds[i].setting,
                     wanted, kinds[i].limit, most);
            return -EINVAL;
        }
        totals->of[i].total = wanted ? wanted : otherwise(i, most);
    }
    int r = choose_reservations(totals, config->totals.owners, message, message_nbytes);
    if (r == 0)
        r = choose_pinned(totals, config->gpu_memory_nbytes, machine->memory_nbytes, message,
                          message_nbytes);
    for (unsigned i = 0; r == 0 && i < WHARF_N_TOTALS; i++) {
        choose_minimum(totals, i);
        write_text(totals, i);
    }
    return r;
}

void wharf_totals_init_boundless(struct wharf_totals *totals)
{
    *totals = (struct wharf_totals){.n_reservations = 0};
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++)
        totals->of[i].total = UINT64_MAX;
}

/* ---- charging ------------------------------------------------------------------------------ */

/* What somebody who has so much has beyond the minimum. */
static uint64_t beyond(const struct wharf_total *total, uint64_t used, bool has_reservation)
{
    uint64_t minimum = has_reservation ? total->minimum : 0;

    return used > minimum ? used - minimum : 0;
}

/* First come, first served; who came too late gets the next reservation that is given back. */
static void take_reservation(struct wharf_totals *totals, const struct wharf_use *used,
                             bool *has_reservation)
{
    if (*has_reservation || totals->n_taken >= totals->n_reservations)
        return;
    *has_reservation = true;
    totals->n_taken++;
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++) {
        struct wharf_total *total = &totals->of[i];
        uint64_t n = of_use(used, i);
        total->beyond -= n - beyond(total, n, true);
    }
}

static void give_reservation_back(struct wharf_totals *totals, bool *has_reservation)
{
    totals->n_taken -= *has_reservation;
    *has_reservation = false;
}

/* What `more` adds to what is beyond. */
static uint64_t added(const struct wharf_total *total, uint64_t used, uint64_t more,
                      bool has_reservation)
{
    return beyond(total, used + more, has_reservation) - beyond(total, used, has_reservation);
}

static bool fits(const struct wharf_totals *totals, unsigned kind, uint64_t wanted)
{
    const struct wharf_total *total = &totals->of[kind];
    uint64_t pool = total->total - totals->n_reservations * total->minimum;

    return wanted == 0 || (total->beyond <= pool && wanted <= pool - total->beyond);
}

int wharf_totals_charge(struct wharf_totals *totals, const struct wharf_use *used,
                        bool *has_reservation, const struct wharf_use *more,
                        enum wharf_total_kind *ret_kind)
{
    /* Reservations go with what is given back: nothing is given none. */
    if (wharf_use_is_nothing(more))
        return 0;
    take_reservation(totals, used, has_reservation);
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++) {
        struct wharf_total *total = &totals->of[i];
        if (fits(totals, i, added(total, of_use(used, i), of_use(more, i), *has_reservation)))
            continue;
        if (ret_kind)
            *ret_kind = (enum wharf_total_kind)i;
        if (wharf_use_is_nothing(used))
            give_reservation_back(totals, has_reservation);
        return -EDQUOT;
    }
    wharf_totals_charge_anyway(totals, used, has_reservation, more);
    return 0;
}

void wharf_totals_charge_anyway(struct wharf_totals *totals, const struct wharf_use *used,
                                bool *has_reservation, const struct wharf_use *more)
{
    if (wharf_use_is_nothing(more))
        return;
    take_reservation(totals, used, has_reservation);
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++) {
        struct wharf_total *total = &totals->of[i];
        total->beyond += added(total, of_use(used, i), of_use(more, i), *has_reservation);
    }
}

void wharf_totals_give_back(struct wharf_totals *totals, const struct wharf_use *used,
                            bool *has_reservation, const struct wharf_use *less)
{
    struct wharf_use left = *used;

    wharf_use_subtract(&left, less);
    for (unsigned i = 0; i < WHARF_N_TOTALS; i++) {
        struct wharf_total *total = &totals->of[i];
        total->beyond -= added(total, of_use(&left, i), of_use(less, i), *has_reservation);
    }
    if (wharf_use_is_nothing(&left))
        give_reservation_back(totals, has_reservation);
}
