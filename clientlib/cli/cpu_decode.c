/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_decode.c: decodes files of formats that only the CPU reads. */
#include "clientlib/cli/cpu_decode.h"

#include <errno.h>

#include "clientlib/cli/frame_pipe.h"
#include "clientlib/cli/salvage_stream.h"
#include "clientlib/cli/stream_pipe.h"

/* ---- looking ------------------------------------------------------------------------------- */

/* More than any header has. */
enum { HEADER_NBYTES = 64 };

/* The next piece, by its header.  Returns the exit status; if it is no piece, its kind is BAD. */
static int look_at_piece(struct wharf_cli_task *task, wharf_frame_next_fn *next, uint64_t at,
                         struct wharf_frame_splitter *splitter, struct wharf_frame_piece *ret_piece)
{
    uint8_t header[HEADER_NBYTES];
    int64_t n = wharf_cli_input_read_at(task->input, at, header, sizeof(header));

    if (n < 0)
        return wharf_cli_task_read_error(task, (int)n);
    next(splitter, header, (size_t)n, n < HEADER_NBYTES, ret_piece);
    if (ret_piece->kind == WHARF_FRAME_MORE || ret_piece->nbytes > task->input->nbytes - at)
        ret_piece->kind = WHARF_FRAME_BAD;
    return WHARF_CLI_GOOD;
}

/* How much output a piece says that there is behind it, or WHARF_FRAME_SIZE_UNKNOWN. */
static uint64_t told_nbytes(const struct wharf_frame_splitter *splitter,
                            const struct wharf_frame_piece *piece)
{
    bool is_told_at_once = splitter->frame.content_nbytes != WHARF_FRAME_SIZE_UNKNOWN;

    if (piece->kind == WHARF_FRAME_BEGIN && is_told_at_once)
        return piece->frame.content_nbytes;
    if (piece->kind != WHARF_FRAME_BLOCK || is_told_at_once)
        return 0;
    return piece->is_exact ? piece->out_max_nbytes : WHARF_FRAME_SIZE_UNKNOWN;
}

static uint64_t add_known(uint64_t a, uint64_t b)
{
    return a == WHARF_FRAME_SIZE_UNKNOWN || b > WHARF_FRAME_SIZE_UNKNOWN - a
               ? WHARF_FRAME_SIZE_UNKNOWN
               : a + b;
}

int wharf_cli_cpu_format_look(struct wharf_cli_task *task,
                              const struct wharf_cli_cpu_format *format,
                              struct wharf_cli_cpu_sums *ret_sums)
{
    struct wharf_frame_splitter splitter = {.wants_headers = true};
    struct wharf_frame_piece piece = {.kind = WHARF_FRAME_SKIP};
    uint64_t n_blocks = 0;
    uint64_t out_nbytes = 0;
    uint64_t at = 0;
    bool is_first = true;

    *ret_sums = (struct wharf_cli_cpu_sums){.n_blocks = WHARF_FRAME_SIZE_UNKNOWN,
                                            .out_nbytes = WHARF_FRAME_SIZE_UNKNOWN,
                                            .has_header = !format->next};
    while (format->next && (is_first || task->input->is_seekable)) {
        int status = look_at_piece(task, format->next, at, &splitter, &piece);

        if (status != WHARF_CLI_GOOD || piece.kind == WHARF_FRAME_BAD)
            return status;
        if (piece.kind == WHARF_FRAME_END) {
            ret_sums->n_blocks = n_blocks;
            ret_sums->out_nbytes = out_nbytes;
            return WHARF_CLI_GOOD;
        }
        if (piece.kind == WHARF_FRAME_BEGIN && is_first) {
            ret_sums->has_header = true;
            ret_sums->has_checks = piece.frame.has_block_checks || piece.frame.has_content_check;
            is_first = false;
        }
        at += piece.nbytes;
        n_blocks += piece.kind == WHARF_FRAME_BLOCK;
        out_nbytes = add_known(out_nbytes, told_nbytes(&splitter, &piece));
    }
    return WHARF_CLI_GOOD;
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* Framed blocks have a reference decoder each; of streams the library is the only one. */
static bool has_engine(const struct wharf_cli_cpu_format *format, uint32_t engine)
{
    return engine == WHARF_ENGINE_AUTO || engine == WHARF_ENGINE_CPU ||
           (engine == WHARF_ENGINE_REFERENCE && format->next);
}

static int refuse_engine(struct wharf_cli_task *task, const struct wharf_cli_cpu_format *format)
{
    wharf_cli_say("%s: %s is decoded on the CPU alone, in this process: --engine %s cannot; "
                  "leave it out, or take --engine cpu%s",
                  task->input->name, format->title, wharf_engine_name(task->options->engine),
                  format->next ? " or reference" : "");
    return wharf_cli_tally_failure(task->tally, task->input->name, -EOPNOTSUPP, WHARF_CLI_USAGE);
}

int wharf_cli_cpu_format_decode(struct wharf_cli_task *task,
                                const struct wharf_cli_cpu_format *format,
                                struct wharf_cli_salvage *salvage)
{
    uint64_t end;

    if (!has_engine(format, task->options->engine))
        return refuse_engine(task, format);
    if (format->next)
        return wharf_cli_frame_pipe(task, format->next, salvage);
    if (salvage)
        return wharf_cli_salvage_whole_stream(salvage, format->new_stream());
    return wharf_cli_stream_pipe(task, format->new_stream(), 0, &end);
}
