/* SPDX-License-Identifier: Apache-2.0 */
/*
 * genuine_state.h: where zlib 1.2.13 to 1.3.1 have the members of their inflate state, which
 * strm->state points to.  genuine.c tries them out before anything relies on them.
 */
#ifndef WHARF_CLIENTLIB_PRELOAD_GENUINE_STATE_H
#define WHARF_CLIENTLIB_PRELOAD_GENUINE_STATE_H

#include <stdint.h>
#include <zlib.h>

struct wharf_genuine_state {
    z_streamp strm;
    int mode, last, wrap, havedict, flags;
    unsigned dmax;
    unsigned long check, total;
    gz_headerp head;
    unsigned wbits, wsize, whave, wnext;
    unsigned char *window;
    unsigned long hold;
    unsigned bits, length, offset, extra;
    const void *lencode, *distcode;
    unsigned lenbits, distbits;
    unsigned ncode, nlen, ndist, have;
    void *next;
    uint16_t lens[320];
    uint16_t work[288];
    uint32_t codes[852 + 592];
    int sane, back;
    unsigned was;
};

static inline struct wharf_genuine_state *wharf_genuine_state(z_streamp strm)
{
    return (struct wharf_genuine_state *)(void *)strm->state;
}

#endif
