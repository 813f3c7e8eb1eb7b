/* SPDX-License-Identifier: Apache-2.0 */
/* rans_work.c: `wharf rans thin`, `info` and `encode`, and how all subcommands end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "clientlib/cli/message.h"
#include "clientlib/cli/rans_work.h"
#include "clientlib/wharf.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_thin.h"

/* ---- ends ---------------------------------------------------------------------------------- */

static int deliver_parts(struct wharf_cli_task *task, const struct iovec *parts, int n_parts)
{
    int rc = wharf_cli_output_write_parts(task->output, parts, n_parts);

    if (rc < 0)
        return wharf_cli_task_write_error(task, rc);
    task->tally->in_nbytes = task->input->nbytes;
    task->tally->out_nbytes = 0;
    for (int i = 0; i < n_parts; i++)
        task->tally->out_nbytes += parts[i].iov_len;
    return WHARF_CLI_GOOD;
}

int wharf_cli_rans_deliver(struct wharf_cli_task *task, const uint8_t *data, size_t nbytes)
{
    struct iovec part = {(void *)(uintptr_t)data, nbytes};

    return deliver_parts(task, &part, 1);
}

/* The same with a body's words behind it, from where they are. */
static int deliver_with_words(struct wharf_cli_task *task, uint8_t *front, size_t front_nbytes,
                              const struct wharf_rans_body *body)
{
    struct iovec parts[2] = {
        {front, front_nbytes},
        {(void *)(uintptr_t)body->words, (size_t)body->n_words * WHARF_RANS_WORD_NBYTES},
    };

    return deliver_parts(task, parts, 2);
}

int wharf_cli_rans_out_of_memory(struct wharf_cli_task *task)
{
    return wharf_cli_task_error(task, task->input->name, -ENOMEM);
}

int wharf_cli_rans_fault(struct wharf_cli_task *task, uint32_t result, uint32_t reason,
                         uint64_t bit)
{
    return wharf_cli_task_fault(
        task, &(struct wharf_cli_fault){result, reason, bit, WHARF_CLI_NO_CHUNK, NULL}, 0);
}

/* Whether the output is the file of that name, which is one that was read. */
static bool is_companion(const struct wharf_cli_output *output, const char *path)
{
    struct stat status;

    return path && stat(path, &status) == 0 && wharf_cli_output_is_input(output, &status);
}

/* Whether writing there would lose something else. */
static bool is_taken(struct wharf_cli_task *task, const struct wharf_cli_rans_settings *settings,
                     const struct wharf_cli_output *output, const char *path)
{
    if (wharf_cli_output_is_same(output, task->output)) {
        wharf_cli_say("%s: is the output of the stream too: one of them would be lost",
                      output->name);
        return true;
    }
    return wharf_cli_output_is_input(output, &task->input->status) ||
           (path != settings->cdf && is_companion(output, settings->cdf)) ||
           is_companion(output, settings->indexes);
}

int wharf_cli_rans_write_file(struct wharf_cli_task *task,
                              const struct wharf_cli_rans_settings *settings, const char *path,
                              const uint8_t *data, size_t nbytes)
{
    struct wharf_cli_output *output = &settings->beside->output;
    int rc = wharf_cli_output_open(output, path, task->options->force);

    if (rc < 0)
        return wharf_cli_tally_error(task->tally, path, rc);
    rc = is_taken(task, settings, output, path) ? -EINVAL
                                                : wharf_cli_output_write(output, data, nbytes);
    if (rc < 0)
        wharf_cli_output_discard(output);
    settings->beside->is_open = rc == 0;
    return rc < 0 ? wharf_cli_tally_error(task->tally, path, rc) : WHARF_CLI_GOOD;
}

/* ---- thin -------------------------------------------------------------------------------- */

int wharf_cli_rans_thin(struct wharf_cli_task *task, const struct wharf_cli_rans_settings *settings,
                        const struct wharf_cli_rans_bytes *in)
{
    uint32_t n_splits = (uint32_t)settings->n_splits;
    struct wharf_cli_rans_stream stream;
    size_t bound, nbytes;
    uint8_t *front;
    int status = wharf_cli_rans_stream_open(task, in, &stream);

    if (status == WHARF_CLI_GOOD) {
        bound = wharf_rans_thin_front_bound(&stream.parts, n_splits);
        front = malloc(bound);
        if (!front ||
            wharf_rans_thin_front(&stream.parts, stream.in, n_splits, front, bound, &nbytes) < 0)
            status = wharf_cli_rans_out_of_memory(task);
        else
            status = deliver_with_words(task, front, nbytes, &stream.parts.body);
        free(front);
    }
    wharf_cli_rans_stream_close(&stream);
    return status;
}

