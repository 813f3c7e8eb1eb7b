/* SPDX-License-Identifier: Apache-2.0 */
/* wharf rans: streams of rans, wharf's own and those of the paper's program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/rans_file.h"
#include "clientlib/wharf.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_thin.h"

enum {
    OPTION_CDF = WHARF_CLI_LONG_ONLY,
    OPTION_INDEXES,
    OPTION_JSON,
    OPTION_MODEL,
    OPTION_SPLITS,
    OPTION_SYMBOLS,
};

struct settings {
    const char *cdf; /* NULL when not given */
    const char *indexes;
    const char *model;
    int64_t n_bits; /* 0 when not given */
    int64_t n_splits;
    uint32_t symbol_nbytes;
    bool json;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    switch (option) {
    case OPTION_CDF:
        settings->cdf = argument;
        return *argument ? NULL : "the name of a file";
    case OPTION_INDEXES:
        settings->indexes = argument;
        return *argument ? NULL : "the name of a file";
    case OPTION_MODEL:
        settings->model = argument;
        return *argument ? NULL : "the name of a file";
    case OPTION_SPLITS:
        return wharf_cli_parse_number(argument, 1, WHARF_RANS_MAX_SPLITS, &settings->n_splits)
                   ? NULL
                   : "a number of splits from 1 to 65535";
    case OPTION_SYMBOLS:
        settings->symbol_nbytes = strcmp(argument, "u16") == 0 ? 2 : 1;
        return settings->symbol_nbytes == 2 || strcmp(argument, "u8") == 0 ? NULL : "u8 or u16";
    case OPTION_JSON:
        settings->json = true;
        return NULL;
    default:
        return wharf_cli_parse_number(argument, WHARF_RANS_MIN_NBITS, WHARF_RANS_MAX_NBITS,
                                      &settings->n_bits)
                   ? NULL
                   : "a number of bits from 8 to 16";
    }
}

/* What a subcommand does with its input once that is in memory. */
typedef int work_fn(struct wharf_cli_task *task, const struct settings *settings,
                    const struct wharf_cli_rans_bytes *in);

/* Writes a result, or tells of missing memory when there is none. */
static int deliver(struct wharf_cli_task *task, const uint8_t *data, size_t nbytes)
{
    int rc = wharf_cli_output_write(task->output, data, nbytes);

    if (rc < 0)
        return wharf_cli_task_write_error(task, rc);
    task->tally->in_nbytes = task->input->nbytes;
    task->tally->out_nbytes = nbytes;
    return WHARF_CLI_GOOD;
}

static int out_of_memory(struct wharf_cli_task *task)
{
    return wharf_cli_task_error(task, task->input->name, -ENOMEM);
}

static int fault(struct wharf_cli_task *task, uint32_t result, uint32_t reason, uint64_t bit)
{
    return wharf_cli_task_fault(
        task, &(struct wharf_cli_fault){result, reason, bit, WHARF_CLI_NO_CHUNK, NULL}, 0);
}

/* ---- decode and import ------------------------------------------------------------------- */

/* The model and the indexes of a stream of the paper's program. */
struct companions {
    struct wharf_cli_rans_bytes cdf;
    struct wharf_cli_rans_bytes indexes;
};

