/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_window.h: tables of a registered model in which a slot's symbol is found near others that
 * are found often; C and C++.
 *
 * By slot, tables are as large as there are slots, and all slots are looked at equally often: of
 * many distributions they fit no first cache.  By symbol they are smaller, and few symbols are most
 * of what is looked at.  So the symbols of a distribution that have slots stand in *windows* of
 * seven, and a *bucket* of slots says in which window the first of them is; the others are there or
 * in the windows behind.
 *
 * Buckets are a power of two, and more than half as many as symbols.  So one of 2^8 slots has 2^8
 * symbols at most, and where buckets are larger there are fewer symbols than that: whatever the
 * model, a slot's window is at most 37 behind the one that its bucket says.  (Of normal
 * distributions with n = 16, whose rare symbols lie side by side, the rarest are 22 behind.)
 */
#ifndef WHARF_ENCODERS_RANS_RANS_WINDOW_H
#define WHARF_ENCODERS_RANS_RANS_WINDOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WHARF_RANS_WINDOW_NSYMBOLS 7
#define WHARF_RANS_MOST_WINDOWS_BEHIND 37

/*
 * A sector of 32 bytes.  edges[0] is the slot before the window's first one, modulo 2^16, and
 * edges[i] the last one of its symbol i, counted from 1; there is none of symbols that are not
 * there, 65535.  Slots that are nobody's are in a symbol of their own behind the last one, so that
 * a distribution's last window ends with 65535 or 2^n - 1.
 */
struct wharf_rans_window {
    uint16_t edges[WHARF_RANS_WINDOW_NSYMBOLS + 1];
    uint16_t symbols[WHARF_RANS_WINDOW_NSYMBOLS + 1]; /* the last one is 0 */
};

struct wharf_rans_model;
struct wharf_rans_shape;

/* Distribution d's windows begin at d * stride. */
struct wharf_rans_windows {
    uint32_t stride;
    uint32_t n_buckets; /* at most */
    struct wharf_rans_window *windows;
    uint32_t *scales;  /* a distribution's: its first bucket, and above 24 bits by how many bits
                          slots are shifted right to be buckets */
    uint16_t *buckets; /* windows counted from the distribution's first one */
};
#define WHARF_RANS_SCALE_SHIFT 24

/* Sets stride and n_buckets for a shape; stride is 0 if windows are of no use: where by slot there
 * is not much, or windows would be too much as well. */
void wharf_rans_windows_lay_out(const struct wharf_rans_shape *shape,
                                struct wharf_rans_windows *ret_windows);

/* Fills in all windows and buckets, of a model whose tables are made. */
void wharf_rans_windows_fill(const struct wharf_rans_model *model,
                             const struct wharf_rans_windows *windows);

#ifdef __cplusplus
}
#endif

#endif
