/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_state.h: the state of an inflater of zlib_steps.h between two calls, and the fields of
 * z_stream that a call uses.
 *
 * Members that zlib's own state has too have the same meaning here, so that
 * clientlib/preload/hand_over.c can copy them.  The others hold the output that this inflater
 * keeps, and block headers, which zlib must read again after a hand-over.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_STATE_H
#define WHARF_ENCODERS_ZLIB_ZLIB_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/deflate/inflate.h"

/* The values of zlib.h. */
enum {
    WHARF_Z_OK = 0,
    WHARF_Z_STREAM_END = 1,
    WHARF_Z_NEED_DICT = 2,
    WHARF_Z_STREAM_ERROR = -2,
    WHARF_Z_DATA_ERROR = -3,
    WHARF_Z_BUF_ERROR = -5,
};
enum { WHARF_Z_FINISH = 4, WHARF_Z_BLOCK = 5, WHARF_Z_TREES = 6 };

/* The states of zlib's inflate.h, with its numbers: WHARF_ZMODE_HEAD equals zlib's HEAD, and each
 * next one is one more. */
enum wharf_zmode {
    WHARF_ZMODE_HEAD = 16180,
    WHARF_ZMODE_FLAGS,
    WHARF_ZMODE_TIME,
    WHARF_ZMODE_OS,
    WHARF_ZMODE_EXLEN,
    WHARF_ZMODE_EXTRA,
    WHARF_ZMODE_NAME,
    WHARF_ZMODE_COMMENT,
    WHARF_ZMODE_HCRC,
    WHARF_ZMODE_DICTID,
    WHARF_ZMODE_DICT,
    WHARF_ZMODE_TYPE,
    WHARF_ZMODE_TYPEDO,
    WHARF_ZMODE_STORED,
    WHARF_ZMODE_COPY_BEGIN,
    WHARF_ZMODE_COPY,
    WHARF_ZMODE_TABLE,
    WHARF_ZMODE_LENLENS,
    WHARF_ZMODE_CODELENS,
    WHARF_ZMODE_LEN_BEGIN,
    WHARF_ZMODE_LEN,
    WHARF_ZMODE_LENEXT,
    WHARF_ZMODE_DIST,
    WHARF_ZMODE_DISTEXT,
    WHARF_ZMODE_MATCH,
    WHARF_ZMODE_LIT,
    WHARF_ZMODE_CHECK,
    WHARF_ZMODE_LENGTH,
    WHARF_ZMODE_DONE,
    WHARF_ZMODE_BAD,
    WHARF_ZMODE_MEM,
    WHARF_ZMODE_SYNC,
};

/* Which framing and checksum the stream has, as in zlib's `wrap`. */
enum { WHARF_ZWRAP_ZLIB = 1, WHARF_ZWRAP_GZIP = 2, WHARF_ZWRAP_CHECK = 4 };

/* Room after the window.  Both together fit the second-level cache. */
#define WHARF_ZLIB_STEPS_SPAN_NBYTES (96 * 1024)
/* The largest header of a dynamic block, with the bytes that it shares with its neighbours. */
#define WHARF_ZLIB_STEPS_LOG_NBYTES ((WHARF_DEFLATE_MAX_HEADER_NBITS + 7) / 8 + 8)

/* A dynamic block's header as it was read: the bit buffer when its type was known, and the bytes
 * read after that. */
struct wharf_zlib_log {
    uint64_t hold;
    unsigned bits;
    unsigned nbytes;
    uint8_t in[WHARF_ZLIB_STEPS_LOG_NBYTES];
};

struct wharf_zlib_steps {
    uint32_t mode;
    bool last;      /* the current block is the last */
    bool is_fixed;  /* the current block has the fixed codes */
    int wrap;       /* or-ed WHARF_ZWRAP_* */
    int flags;      /* gzip's method and flags; 0 for zlib, -1 if unknown or raw */
    uint32_t dmax;  /* the window size of a zlib header */
    uint32_t check; /* checksum of all output so far */
    uint64_t total; /* output so far */
    unsigned wbits, wsize, whave;

    uint64_t hold; /* bits read from the input and not used; zeros above them */
    unsigned bits;

    uint32_t length; /* rest of a stored block, match or header field; or the literal */
    uint32_t offset; /* the match's distance */
    unsigned extra;  /* number of extra bits to read */
    uint32_t was;    /* the match's whole length */
    int back;        /* bits since the unit's start, -1 at the end of a block */

    unsigned ncode, nlen, ndist, have;
    uint8_t precode_lengths[WHARF_DEFLATE_N_PRECODE];
    uint16_t precode[1 << WHARF_DEFLATE_MAX_PRECODE_NBITS];
    uint8_t lengths[WHARF_DEFLATE_N_LENGTHS];

    /* The last two dynamic headers; logs[n_headers & 1] is the latest.  zlib reads them again when
     * it takes over, to build its tables. */
    unsigned n_headers;
    struct wharf_zlib_log logs[2];

    struct wharf_inflate inflate; /* the tables, and the position of the fast loop while it runs */

    size_t pos;        /* end of the output in `out` */
    size_t flushed;    /* end of the output that the caller has */
    size_t window_end; /* end of what zlib would have in its window */
    bool has_saved;    /* the window is in `saved`, since `out` was moved */
    uint8_t saved[WHARF_DEFLATE_WINDOW_NBYTES];
    uint8_t out[WHARF_DEFLATE_WINDOW_NBYTES + WHARF_ZLIB_STEPS_SPAN_NBYTES];
};

/* The members of z_stream that a call reads and writes. */
struct wharf_zlib_io {
    const uint8_t *next_in;
    uint32_t avail_in;
    uint8_t *next_out;
    uint32_t avail_out;
    uint64_t total_in, total_out;
    uint64_t adler;
    const char *msg; /* static; written on an error only */
    int data_type;
};

/* What zlib would have in its window: `whave` bytes. */
static inline const uint8_t *wharf_zlib_state_window(const struct wharf_zlib_steps *steps)
{
    return steps->has_saved ? steps->saved : steps->out + steps->window_end - steps->whave;
}

#endif
