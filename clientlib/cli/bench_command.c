/* SPDX-License-Identifier: Apache-2.0 */
/* wharf bench: what the codecs make of a file, and how fast, on this machine. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clientlib/cli/bench_clients.h"
#include "clientlib/cli/bench_run.h"
#include "clientlib/cli/commands.h"
#include "clientlib/cli/input_file.h"
#include "clientlib/cli/json.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/service.h"
#include "clientlib/cli/suggest.h"
#include "clientlib/cli/tally.h"
#include "clientlib/cli/value_type.h"
#include "clientlib/wharf.h"
#include "encoders/container_format.h"
#include "encoders/rle_values.h"

enum {
    OPTION_CLIENTS = WHARF_CLI_LONG_ONLY,
    OPTION_DEPTH,
    OPTION_GPU,
    OPTION_JSON,
    OPTION_SECONDS,
    OPTION_TYPE,

    /* With chunks of 128 KiB they are some ms of a processor's work, and their output stays in its
     * caches.  A GPU that takes milliseconds for each wants more. */
    USUAL_DEPTH = 32,
    MAX_CODECS = 64,
    MAX_CLIENTS = 1024,
    MAX_LEVELS = 16,
};
/* Of longer files the first part is taken. */
#define MAX_RAW_NBYTES ((size_t)256 << 20)

static const struct option own_options[] = {
    {"chunk", required_argument, NULL, 'b'},
    {"clients", required_argument, NULL, OPTION_CLIENTS},
    {"codec", required_argument, NULL, 'c'},
    {"depth", required_argument, NULL, OPTION_DEPTH},
    {"gpu", no_argument, NULL, OPTION_GPU},
    {"json", no_argument, NULL, OPTION_JSON},
    {"level", required_argument, NULL, 'l'},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"type", required_argument, NULL, OPTION_TYPE},
    {0},
};

struct settings {
    int codecs[MAX_CODECS];
    unsigned n_codecs; /* 0: all */
    int levels[MAX_LEVELS];
    unsigned n_levels; /* 0: 1, 6 and 9 */
    int64_t n_clients; /* 0: as many as --threads says */
    int64_t depth;
    int64_t n_seconds;
    uint64_t chunk_nbytes;
    int type; /* -1 when not given */
    bool is_gpu;
    bool json;
};

static const char *take_codec(struct settings *settings, const char *argument)
{
    int codec = wharf_codec_from_name(argument);

    if (codec < 0)
        return wharf_cli_codec_syntax(argument);
    if (settings->n_codecs == MAX_CODECS)
        return "possible: there are too many";
    settings->codecs[settings->n_codecs++] = codec;
    return NULL;
}

static const char *take_level(struct settings *settings, const char *argument)
{
    int64_t level;

    if (!wharf_cli_parse_number(argument, 0, 99, &level))
        return "a number from 0 to 99";
    if (settings->n_levels == MAX_LEVELS)
        return "possible: there are too many";
    settings->levels[settings->n_levels++] = (int)level;
    return NULL;
}

static const char *take_chunk(struct settings *settings, const char *argument)
{
    if (!wharf_cli_parse_size(argument, &settings->chunk_nbytes) ||
        settings->chunk_nbytes < WHARF_CONTAINER_CHUNK_MIN_NBYTES ||
        settings->chunk_nbytes > WHARF_CONTAINER_CHUNK_MAX_NBYTES)
        return "a size from 1 to 16M";
    return NULL;
}

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    switch (option) {
    case 'b':
        return take_chunk(settings, argument);
    case 'c':
        return take_codec(settings, argument);
    case 'l':
        return take_level(settings, argument);
    case OPTION_CLIENTS:
        return wharf_cli_parse_number(argument, 1, MAX_CLIENTS, &settings->n_clients)
                   ? NULL
                   : "a number from 1 to 1024";
    case OPTION_DEPTH:
        return wharf_cli_parse_number(argument, 1, WHARF_CLI_BENCH_MOST_IN_FLIGHT, &settings->depth)
                   ? NULL
                   : "a number from 1 to 255";
    case OPTION_GPU:
        settings->is_gpu = true;
        return NULL;
    case OPTION_SECONDS:
        return wharf_cli_parse_number(argument, 0, 3600, &settings->n_seconds)
                   ? NULL
                   : "a whole number from 0 to 3600";
    case OPTION_TYPE:
        settings->type = wharf_rle_type_from_name(argument);
        return settings->type >= 0 ? NULL : WHARF_CLI_TYPE_SYNTAX;
    default:
        settings->json = true;
        return NULL;
    }
}

/* ---- printing -------------------------------------------------------------------------- */

