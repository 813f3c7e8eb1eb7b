/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals.h: limits of all tenants together, and the minimum that is reserved for each.
 *
 * Each resource has a total and a minimum.  There are n_reservations reservations of the minimum of
 * every resource.  A tenant takes one when it is charged while one is free, and gives it back when
 * it uses nothing more.  The minimum is set aside for each of them, taken or free.  All that
 * tenants use beyond it comes from a common pool:
 *
 *     pool = total - n_reservations * minimum
 *     beyond = sum over all tenants of max(0, used - minimum), or of `used` without a reservation
 *
 * A charge is granted if `beyond`, with what the charge adds to it, is no more than the pool.  So a
 * tenant that has a reservation and stays within the minimum is never refused, and all tenants
 * together never use more than the total.  A charge costs the same for any number of tenants.
 *
 * Guarded by the core lock.
 */
#ifndef WHARF_DAEMON_CORE_TOTALS_H
#define WHARF_DAEMON_CORE_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/machine.h"

/* An amount of each resource; [quota] and [total] in wharfd.conf(5) say what is counted. */
struct wharf_use {
    uint64_t n_connections;
    uint64_t n_descriptors;
    uint64_t n_jobs;
    uint64_t n_mappings; /* mapped pieces of memory, clients' own GPU memory included */
    uint64_t memory_nbytes;
    uint64_t gpu_nbytes;    /* of clients' own GPU memory */
    uint64_t n_gpu_regions; /* pieces of that */
    uint64_t n_tasks;       /* threads of the daemon's processes for clients' files */
};

void wharf_use_add(struct wharf_use *sum, const struct wharf_use *more);
void wharf_use_subtract(struct wharf_use *sum, const struct wharf_use *less);
bool wharf_use_is_nothing(const struct wharf_use *use);

enum wharf_total_kind {
    WHARF_TOTAL_CONNECTIONS,
    WHARF_TOTAL_DESCRIPTORS,
    WHARF_TOTAL_JOBS,
    WHARF_TOTAL_MAPPINGS,
    WHARF_TOTAL_MEMORY,
    WHARF_TOTAL_GPU_MEMORY,
    WHARF_TOTAL_TASKS,
    WHARF_N_TOTALS,
};

struct wharf_total {
    uint64_t total;
    uint64_t minimum;
    uint64_t beyond;
    char text[160]; /* what a client is told that is refused */
};

struct wharf_totals {
    struct wharf_total of[WHARF_N_TOTALS];
    uint64_t n_reservations;
    uint64_t n_taken;       /* of these */
    uint64_t pinned_nbytes; /* for GPUs, which gpu_room.h divides */
};

/*
 * Fills in the totals of a configuration on a machine, with nothing used.  A total that the
 * configuration leaves open becomes what the machine allows.  Returns 0, or -EINVAL with a message
 * that names the setting that does not fit.
 */
int wharf_totals_init(struct wharf_totals *totals, const struct wharf_config *config,
                      const struct wharf_machine *machine, char *message, size_t message_nbytes);

/* Totals that refuse nothing. */
void wharf_totals_init_boundless(struct wharf_totals *totals);

/*
 * Charges a tenant that uses `used` for `more`: all of it, or nothing.  *has_reservation says
 * whether the tenant has a reservation, and is changed when it takes one.  Returns 0, or -EDQUOT
 * with the total that is too small in *ret_kind (NULL is allowed).
 */
int wharf_totals_charge(struct wharf_totals *totals, const struct wharf_use *used,
                        bool *has_reservation, const struct wharf_use *more,
                        enum wharf_total_kind *ret_kind);

/* The same without a check, for what is there already.  This can overdraw the pool: then the pool
 * grants nothing until enough is given back. */
void wharf_totals_charge_anyway(struct wharf_totals *totals, const struct wharf_use *used,
                                bool *has_reservation, const struct wharf_use *more);

/* Gives back `less` of what a tenant uses.  The reservation goes with the last of it. */
void wharf_totals_give_back(struct wharf_totals *totals, const struct wharf_use *used,
                            bool *has_reservation, const struct wharf_use *less);

/* The amount of one kind in a use. */
uint64_t wharf_total_used(enum wharf_total_kind kind, const struct wharf_use *use);

/* How many sockets of clients that are gone may wait to be closed; and as many of new clients may
 * wait until it is known who owns them. */
uint64_t wharf_totals_waiting_sockets(const struct wharf_machine *machine);

#endif
