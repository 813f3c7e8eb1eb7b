/* SPDX-License-Identifier: Apache-2.0 */
/* wharf pack: files into wharf containers, or into what every gzip or every zstd reads. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/daemon_pack.h"
#include "clientlib/cli/each_file.h"
#include "clientlib/cli/gzip_pack_pipe.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/pack_pipe.h"
#include "clientlib/cli/suffix.h"
#include "clientlib/cli/suggest.h"
#include "clientlib/cli/value_type.h"
#include "clientlib/cli/zstd_pack_pipe.h"
#include "clientlib/wharf.h"
#include "encoders/container_format.h"
#include "encoders/gzip/bgzf_write.h"

enum { OPTION_ENCODER = WHARF_CLI_LONG_ONLY, OPTION_FORMAT, OPTION_TYPE };

/* Blocks of BGZF are at most as large as bgzip's; smaller ones are mostly headers. */
enum { MIN_BLOCK_NBYTES = 1 << 10 };

/* What the arena takes for each of two pieces beyond their size. */
enum { SLOT_MARGIN_NBYTES = 256 };

/* A frame of zstd.  Smaller ones compress worse, larger ones make access to parts dearer. */
enum { FRAME_NBYTES = 1 << 20, MIN_FRAME_NBYTES = 1 << 10 };

enum format { FORMAT_UNSET, FORMAT_WHARF, FORMAT_GZIP, FORMAT_BGZF, FORMAT_ZSTD };
static const char *const format_names[] = {"", "wharf", "gzip", "bgzf", "zstd"};

static const struct option own_options[] = {
    {"chunk", required_argument, NULL, 'b'},
    {"codec", required_argument, NULL, 'c'},
    {"encoder", required_argument, NULL, OPTION_ENCODER},
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"keep", no_argument, NULL, 'k'},
    {"level", required_argument, NULL, 'l'},
    {"type", required_argument, NULL, OPTION_TYPE},
    {"verbose", no_argument, NULL, 'v'},
    {0},
};

struct settings {
    struct wharf_cli_pack_settings pack;
    struct wharf_cli_gzip_pack_settings gzip;
    struct wharf_cli_zstd_pack_settings zstd;
    enum format format;
    bool has_codec;
    uint32_t chunk_nbytes; /* 0 when not given */
    int type;              /* -1 when not given */
    bool verbose;
};

static bool take_chunk(struct settings *settings, const char *argument)
{
    uint64_t nbytes;

    if (!wharf_cli_parse_size(argument, &nbytes) || nbytes < WHARF_CONTAINER_CHUNK_MIN_NBYTES ||
        nbytes > WHARF_CONTAINER_CHUNK_MAX_NBYTES)
        return false;
    settings->chunk_nbytes = (uint32_t)nbytes;
    return true;
}

static bool take_format(struct settings *settings, const char *argument)
{
    for (int i = FORMAT_WHARF; i <= FORMAT_ZSTD; i++) {
        if (strcmp(argument, format_names[i]) == 0) {
            settings->format = (enum format)i;
            return true;
        }
    }
    return false;
}

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *all = own;
    struct wharf_cli_pack_settings *settings = &all->pack;
    int64_t level;
    int codec;

    switch (option) {
    case 'b':
        return take_chunk(all, argument) ? NULL : "a size from 1 to 16M";
    case OPTION_FORMAT:
        return take_format(all, argument) ? NULL : "wharf, gzip, bgzf or zstd";
    case 'c':
        all->has_codec = true;
        codec = wharf_codec_from_name(argument);
        settings->codec = (uint32_t)codec;
        return codec >= 0 ? NULL : wharf_cli_codec_syntax(argument);
    case '1' ... '9':
        settings->encoder.level = option - '0';
        return NULL;
    case 'k':
        return NULL; /* the input stays anyway */
    case 'v':
        all->verbose = true;
        return NULL;
    case 'l':
        if (!wharf_cli_parse_number(argument, 0, 99, &level))
            return "a number from 0 to 99";
        settings->encoder.level = (int)level;
        return NULL;
    case OPTION_TYPE:
        all->type = wharf_rle_type_from_name(argument);
        return all->type >= 0 ? NULL : WHARF_CLI_TYPE_SYNTAX;
    default:
        settings->encoder.name = argument;
        return NULL;
    }
}