struct printer {
    bool json;
    const char *name;
    const struct wharf_cli_bench *bench;
    const char *daemon_version;
    unsigned n_rows;
};

/* Who is compared with whom, and what each has to do. */
static void print_gpu_head(const struct printer *printer)
{
    const struct wharf_cli_bench *bench = printer->bench;

    printf("cpu: %u threads of this process\n", bench->n_threads);
    if (bench->card)
        printf("library: libwharf-cuda %s on %s, from GPU memory to GPU memory, the file as often "
               "as makes 512 MiB if there is room\n",
               wharf_cli_card_version(bench->card), wharf_cli_card_name(bench->card));
    if (bench->daemon)
        printf("daemon: wharfd %s and its GPU, from host memory to host memory, %u clients with %u "
               "chunks in flight each\n",
               printer->daemon_version, bench->n_threads, bench->depth);
    printf("%-8s %-10s %5s %7s  %-22s %-24s %-22s %12s\n", "codec", "encoder", "level", "ratio",
           "decode, cpu", "gpu, library", "gpu, daemon", "times cpu");
}

static void print_head(const struct printer *printer)
{
    char raw[WHARF_CLI_SIZE_TEXT];
    char chunk[WHARF_CLI_SIZE_TEXT];
    const struct wharf_cli_bench *bench = printer->bench;

    if (printer->json) {
        fputs("{\"file\":", stdout);
        wharf_cli_json_string(stdout, printer->name);
        printf(",\"raw_nbytes\":%zu,\"chunk_nbytes\":%" PRIu32 ",\"threads\":%u", bench->raw_nbytes,
               bench->chunk_nbytes, bench->n_threads);
        if (bench->card) {
            fputs(",\"gpu\":", stdout);
            wharf_cli_json_string(stdout, wharf_cli_card_name(bench->card));
        }
        fputs(",\"rows\":[", stdout);
        return;
    }
    printf("%s: %s in chunks of %s, %u threads; uncompressed GB/s, median (least to most)\n",
           printer->name, wharf_cli_size_text(bench->raw_nbytes, raw),
           wharf_cli_size_text(bench->chunk_nbytes, chunk), bench->n_threads);
    if (bench->is_gpu) {
        print_gpu_head(printer);
        return;
    }
    printf("%-8s %-10s %5s %7s  %-22s %-22s %-22s%s\n", "codec", "encoder", "level", "ratio",
           "compress", "decode, cpu", "decode, reference", bench->daemon ? " decode, daemon" : "");
}

static void print_speed_json(const char *name, const struct wharf_cli_bench_speed *speed)
{
    printf(",\"%s\":{\"min\":%.4f,\"median\":%.4f,\"max\":%.4f,\"repetitions\":%u}", name,
           speed->min, speed->median, speed->max, speed->n_repetitions);
}

static void print_speed(const struct wharf_cli_bench_speed *speed)
{
    printf(" %6.3f (%6.3f-%6.3f)", speed->median, speed->min, speed->max);
}

/* Of what ran the daemon's jobs; "auto" if several did. */
static const char *engine_name(uint32_t engines)
{
    bool is_one = engines && (engines & (engines - 1)) == 0;

    return wharf_engine_name(is_one ? (uint32_t)__builtin_ctz(engines) : WHARF_ENGINE_AUTO);
}

/* What the values of a row are; NULL for bytes. */
static const char *row_type(const struct wharf_cli_bench_row *row)
{
    return wharf_codec_has_types(wharf_codec_find(row->codec)->ops)
               ? wharf_rle_type_name(row->parameter)
               : NULL;
}

static void print_cpu_speeds(const struct printer *printer, const struct wharf_cli_bench_row *row)
{
    print_speed(&row->compress);
    print_speed(&row->decode_cpu);
    print_speed(&row->decode_reference);
    if (printer->bench->daemon) {
        print_speed(&row->decode_daemon);
        printf(" %s", engine_name(row->daemon_engines));
    }
}

/* What was measured of a row for GPUs; the last column is the better one over the CPU. */
static void print_gpu_speeds(const struct printer *printer, const struct wharf_cli_bench_row *row)
{
    double best = row->decode_card.median;

    print_speed(&row->decode_cpu);
    if (row->n_copies)
        printf("  %7.2f (%6.2f-%6.2f)", row->decode_card.median, row->decode_card.min,
               row->decode_card.max);
    else
        printf("  %-23s", "-");
    if (printer->bench->daemon && row->daemon_engines) {
        print_speed(&row->decode_daemon);
        best = best > row->decode_daemon.median ? best : row->decode_daemon.median;
    } else
        printf(" %-22s", "-");
    printf(" %12.2f", best / row->decode_cpu.median);
}

