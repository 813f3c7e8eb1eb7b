/* SPDX-License-Identifier: Apache-2.0 */
/* file_walk.c: walks through a file by its headers, without decoding. */
#include "clientlib/cli/file_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Several blocks at a time, of which each has WHARF_BGZF_MAX_NBYTES at most. */
enum { WALK_NBYTES = 4 * WHARF_BGZF_MAX_NBYTES };

/* A part of the file that stands in memory. */
struct window {
    uint8_t *buf; /* WALK_NBYTES */
    uint64_t start;
    size_t nbytes;
    bool at_end; /* of the file */
};

/* Moves the window on, to begin at `offset`, which it holds or ends at. */
static int move_to(struct wharf_cli_task *task, struct window *window, uint64_t offset)
{
    size_t passed = (size_t)(offset - window->start);
    int64_t n;

    memmove(window->buf, window->buf + passed, window->nbytes - passed);
    window->nbytes -= passed;
    window->start = offset;
    n = wharf_cli_input_read_at(task->input, offset + window->nbytes, window->buf + window->nbytes,
                                WALK_NBYTES - window->nbytes);
    if (n < 0)
        return wharf_cli_task_read_error(task, (int)n);
    window->at_end = (size_t)n < WALK_NBYTES - window->nbytes;
    window->nbytes += (size_t)n;
    return WHARF_CLI_GOOD;
}

int wharf_cli_walk_bgzf(struct wharf_cli_task *task,
                        void (*each)(void *context, const struct wharf_bgzf_piece *block),
                        void *context, bool *ret_is_whole)
{
    struct wharf_bgzf_splitter splitter = {0};
    struct wharf_bgzf_piece piece = {.kind = WHARF_BGZF_MORE};
    struct window window = {.buf = malloc(WALK_NBYTES)};
    int status = window.buf ? WHARF_CLI_GOOD : wharf_cli_task_error(task, "cannot list", -ENOMEM);

    while (status == WHARF_CLI_GOOD &&
           (piece.kind == WHARF_BGZF_MORE || piece.kind == WHARF_BGZF_BLOCK)) {
        if (piece.kind == WHARF_BGZF_MORE)
            status = move_to(task, &window, splitter.file_offset);
        if (status != WHARF_CLI_GOOD)
            break;
        size_t passed = (size_t)(splitter.file_offset - window.start);
        wharf_bgzf_next(&splitter, window.buf + passed, window.nbytes - passed, window.at_end,
                        &piece);
        if (piece.kind == WHARF_BGZF_BLOCK)
            each(context, &piece);
    }
    *ret_is_whole = status == WHARF_CLI_GOOD && piece.kind == WHARF_BGZF_END;
    free(window.buf);
    return status;
}

/* Finds the end of the frame at `offset`.  *ret_state: FRAME, or why not. */
static int scan_frame(struct wharf_cli_task *task, uint64_t offset,
                      struct wharf_zstd_scan *ret_scan, enum wharf_zstd_scan_state *ret_state)
{
    uint8_t header[WHARF_ZSTD_SCAN_NBYTES];

    *ret_scan = (struct wharf_zstd_scan){0};
    do {
        int64_t n =
            wharf_cli_input_read_at(task->input, offset + ret_scan->nbytes, header, sizeof(header));

        if (n < 0)
            return wharf_cli_task_read_error(task, (int)n);
        *ret_state = wharf_zstd_scan_step(ret_scan, header, (size_t)n);
    } while (*ret_state == WHARF_ZSTD_SCAN_GOES_ON);
    return WHARF_CLI_GOOD;
}

int wharf_cli_walk_zstd(struct wharf_cli_task *task,
                        void (*each)(void *context, const struct wharf_zstd_scan *scan,
                                     uint64_t offset),
                        void *context, bool *ret_is_whole)
{
    uint64_t offset = 0;

    *ret_is_whole = false;
    while (offset < task->input->nbytes) {
        struct wharf_zstd_scan scan;
        enum wharf_zstd_scan_state state;
        int status = scan_frame(task, offset, &scan, &state);

        if (status != WHARF_CLI_GOOD || state != WHARF_ZSTD_SCAN_FRAME ||
            offset + scan.nbytes > task->input->nbytes)
            return status;
        if (!scan.frame.is_skippable)
            each(context, &scan, offset);
        offset += scan.nbytes;
    }
    *ret_is_whole = true;
    return WHARF_CLI_GOOD;
}
