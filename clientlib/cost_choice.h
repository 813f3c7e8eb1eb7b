/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_choice.h: whether wharf_decompress decodes a chunk faster in the calling thread (INLINE) or
 * by the daemon.
 *
 * A caller that only waits has a processor to itself; decoding there needs no copies and no
 * wake-up.  The daemon has a GPU, or several workers for one large job.  The handle measures
 * instead of guessing: for each codec and order of size it tries both sides now and then, and takes
 * the faster one in between.
 */
#ifndef WHARF_CLIENT_COST_CHOICE_H
#define WHARF_CLIENT_COST_CHOICE_H

#include <stddef.h>
#include <stdint.h>

enum wharf_client_side { WHARF_CLIENT_INLINE, WHARF_CLIENT_DAEMON, WHARF_CLIENT_N_SIDES };

enum { WHARF_CLIENT_N_COST_CODECS = 16, WHARF_CLIENT_N_COST_SIZES = 12 };

/* The cost of chunks of one codec and order of size. */
struct wharf_client_cost {
    double ns_per_byte[WHARF_CLIENT_N_SIDES];
    uint32_t n[WHARF_CLIENT_N_SIDES]; /* samples behind it, counted to 4 */
    uint32_t until_other;             /* calls until the slower side is tried again */
    uint32_t n_tries;                 /* calls left in the present trial */
    uint8_t last;                     /* the side of the last call, enum wharf_client_side */
    /* By side: no call ran there for a while, so the next one meets cold caches. */
    uint8_t is_first[WHARF_CLIENT_N_SIDES];
};

struct wharf_client_costs {
    struct wharf_client_cost of[WHARF_CLIENT_N_COST_CODECS][WHARF_CLIENT_N_COST_SIZES];
};

/* wharf_client_choose_side: the side for a chunk of nbytes, source and destination together. */
enum wharf_client_side wharf_client_choose_side(struct wharf_client_costs *costs, uint32_t codec,
                                                size_t nbytes);

/* wharf_client_note_side: records that such a chunk took took_ns on that side. */
void wharf_client_note_side(struct wharf_client_costs *costs, uint32_t codec, size_t nbytes,
                            enum wharf_client_side at, uint64_t took_ns);

#endif