static void print_json_speeds(const struct printer *printer, const struct wharf_cli_bench_row *row)
{
    if (!printer->bench->is_gpu)
        print_speed_json("compress_gb_s", &row->compress);
    print_speed_json("decode_cpu_gb_s", &row->decode_cpu);
    if (!printer->bench->is_gpu)
        print_speed_json("decode_reference_gb_s", &row->decode_reference);
    if (row->n_copies) {
        print_speed_json("decode_library_gb_s", &row->decode_card);
        printf(",\"library_copies\":%zu", row->n_copies);
    }
    if (printer->bench->daemon) {
        print_speed_json("decode_daemon_gb_s", &row->decode_daemon);
        printf(",\"daemon_engine\":\"%s\"", engine_name(row->daemon_engines));
    }
}

static void print_row(struct printer *printer, const struct wharf_cli_bench_row *row)
{
    const char *codec = wharf_codec_name(row->codec);
    const char *type = row_type(row);
    double ratio = (double)printer->bench->raw_nbytes / (double)row->packed_nbytes;

    if (printer->json) {
        printf("%s{\"codec\":\"%s\",\"encoder\":\"%s\",\"level\":%d,\"packed_nbytes\":%" PRIu64
               ",\"ratio\":%.4f",
               printer->n_rows ? "," : "", codec, row->encoder->name, row->level,
               row->packed_nbytes, ratio);
        if (type)
            printf(",\"type\":\"%s\"", type);
        print_json_speeds(printer, row);
        putchar('}');
    } else {
        char name[32];
        snprintf(name, sizeof(name), "%s%s%s", codec, type ? ":" : "", type ? type : "");
        printf("%-8s %-10s %5d %7.3f ", name, row->encoder->name, row->level, ratio);
        if (printer->bench->is_gpu)
            print_gpu_speeds(printer, row);
        else
            print_cpu_speeds(printer, row);
        putchar('\n');
    }
    printer->n_rows++;
    fflush(stdout);
}

static void print_tail(const struct printer *printer)
{
    if (printer->json)
        puts("]}");
}

/* ---- measuring ------------------------------------------------------------------------- */

/* Whether a codec's values can be of the type that was given, if one was. */
static bool has_type(const struct settings *settings, uint32_t codec)
{
    return settings->type >= 0 && wharf_codec_has_types(wharf_codec_find(codec)->ops) &&
           wharf_codec_unit_nbytes(wharf_codec_find(codec)->ops, (uint32_t)settings->type) > 0;
}

static int measure_row(struct printer *printer, const struct settings *settings, uint32_t codec,
                       const struct wharf_encoder_row *encoder, int level)
{
    struct wharf_cli_bench_row row = {.codec = codec, .encoder = encoder, .level = level};
    row.parameter = has_type(settings, codec) ? (uint32_t)settings->type : 0;
    int r = wharf_cli_bench_measure(printer->bench, &row);

    if (r < 0) {
        wharf_cli_say("%s, %s level %d: %s", wharf_codec_name(codec), encoder->name, level,
                      r == -EBADMSG  ? "a decoder gave wrong bytes; please report it"
                      : r == -EILSEQ ? "the file or a chunk is no whole number of such values"
                                     : wharf_cli_error_text(r));
        return r;
    }
    /* What no GPU decodes is no comparison, unless it was asked for. */
    if (!settings->is_gpu || row.n_copies || row.daemon_engines || settings->n_codecs)
        print_row(printer, &row);
    return 0;
}

static int measure_encoder(struct printer *printer, const struct settings *settings, uint32_t codec,
                           const struct wharf_encoder_row *encoder)
{
    static const int usual_levels[] = {1, 6, 9};
    const int *levels = settings->n_levels ? settings->levels : usual_levels;
    unsigned n_levels = settings->n_levels ? settings->n_levels : 3;
    int r = 0;

    if (encoder->level_min == encoder->level_max)
        return measure_row(printer, settings, codec, encoder, encoder->level_default);
    for (unsigned i = 0; i < n_levels && r == 0; i++)
        if (levels[i] >= encoder->level_min && levels[i] <= encoder->level_max)
            r = measure_row(printer, settings, codec, encoder, levels[i]);
    return r;
}

static int measure_codec(struct printer *printer, const struct settings *settings, uint32_t codec)
{
    const struct wharf_encoder_row *encoder = wharf_codec_find(codec)->ops->encoder_rows;
    int r = 0;

    for (; encoder->name && r == 0; encoder++)
        r = measure_encoder(printer, settings, codec, encoder);
    return r;
}