/* ---- info -------------------------------------------------------------------------------- */

/* The windows of all splits together, in groups. */
static uint64_t window_ngroups(const struct wharf_rans_body *body)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    struct wharf_rans_split split;
    uint64_t n = 0;

    while (wharf_rans_next_split(body, &cursor, &split))
        n += split.last_group - split.first_group + 1;
    return n;
}

/* One line for each fact, or members of a JSON object.  Negative: is not known. */
static void print_fact(FILE *to, bool json, const char *name, const char *text, int64_t value)
{
    if (value < 0)
        return;
    if (json)
        fprintf(to, ", \"%s\": %lld", name, (long long)value);
    else
        fprintf(to, "%-22s %lld\n", text, (long long)value);
}

static void print_info(FILE *to, bool json, const struct wharf_cli_rans_stream *stream)
{
    const struct wharf_rans_body *body = &stream->parts.body;
    const struct wharf_rans_shape *shape = &stream->parts.shape;
    bool own = !stream->is_recoil;
    int64_t fields_nbytes = body->words - body->in;

    if (json)
        fprintf(to, "{\"format\": \"%s\"", own ? "wharf" : "recoil");
    else
        fprintf(to, "%-22s %s\n", "format",
                own ? "wharf" : "taken for recoil, which has no mark: the model is another file");
    print_fact(to, json, "symbols", "symbols", body->n_symbols);
    print_fact(to, json, "splits", "splits", body->n_splits);
    print_fact(to, json, "n", "bits of a frequency", own ? (int64_t)shape->n_bits : -1);
    print_fact(to, json, "symbol_nbytes", "bytes of a symbol",
               own ? (int64_t)shape->symbol_nbytes : -1);
    print_fact(to, json, "alphabet", "symbols in the model", own ? (int64_t)shape->alphabet : -1);
    print_fact(to, json, "distributions", "distributions",
               own ? (int64_t)shape->n_distributions : -1);
    print_fact(to, json, "nbytes", "bytes", (int64_t)stream->in_nbytes);
    if (own && !json && stream->parts.packed_model_nbytes == 0)
        fprintf(to, "%-22s %s\n", "  of the model", "none: who decodes it names the model");
    else
        print_fact(to, json, "model_nbytes", "  of the model",
                   own ? (int64_t)stream->parts.packed_model_nbytes : -1);
    print_fact(to, json, "indexes_nbytes", "  of indexes",
               own ? (int64_t)stream->parts.indexes_nbytes : -1);
    print_fact(to, json, "fields_nbytes", "  of states and splits", fields_nbytes);
    print_fact(to, json, "words_nbytes", "  of words", 2 * (int64_t)body->n_words);
    print_fact(to, json, "groups", "groups of 32 symbols", body->n_groups);
    print_fact(to, json, "window_groups", "  decoded twice", (int64_t)window_ngroups(body));
    if (json)
        fprintf(to, "}\n");
}

int wharf_cli_rans_info(struct wharf_cli_task *task, const struct wharf_cli_rans_settings *settings,
                        const struct wharf_cli_rans_bytes *in)
{
    struct wharf_cli_rans_stream stream;
    char *text = NULL;
    size_t nbytes = 0;
    FILE *to;
    int status = wharf_cli_rans_stream_open(task, in, &stream);

    if (status == WHARF_CLI_GOOD) {
        to = open_memstream(&text, &nbytes);
        if (to)
            print_info(to, settings->json, &stream);
        status = to && fclose(to) == 0 ? wharf_cli_rans_deliver(task, (const uint8_t *)text, nbytes)
                                       : wharf_cli_rans_out_of_memory(task);
        free(text);
    }
    wharf_cli_rans_stream_close(&stream);
    return status;
}

/* ---- encode ------------------------------------------------------------------------------ */

