/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_pack_pipe.h: packs an input into what every gzip reads, on all cores, in bounded memory.
 *
 * BGZF is blocks of at most 64 KiB, which samtools and tabix read at random; gzip is one member,
 * as gzip(1) writes it.  A slot holds about 1 MiB of input and what that becomes; pipeline.h says
 * how many slots there are.
 */
#ifndef WHARF_CLI_GZIP_PACK_PIPE_H
#define WHARF_CLI_GZIP_PACK_PIPE_H

#include "clientlib/cli/task.h"

struct wharf_cli_gzip_pack_settings {
    bool is_bgzf;
    struct wharf_encoder_options encoder; /* of gzip the level alone counts: it is zlib's */
    int level;
    uint32_t block_nbytes; /* of BGZF: how much goes into a block */
};

/* Packs all of the input.  Returns the exit status. */
int wharf_cli_gzip_pack_pipe(struct wharf_cli_task *task,
                             const struct wharf_cli_gzip_pack_settings *settings);

#endif