/* Says which encoders and levels the codec has. */
static int say_encoders(const struct wharf_cli_pack_settings *settings)
{
    const struct wharf_codec_row *row = wharf_codec_find(settings->codec);
    char text[256] = "";

    for (const struct wharf_encoder_row *encoder = row->ops->encoder_rows; encoder->name;
         encoder++) {
        size_t used = strlen(text);

        if (encoder->level_min == encoder->level_max)
            snprintf(text + used, sizeof(text) - used, "%s%s (without levels)", used ? ", " : "",
                     encoder->name);
        else
            snprintf(text + used, sizeof(text) - used, "%s%s (levels %d to %d, default %d)",
                     used ? ", " : "", encoder->name, encoder->level_min, encoder->level_max,
                     encoder->level_default);
    }
    return wharf_cli_say_usage("pack", "codec %s has no such encoder or level; it has %s",
                               row->name, text);
}

static int check_container(const struct wharf_cli_pack_settings *settings)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(settings->codec)->ops;
    uint32_t unit_nbytes = wharf_codec_unit_nbytes(ops, settings->encoder.parameter);
    const struct wharf_encoder_row *row;
    int level;

    if (settings->chunk_nbytes % unit_nbytes)
        return wharf_cli_say_usage("pack",
                                   "a chunk of %" PRIu32 " bytes does not end with a value: "
                                   "its size has to be a multiple of %" PRIu32,
                                   settings->chunk_nbytes, unit_nbytes);
    if (wharf_encoder_choose(ops, &settings->encoder, &row, &level) < 0)
        return say_encoders(settings);
    return WHARF_CLI_GO_ON;
}

/* ---- formats of others ------------------------------------------------------------------- */

/* What names of each format end in. */
static const struct {
    const char *suffix;
    enum format format;
} format_suffixes[] = {
    {WHARF_CONTAINER_SUFFIX, FORMAT_WHARF},
    {".gz", FORMAT_GZIP},
    {".tgz", FORMAT_GZIP},
    {".taz", FORMAT_GZIP},
    {".bgz", FORMAT_BGZF},
    {".bgzf", FORMAT_BGZF},
    {".zst", FORMAT_ZSTD},
    {".tzst", FORMAT_ZSTD},
};
enum { N_FORMAT_SUFFIXES = sizeof(format_suffixes) / sizeof(format_suffixes[0]) };

/* The suffix of an output's name says what whoever reads it expects. */
static enum format format_of_name(const char *path)
{
    for (int i = 0; path && i < N_FORMAT_SUFFIXES; i++)
        if (wharf_cli_has_suffix(path, format_suffixes[i].suffix))
            return format_suffixes[i].format;
    return FORMAT_WHARF;
}

/* What only containers have. */
static int refuse_container_options(const struct settings *settings)
{
    const char *name = format_names[settings->format];

    if (settings->has_codec || settings->type >= 0)
        return wharf_cli_say_usage("pack",
                                   "--%s is a container's, and this is format %s; --format wharf "
                                   "makes a container",
                                   settings->has_codec ? "codec" : "type", name);
    if (settings->chunk_nbytes && settings->format == FORMAT_GZIP)
        return wharf_cli_say_usage("pack", "format gzip has no chunks: --format bgzf has, and "
                                           "gzip reads it too");
    return WHARF_CLI_GO_ON;
}

static int say_gzip_encoder(const char *name)
{
    const struct wharf_encoder_row *row = wharf_codec_find(WHARF_CODEC_GZIP)->ops->encoder_rows;

    while (strcmp(row->name, name) != 0)
        row++;
    return wharf_cli_say_usage("pack",
                               "format gzip is made by encoder %s alone, levels %d to %d; "
                               "--format bgzf has others, and gzip reads it too",
                               name, row->level_min, row->level_max);
}

