/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.h: where wharf_decompress gets a chunk done sooner, in the calling thread or by the
 * daemon.
 *
 * A caller that only waits has a processor to itself meanwhile, and what it decodes there needs no
 * copies and wakes nobody.  The daemon has a GPU, or several workers for one large job.  Which is
 * sooner is not guessed: both are tried now and then, for each codec and order of size, and the
 * sooner one is taken in between.
 */
#ifndef WHARF_CLIENT_PLACES_H
#define WHARF_CLIENT_PLACES_H

#include <stddef.h>
#include <stdint.h>

enum wharf_client_place_name { WHARF_CLIENT_HERE, WHARF_CLIENT_THERE, WHARF_CLIENT_N_PLACES };

enum { WHARF_CLIENT_N_PLACE_CODECS = 16, WHARF_CLIENT_N_PLACE_SIZES = 12 };

/* What chunks of one codec and order of size took. */
struct wharf_client_place {
    double ns_per_byte[WHARF_CLIENT_N_PLACES];
    uint32_t n[WHARF_CLIENT_N_PLACES]; /* how many that was learnt from, counted to 4 */
    uint32_t until_other;              /* calls until the slower place is tried */
};

struct wharf_client_places {
    struct wharf_client_place of[WHARF_CLIENT_N_PLACE_CODECS][WHARF_CLIENT_N_PLACE_SIZES];
};

/* wharf_client_choose_place: of a chunk with so many bytes, source and destination together. */
enum wharf_client_place_name wharf_client_choose_place(struct wharf_client_places *places,
                                                       uint32_t codec, size_t nbytes);

/* wharf_client_note_place: what such a chunk took there. */
void wharf_client_note_place(struct wharf_client_places *places, uint32_t codec, size_t nbytes,
                             enum wharf_client_place_name at, uint64_t took_ns);

#endif