/* Codecs of values of a type say nothing about a file of bytes. */
static int is_for_bytes(uint32_t codec)
{
    return !wharf_codec_has_types(wharf_codec_find(codec)->ops) && codec != WHARF_CODEC_BOOLRLE;
}

static int measure_all(struct printer *printer, const struct settings *settings)
{
    int r = 0;

    for (unsigned i = 0; i < settings->n_codecs && r == 0; i++)
        r = measure_codec(printer, settings, (uint32_t)settings->codecs[i]);
    if (settings->n_codecs)
        return r;
    for (uint32_t codec = 0; wharf_codec_name(codec) && r == 0; codec++)
        if (is_for_bytes(codec) || has_type(settings, codec))
            r = measure_codec(printer, settings, codec);
    return r;
}

static int bench_bytes(struct printer *printer, struct wharf_cli_bench *bench,
                       const struct settings *settings)
{
    int r = wharf_cli_crew_new(bench->n_threads, &bench->crew);

    if (r < 0) {
        wharf_cli_say("cannot start %u threads: %s", bench->n_threads, wharf_cli_error_text(r));
        return r;
    }
    print_head(printer);
    r = measure_all(printer, settings);
    print_tail(printer);
    wharf_cli_crew_free(bench->crew);
    if (wharf_cli_end_output() != WHARF_CLI_GOOD && r == 0)
        r = -EIO;
    return r;
}

/* Who decodes beside this process. */
struct others {
    const struct wharf_cli_options *daemon; /* how to reach one; NULL: none */
    const char *daemon_version;
    struct wharf_cli_card *card; /* NULL: none */
};

static int bench_input(struct wharf_cli_input *input, const struct wharf_cli_options *options,
                       const struct settings *settings, const struct others *others,
                       struct wharf_cli_tally *tally)
{
    uint8_t *raw = malloc(MAX_RAW_NBYTES);
    int64_t n = raw ? wharf_cli_input_read_at(input, 0, raw, MAX_RAW_NBYTES) : -ENOMEM;
    struct wharf_cli_bench bench = {
        .raw = raw,
        .raw_nbytes = n > 0 ? (size_t)n : 0,
        .chunk_nbytes = (uint32_t)settings->chunk_nbytes,
        .n_threads = settings->n_clients ? (unsigned)settings->n_clients : options->n_threads,
        .least_ns = (uint64_t)settings->n_seconds * 1000000000u,
        .daemon = others->daemon,
        .depth = (unsigned)settings->depth,
        .is_gpu = settings->is_gpu,
        .card = others->card,
    };
    struct printer printer = {.json = settings->json,
                              .name = input->name,
                              .bench = &bench,
                              .daemon_version = others->daemon_version};
    int r = -ENODATA;

    tally->in_nbytes = bench.raw_nbytes;
    if (n < 0)
        wharf_cli_input_say_error(input, r = (int)n);
    else if (n == 0)
        wharf_cli_say("%s: is empty: there is nothing to measure", input->name);
    else
        r = bench_bytes(&printer, &bench, settings);
    tally->n_chunks = printer.n_rows;
    free(raw);
    return r < 0 ? wharf_cli_tally_error(tally, input->name, r) : WHARF_CLI_GOOD;
}

static int bench_path(const char *path, const struct wharf_cli_options *options,
                      const struct settings *settings, const struct others *others,
                      struct wharf_cli_tally *tally)
{
    struct wharf_cli_input input;
    int r = wharf_cli_input_open(&input, path);
    int status;

    if (r < 0)
        return wharf_cli_tally_error(tally, path, r);
    status = bench_input(&input, options, settings, others, tally);
    wharf_cli_input_close(&input);
    return status;
}

/* A codec of bytes can be measured beside those that the type is for. */
static int check_type(const struct settings *settings, uint32_t codec)
{
    bool is_of_values = wharf_codec_has_types(wharf_codec_find(codec)->ops);

    return is_of_values ? wharf_cli_check_type("bench", codec, settings->type) : WHARF_CLI_GO_ON;
}

/* The daemon's GPU alone takes the jobs, or what was asked for in its place. */
static void choose_engine(const struct wharf_cli_service *service,
                          struct wharf_cli_options *options)
{
    if (service->wharf && options->engine == WHARF_ENGINE_AUTO &&
        (service->info.engines >> WHARF_ENGINE_GPU & 1))
        options->engine = WHARF_ENGINE_GPU;
}

/* For --gpu: the card by the library, and the daemon if it has a GPU; at least one of them. */
static int find_gpus(const struct wharf_cli_service *service, struct wharf_cli_options *options,
                     struct others *others)
{
    char message[256];

