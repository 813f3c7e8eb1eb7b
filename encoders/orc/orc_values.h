/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_values.h: decodes the values of one stream of an ORC file, in order and in bounded memory.
 *
 * It holds one block, the incomplete run at the end of the block before, and some decoded values.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_VALUES_H
#define WHARF_ENCODERS_ORC_ORC_VALUES_H

#include "encoders/orc/orc_blocks.h"

/* The place of a stream in the file; for a DATA stream also the encoding of its column. */
struct wharf_orc_place {
    uint64_t offset;
    uint64_t nbytes;
    uint32_t encoding;
    bool is_there;
    bool has_encoding; /* also if there is no stream */
};

struct wharf_orc_values {
    struct wharf_orc_blocks blocks;
    uint32_t codec; /* rle1, rle2 or byterle */
    uint32_t parameter;
    unsigned unit_nbytes;

    uint8_t *window; /* encoded bytes */
    size_t window_at;
    size_t window_end;

    uint8_t *decoded; /* values that were not taken yet */
    size_t decoded_at;
    size_t decoded_end;

    /* Of booleans: the byte whose bits are being taken, and the number of those left. */
    uint8_t bits;
    unsigned n_bits;
};

/* Opens the stream at `place`; wharf_run_scan_knows must know the codec.  0, or -1 with
 * *ret_error. */
int wharf_orc_values_open(struct wharf_orc_values *values, const struct wharf_orc_bytes *of,
                          const struct wharf_orc_place *place, uint32_t codec, uint32_t parameter,
                          struct wharf_orc_error *ret_error);
/* Also closes one that is all zeros. */
void wharf_orc_values_close(struct wharf_orc_values *values);

/* Takes the next n values.  Fails if the stream has fewer. */
int wharf_orc_values_next(struct wharf_orc_values *values, void *to, size_t n,
                          struct wharf_orc_error *ret_error);

/* Takes the next n bits of a byterle stream, each as a byte of 0 or 1. */
int wharf_orc_bits_next(struct wharf_orc_values *values, uint8_t *to, size_t n,
                        struct wharf_orc_error *ret_error);

#endif
