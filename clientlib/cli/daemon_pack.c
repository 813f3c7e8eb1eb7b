/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_pack.c: compresses a container's chunks by a daemon. */
#include "clientlib/cli/daemon_pack.h"

#include <errno.h>
#include <stdio.h>

#include "clientlib/cli/message.h"
#include "clientlib/cli/number.h"
#include "clientlib/wharf.h"

/* The job's numbers of the encoder and the level, which were found good. */
static void set_encoder(struct wharf_job *job, const struct wharf_cli_pack_settings *settings)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(settings->codec)->ops;
    const struct wharf_encoder_row *row;
    int level;

    if (wharf_encoder_choose(ops, &settings->encoder, &row, &level) < 0)
        return;
    job->encoder = wharf_encoder_number(ops, row);
    job->level = (uint32_t)level;
}

static int fail(struct wharf_cli_daemon_pack_failure *failure, int error, const char *text)
{
    failure->error = error;
    snprintf(failure->text, sizeof(failure->text), "%s", text);
    return error;
}

/* A result that is not about the data. */
static int fail_by(struct wharf_cli_daemon_pack_failure *failure,
                   const struct wharf_outcome *outcome)
{
    char text[WHARF_CLI_DAEMON_PACK_TEXT];

    snprintf(text, sizeof(text), "the daemon did not compress a chunk: %s%s%s",
             wharf_result_string(outcome->result), outcome->reason ? ", " : "",
             outcome->reason ? wharf_reason_string(outcome->reason) : "");
    return fail(failure, outcome->result == WHARF_QUOTA ? -EDQUOT : -EIO, text);
}

int wharf_cli_daemon_pack(const struct wharf_cli_service *service,
                          const struct wharf_cli_pack_settings *settings, const uint8_t *raw,
                          uint32_t raw_nbytes, uint8_t *buf,
                          struct wharf_container_packed *ret_packed,
                          struct wharf_cli_daemon_pack_failure *ret_failure)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome = {.result = WHARF_OUTPUT_TOO_SMALL};

    job.codec = settings->codec;
    job.parameter = settings->encoder.parameter;
    set_encoder(&job, settings);
    job.in = raw;
    job.in_nbytes = raw_nbytes;
    job.out = buf;
    /* With one byte less than the chunk has, no room means no gain. */
    job.out_avail = raw_nbytes - 1;
    if (job.codec != WHARF_CODEC_STORED) {
        int r = wharf_compress(service->wharf, &job, &outcome);
        if (r < 0)
            return fail(ret_failure, r, wharf_error_message());
    }
    if (outcome.result != WHARF_OK && outcome.result != WHARF_OUTPUT_TOO_SMALL &&
        outcome.result != WHARF_BAD_DATA)
        return fail_by(ret_failure, &outcome);
    *ret_packed = wharf_container_take_packed(job.codec, job.parameter, raw, raw_nbytes, buf,
                                              (uint32_t)outcome.out_nbytes);
    return 0;
}

int wharf_cli_daemon_pack_check(const struct wharf_cli_service *service,
                                const struct wharf_cli_pack_settings *settings)
{
    uint64_t most = service->info.max_compress_nbytes;
    char size[WHARF_CLI_SIZE_TEXT];

    if (most == 0) {
        wharf_cli_say("the daemon at %s does not compress: it is too old, or max_compress of its "
                      "wharfd.conf is 0",
                      wharf_cli_service_path(service));
        return WHARF_CLI_FAILED;
    }
    if (settings->chunk_nbytes > most)
        return wharf_cli_say_usage("pack",
                                   "the daemon compresses chunks of at most %s, [quota] "
                                   "max_compress of its wharfd.conf",
                                   wharf_cli_size_text(most, size));
    if (settings->encoder.level == 0)
        return wharf_cli_say_usage("pack", "a daemon has no level 0; --codec stored stores chunks");
    return WHARF_CLI_GO_ON;
}