    choose_engine(service, options);
    if (options->engine < WHARF_ENGINE_GPU)
        others->daemon = NULL;
    if (wharf_cli_card_open(&others->card, message, sizeof(message)) == 0) {
        if (!others->daemon && !options->quiet)
            wharf_cli_say("no daemon with a GPU is measured: %s",
                          service->wharf ? "it has none" : "none can be used");
        return WHARF_CLI_GO_ON;
    }
    others->card = NULL;
    if (others->daemon) {
        if (!options->quiet)
            wharf_cli_say("libwharf-cuda is not measured: %s", message);
        return WHARF_CLI_GO_ON;
    }
    wharf_cli_say("no GPU can be measured: libwharf-cuda: %s; %s; `wharf doctor` says what is "
                  "missing",
                  message,
                  service->wharf ? "the daemon has no GPU" : "there is no daemon that has one");
    return WHARF_CLI_FAILED;
}

static int measure_path(const char *path, struct wharf_cli_options *options,
                        const struct settings *settings, const struct wharf_cli_service *service,
                        struct wharf_cli_tally *tally)
{
    struct others others = {service->wharf ? options : NULL, service->info.daemon_version, NULL};
    int status = settings->is_gpu ? find_gpus(service, options, &others) : WHARF_CLI_GO_ON;

    if (status == WHARF_CLI_GO_ON)
        status = bench_path(path, options, settings, &others, tally);
    else
        wharf_cli_tally_failure(tally, path, -ENODEV, status);
    wharf_cli_card_close(others.card);
    return status;
}

/* --gpu is about GPUs: an engine that is none is a contradiction. */
static int check_engine(const struct settings *settings, const struct wharf_cli_options *options)
{
    if (!settings->is_gpu || options->engine == WHARF_ENGINE_AUTO ||
        options->engine >= WHARF_ENGINE_GPU)
        return WHARF_CLI_GO_ON;
    return wharf_cli_say_usage("bench", "--gpu and --engine %s contradict each other",
                               wharf_engine_name(options->engine));
}

static int run(int argc, char **argv)
{
    struct settings settings = {
        .depth = USUAL_DEPTH,
        .n_seconds = 1,
        .chunk_nbytes = WHARF_CONTAINER_CHUNK_DEFAULT_NBYTES,
        .type = -1,
    };
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 1};
    int status = wharf_cli_parse(&wharf_cli_bench, argc, argv, &settings, &options, &operands);
    struct wharf_cli_service service;
    struct wharf_cli_tally tally;

    if (status == WHARF_CLI_GO_ON && operands.n == 0)
        return wharf_cli_say_usage("bench", "FILE is missing");
    for (unsigned i = 0; i < settings.n_codecs && status == WHARF_CLI_GO_ON; i++)
        status = check_type(&settings, (uint32_t)settings.codecs[i]);
    if (status == WHARF_CLI_GO_ON)
        status = check_engine(&settings, &options);
    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_small(&options, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    wharf_cli_begin_output();
    wharf_cli_tally_init(&tally);
    status = measure_path(argv[operands.first], &options, &settings, &service, &tally);
    wharf_cli_service_close(&service);
    if (options.report)
        wharf_cli_tally_report(&tally);
    return status;
}

const struct wharf_cli_command wharf_cli_bench = {
    .name = "bench",
    .summary = "measure ratio and speed of the codecs on a file",
    .usage = "[OPTION...] FILE",
    .help = "Packs and unpacks FILE (its first 256 MiB) in memory, chunk by chunk, with each\n"
            "codec, encoder and level, and prints ratios and speeds, with their spread; if\n"
            "there is a daemon, also its own.  With --gpu, GPUs beside this CPU.\n\n"
            "      --gpu            decode by libwharf-cuda on the first GPU, if that is\n"
            "                       installed, and by the daemon's GPU, and compare them\n"
            "                       with this process\n"
            "  -c, --codec C        only this codec; may be given several times\n"
            "  -l, --level N        this level; may be given several times; default 1, 6, 9\n"
            "  -b, --chunk SIZE     bytes in a chunk; default 128K\n"
            "      --clients N      threads that each work on chunks, and of a daemon so many\n"
            "                       clients; default as --threads\n"
            "      --depth N        chunks that each client has in flight; default 32\n"
            "      --seconds N      repeat each measurement so long, and 5 times at least;\n"
            "                       default 1\n"
            "      --type T         what the file's values are, for rle1 and rle2, which are\n"
            "                       measured only if this is given: i8 to i64 or u8 to u64;\n"
            "                       of rans, u8 (the default) or u16\n"
            "      --json           print JSON\n",
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