static uint32_t symbol_at(const struct wharf_rans_job *job, uint64_t i)
{
    return job->shape.symbol_nbytes == 1 ? job->symbols[i] : wharf_load_le16(job->symbols + 2 * i);
}

/* Counts, and for streams of wharf's own the least alphabet. */
static int choose_model(struct wharf_rans_job *job, bool for_recoil, uint32_t *frequencies)
{
    uint64_t *counts = calloc(65536, sizeof(*counts));
    uint32_t last = 0;
    int rc;

    if (!counts)
        return -ENOMEM;
    for (uint64_t i = 0; i < job->n_symbols; i++) {
        uint32_t symbol = symbol_at(job, i);

        counts[symbol]++;
        last = symbol > last ? symbol : last;
    }
    if (job->n_symbols == 0)
        counts[0] = 1;
    job->shape.alphabet = for_recoil ? 256 : last + 1;
    job->frequencies = frequencies;
    rc = for_recoil
             ? wharf_rans_recoil_normalise(counts, job->shape.n_bits, frequencies)
             : wharf_rans_normalise(counts, job->shape.alphabet, job->shape.n_bits, frequencies);
    free(counts);
    return rc;
}

/* The model as a file beside the stream. */
static int write_cdf(struct wharf_cli_task *task, const struct wharf_cli_rans_settings *settings,
                     const struct wharf_rans_job *job)
{
    uint8_t cdf[2 * 257];

    wharf_rans_cdf_write(&job->shape, job->frequencies, cdf);
    return wharf_cli_rans_write_file(task, settings, settings->cdf, cdf, sizeof(cdf));
}

static int encode_job(struct wharf_cli_task *task, const struct wharf_cli_rans_settings *settings,
                      const struct wharf_rans_job *job)
{
    size_t bound = wharf_rans_encode_bound(job);
    uint8_t *out = malloc(bound);
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;
    size_t nbytes = 0;
    size_t front = 0;
    int status = WHARF_CLI_GOOD;

    if (!out || wharf_rans_encode(job, out, bound, &nbytes) < 0)
        status = wharf_cli_rans_out_of_memory(task);
    /* The paper's program wants the body alone. */
    if (status == WHARF_CLI_GOOD && settings->cdf) {
        if (wharf_rans_stream_parse(out, nbytes, &stream, &outcome))
            front = stream.body_at;
        status = write_cdf(task, settings, job);
    }
    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_rans_deliver(task, out + front, nbytes - front);
    free(out);
    return status;
}

int wharf_cli_rans_encode(struct wharf_cli_task *task,
                          const struct wharf_cli_rans_settings *settings,
                          const struct wharf_cli_rans_bytes *in)
{
    struct wharf_rans_job job = {
        .shape = {.n_bits = settings->n_bits ? (uint32_t)settings->n_bits : 11,
                  .symbol_nbytes = settings->symbol_nbytes,
                  .n_distributions = 1},
        .symbols = in->data,
        .n_symbols = (uint32_t)(in->nbytes / settings->symbol_nbytes),
        .max_splits = settings->n_splits ? (uint32_t)settings->n_splits : 1,
    };
    uint32_t *frequencies;
    int status;
    int rc;

    if (in->nbytes % settings->symbol_nbytes != 0 ||
        in->nbytes / settings->symbol_nbytes > WHARF_RANS_MAX_SYMBOLS) {
        wharf_cli_say(in->nbytes % settings->symbol_nbytes != 0
                          ? "%s: is no whole number of symbols of 2 bytes"
                          : "%s: is more than the 2^31 symbols that a stream can have",
                      task->input->name);
        return wharf_cli_tally_error(task->tally, task->input->name, -EINVAL);
    }
    frequencies = calloc(65536, sizeof(*frequencies));
    rc = frequencies ? choose_model(&job, settings->cdf != NULL, frequencies) : -ENOMEM;
    if (rc == -EINVAL) {
        wharf_cli_say("%s: has more different symbols than -n %u has slots for", task->input->name,
                      job.shape.n_bits);
        status = wharf_cli_tally_error(task->tally, task->input->name, rc);
    } else {
        status = rc < 0 ? wharf_cli_rans_out_of_memory(task) : encode_job(task, settings, &job);
    }
    free(frequencies);
    return status;
}
