/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_staging.h: memory in which GPUs find sources that are in files.
 *
 * wharfd-io reads a file's range to a *place*, consecutive units of the area; GPUs have registered
 * the area, so an item's source can be there.  A place is taken for one read.  It is free again
 * when the item has ended and the read is answered, since until then the process may write there.
 *
 * The area belongs to one session, as its process does: what a hung file server writes late reaches
 * nobody else.  The core lock guards places; whether a read is answered is known without it.
 */
#ifndef WHARF_DAEMON_CORE_FILE_STAGING_H
#define WHARF_DAEMON_CORE_FILE_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/file_patience.h"
#include "daemon/core/file_protocol.h"
#include "daemon/core/segment.h"
#include "daemon/core/totals.h"

struct wharf_gpu_memory;
struct wharf_session;
struct wharf_shared_charge;

#define WHARF_FILE_STAGING_NBYTES (WHARF_FILE_MOST_UNITS * WHARF_FILE_UNIT_NBYTES)
#define WHARF_FILE_STAGING_MOST_READS WHARF_FILE_MOST_STAGED
/* The largest place. */
#define WHARF_FILE_STAGING_MOST_NBYTES ((uint64_t)16 << 20)

/* A place whose item ended before its read: gpu_files.c. */
struct wharf_file_left {
    struct wharf_list link; /* not linked: this entry is unused */
    struct wharf_session *session;
    uint32_t place;
    struct wharf_file_patience patience;
};

struct wharf_file_staging {
    struct wharf_segment memory;
    struct wharf_gpu_memory *account;           /* its entry with the GPUs; NULL: there is none */
    struct wharf_shared_charge *charge;         /* shared with that and with the process */
    struct wharf_file_slot *heads;              /* of its units: file_protocol.h */
    uint64_t taken[WHARF_FILE_MOST_UNITS / 64]; /* bits */
    uint16_t n_units_at[WHARF_FILE_MOST_UNITS]; /* of the place that begins there */
    uint32_t n_free;                            /* units */
    uint32_t next;                              /* where the next search begins */
    uint32_t n_in_vain;                         /* until a place is given back, none so large */
    uint64_t n_looks;                           /* at words of `taken`, for tests */
    uint32_t n_reads;                           /* unanswered ones */
    /* Some place was not to be had, and jobs wait.  Until a quarter of the area is free, and half
     * of the reads, they are not placed anew: each would be placed for every place that comes. */
    bool is_full;
    struct wharf_file_left left[WHARF_FILE_STAGING_MOST_READS];
};

/* Its charge to the tenant, until neither the session nor a GPU's worker nor the process has it. */
struct wharf_use wharf_file_staging_use(void);

/* Makes an area, of a pooled arena, whose ownership passes in any case, or of new memory, if that
 * is NULL.  Returns NULL if there is no memory for it. */
struct wharf_file_staging *wharf_file_staging_new(const struct wharf_segment *pooled);
/* NULL is allowed. */
void wharf_file_staging_free(struct wharf_file_staging *staging);

/* Takes a place for a read of at most WHARF_FILE_STAGING_MOST_NBYTES, which counts as unanswered
 * from now on; its number is that of its first unit.  False: there is none now. */
bool wharf_file_staging_take(struct wharf_file_staging *staging, uint64_t nbytes,
                             uint32_t *ret_place);

/* Its read was answered.  Once for each place, before it is given back. */
void wharf_file_staging_answered(struct wharf_file_staging *staging);
void wharf_file_staging_give_back(struct wharf_file_staging *staging, uint32_t place);

/* Whether the jobs that found it full can go on.  Says so once. */
bool wharf_file_staging_has_room_again(struct wharf_file_staging *staging);

static inline uint64_t wharf_file_staging_offset(uint32_t place)
{
    return place * (uint64_t)WHARF_FILE_UNIT_NBYTES;
}

#endif
