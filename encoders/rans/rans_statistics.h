/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_statistics.h: which symbols occur, and how often.  Of 2^16 that could, most chunks have a
 * few thousand: nothing here goes through all of them.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_STATISTICS_H
#define WHARF_ENCODERS_RANS_RANS_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

struct wharf_rans_statistics {
    uint32_t symbol_nbytes;
    uint32_t n;          /* symbols that occur */
    uint32_t *symbols;   /* in rising order */
    uint64_t *counts;    /* by place in `symbols` */
    uint32_t *by_symbol; /* all 0 between calls */
};

/* 0, or -ENOMEM; to be given to _deinit in both cases. */
int wharf_rans_statistics_init(struct wharf_rans_statistics *statistics, uint32_t symbol_nbytes);
void wharf_rans_statistics_deinit(struct wharf_rans_statistics *statistics);

/* Counts n_symbols (at most WHARF_RANS_MAX_SYMBOLS) little-endian symbols.  Of none, since a
 * distribution has to be of something, symbol 0 counts as one that occurs. */
void wharf_rans_statistics_take(struct wharf_rans_statistics *statistics, const uint8_t *symbols,
                                uint32_t n_symbols);

#endif
