/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_pack_pipe.h: packs an input into what every zstd reads, on all cores, in bounded memory.
 *
 * Each so many bytes become a frame with its size and checksum; behind the last one stands a seek
 * table (encoders/zstd/zstd_seek.h), which programs that do not know it pass over.  Memory: a slot
 * holds a frame and its input, pipeline.h says how many there are; and 8 bytes for each frame.
 */
#ifndef WHARF_CLI_ZSTD_PACK_PIPE_H
#define WHARF_CLI_ZSTD_PACK_PIPE_H

#include "clientlib/cli/task.h"

struct wharf_cli_zstd_pack_settings {
    struct wharf_encoder_options encoder;
    uint32_t frame_nbytes;
};

/* Packs all of the input.  Returns the exit status. */
int wharf_cli_zstd_pack_pipe(struct wharf_cli_task *task,
                             const struct wharf_cli_zstd_pack_settings *settings);

#endif