/* One encoder makes gzip in parts: zlib's. */
static int check_gzip(struct settings *settings)
{
    struct wharf_cli_gzip_pack_settings *gzip = &settings->gzip;
    static const char of_gzip[] = "zlib";
    const struct wharf_encoder_row *row;
    int status = refuse_container_options(settings);

    if (status != WHARF_CLI_GO_ON)
        return status;
    gzip->is_bgzf = settings->format == FORMAT_BGZF;
    gzip->encoder = settings->pack.encoder;
    gzip->block_nbytes = settings->chunk_nbytes ? settings->chunk_nbytes : WHARF_BGZF_PACK_NBYTES;
    if (gzip->block_nbytes < MIN_BLOCK_NBYTES || gzip->block_nbytes > WHARF_BGZF_PACK_NBYTES)
        return wharf_cli_say_usage("pack", "a block of BGZF has %d to %d bytes", MIN_BLOCK_NBYTES,
                                   WHARF_BGZF_PACK_NBYTES);
    if (!gzip->is_bgzf && !gzip->encoder.name)
        gzip->encoder.name = of_gzip;
    if (!gzip->is_bgzf && strcmp(gzip->encoder.name, of_gzip) != 0)
        return say_gzip_encoder(of_gzip);
    if (wharf_encoder_choose(wharf_codec_find(WHARF_CODEC_GZIP)->ops, &gzip->encoder, &row,
                             &gzip->level) < 0)
        return gzip->is_bgzf
                   ? say_encoders(&(struct wharf_cli_pack_settings){.codec = WHARF_CODEC_GZIP})
                   : say_gzip_encoder(of_gzip);
    return WHARF_CLI_GO_ON;
}

static int check_zstd(struct settings *settings)
{
    struct wharf_cli_zstd_pack_settings *zstd = &settings->zstd;
    const struct wharf_encoder_row *row;
    int status = refuse_container_options(settings);
    int level;

    if (status != WHARF_CLI_GO_ON)
        return status;
    zstd->encoder = settings->pack.encoder;
    zstd->frame_nbytes = settings->chunk_nbytes ? settings->chunk_nbytes : FRAME_NBYTES;
    if (zstd->frame_nbytes < MIN_FRAME_NBYTES)
        return wharf_cli_say_usage("pack", "a frame of zstd has %d bytes or more",
                                   MIN_FRAME_NBYTES);
    if (wharf_encoder_choose(wharf_codec_find(WHARF_CODEC_ZSTD)->ops, &zstd->encoder, &row,
                             &level) < 0)
        return say_encoders(&(struct wharf_cli_pack_settings){.codec = WHARF_CODEC_ZSTD});
    return WHARF_CLI_GO_ON;
}

static int check_settings(struct settings *settings, const char *output)
{
    int status;

    if (settings->format == FORMAT_UNSET)
        settings->format = format_of_name(output);
    if (settings->format == FORMAT_ZSTD)
        return check_zstd(settings);
    if (settings->format != FORMAT_WHARF)
        return check_gzip(settings);
    status = wharf_cli_check_type("pack", settings->pack.codec, settings->type);
    if (status != WHARF_CLI_GO_ON)
        return status;
    if (settings->type >= 0)
        settings->pack.encoder.parameter = (uint32_t)settings->type;
    if (settings->chunk_nbytes)
        settings->pack.chunk_nbytes = settings->chunk_nbytes;
    return check_container(&settings->pack);
}

/* ---- work -------------------------------------------------------------------------------- */

/* BGZF is gzip, whatever the name says. */
static enum format family_of(enum format format)
{
    return format == FORMAT_BGZF ? FORMAT_GZIP : format;
}

/* The suffix of the format that the name has already, or NULL. */
static const char *suffix_there(enum format format, const char *path)
{
    for (int i = 0; i < N_FORMAT_SUFFIXES; i++)
        if (family_of(format_suffixes[i].format) == family_of(format) &&
            wharf_cli_has_suffix(path, format_suffixes[i].suffix))
            return format_suffixes[i].suffix;
    return NULL;
}

/* What the file is called if nobody says: the input's name and a suffix. */
static char *default_name(const void *own, const char *path, int *ret_error)
{
    const struct settings *settings = own;
    const char *suffix = suffix_there(settings->format, path);
    char *name = NULL;

    if (strcmp(path, "-") != 0 && suffix)
        return NULL;
    suffix = settings->format == FORMAT_WHARF  ? WHARF_CONTAINER_SUFFIX
             : settings->format == FORMAT_ZSTD ? ".zst"
                                               : ".gz";
    if (strcmp(path, "-") == 0)
        name = strdup("-");
    else if (asprintf(&name, "%s%s", path, suffix) < 0)
        name = NULL;
    *ret_error = name ? 0 : -ENOMEM;
    return name;
}

static void say_no_name(const void *own, const char *path)
{
    const struct settings *settings = own;

    wharf_cli_say_usage("pack", "%s: has the suffix %s already; -o NAME packs it again", path,
                        suffix_there(settings->format, path));
}

