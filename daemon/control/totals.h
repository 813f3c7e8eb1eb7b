/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals.h: what all tenants may have together, and what of it is kept for each.
 *
 * Of each thing there is a total.  A tenant that uses anything has a place, while there are any; a
 * minimum of each thing is kept for each place, whether it is taken or not.  What tenants have
 * beyond their minima comes from the rest, the pool:
 *
 *     pool = total - n_places * minimum
 *     beyond = sum of max(0, what a tenant has - its minimum), which is 0 without a place
 *
 * A charge is good if what it adds to `beyond` still fits into the pool.  So nobody who has a place
 * and stays within the minimum is refused, and all together never have more than the total, of
 * which n_places * minimum is the most that places hold and the pool the most that is beyond.  Each
 * step costs the same however many tenants there are.
 *
 * Guarded by the front lock.
 */
#ifndef WHARF_DAEMON_CONTROL_TOTALS_H
#define WHARF_DAEMON_CONTROL_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/machine.h"

/* What is charged at once, as [quota] and [total] in wharfd.conf(5) have it. */
struct wharf_use {
    uint64_t n_connections;
    uint64_t n_descriptors;
    uint64_t n_jobs;
    uint64_t n_mappings; /* pieces of memory; of clients' own GPU memory too */
    uint64_t memory_nbytes;
    uint64_t gpu_nbytes;    /* of clients' own GPU memory */
    uint64_t n_gpu_regions; /* pieces of that */
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
    WHARF_N_TOTALS,
};

struct wharf_total {
    uint64_t total;
    uint64_t minimum;
    uint64_t beyond;
    char text[160]; /* for who is refused */
};

struct wharf_totals {
    struct wharf_total of[WHARF_N_TOTALS];
    uint64_t n_places;
    uint64_t n_taken;
    uint64_t pinned_nbytes; /* for GPUs, which gpu_room.h divides */
};

/*
 * The totals that a configuration gives on a machine, with nothing used.  Those that it leaves to
 * the machine are what fits; one that it gives and that does not fit is an error, -EINVAL, with a
 * message that names it.
 */
int wharf_totals_init(struct wharf_totals *totals, const struct wharf_config *config,
                      const struct wharf_machine *machine, char *message, size_t message_nbytes);

/* Totals that refuse nothing. */
void wharf_totals_init_boundless(struct wharf_totals *totals);

/*
 * Charges what a tenant that has `used` wants more, or nothing of it.  *has_place: whether it has a
 * place, which it is given with what it is charged first.  Returns 0, or -EDQUOT with a text that
 * lives as long as the totals in *ret_text (NULL is allowed).
 */
int wharf_totals_charge(struct wharf_totals *totals, const struct wharf_use *used, bool *has_place,
                        const struct wharf_use *more, const char **ret_text);

/* The same for what is there already: the pool can be overdrawn by that, and nothing comes from it
 * until enough was given back. */
void wharf_totals_charge_anyway(struct wharf_totals *totals, const struct wharf_use *used,
                                bool *has_place, const struct wharf_use *more);

/* Of what a tenant that has `used` was charged, some or all, with which the place goes too. */
void wharf_totals_give_back(struct wharf_totals *totals, const struct wharf_use *used,
                            bool *has_place, const struct wharf_use *less);

/* Open files that are not the tenants': the daemon's own, and sockets that wait to be closed. */
#define WHARF_OWN_FILES 64
#define WHARF_MOST_WAITING_SOCKETS 1024

/* Sockets of clients that are gone, of which so many may wait to be closed. */
uint64_t wharf_totals_waiting_sockets(const struct wharf_machine *machine);

#endif
