/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_state.h: where an inflater of zlib_steps.h stands between two calls, and what a call is
 * given.
 *
 * Its members that a genuine zlib has too mean what they mean there, so hand_over.c copies them.
 * The rest is the output that this one keeps, and the headers that a genuine zlib reads again.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_STATE_H
#define WHARF_ENCODERS_ZLIB_ZLIB_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/deflate/inflate.h"

/* zlib's results and ways to flush, as zlib.h has them. */
enum {
    WHARF_Z_OK = 0,
    WHARF_Z_STREAM_END = 1,
    WHARF_Z_NEED_DICT = 2,
    WHARF_Z_STREAM_ERROR = -2,
    WHARF_Z_DATA_ERROR = -3,
    WHARF_Z_BUF_ERROR = -5,
};
enum { WHARF_Z_FINISH = 4, WHARF_Z_BLOCK = 5, WHARF_Z_TREES = 6 };

/* zlib's states, in its order.  INVARIANT: WHARF_ZMODE_HEAD is zlib's HEAD, and each counts one. */
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

/* Which checksums and headers there are: zlib's `wrap`. */
enum { WHARF_ZWRAP_ZLIB = 1, WHARF_ZWRAP_GZIP = 2, WHARF_ZWRAP_CHECK = 4 };

/* Room behind the window; both together stay in a second-level cache. */
#define WHARF_ZLIB_STEPS_SPAN_NBYTES (96 * 1024)
/* The header of a dynamic block, with the bytes that it shares. */
#define WHARF_ZLIB_STEPS_LOG_NBYTES ((WHARF_DEFLATE_MAX_HEADER_NBITS + 7) / 8 + 8)

/* A dynamic header: the bits that were there when its type was known, and what was pulled behind
 * them. */
struct wharf_zlib_log {
    uint64_t hold;
    unsigned bits;
    unsigned nbytes;
    uint8_t in[WHARF_ZLIB_STEPS_LOG_NBYTES];
};

struct wharf_zlib_steps {
    uint32_t mode;
    bool last;      /* this block is the last */
    bool is_fixed;  /* its codes are the fixed ones */
    int wrap;       /* or-ed WHARF_ZWRAP_* */
    int flags;      /* gzip's flags with the method; 0 for zlib, -1 while unknown or raw */
    uint32_t dmax;  /* the window that a zlib header declared */
    uint32_t check; /* of all output so far */
    uint64_t total; /* output so far */
    unsigned wbits, wsize, whave;

    uint64_t hold; /* the bits taken from the input but not used; zeros above them */
    unsigned bits;

    uint32_t length; /* left of a stored block, a match or a header's field; or the literal */
    uint32_t offset; /* the distance */
    unsigned extra;  /* bits to come */
    uint32_t was;    /* the match's length at its beginning */
    int back;        /* bits back to the start of the unit, -1 at an end of a block */

    unsigned ncode, nlen, ndist, have;
    uint8_t precode_lengths[WHARF_DEFLATE_N_PRECODE];
    uint16_t precode[1 << WHARF_DEFLATE_MAX_PRECODE_NBITS];
    uint8_t lengths[WHARF_DEFLATE_N_LENGTHS];

    /* The last two dynamic headers, logs[n_headers & 1] the last: a genuine zlib reads them again
     * when it takes over. */
    unsigned n_headers;
    struct wharf_zlib_log logs[2];

    struct wharf_inflate inflate; /* the tables, and where the quick loop stands while it runs */

    size_t pos;        /* the end of the output in `out` */
    size_t flushed;    /* the caller has it up to here */
    size_t window_end; /* the end of what zlib has in its window */
    bool has_saved;    /* the window is in `saved` instead, since `out` was moved on */
    uint8_t saved[WHARF_DEFLATE_WINDOW_NBYTES];
    uint8_t out[WHARF_DEFLATE_WINDOW_NBYTES + WHARF_ZLIB_STEPS_SPAN_NBYTES];
};

/* The members of zlib's z_stream that a call reads and writes. */
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

/* What zlib has in its window: `whave` bytes. */
static inline const uint8_t *wharf_zlib_state_window(const struct wharf_zlib_steps *steps)
{
    return steps->has_saved ? steps->saved : steps->out + steps->window_end - steps->whave;
}

#endif
