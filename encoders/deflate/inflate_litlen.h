/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_litlen.h: fills the CPU inflater's litlen table.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_LITLEN_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_LITLEN_H

#include "encoders/deflate/inflate_code.h"

/*
 * Fills the first table for a complete litlen code, with as many symbols in an entry as pays for a
 * block of expected_nbits.  Words longer than the table are left out.  Returns the table's width.
 */
unsigned wharf_inflate_fill_litlen(uint32_t *table, const struct wharf_code *litlen,
                                   const struct wharf_code *distance, uint64_t expected_nbits);

/* What stands together in an entry besides single symbols. */
enum {
    WHARF_LITLEN_PAIRS = 1,   /* a literal and another, or a literal and a length */
    WHARF_LITLEN_MATCHES = 2, /* a length and its distance, also behind a literal */
    WHARF_LITLEN_AUTO = 4,    /* what pays */
};

/* For tests: makes the whole process fill tables so, PAIRS and MATCHES or-ed together, or AUTO.
 * The outcome of a decode never depends on it. */
void wharf_inflate_litlen_force(unsigned plan);

#endif
