/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_format.h: file formats that the command reads by itself alone: on the CPU, in this process.
 * A row each.
 */
#ifndef WHARF_CLI_CPU_FORMAT_H
#define WHARF_CLI_CPU_FORMAT_H

#include <stdint.h>

#include "encoders/frame_piece.h"
#include "encoders/source_kind.h"
#include "encoders/stream.h"

struct wharf_cli_cpu_format {
    enum wharf_source_kind kind;
    const char *name;  /* as `wharf list` prints it, and --codec takes it */
    const char *title; /* in messages */
    /* What names end in, of a format that its first bytes do not tell; otherwise NULL.  --codec is
     * for files of another name. */
    const char *suffix;
    uint64_t codecs;           /* bits 1 << enum wharf_codec: what `wharf list` prints */
    const char *check;         /* what its checksums are, if it has any */
    wharf_frame_next_fn *next; /* of framed blocks */
    struct wharf_stream *(*new_stream)(void); /* of all others */
};

/* The row of a kind, or NULL. */
const struct wharf_cli_cpu_format *wharf_cli_cpu_format_find(enum wharf_source_kind kind);

/* The row that a name's end, or that of --codec, says: NULL if none does. */
const struct wharf_cli_cpu_format *wharf_cli_cpu_format_of_path(const char *path);
const struct wharf_cli_cpu_format *wharf_cli_cpu_format_of_name(const char *name);

#endif
