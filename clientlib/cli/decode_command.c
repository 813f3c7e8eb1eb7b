/* SPDX-License-Identifier: Apache-2.0 */
/* wharf decode: one raw stream, for vectors and scripts. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/rans_file.h"
#include "clientlib/cli/salvage.h"
#include "clientlib/cli/stream_pipe.h"
#include "clientlib/cli/suggest.h"
#include "clientlib/cli/value_type.h"
#include "clientlib/cli/whole_decode.h"
#include "clientlib/wharf.h"

enum { OPTION_MAX_OUTPUT = WHARF_CLI_LONG_ONLY, OPTION_COUNT, OPTION_MODEL, OPTION_TYPE };

/* To begin with: what is decoded decides. */
enum { LEAST_ARENA_NBYTES = 1 << 20 };

static const struct option own_options[] = {
    {"codec", required_argument, NULL, 'c'},
    {"count", required_argument, NULL, OPTION_COUNT},
    {"max-output", required_argument, NULL, OPTION_MAX_OUTPUT},
    {"model", required_argument, NULL, OPTION_MODEL},
    {"type", required_argument, NULL, OPTION_TYPE},
    {0},
};

/* The largest count whose values of 8 bytes have a size. */
#define MAX_COUNT (INT64_MAX / 8)

struct settings {
    int codec;     /* -1 when not given */
    int type;      /* likewise */
    int64_t count; /* likewise */
    uint64_t max_output_nbytes;
    const char *model; /* likewise NULL */
    bool has_limit;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == OPTION_COUNT)
        return wharf_cli_parse_number(argument, 0, MAX_COUNT, &settings->count)
                   ? NULL
                   : "how many values there are";
    if (option == OPTION_MODEL) {
        settings->model = argument;
        return *argument ? NULL : "the name of a file";
    }
    if (option == OPTION_TYPE) {
        settings->type = wharf_rle_type_from_name(argument);
        return settings->type >= 0 ? NULL : WHARF_CLI_TYPE_SYNTAX;
    }
    settings->has_limit = settings->has_limit || option == OPTION_MAX_OUTPUT;
    if (option == OPTION_MAX_OUTPUT)
        return wharf_cli_parse_size(argument, &settings->max_output_nbytes) ? NULL
                                                                            : WHARF_CLI_SIZE_SYNTAX;
    settings->codec = wharf_codec_from_name(argument);
    return settings->codec >= 0 ? NULL : wharf_cli_codec_syntax(argument);
}

/* ---- models ------------------------------------------------------------------------------ */

struct model {
    struct wharf_cli_rans_bytes bytes;
    void *image;
};

static int refuse_model(struct wharf_cli_task *task, const struct settings *settings,
                        enum wharf_reason reason)
{
    wharf_cli_say("%s: is no model of codec %s: %s; `wharf rans import --model` makes such files",
                  settings->model, wharf_codec_name((uint32_t)settings->codec),
                  wharf_reason_string(reason));
    return wharf_cli_tally_failure(task->tally, settings->model, -EBADMSG, WHARF_CLI_BAD_DATA);
}

static int read_model(struct wharf_cli_task *task, const struct settings *settings,
                      struct model *model)
{
    const struct wharf_model_ops *ops = wharf_codec_find((uint32_t)settings->codec)->ops->models;
    enum wharf_reason reason;
    size_t nbytes;
    int status = wharf_cli_rans_read_file(task, settings->model, &model->bytes);

    if (status != WHARF_CLI_GOOD)
        return status;
    reason = ops->image_nbytes(model->bytes.data, model->bytes.nbytes, &nbytes);
    if (reason == WHARF_REASON_NONE) {
        model->image = calloc(1, nbytes);
        if (!model->image)
            return wharf_cli_task_error(task, settings->model, -ENOMEM);
        reason = ops->make_image(model->bytes.data, model->bytes.nbytes, model->image);
    }
    return reason == WHARF_REASON_NONE ? WHARF_CLI_GOOD : refuse_model(task, settings, reason);
}

static void model_deinit(struct model *model)
{
    wharf_cli_rans_bytes_deinit(&model->bytes);
    free(model->image);
}

/* ---- decoding ---------------------------------------------------------------------------- */

/* Of the codecs that are a stream, in which what stands before an error decodes. */
static enum wharf_inflate_format format_of(uint32_t codec)
{
    if (codec == WHARF_CODEC_GZIP)
        return WHARF_INFLATE_GZIP;
    return codec == WHARF_CODEC_ZLIB ? WHARF_INFLATE_ZLIB : WHARF_INFLATE_RAW;
}

