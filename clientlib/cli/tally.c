/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c: counts a command's work, and writes its report. */
#include "clientlib/cli/tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/json.h"
#include "clientlib/now.h"

void wharf_cli_tally_init(struct wharf_cli_tally *tally)
{
    *tally = (struct wharf_cli_tally){.start_ns = wharf_client_now_ns()};
}

void wharf_cli_tally_outcome(struct wharf_cli_tally *tally, const char *input, uint32_t result,
                             uint32_t reason, uint64_t bit_offset)
{
    if (tally->status != WHARF_CLI_GOOD)
        return;
    tally->status = wharf_cli_status_of(result);
    tally->input = input;
    tally->result = result;
    tally->reason = reason;
    tally->bit_offset = bit_offset;
}

int wharf_cli_tally_failure(struct wharf_cli_tally *tally, const char *input, int error, int status)
{
    if (tally->status == WHARF_CLI_GOOD) {
        tally->status = status;
        tally->input = input;
        tally->system_error = error < 0 ? -error : error;
    }
    return status;
}

int wharf_cli_tally_error(struct wharf_cli_tally *tally, const char *input, int error)
{
    return wharf_cli_tally_failure(tally, input, error, WHARF_CLI_FAILED);
}

/* AUTO where there were several, or none. */
static uint32_t engine_of(const struct wharf_cli_tally *tally)
{
    uint32_t engine = WHARF_ENGINE_AUTO;

    if (tally->engines && (tally->engines & (tally->engines - 1)) == 0)
        engine = (uint32_t)__builtin_ctz(tally->engines);
    return engine;
}

static void print_failure(FILE *to, const struct wharf_cli_tally *tally)
{
    fputs(",\"input\":", to);
    wharf_cli_json_string(to, tally->input);
    if (!tally->system_error)
        return;
    fputs(",\"error\":", to);
    wharf_cli_json_string(to, wharf_cli_error_text(tally->system_error));
}

static void print_report(FILE *to, const struct wharf_cli_tally *tally)
{
    fprintf(to,
            "{\"result\":\"%s\",\"reason\":\"%s\",\"bit_offset\":%" PRIu64 ",\"in_nbytes\":%" PRIu64
            ",\"out_nbytes\":%" PRIu64 ",\"engine\":\"%s\",\"daemon\":%s,\"chunks\":%" PRIu64
            ",\"time_ns\":%" PRIu64,
            tally->system_error ? "system_error" : wharf_result_name(tally->result),
            wharf_reason_name(tally->reason), tally->bit_offset, tally->in_nbytes,
            tally->out_nbytes, wharf_engine_name(engine_of(tally)),
            tally->through_daemon ? "true" : "false", tally->n_chunks,
            wharf_client_now_ns() - tally->start_ns);
    if (tally->is_unverified)
        fputs(",\"verified\":false", to);
    if (tally->is_salvage)
        fprintf(to,
                ",\"bad_places\":%" PRIu64 ",\"doubtful_nbytes\":%" PRIu64
                ",\"zeros_nbytes\":%" PRIu64,
                tally->n_bad_places, tally->n_doubtful, tally->n_zeros);
    if (tally->status != WHARF_CLI_GOOD)
        print_failure(to, tally);
    fputs("}\n", to);
}

void wharf_cli_tally_report(const struct wharf_cli_tally *tally)
{
    char *line = NULL;
    size_t nbytes = 0;
    FILE *to = open_memstream(&line, &nbytes);
    ssize_t n;

    if (!to)
        return;
    print_report(to, tally);
    /* At once, so that it is one line whoever else writes there. */
    n = fclose(to) == 0 ? write(STDERR_FILENO, line, nbytes) : 0;
    (void)n;
    free(line);
}