static int read_companions(struct wharf_cli_task *task, const struct settings *settings,
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

static int decode_recoil(struct wharf_cli_task *task, const struct settings *settings,
                         const struct wharf_rans_recoil *recoil)
{
    struct wharf_outcome outcome;
    enum wharf_reason reason;
    uint64_t nbytes;
    uint8_t *out;

    (void)settings;
    int rc = wharf_rans_recoil_size(recoil, &nbytes, &reason);
    int status;

    if (rc == -EILSEQ)
        return fault(task, WHARF_BAD_DATA, reason, 0);
    out = rc < 0 ? NULL : malloc(nbytes + 1);
    if (!out)
        return out_of_memory(task);
    rc = wharf_rans_recoil_decode(recoil, task->options->engine == WHARF_ENGINE_REFERENCE, out,
                                  &outcome);
    if (rc < 0)
        status = out_of_memory(task);
    else if (outcome.result != WHARF_OK)
        status = fault(task, outcome.result, outcome.reason, outcome.bit_offset);
    else
        status = deliver(task, out, nbytes);
    free(out);
    return status;
}

/* A result beside the output. */
static int write_file(struct wharf_cli_task *task, const char *path, const uint8_t *data,
                      size_t nbytes)
{
    struct wharf_cli_output output;
    int rc = wharf_cli_output_open(&output, path, task->options->force);

    if (rc == 0) {
        rc = wharf_cli_output_write(&output, data, nbytes);
        if (rc == 0)
            rc = wharf_cli_output_commit(&output, NULL);
        else
            wharf_cli_output_discard(&output);
    }
    return rc < 0 ? wharf_cli_task_write_error(task, rc) : WHARF_CLI_GOOD;
}

/* The model in a file of its own, as it is registered. */
static int write_model(struct wharf_cli_task *task, const struct settings *settings,
                       const struct wharf_rans_recoil *recoil)
{
    uint8_t *model = NULL;
    size_t nbytes;
    int status;
    int rc = wharf_rans_recoil_model(recoil, NULL, &nbytes);

    if (rc == 0)
        model = malloc(nbytes);
    if (!model || wharf_rans_recoil_model(recoil, model, &nbytes) < 0)
        status = out_of_memory(task);
    else
        status = write_file(task, settings->model, model, nbytes);
    free(model);
    return status;
}

static int import_recoil(struct wharf_cli_task *task, const struct settings *settings,
                         const struct wharf_rans_recoil *recoil)
{
    enum wharf_reason reason;
    uint8_t *out = NULL;
    size_t nbytes;
    int status = WHARF_CLI_GOOD;
    int rc = wharf_rans_recoil_import(recoil, NULL, &nbytes, &reason);

    if (rc == -EILSEQ)
        return fault(task, WHARF_BAD_DATA, reason, 0);
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
        status = out_of_memory(task);
    if (status == WHARF_CLI_GOOD && settings->model)
        status = write_model(task, settings, recoil);
    if (status == WHARF_CLI_GOOD)
        status = deliver(task, out, nbytes);
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

static int with_companions(struct wharf_cli_task *task, const struct settings *settings,
                           const struct wharf_cli_rans_bytes *in,
                           int (*use)(struct wharf_cli_task *, const struct settings *,
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

static int decode(struct wharf_cli_task *task, const struct settings *settings,
                  const struct wharf_cli_rans_bytes *in)
{
    return with_companions(task, settings, in, decode_recoil);
}

static int import(struct wharf_cli_task *task, const struct settings *settings,
                  const struct wharf_cli_rans_bytes *in)
{
    return with_companions(task, settings, in, import_recoil);
}

/* ---- thin -------------------------------------------------------------------------------- */

static int thin(struct wharf_cli_task *task, const struct settings *settings,
                const struct wharf_cli_rans_bytes *in)
{
    uint32_t n_splits = (uint32_t)settings->n_splits;
    struct wharf_cli_rans_stream stream;
    size_t bound, nbytes;
    uint8_t *out;
    int status = wharf_cli_rans_stream_open(task, in, &stream);

    if (status == WHARF_CLI_GOOD) {
        bound = wharf_rans_thin_bound(&stream.parts, n_splits);
        out = malloc(bound);
        if (!out || wharf_rans_thin(&stream.parts, stream.in, n_splits, out, bound, &nbytes) < 0)
            status = out_of_memory(task);
        else
            status = deliver(task, out, nbytes);
        free(out);
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
        fprintf(to, "%-22s %s\n", "format", own ? "wharf" : "recoil: the model is another file");
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

static int info(struct wharf_cli_task *task, const struct settings *settings,
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
        status = to && fclose(to) == 0 ? deliver(task, (const uint8_t *)text, nbytes)
                                       : out_of_memory(task);
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
static int write_cdf(struct wharf_cli_task *task, const struct settings *settings,
                     const struct wharf_rans_job *job)
{
    uint8_t cdf[2 * 257];

    wharf_rans_cdf_write(&job->shape, job->frequencies, cdf);
    return write_file(task, settings->cdf, cdf, sizeof(cdf));
}

static int encode_job(struct wharf_cli_task *task, const struct settings *settings,
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
        status = out_of_memory(task);
    /* The paper's program wants the body alone. */
    if (status == WHARF_CLI_GOOD && settings->cdf) {
        if (wharf_rans_stream_parse(out, nbytes, &stream, &outcome))
            front = stream.body_at;
        status = write_cdf(task, settings, job);
    }
    if (status == WHARF_CLI_GOOD)
        status = deliver(task, out + front, nbytes - front);
    free(out);
    return status;
}

static int encode(struct wharf_cli_task *task, const struct settings *settings,
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
        status = rc < 0 ? out_of_memory(task) : encode_job(task, settings, &job);
    }
    free(frequencies);
    return status;
}

/* ---- the subcommands --------------------------------------------------------------------- */

static const struct option decode_options[] = {
    {"cdf", required_argument, NULL, OPTION_CDF},
    {"indexes", required_argument, NULL, OPTION_INDEXES},
    {"bits", required_argument, NULL, 'n'},
    {"symbols", required_argument, NULL, OPTION_SYMBOLS},
    {0},
};
static const struct option import_options[] = {
    {"cdf", required_argument, NULL, OPTION_CDF},
    {"indexes", required_argument, NULL, OPTION_INDEXES},
    {"bits", required_argument, NULL, 'n'},
    {"symbols", required_argument, NULL, OPTION_SYMBOLS},
    {"model", required_argument, NULL, OPTION_MODEL},
    {0},
};
static const struct option thin_options[] = {
    {"splits", required_argument, NULL, OPTION_SPLITS},
    {0},
};
static const struct option info_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {0},
};
static const struct option encode_options[] = {
    {"cdf", required_argument, NULL, OPTION_CDF},
    {"bits", required_argument, NULL, 'n'},
    {"splits", required_argument, NULL, OPTION_SPLITS},
    {"symbols", required_argument, NULL, OPTION_SYMBOLS},
    {0},
};

#define COMPANIONS_HELP                                                                            \
    "      --cdf FILE       the model: sums of frequencies up to 2^n - 1, of 16 bits\n"            \
    "  -n, --bits N         n, 8 to 16\n"                                                          \
    "      --symbols T      u8 (the default) or u16\n"                                             \
    "      --indexes FILE   a byte for each symbol: which of several distributions\n"

static const struct wharf_cli_command decode_command = {
    .name = "rans decode",
    .usage = "--cdf FILE -n N [OPTION...] [STREAM]",
    .help = "Decodes a stream of Recoil's program, whose model is another file, to standard\n"
            "output or to -o OUT.\n\n" COMPANIONS_HELP
            "      --engine E       auto, cpu or reference (slow, to settle doubts)\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = decode_options,
    .take_option = take_option,
};
static const struct wharf_cli_command import_command = {
    .name = "rans import",
    .usage = "--cdf FILE -n N [OPTION...] [STREAM]",
    .help = "Makes a stream of codec rans, which brings its model with it, of a stream of\n"
            "Recoil's program.  Splits that overlap are left out.\n\n" COMPANIONS_HELP
            "      --model FILE     leave the model out of the stream, and write it to FILE,\n"
            "                       for `wharf decode --model FILE` and programs to register\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = import_options,
    .take_option = take_option,
};
static const struct wharf_cli_command thin_command = {
    .name = "rans thin",
    .usage = "--splits M [OPTION...] [STREAM]",
    .help = "Drops splits until M are left, for a decoder that has no use for more; what is\n"
            "decoded stays the same.  Takes streams of codec rans and of Recoil's program.\n\n"
            "      --splits M       1 to 65535\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = thin_options,
    .take_option = take_option,
};
static const struct wharf_cli_command info_command = {
    .name = "rans info",
    .usage = "[--json] [STREAM]",
    .help = "Says what a stream of codec rans or of Recoil's program is made of.\n\n"
            "      --json           one JSON object\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = info_options,
    .take_option = take_option,
};
static const struct wharf_cli_command encode_command = {
    .name = "rans encode",
    .usage = "[OPTION...] [IN]",
    .help = "Makes one stream of codec rans of all of IN; with --cdf one of Recoil's program,\n"
            "and its model in FILE.\n\n"
            "  -n, --bits N         bits of a frequency, 8 to 16; default 11\n"
            "      --splits M       places where decoders can begin, at most; default 1\n"
            "      --symbols T      u8 (the default) or u16\n"
            "      --cdf FILE       write what Recoil's program reads; of bytes, n at least 9\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = encode_options,
    .take_option = take_option,
};

static const struct {
    const struct wharf_cli_command *command;
    work_fn *work;
} subcommands[] = {
    {&decode_command, decode}, {&import_command, import}, {&thin_command, thin},
    {&info_command, info},     {&encode_command, encode},
};
enum { N_SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };

/* What a subcommand cannot do without, or with. */
static int check_settings(const struct wharf_cli_command *command, const struct settings *settings)
{
    bool needs_model = command == &decode_command || command == &import_command;

    if (needs_model && !settings->cdf)
        return wharf_cli_say_usage(command->name, "--cdf is missing: the model's file");
    if (needs_model && !settings->n_bits)
        return wharf_cli_say_usage(command->name, "-n is missing: the bits of a frequency");
    if (command == &thin_command && !settings->n_splits)
        return wharf_cli_say_usage(command->name, "--splits is missing: how many are to be left");
    if (command == &encode_command && settings->cdf &&
        (settings->symbol_nbytes != 1 || settings->n_bits == WHARF_RANS_MIN_NBITS))
        return wharf_cli_say_usage(command->name, "--cdf goes with bytes and -n 9 to 16: each byte "
                                                  "has a frequency there");
    return WHARF_CLI_GO_ON;
}

static int run_subcommand(const struct wharf_cli_command *command, work_fn *work, int argc,
                          char **argv)
{
    struct settings settings = {.symbol_nbytes = 1};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 1};
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_task task = {&options, &tally, &input, &output, NULL};
    struct wharf_cli_rans_bytes bytes = {0};
    int status = wharf_cli_parse(command, argc, argv, &settings, &options, &operands);

    if (status == WHARF_CLI_GO_ON)
        status = check_settings(command, &settings);
    if (status != WHARF_CLI_GO_ON)
        return status;
    status = wharf_cli_task_start(&task, operands.n ? argv[operands.first] : "-",
                                  options.output ? options.output : "-");
    if (status != WHARF_CLI_GOOD)
        return status;
    status = wharf_cli_rans_read_input(&task, &bytes);
    if (status == WHARF_CLI_GOOD)
        status = work(&task, &settings, &bytes);
    wharf_cli_rans_bytes_deinit(&bytes);
    return wharf_cli_task_finish(&task, status);
}

static int print_help(void)
{
    printf("usage: wharf rans SUBCOMMAND [OPTION...] [FILE]\n\n%s\n", wharf_cli_rans.help);
    for (int i = 0; i < N_SUBCOMMANDS; i++)
        printf("  wharf %s %s\n", subcommands[i].command->name, subcommands[i].command->usage);
    return fflush(stdout) ? WHARF_CLI_FAILED : WHARF_CLI_GOOD;
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return wharf_cli_say_usage("rans", "a subcommand is missing: decode, import, thin, info "
                                           "or encode");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    for (int i = 0; i < N_SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].command->name + strlen("rans ")) == 0)
            return run_subcommand(subcommands[i].command, subcommands[i].work, argc - 1, argv + 1);
    return wharf_cli_say_usage("rans", "there is no subcommand '%s'", argv[1]);
}

const struct wharf_cli_command wharf_cli_rans = {
    .name = "rans",
    .summary = "decode, import, thin, describe or make a stream of rans",
    .usage = "SUBCOMMAND [OPTION...] [FILE]",
    .help = "Streams of codec rans, and those of the program that belongs to the paper on\n"
            "Recoil, whose models are files of their own.\n",
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .run = run,
};