static int pack(struct wharf_cli_task *task, const void *own)
{
    const struct settings *settings = own;

    if (!task->output->is_file && isatty(task->output->fd)) {
        wharf_cli_tally_failure(task->tally, task->output->name, -EINVAL, WHARF_CLI_USAGE);
        return wharf_cli_say_usage("pack", "packed data is not written to a terminal; -o NAME "
                                           "writes a file");
    }
    if (settings->format == FORMAT_WHARF)
        return wharf_cli_pack_pipe(task, &settings->pack);
    if (settings->format == FORMAT_ZSTD)
        return wharf_cli_zstd_pack_pipe(task, &settings->zstd);
    return wharf_cli_gzip_pack_pipe(task, &settings->gzip);
}

/* Room for a chunk and its stream for each thread. */
static int open_daemon(const struct settings *settings, const struct wharf_cli_options *options,
                       struct wharf_cli_service *ret_service)
{
    size_t slot_nbytes = 2 * (size_t)settings->pack.chunk_nbytes + SLOT_MARGIN_NBYTES;

    if (settings->format != FORMAT_WHARF)
        return wharf_cli_say_usage("pack",
                                   "a daemon compresses chunks of containers alone, and "
                                   "this is format %s",
                                   format_names[settings->format]);
    int status = wharf_cli_service_open(options, options->n_threads, slot_nbytes, 0, ret_service);
    return status == WHARF_CLI_GO_ON ? wharf_cli_daemon_pack_check(ret_service, &settings->pack)
                                     : status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {
        .pack =
            {
                .codec = WHARF_CODEC_DEFLATE,
                .encoder = {.level = WHARF_LEVEL_DEFAULT},
                .chunk_nbytes = WHARF_CONTAINER_CHUNK_DEFAULT_NBYTES,
            },
        .type = -1,
    };
    struct wharf_cli_options options;
    struct wharf_cli_service service = {.wharf = NULL};
    struct wharf_cli_each each = {
        &wharf_cli_pack, &options,     &service,    WHARF_CLI_PACKS,
        &settings,       default_name, say_no_name, pack,
    };
    struct wharf_cli_operands operands = {.n_max = argc};
    int status = wharf_cli_parse(&wharf_cli_pack, argc, argv, &settings, &options, &operands);

    if (status == WHARF_CLI_GO_ON)
        status = check_settings(&settings, options.output);
    if (status != WHARF_CLI_GO_ON)
        return status;
    options.verbose = settings.verbose;
    if (options.socket || options.engine >= WHARF_ENGINE_GPU)
        status = open_daemon(&settings, &options, &service);
    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_each_file(&each, argv + operands.first, operands.n);
    wharf_cli_service_close(&service);
    return status;
}

const struct wharf_cli_command wharf_cli_pack = {
    .name = "pack",
    .summary = "compress files into wharf containers, gzip, BGZF or zstd",
    .usage = "[OPTION...] [-o OUT] [IN...]",
    .help = "Compresses each IN into a container of independent chunks, each with its\n"
            "checksum, and with an index for access to parts.  IN stays.  Without -o the\n"
            "output is IN" WHARF_CONTAINER_SUFFIX
            "; if IN is - or missing, standard input is packed to standard\n"
            "output.\n\n"
            "      --format F       wharf, a container; gzip or bgzf, IN.gz, which gzip and\n"
            "                       bgzip, samtools and tabix read; zstd, IN.zst, seekable.\n"
            "                       Without it -o NAME.gz, .tgz, .bgz, .bgzf, .zst or .tzst\n"
            "                       says the same\n"
            "  -c, --codec C        one of those below; the default is deflate\n"
            "      --type T         of rle1 and rle2: i8, i16, i32, i64, u8, u16, u32 or u64;\n"
            "                       of rans: u8 (the default) or u16\n"
            "  -l, --level N        effort; the higher, the smaller and slower; also -1 to -9\n"
            "      --encoder NAME   libdeflate (the default, levels 1 to 12), zlib (0 to 9);\n"
            "                       of palette: bf16 (the default), f16, e4m3 or e5m2; of\n"
            "                       blosc: shuffle4 (the default), bitshuffle4, bytes...\n"
            "  -b, --chunk SIZE     bytes in a chunk, 1 to 16M; default 128K; of format zstd\n"
            "                       in a frame, default 1M\n"
            "  -v, --verbose        say what was done\n"
            "  -k, --keep           as with gzip: IN stays anyway\n",
    .takes_codec = true,
    .writes_file = true,
    .daemon = WHARF_CLI_DAEMON_ASKED,
    .own_options = own_options,
    .own_letters = "123456789",
    .take_option = take_option,
    .run = run,
};
