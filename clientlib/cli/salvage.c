/* SPDX-License-Identifier: Apache-2.0 */
/* salvage.c: which way an input is salvaged, files without a beginning, and the sum of it all. */
#include "clientlib/cli/salvage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/cpu_decode.h"
#include "clientlib/cli/salvage_container.h"
#include "clientlib/cli/salvage_find.h"
#include "clientlib/cli/salvage_gzip.h"
#include "clientlib/cli/salvage_note.h"
#include "clientlib/cli/salvage_stream.h"
#include "encoders/zstd/zstd_stream.h"

/* ---- no known beginning ---------------------------------------------------------------------- */

/* Begins with the first thing that looks like anything. */
static int salvage_unknown(struct wharf_cli_salvage *salvage)
{
    const unsigned wanted = WHARF_CLI_WANTS_MEMBER | WHARF_CLI_WANTS_FRAME;
    struct wharf_cli_task *task = salvage->task;
    struct wharf_cli_salvage_found found;
    struct wharf_cli_fault fault = {
        .result = WHARF_BAD_DATA,
        .reason = WHARF_REASON_CONTAINER_MAGIC,
        .chunk = WHARF_CLI_NO_CHUNK,
    };
    int status;

    if (wharf_cli_any_is_foreign(task))
        return wharf_cli_any_tell_unknown(task, WHARF_SOURCE_OTHER);
    status = wharf_cli_salvage_find(salvage, 0, wanted, NULL, &found);
    if (status != WHARF_CLI_GOOD)
        return status;
    if (!found.kind) {
        wharf_cli_say("%s: nothing in it looks like gzip, BGZF or a wharf container",
                      task->input->name);
        wharf_cli_tally_outcome(task->tally, task->input->name, WHARF_BAD_DATA,
                                WHARF_REASON_GZIP_MAGIC, 0);
        return WHARF_CLI_BAD_DATA;
    }
    if (found.kind == WHARF_CLI_WANTS_FRAME)
        return wharf_cli_salvage_container(salvage, &found.frame);
    fault.reason = WHARF_REASON_GZIP_MAGIC;
    wharf_cli_salvage_note(salvage, &fault, 0, 0);
    return wharf_cli_salvage_gzip(salvage, found.offset, false);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int salvage_kind(struct wharf_cli_salvage *salvage, enum wharf_source_kind kind)
{
    const struct wharf_cli_cpu_format *format = wharf_cli_cpu_format_find(kind);

    if (format)
        return wharf_cli_cpu_format_decode(salvage->task, format, salvage);
    switch (kind) {
    case WHARF_SOURCE_BGZF:
    case WHARF_SOURCE_GZIP:
        return wharf_cli_salvage_gzip(salvage, 0, kind == WHARF_SOURCE_BGZF);
    case WHARF_SOURCE_ZLIB:
        return wharf_cli_salvage_whole_stream(salvage,
                                              wharf_inflate_stream_new(WHARF_INFLATE_ZLIB));
    case WHARF_SOURCE_ZSTD:
        return wharf_cli_salvage_whole_stream(salvage,
                                              wharf_zstd_stream_new(WHARF_ZSTD_ALL_FRAMES));
    case WHARF_SOURCE_CONTAINER:
        return wharf_cli_salvage_container(salvage, NULL);
    case WHARF_SOURCE_OTHER:
        return salvage_unknown(salvage);
    default:
        return wharf_cli_any_tell_unknown(salvage->task, kind);
    }
}

static int init(struct wharf_cli_salvage *salvage, struct wharf_cli_task *task)
{
    int r = wharf_cli_input_remember(task->input, WHARF_CLI_SALVAGE_KEEP_NBYTES);

    *salvage = (struct wharf_cli_salvage){.task = task};
    if (r == 0) {
        salvage->buf = malloc(WHARF_CLI_SALVAGE_SEARCH_NBYTES);
        r = salvage->buf ? 0 : -ENOMEM;
    }
    return r < 0 ? wharf_cli_task_error(task, "cannot decode", r) : WHARF_CLI_GOOD;
}

static void say_sum(const struct wharf_cli_salvage *salvage, uint64_t n_written)
{
    const struct wharf_cli_task *task = salvage->task;

    wharf_cli_say("%s: bad in %" PRIu64 " place%s; %s %" PRIu64 " bytes of it: %" PRIu64
                  " in doubt, %" PRIu64 " zeros for what is lost",
                  task->input->name, salvage->n_faults, salvage->n_faults == 1 ? "" : "s",
                  n_written ? "the output has" : "nothing could be saved:", n_written,
                  salvage->n_doubtful, salvage->n_zeros);
}

/* Says what came of it.  `before` is where the output stood. */
static int finish(struct wharf_cli_salvage *salvage, uint64_t before, int status)
{
    struct wharf_cli_tally *tally = salvage->task->tally;

    tally->is_salvage = true;
    tally->n_bad_places += salvage->n_faults;
    tally->n_doubtful += salvage->n_doubtful;
    tally->n_zeros += salvage->n_zeros;
    if (salvage->n_faults)
        say_sum(salvage, salvage->task->output->nbytes - before);
    free(salvage->buf);
    return status == WHARF_CLI_GOOD && salvage->n_faults ? WHARF_CLI_BAD_DATA : status;
}

int wharf_cli_salvage(struct wharf_cli_task *task, struct wharf_cli_range range,
                      enum wharf_source_kind kind)
{
    struct wharf_cli_salvage salvage;
    uint64_t passed;
    uint64_t before;
    int status = init(&salvage, task);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (range.offset || range.nbytes != UINT64_MAX)
        wharf_cli_output_keep(task->output, range.offset, range.nbytes);
    before = task->output->nbytes;
    status = finish(&salvage, before, salvage_kind(&salvage, kind));
    if (status == WHARF_CLI_GOOD && wharf_cli_output_lacks(task->output, &passed))
        return wharf_cli_task_range_outside(task, passed);
    return status;
}

int wharf_cli_salvage_stream(struct wharf_cli_task *task, enum wharf_inflate_format format)
{
    struct wharf_cli_salvage salvage;
    int status = init(&salvage, task);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (format == WHARF_INFLATE_GZIP)
        status = wharf_cli_salvage_gzip(&salvage, 0, false);
    else
        status = wharf_cli_salvage_whole_stream(&salvage, wharf_inflate_stream_new(format));
    return finish(&salvage, 0, status);
}
