/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.h: of damaged files writes all that decodes, and says what of it is in doubt.
 *
 * What is lost is never made up: of containers, whose headers tell how much is missing, zeros stand
 * for it, so that everything behind is where it was; of gzip and BGZF, whose sizes nothing vouches
 * for, nothing stands for it.  Behind damage the next chunk, block or gzip member is searched for,
 * byte by byte.  What looks like a gzip member is believed once it has given 32 KiB without an
 * error, or decoded to its end.
 *
 * Memory is bounded and time linear in the input, as without --salvage.  From a pipe too: the last
 * part of what was read is kept, to search in.
 */
#ifndef WHARF_CLI_SALVAGE_H
#define WHARF_CLI_SALVAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/task.h"
#include "encoders/container_resume.h"
#include "encoders/deflate/inflate_stream.h"
#include "encoders/source_kind.h"
#include "encoders/stream.h"

/*
 * Decodes the input, whose first bytes are of that kind, and writes the range of what could be
 * saved.  Returns the exit status: WHARF_CLI_GOOD if nothing was bad.
 */
int wharf_cli_salvage(struct wharf_cli_task *task, struct wharf_cli_range range,
                      enum wharf_source_kind kind);

/* The same of one Deflate or zlib stream, up to its first error, or of gzip members. */
int wharf_cli_salvage_stream(struct wharf_cli_task *task, enum wharf_inflate_format format);

/* ---- for salvage*.c ------------------------------------------------------------------------ */

struct wharf_cli_salvage {
    struct wharf_cli_task *task;
    uint8_t *buf; /* to search in */
    uint64_t n_faults;
    uint64_t n_doubtful; /* bytes that were written */
    uint64_t n_zeros;    /* bytes that stand for what is lost */

    /* What candidates for a gzip member cost so far, and what was searched. */
    uint64_t n_tried;
    uint64_t n_searched;
};

enum {
    WHARF_CLI_SALVAGE_SEARCH_NBYTES = 64 << 10, /* of buf */
    /* How much of what was read from a pipe can be searched again. */
    WHARF_CLI_SALVAGE_KEEP_NBYTES = 1 << 20,
};

/*
 * Notes a fault after what can be had of it was written: the last n_doubtful + n_zeros bytes of the
 * output are in doubt, or zeros in place of what is lost.  Says so, unless it was said of too many.
 */
void wharf_cli_salvage_note(struct wharf_cli_salvage *salvage, struct wharf_cli_fault *fault,
                            uint64_t n_doubtful, uint64_t n_zeros);

/* What wharf_cli_salvage_find looks for. */
enum wharf_cli_salvage_wanted {
    WHARF_CLI_WANTS_MEMBER = 1 << 0, /* a gzip member */
    WHARF_CLI_WANTS_BLOCK = 1 << 1,  /* a BGZF block */
    WHARF_CLI_WANTS_FRAME = 1 << 2,  /* a container's header */
};

struct wharf_cli_salvage_found {
    uint64_t offset;
    uint32_t kind;                      /* one of enum wharf_cli_salvage_wanted; 0: nothing */
    struct wharf_container_frame frame; /* of kind FRAME */
    const struct wharf_container_reader *reader; /* the one that it fits, or NULL */
    bool has_bytes;                              /* not only zeros stand before it */
};

/*
 * Searches from `offset` on.
 *   readers  of frames: two, of which NULL is none; only those count that can follow in the member
 *            of one, or begin a member; NULL in place of both: all count
 * Returns the exit status, WHARF_CLI_GOOD also if nothing was found.
 */
int wharf_cli_salvage_find(struct wharf_cli_salvage *salvage, uint64_t offset, unsigned wanted,
                           const struct wharf_container_reader *const readers[2],
                           struct wharf_cli_salvage_found *ret_found);

/* Decodes a stream that is all of the input, up to its first error.  `stream` as of stream_pipe.h.
 * Returns the exit status. */
int wharf_cli_salvage_whole_stream(struct wharf_cli_salvage *salvage, struct wharf_stream *stream);

/* Decodes gzip, from `offset` to the input's end.  Returns the exit status. */
int wharf_cli_salvage_gzip(struct wharf_cli_salvage *salvage, uint64_t offset, bool is_bgzf);

/* Decodes a container, from its beginning or, if that is lost, from a frame on that was found.
 * Returns the exit status. */
int wharf_cli_salvage_container(struct wharf_cli_salvage *salvage,
                                const struct wharf_container_frame *first);

#endif
