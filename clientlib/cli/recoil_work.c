/* SPDX-License-Identifier: Apache-2.0 */
/* recoil_work.c: `wharf rans decode` and `import`, of streams of the paper's program. */
#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/daemon_decode.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/rans_work.h"
#include "clientlib/wharf.h"

/* The model and the indexes of a stream of the paper's program. */
struct companions {
    struct wharf_cli_rans_bytes cdf;
    struct wharf_cli_rans_bytes indexes;
};

static int read_companions(struct wharf_cli_task *task,
                           const struct wharf_cli_rans_settings *settings,
                           struct companions *companions, struct wharf_rans_recoil *recoil)
{
    int status = wharf_cli_rans_read_file(task, settings->cdf, &companions->cdf);

    if (status == WHARF_CLI_GOOD && settings->indexes)
        status = wharf_cli_rans_read_file(task, settings->indexes, &companions->indexes);
    if (status != WHARF_CLI_GOOD)
        return status;
    recoil->shape.n_bits = (uint32_t)settings->n_bits;
    recoil->shape.symbol_nbytes = settings->symbol_nbytes;
    if (wharf_rans_cdf_shape(companions->cdf.data, companions->cdf.nbytes, &recoil->shape) < 0) {
        wharf_cli_say("%s: is no model for -n %d: sums of frequencies from 0 to %u for each "
                      "distribution, in words of 16 bits",
                      settings->cdf, (int)settings->n_bits, (1u << settings->n_bits) - 1);
        return wharf_cli_tally_failure(task->tally, settings->cdf, -EINVAL, WHARF_CLI_BAD_DATA);
    }
    if ((recoil->shape.n_distributions > 1) != (settings->indexes != NULL)) {
        wharf_cli_say(settings->indexes ? "%s: has one distribution, so --indexes has no meaning"
                                        : "%s: has several distributions: --indexes FILE has to "
                                          "say which each symbol has",
                      settings->cdf);
        return wharf_cli_tally_failure(task->tally, settings->cdf, -EINVAL, WHARF_CLI_USAGE);
    }
    recoil->cdf = companions->cdf.data;
    recoil->indexes = companions->indexes.data;
    recoil->n_indexes = companions->indexes.nbytes;
    return WHARF_CLI_GOOD;
}

/* The bit of the paper's stream that is this one of the imported one: words stand at the ends of
 * both, and all that stands before them is its first bit there. */
static uint64_t bit_of_recoil(const struct wharf_rans_recoil *recoil, size_t imported_nbytes,
                              uint64_t bit_offset)
{
    uint64_t body_bit = 8 * (uint64_t)(WHARF_RANS_HEADER_NBYTES + recoil->n_indexes);
    uint64_t from_end = 8 * (uint64_t)imported_nbytes - bit_offset;

    return bit_offset <= body_bit ? 0 : 8 * (uint64_t)recoil->stream_nbytes - from_end;
}

static int deliver_outcome(struct wharf_cli_task *task, const struct wharf_outcome *outcome,
                           const uint8_t *out, size_t nbytes)
{
    if (outcome->result != WHARF_OK)
        return wharf_cli_rans_fault(task, outcome->result, outcome->reason, outcome->bit_offset);
    task->tally->n_chunks = 1;
    return wharf_cli_rans_deliver(task, out, nbytes);
}

static int decode_here(struct wharf_cli_task *task, const struct wharf_rans_recoil *recoil,
                       uint64_t nbytes)
{
    bool plain = task->options->engine == WHARF_ENGINE_REFERENCE;
    uint8_t *out = malloc(nbytes + 1);
    struct wharf_outcome outcome;
    int status;

    if (!out || wharf_rans_recoil_decode(recoil, plain, out, &outcome) < 0) {
        status = wharf_cli_rans_out_of_memory(task);
    } else {
        task->tally->engines |= 1u << (plain ? WHARF_ENGINE_REFERENCE : WHARF_ENGINE_CPU);
        status = deliver_outcome(task, &outcome, out, nbytes);
    }
    free(out);
    return status;
}

/* What the daemon is given: a stream of codec rans without its model, and that, to register it. */
struct imported {
    uint8_t *stream, *model;
    size_t stream_nbytes, model_nbytes;
};

static int import_both(const struct wharf_rans_recoil *recoil, struct imported *imported)
{
    enum wharf_reason reason;
    int rc = wharf_rans_recoil_import(recoil, NULL, &imported->stream_nbytes, &reason);

    if (rc == 0)
        rc = wharf_rans_recoil_model(recoil, NULL, &imported->model_nbytes);
    if (rc < 0)
        return rc;
    imported->stream = malloc(imported->stream_nbytes);
    imported->model = malloc(imported->model_nbytes);
    if (!imported->stream || !imported->model)
        return -ENOMEM;
    rc = wharf_rans_recoil_import(recoil, imported->stream, &imported->stream_nbytes, &reason);
    return rc < 0 ? rc : wharf_rans_recoil_model(recoil, imported->model, &imported->model_nbytes);
}

static int decode_imported(struct wharf_cli_task *task, const struct wharf_rans_recoil *recoil,
                           const struct imported *imported, uint64_t nbytes)
{
    struct wharf_cli_daemon_decode there = {
        .task = task,
        .codec = WHARF_CODEC_RANS,
        .model = imported->model,
        .model_nbytes = imported->model_nbytes,
        .in = imported->stream,
        .in_nbytes = imported->stream_nbytes,
        .most_nbytes = nbytes,
        .is_exact = true,
        .job = WHARF_JOB_INIT,
    };
    int status = wharf_cli_daemon_decode(&there);

    if (status == WHARF_CLI_GOOD) {
        struct wharf_outcome outcome = there.outcome;
        outcome.bit_offset =
            bit_of_recoil(recoil, imported->stream_nbytes, there.outcome.bit_offset);
        status = deliver_outcome(task, &outcome, there.out, nbytes);
    }
    wharf_cli_daemon_decode_deinit(&there);
    return status;
}

