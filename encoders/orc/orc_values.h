/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_values.h: the values of one stream of an ORC file, in order, in bounded memory.
 *
 * Blocks are read as values are asked for.  What is held is a block, what is left of the run that
 * it ends in, and some values that are decoded.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_VALUES_H
#define WHARF_ENCODERS_ORC_ORC_VALUES_H

#include "encoders/orc/orc_blocks.h"

/* Where a stream stands in the file, and how it is coded. */
struct wharf_orc_place {
    bool is_there;
    uint64_t offset;
    uint64_t nbytes;
};

struct wharf_orc_values {
    struct wharf_orc_blocks blocks;
    uint32_t codec; /* rle1, rle2 or byterle */
    uint32_t parameter;
    unsigned unit_nbytes;

    uint8_t *window; /* bytes that are not decoded */
    size_t window_at;
    size_t window_end;

    uint8_t *decoded; /* values that nobody asked for yet */
    size_t decoded_at;
    size_t decoded_end;

    /* Of booleans: the byte that bits are taken of, and how many of them are left. */
    uint8_t bits;
    unsigned n_bits;
};

/* The stream at `place`, of one of the codecs that wharf_run_scan_knows.  0, or -1 with *ret_error.
 */
int wharf_orc_values_open(struct wharf_orc_values *values, const struct wharf_orc_bytes *of,
                          const struct wharf_orc_place *place, uint32_t codec, uint32_t parameter,
                          struct wharf_orc_error *ret_error);
/* Also of what is all zeros. */
void wharf_orc_values_close(struct wharf_orc_values *values);

/* The next n values, which the stream has to have. */
int wharf_orc_values_next(struct wharf_orc_values *values, void *to, size_t n,
                          struct wharf_orc_error *ret_error);

/* The next n of the bits that the bytes of a byterle stream are, each as a byte of 0 or 1. */
int wharf_orc_bits_next(struct wharf_orc_values *values, uint8_t *to, size_t n,
                        struct wharf_orc_error *ret_error);

#endif