static int check_salvage(const struct settings *settings)
{
    if (settings->codec != WHARF_CODEC_DEFLATE && settings->codec != WHARF_CODEC_ZLIB &&
        settings->codec != WHARF_CODEC_GZIP)
        return wharf_cli_say_usage("decode",
                                   "--salvage goes with deflate, zlib and gzip: codec %s "
                                   "has no part that decodes without the rest",
                                   wharf_codec_name((uint32_t)settings->codec));
    if (settings->count >= 0 || settings->has_limit)
        return wharf_cli_say_usage("decode", "--salvage does not know how much there is: --count "
                                             "and --max-output have no meaning");
    return WHARF_CLI_GO_ON;
}

static int decode_input(struct wharf_cli_task *task, const struct settings *settings,
                        const struct model *model)
{
    const struct wharf_codec_ops *ops = wharf_codec_find((uint32_t)settings->codec)->ops;
    struct wharf_cli_whole whole = {
        .codec = (uint32_t)settings->codec,
        .parameter = settings->type < 0 ? 0 : (uint32_t)settings->type,
        .max_output_nbytes = settings->max_output_nbytes,
        .model = model->bytes.data,
        .model_nbytes = model->bytes.nbytes,
        .image = model->image,
    };
    uint64_t end;
    int status;

    if (settings->count >= 0) {
        whole.is_exact = true;
        whole.max_output_nbytes =
            (uint64_t)settings->count * wharf_codec_unit_nbytes(ops, whole.parameter);
    }
    if (isatty(task->input->fd)) {
        wharf_cli_say("%s: compressed data is not read from a terminal", task->input->name);
        return wharf_cli_tally_error(task->tally, task->input->name, -EINVAL);
    }
    if (task->options->salvage)
        return wharf_cli_salvage_stream(task, format_of(whole.codec));
    status = wharf_cli_whole_decode(task, &whole, 0, &end);
    return status == WHARF_CLI_GOOD ? wharf_cli_mention_rest(task, end) : status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {-1, -1, -1, WHARF_CLI_WHOLE_DEFAULT_NBYTES, NULL, false};
    struct model model = {.image = NULL};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 1};
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_service service;
    struct wharf_cli_task task = {.options = &options,
                                  .tally = &tally,
                                  .input = &input,
                                  .output = &output,
                                  .service = &service};
    int status = wharf_cli_parse(&wharf_cli_decode, argc, argv, &settings, &options, &operands);

    if (status != WHARF_CLI_GO_ON)
        return status;
    if (settings.codec < 0)
        return wharf_cli_say_usage("decode", "--codec is missing");
    status = wharf_cli_check_type("decode", (uint32_t)settings.codec, settings.type);
    if (status != WHARF_CLI_GO_ON)
        return status;
    if (settings.model && !wharf_codec_find((uint32_t)settings.codec)->ops->models)
        return wharf_cli_say_usage("decode", "--model goes with codec rans");
    if (settings.model && settings.type >= 0)
        return wharf_cli_say_usage("decode",
                                   "--model says what symbols are: --type has no meaning");
    status = options.salvage ? check_salvage(&settings) : WHARF_CLI_GO_ON;
    if (status != WHARF_CLI_GO_ON)
        return status;
    status = wharf_cli_service_open(&options, 1, LEAST_ARENA_NBYTES, 0, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    status = wharf_cli_task_start(&task, operands.n ? argv[operands.first] : "-",
                                  options.output ? options.output : "-");
    if (status == WHARF_CLI_GOOD) {
        if (settings.model)
            status = read_model(&task, &settings, &model);
        if (status == WHARF_CLI_GOOD)
            status = decode_input(&task, &settings, &model);
        status = wharf_cli_task_finish(&task, status);
    }
    model_deinit(&model);
    wharf_cli_service_close(&service);
    return status;
}

const struct wharf_cli_command wharf_cli_decode = {
    .name = "decode",
    .summary = "decode one raw stream, to standard output",
    .usage = "--codec C [OPTION...] [-o OUT] [IN]",
    .help = "Decodes one stream of codec C, from IN or standard input.  Nothing is written\n"
            "before all of it was decoded and verified, so the output is held in memory.\n\n"
            "  -c, --codec C        one of those below\n"
            "      --type T         of rle1 and rle2: i8 to i64 (signed coding) or u8 to u64;\n"
            "                       of rans: u8 (the default) or u16\n"
            "      --count N        fail unless there are N values; boolrle needs it unless\n"
            "                       they are a multiple of 8\n"
            "      --max-output S   fail if the output is larger; default 1G\n"
            "      --model FILE     of rans: the model, for a stream that leaves it out\n",
    .takes_codec = true,
    .writes_file = true,
    .salvages = true,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