static int decode_there(struct wharf_cli_task *task, const struct wharf_rans_recoil *recoil,
                        uint64_t nbytes)
{
    struct wharf_rans_recoil without_model = *recoil;
    struct imported imported = {0};
    int rc;
    int status;

    without_model.leaves_model_out = true;
    rc = import_both(&without_model, &imported);
    status = rc < 0 ? wharf_cli_rans_out_of_memory(task)
                    : decode_imported(task, recoil, &imported, nbytes);
    free(imported.stream);
    free(imported.model);
    return status;
}

static int decode_recoil(struct wharf_cli_task *task,
                         const struct wharf_cli_rans_settings *settings,
                         const struct wharf_rans_recoil *recoil)
{
    enum wharf_reason reason;
    uint64_t nbytes;
    int rc = wharf_rans_recoil_size(recoil, &nbytes, &reason);
    int status = WHARF_CLI_GO_ON;

    (void)settings;
    if (rc == -EILSEQ)
        return wharf_cli_rans_fault(task, WHARF_BAD_DATA, reason, 0);
    if (rc < 0)
        return wharf_cli_rans_out_of_memory(task);
    if (task->service->wharf)
        status = decode_there(task, recoil, nbytes);
    return status == WHARF_CLI_GO_ON ? decode_here(task, recoil, nbytes) : status;
}

/* The model in a file of its own, as it is registered. */
static int write_model(struct wharf_cli_task *task, const struct wharf_cli_rans_settings *settings,
                       const struct wharf_rans_recoil *recoil)
{
    uint8_t *model = NULL;
    size_t nbytes;
    int status;
    int rc = wharf_rans_recoil_model(recoil, NULL, &nbytes);

    if (rc == 0)
        model = malloc(nbytes);
    if (!model || wharf_rans_recoil_model(recoil, model, &nbytes) < 0)
        status = wharf_cli_rans_out_of_memory(task);
    else
        status = wharf_cli_rans_write_file(task, settings, settings->model, model, nbytes);
    free(model);
    return status;
}

static int import_recoil(struct wharf_cli_task *task,
                         const struct wharf_cli_rans_settings *settings,
                         const struct wharf_rans_recoil *recoil)
{
    enum wharf_reason reason;
    uint8_t *out = NULL;
    size_t nbytes;
    int status = WHARF_CLI_GOOD;
    int rc = wharf_rans_recoil_import(recoil, NULL, &nbytes, &reason);

    if (rc == -EILSEQ)
        return wharf_cli_rans_fault(task, WHARF_BAD_DATA, reason, 0);
    if (rc == -E2BIG) {
        wharf_cli_say("%s: the model has more than 65536 slots in all distributions together, "
                      "which a stream cannot bring with it; with --model FILE it goes into a file "
                      "of its own",
                      task->input->name);
        return wharf_cli_tally_error(task->tally, task->input->name, rc);
    }
    if (rc == 0)
        out = malloc(nbytes);
    if (!out || wharf_rans_recoil_import(recoil, out, &nbytes, &reason) < 0)
        status = wharf_cli_rans_out_of_memory(task);
    if (status == WHARF_CLI_GOOD && settings->model)
        status = write_model(task, settings, recoil);
    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_rans_deliver(task, out, nbytes);
    free(out);
    return status;
}

/* What may be wrong with the command and not with the data. */
static void hint_at_own_stream(const struct wharf_cli_task *task,
                               const struct wharf_cli_rans_bytes *in)
{
    struct wharf_rans_stream parts;
    struct wharf_outcome outcome;

    if (wharf_rans_stream_parse(in->data, in->nbytes, &parts, &outcome))
        wharf_cli_say("%s: is a stream of codec rans, not of Recoil's program: "
                      "`wharf decode -c rans%s` decodes it",
                      task->input->name, parts.packed_model_nbytes == 0 ? " --model FILE" : "");
}

static int
with_companions(struct wharf_cli_task *task, const struct wharf_cli_rans_settings *settings,
                const struct wharf_cli_rans_bytes *in,
                int (*use)(struct wharf_cli_task *, const struct wharf_cli_rans_settings *,
                           const struct wharf_rans_recoil *))
{
    struct companions companions = {0};
    struct wharf_rans_recoil recoil = {.stream = in->data,
                                       .stream_nbytes = in->nbytes,
                                       .leaves_model_out = settings->model != NULL};
    int status = read_companions(task, settings, &companions, &recoil);

    if (status == WHARF_CLI_GOOD)
        status = use(task, settings, &recoil);
    if (status == WHARF_CLI_BAD_DATA)
        hint_at_own_stream(task, in);
    wharf_cli_rans_bytes_deinit(&companions.cdf);
    wharf_cli_rans_bytes_deinit(&companions.indexes);
    return status;
}

int wharf_cli_rans_decode(struct wharf_cli_task *task,
                          const struct wharf_cli_rans_settings *settings,
                          const struct wharf_cli_rans_bytes *in)
{
    return with_companions(task, settings, in, decode_recoil);
}

int wharf_cli_rans_import(struct wharf_cli_task *task,
                          const struct wharf_cli_rans_settings *settings,
                          const struct wharf_cli_rans_bytes *in)
{
    return with_companions(task, settings, in, import_recoil);
}
