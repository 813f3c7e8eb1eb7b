/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf.h: decompress chunks.  This header is libwharf's manual.
 *
 *     struct wharf *wharf;
 *     int err = wharf_open(NULL, &wharf);
 *     if (err < 0) ...
 *
 *     struct wharf_job job = WHARF_JOB_INIT;
 *     job.codec = WHARF_CODEC_ZLIB;
 *     job.in = chunk;
 *     job.in_nbytes = chunk_nbytes;
 *     job.out = buffer;
 *     job.out_avail = sizeof(buffer);
 *
 *     struct wharf_outcome outcome;
 *     err = wharf_decompress(wharf, &job, &outcome);
 *     if (err < 0) ...                                    the call went wrong
 *     if (outcome.result != WHARF_OK)                     the data was bad
 *         fprintf(stderr, "%s at bit %" PRIu64 "\n",
 *                 wharf_reason_string(outcome.reason), outcome.bit_offset);
 *     wharf_close(wharf);
 *
 * Compile and link with `pkg-config --cflags --libs wharf`.  The header is C11 and C++17.
 *
 * ERRORS.  What goes wrong with a call (no memory, a NULL where none may be) is the return value:
 * 0, or a negative errno number.  What becomes of the data is in struct wharf_outcome, which
 * wharf_result.h explains.  The two are never mixed: a call that returns a negative number has
 * not touched its outputs, and a call that returns 0 has filled them all, with good news or bad.
 *
 * THREADS.  All functions are safe to call from several threads at once, with the same handle
 * too; only wharf_close needs the handle for itself, after all other calls on it returned.  The
 * library makes no threads of its own, installs no signal handlers, never prints and never
 * exits.  Its functions are not for signal handlers, except those that return static strings.
 *
 * FORK.  A handle of the embedded engine holds no locks, descriptors or threads, so a forked
 * child may go on using its copy, even if another thread of the parent was inside a call.
 *
 * STRUCTS THAT GROW.  struct wharf_options and struct wharf_job begin with their own size, as
 * the caller was compiled to know it; WHARF_OPTIONS_INIT and WHARF_JOB_INIT set it.  Later
 * versions of the library add members at the end, for which zero means "as before".  A struct
 * smaller than the first version's gives -EINVAL; one larger than the library knows is
 * accepted while all the further bytes are zero, and gives -E2BIG otherwise.
 *
 * HOSTILE DATA.  Any bytes at all may be given as compressed data, and any number in a size or
 * checksum: each decoder stays within the buffers of its job and ends in time linear in their
 * sizes.  What must be true is said at each member.
 */
#ifndef WHARF_H
#define WHARF_H

#include <stddef.h>
#include <stdint.h>

