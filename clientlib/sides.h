/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sides.h: on which side wharf_decompress gets a chunk done sooner, in the calling thread (here) or
 * by the daemon.
 *
 * A caller that only waits has a processor to itself meanwhile, and what it decodes there needs no
 * copies and wakes nobody.  The daemon has a GPU, or several workers for one large job.  Which is
 * sooner is not guessed: both are tried now and then, for each codec and order of size, and the
 * sooner one is taken in between.
 */
#ifndef WHARF_CLIENT_SIDES_H
#define WHARF_CLIENT_SIDES_H

#include <stddef.h>
#include <stdint.h>

enum wharf_client_side { WHARF_CLIENT_HERE, WHARF_CLIENT_THERE, WHARF_CLIENT_N_SIDES };

enum { WHARF_CLIENT_N_COST_CODECS = 16, WHARF_CLIENT_N_COST_SIZES = 12 };

/* What chunks of one codec and order of size took. */
struct wharf_client_cost {
    double ns_per_byte[WHARF_CLIENT_N_SIDES];
    uint32_t n[WHARF_CLIENT_N_SIDES];       /* how many that was learnt from, counted to 4 */
    uint32_t until_other;                   /* calls until the slower side is tried */
    uint32_t n_tries;                       /* that are left of this time */
    uint8_t last;                           /* the side of the last call, enum wharf_client_side */
    uint8_t is_first[WHARF_CLIENT_N_SIDES]; /* the next one there is the first for a while */
};

struct wharf_client_costs {
    struct wharf_client_cost of[WHARF_CLIENT_N_COST_CODECS][WHARF_CLIENT_N_COST_SIZES];
};

/* wharf_client_choose_side: of a chunk with so many bytes, source and destination together. */
enum wharf_client_side wharf_client_choose_side(struct wharf_client_costs *costs, uint32_t codec,
                                                size_t nbytes);

/* wharf_client_note_side: what such a chunk took there. */
void wharf_client_note_side(struct wharf_client_costs *costs, uint32_t codec, size_t nbytes,
                            enum wharf_client_side at, uint64_t took_ns);

#endif