/* Installed beside this file; in wharf's own tree, in encoders/ and proto/. */
#include "wharf_codec.h"
#include "wharf_job.h"
#include "wharf_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * wharf_version: the library's version, such as "0.1.0".  Static.  `pkg-config --modversion
 * wharf` tells the version that a program is compiled against.
 */
const char *wharf_version(void);

/* ---- codecs ---------------------------------------------------------------------------- */

/*
 * wharf_codec_from_name: the number (enum wharf_codec) of the codec called `name`, as in
 * "zlib", or -ENOENT.  `name` must not be NULL; case matters.
 */
int wharf_codec_from_name(const char *name);

/*
 * wharf_codec_name: the name of codec number `codec`, or NULL if this version has none.  Static.
 * The numbers have no gaps, so counting up from 0 until NULL lists all codecs.
 */
const char *wharf_codec_name(uint32_t codec);

/*
 * wharf_codec_summary: one line for people, "zlib, RFC 1950, Adler-32 verified", or NULL if
 * this version has no codec of that number.  Static.
 */
const char *wharf_codec_summary(uint32_t codec);

/* ---- handles --------------------------------------------------------------------------- */

struct wharf;

/* Flags of wharf_open. */
enum wharf_open_flag {
    /* Decode in this process, on the CPU, and never through a daemon.  This version always
     * does; a program that depends on it says so and stays as it is with later ones. */
    WHARF_OPEN_EMBEDDED = 1 << 0,
};

struct wharf_options {
    uint32_t struct_nbytes; /* sizeof(struct wharf_options) */
    uint32_t engine;        /* enum wharf_engine; with AUTO the library chooses */
    uint32_t flags;         /* enum wharf_open_flag, or 0 */
    uint32_t reserved;      /* 0 */
};
#define WHARF_OPTIONS_INIT                                                                         \
    {                                                                                              \
        sizeof(struct wharf_options), WHARF_ENGINE_AUTO, 0, 0                                      \
    }

/*
 * wharf_open: makes a handle.  Does not block.
 *   options      NULL for all defaults; not kept.
 *   ret_wharf    not NULL; receives the handle, which the caller owns and gives to wharf_close.
 *                Untouched on failure.
 * Returns 0, or
 *   -EINVAL      ret_wharf is NULL, options' size is too small, or it holds an unknown engine
 *                or flag
 *   -E2BIG       options uses members that this version does not know
 *   -EOPNOTSUPP  the engine (GPU, SIMT) belongs to a daemon, and this version has none; another
 *                engine is never used in its place
 *   -ENOMEM      out of memory
 */
int wharf_open(const struct wharf_options *options, struct wharf **ret_wharf);

/*
 * wharf_close: ends a handle and frees it.  NULL is allowed.  No other call on the handle may be
 * under way.
 */
void wharf_close(struct wharf *wharf);

/*
 * wharf_engine: the engine that runs this handle's jobs; for an embedded handle never AUTO.
 * `wharf` must not be NULL.
 */
uint32_t wharf_engine(const struct wharf *wharf);

/* ---- jobs ------------------------------------------------------------------------------ */

/*
 * One chunk to decode.  Source and destination are this process's memory, stay the caller's, and
 * must not overlap.  Nobody may write to either while the call lasts.
 */
struct wharf_job {
    uint32_t struct_nbytes; /* sizeof(struct wharf_job) */
    uint32_t codec;         /* enum wharf_codec */
    uint32_t flags;         /* enum wharf_job_flag, or 0: bytes after the end of the stream are
                               left alone and any output that fits is good */
    uint32_t checksum;      /* with WHARF_JOB_CHECKSUM, the CRC-32 that the output must have;
                               otherwise not looked at */
    const void *in;         /* the source; may be NULL if in_nbytes is 0 */
    size_t in_nbytes;       /* its size in bytes; at most PTRDIFF_MAX */
    void *out;              /* the destination; may be NULL if out_avail is 0 */
    size_t out_avail;       /* its size in bytes; at most PTRDIFF_MAX */
};
#define WHARF_JOB_INIT                                                                             \
    {                                                                                              \
        sizeof(struct wharf_job), WHARF_CODEC_STORED, 0, 0, NULL, 0, NULL, 0                       \
    }

/*
 * wharf_decompress: decodes one chunk, and returns when it is done.  It computes in the calling
 * thread, without sleeping, locking or (except in the reference engine, which asks zlib) taking
 * memory.
 *   wharf        a handle; not NULL.
 *   job          what to decode; not NULL; not kept.
 *   ret_outcome  not NULL; receives what became of it.
 *
 * Returns 0 with *ret_outcome filled, or a negative number with *ret_outcome and the destination
 * untouched:
 *   -EINVAL      a NULL argument, or the job's size is too small
 *   -E2BIG       the job uses members that this version does not know
 *
 * The outcome, looked for in this order, so that each job has exactly one:
 *   WHARF_BAD_REQUEST   REQUEST_CODEC: no such codec.  REQUEST_FLAGS: unknown flags.
 *                       REQUEST_RANGE: NULL with a size other than 0, a size over PTRDIFF_MAX,
 *                       memory that wraps around the end of the address space, or a source and
 *                       destination that overlap.  bit_offset is 0.
 *   WHARF_BAD_DATA, WHARF_BAD_CHECKSUM, WHARF_OUTPUT_TOO_SMALL, WHARF_UNSUPPORTED
 *                       what the codec found first in stream order; bit_offset says where.
 *   WHARF_BAD_DATA      INPUT_LEFT, with WHARF_JOB_EXACT_INPUT.
 *   WHARF_OUTPUT_SHORT  OUTPUT_MISSING, with WHARF_JOB_EXACT_OUTPUT.
 *   WHARF_BAD_CHECKSUM  JOB_CHECKSUM, with WHARF_JOB_CHECKSUM.
 *   WHARF_OK            in_nbytes and out_nbytes say how much was read and written.
 * The reference engine can also end with WHARF_NO_MEMORY.
 *
 * Unless the outcome is WHARF_OK, out_nbytes and in_nbytes are 0 and the bytes within the
 * destination's out_avail are undefined.  Bytes outside it are never touched.  WHARF_OK means
 * that all checksums that the format carries were right.
 */
int wharf_decompress(struct wharf *wharf, const struct wharf_job *job,
                     struct wharf_outcome *ret_outcome);

#ifdef __cplusplus
}
#endif

#endif
