/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf list: what compressed files are made of.
 *
 * It prints what the headers of a container's chunks and of BGZF's blocks say.  What only decoding
 * tells is `?`, unless --exact decodes it.  The size in a gzip trailer is never believed: it is
 * that of the last member alone, modulo 2^32, and unverified.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/cli/any_decode.h"
#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/commands.h"
#include "clientlib/cli/cpu_decode.h"
#include "clientlib/cli/cpu_format.h"
#include "clientlib/cli/file_walk.h"
#include "clientlib/cli/json.h"
#include "clientlib/cli/load.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/progress.h"
#include "encoders/container_read.h"
#include "encoders/zstd/zstd_scan.h"

enum { OPTION_EXACT = WHARF_CLI_LONG_ONLY, OPTION_JSON, MAX_CODECS = 64, MAX_CODECS_TEXT = 512 };

/* A number that has not been found out. */
#define UNKNOWN UINT64_MAX

static const struct option own_options[] = {
    {"exact", no_argument, NULL, OPTION_EXACT},
    {"json", no_argument, NULL, OPTION_JSON},
    {0},
};

struct settings {
    bool is_exact;
    bool is_json;
    bool has_printed; /* a file's line */
};

/* What is known about a file. */
struct listing {
    const char *name;
    const char *format;
    const char *check;
    uint64_t codecs;       /* bits 1 << enum wharf_codec */
    uint64_t n_chunks;     /* chunks, blocks or streams */
    uint64_t chunk_nbytes; /* the largest one's output */
    uint64_t in_nbytes;
    uint64_t out_nbytes;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    (void)argument;
    settings->is_exact = settings->is_exact || option == OPTION_EXACT;
    settings->is_json = settings->is_json || option == OPTION_JSON;
    return NULL;
}

/* ---- reading ----------------------------------------------------------------------------- */

static int64_t read_input(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    return wharf_cli_input_read_at(context, offset, buf, nbytes);
}

static int list_container(struct wharf_cli_task *task, struct listing *listing)
{
    const struct wharf_container_source source = {read_input, task->input, task->input->nbytes};
    struct wharf_container_reader reader;
    struct wharf_container_item item;

    listing->n_chunks = listing->chunk_nbytes = listing->out_nbytes = 0;
    wharf_container_reader_init(&reader, &source);
    for (;;) {
        int r = wharf_container_next(&reader, &item);

        if (r < 0)
            return wharf_cli_task_read_error(task, r);
        if (item.kind != WHARF_CONTAINER_CHUNK)
            break;
        listing->codecs |= UINT64_C(1) << (item.chunk.codec % MAX_CODECS);
        listing->n_chunks++;
        listing->out_nbytes += item.chunk.raw_nbytes;
        if (item.chunk.raw_nbytes > listing->chunk_nbytes)
            listing->chunk_nbytes = item.chunk.raw_nbytes;
    }
    listing->in_nbytes = reader.offset;
    if (item.kind == WHARF_CONTAINER_FAULT) {
        const struct wharf_cli_fault fault = {item.fault.result, item.fault.reason,
                                              8 * item.fault.file_offset + item.fault.bit_offset,
                                              item.fault.chunk, NULL};

        return wharf_cli_task_fault(task, &fault, 0);
    }
    return WHARF_CLI_GOOD;
}

static void count_block(void *context, const struct wharf_bgzf_piece *block)
{
    (void)block;
    ++*(uint64_t *)context;
}

static int list_bgzf(struct wharf_cli_task *task, struct listing *listing)
{
    uint64_t n_blocks = 0;
    bool is_whole;
    int status = wharf_cli_walk_bgzf(task, count_block, &n_blocks, &is_whole);

    /* Otherwise what follows is gzip, which only decoding takes apart, or no gzip at all. */
    if (is_whole)
        listing->n_chunks = n_blocks;
    listing->in_nbytes = task->input->nbytes;
    return status;
}

struct frames {
    uint64_t n, out_nbytes, largest;
    bool is_known; /* the sizes are */
};

static void count_frame(void *context, const struct wharf_zstd_scan *scan, uint64_t offset)
{
    struct frames *frames = context;

    (void)offset;
    frames->n++;
    frames->is_known = frames->is_known && scan->frame.has_content_size &&
                       scan->frame.content_nbytes < UNKNOWN - frames->out_nbytes;
    frames->out_nbytes += frames->is_known ? scan->frame.content_nbytes : 0;
    if (frames->is_known && scan->frame.content_nbytes > frames->largest)
        frames->largest = scan->frame.content_nbytes;
}

/* Sizes are those of the frames' headers, if all have them. */
static int list_zstd(struct wharf_cli_task *task, struct listing *listing)
{
    struct frames frames = {.is_known = true};
    bool is_whole;
    int status = wharf_cli_walk_zstd(task, count_frame, &frames, &is_whole);

    if (!is_whole)
        return status;
    listing->n_chunks = frames.n;
    listing->chunk_nbytes = frames.is_known ? frames.largest : UNKNOWN;
    listing->out_nbytes = frames.is_known ? frames.out_nbytes : UNKNOWN;
    return WHARF_CLI_GOOD;
}

static uint32_t codec_of(enum wharf_source_kind kind)
{
    switch (kind) {
    case WHARF_SOURCE_ZLIB:
        return WHARF_CODEC_ZLIB;
    case WHARF_SOURCE_ZSTD:
        return WHARF_CODEC_ZSTD;
    default:
        return WHARF_CODEC_GZIP;
    }
}

/* Frames of zstd need not have one: only what stands first is looked at. */
static const char *check_of(struct wharf_cli_task *task, enum wharf_source_kind kind)
{
    uint8_t first[WHARF_ZSTD_FRAME_HEADER_MAX_NBYTES];
    struct wharf_zstd_frame frame;

    if (kind != WHARF_SOURCE_ZSTD)
        return kind == WHARF_SOURCE_ZLIB ? "adler32" : "crc32";
    int64_t n = wharf_cli_input_read_at(task->input, 0, first, sizeof(first));
    if (n > 0 && wharf_zstd_read_frame(first, (size_t)n, &frame) == WHARF_REASON_NONE)
        return frame.has_checksum ? "xxh64" : "none";
    return "?";
}

static int list_cpu_format(struct wharf_cli_task *task, const struct wharf_cli_cpu_format *format,
                           struct listing *listing)
{
    struct wharf_cli_cpu_sums sums;
    int status = wharf_cli_cpu_format_look(task, format, &sums);

    listing->format = format->name;
    listing->codecs = format->codecs;
    listing->check = !sums.has_header ? "?" : sums.has_checks ? format->check : "none";
    listing->n_chunks = sums.n_blocks;
    listing->out_nbytes = sums.out_nbytes;
    return status;
}

/* A pipe can be read only once: where it is to be decoded, its headers are left to that. */
static int list_kind(struct wharf_cli_task *task, enum wharf_source_kind kind, bool is_exact,
                     struct listing *listing)
{
    const struct wharf_cli_cpu_format *format = wharf_cli_cpu_format_find(kind);
    uint32_t codec = codec_of(kind);

    listing->in_nbytes = task->input->nbytes; /* unknown of a pipe */
    if (format)
        return list_cpu_format(task, format, listing);
    switch (kind) {
    case WHARF_SOURCE_CONTAINER:
        listing->format = "wharf";
        listing->check = "crc32";
        return is_exact && !task->input->is_seekable ? WHARF_CLI_GOOD
                                                     : list_container(task, listing);
    case WHARF_SOURCE_BGZF:
        listing->format = "bgzf";
        break;
    case WHARF_SOURCE_GZIP:
    case WHARF_SOURCE_ZLIB:
    case WHARF_SOURCE_ZSTD:
        listing->format = wharf_codec_name(codec);
        break;
    default:
        return wharf_cli_any_tell_unknown(task, kind);
    }
    listing->codecs = UINT64_C(1) << codec;
    listing->check = check_of(task, kind);
    if (kind == WHARF_SOURCE_ZSTD && task->input->is_seekable)
        return list_zstd(task, listing);
    return kind == WHARF_SOURCE_BGZF && task->input->is_seekable ? list_bgzf(task, listing)
                                                                 : WHARF_CLI_GOOD;
}

static bool is_pipe(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

/* Decodes the whole input: then its sizes are certain, and it is known to be good. */
static int measure(struct wharf_cli_task *task, struct listing *listing)
{
    uint64_t in_nbytes = task->tally->in_nbytes;
    uint64_t n_chunks = task->tally->n_chunks;
    int status;

    wharf_cli_output_open_sink(task->output);
    task->output->is_watched = is_pipe(STDOUT_FILENO); /* to a pager, perhaps */
    wharf_cli_task_start_progress(task);
    status = wharf_cli_any_decode(task, (struct wharf_cli_range){0, UINT64_MAX, NULL, false});
    wharf_cli_progress_end();
    if (status != WHARF_CLI_GOOD)
        return status;
    listing->out_nbytes = task->output->nbytes;
    listing->n_chunks = task->tally->n_chunks - n_chunks;
    if (listing->in_nbytes == UNKNOWN)
        listing->in_nbytes = task->tally->in_nbytes - in_nbytes;
    return WHARF_CLI_GOOD;
}

/* ---- printing ---------------------------------------------------------------------------- */

static void put_number(FILE *to, uint64_t number)
{
    if (number == UNKNOWN)
        fputs("null", to);
    else
        fprintf(to, "%" PRIu64, number);
}

/* The codecs' names, each between two `quote`s, and commas between. */
static void codecs_text(uint64_t codecs, const char *quote, char *text, size_t text_nbytes)
{
    size_t used = 0;

    text[0] = 0;
    for (uint32_t codec = 0; codec < MAX_CODECS && used < text_nbytes; codec++)
        if (codecs >> codec & 1)
            used += (size_t)snprintf(text + used, text_nbytes - used, "%s%s%s%s", used ? "," : "",
                                     quote, wharf_codec_name(codec), quote);
}

static double ratio_of(const struct listing *listing)
{
    if (listing->in_nbytes == UNKNOWN || listing->out_nbytes == UNKNOWN || !listing->in_nbytes)
        return 0;
    return (double)listing->out_nbytes / (double)listing->in_nbytes;
}

static void print_json(const struct listing *listing, bool is_first)
{
    char codecs[MAX_CODECS_TEXT];

    codecs_text(listing->codecs, "\"", codecs, sizeof(codecs));
    printf("%s\n{\"name\":", is_first ? "[" : ",");
    wharf_cli_json_string(stdout, listing->name);
    printf(",\"format\":\"%s\",\"codecs\":[%s],\"chunks\":", listing->format, codecs);
    put_number(stdout, listing->n_chunks);
    printf(",\"chunk_nbytes\":");
    put_number(stdout, listing->chunk_nbytes);
    printf(",\"in_nbytes\":");
    put_number(stdout, listing->in_nbytes);
    printf(",\"out_nbytes\":");
    put_number(stdout, listing->out_nbytes);
    if (strcmp(listing->check, "?") == 0)
        printf(",\"check\":null}");
    else
        printf(",\"check\":\"%s\"}", listing->check);
}

static const char *text_of(uint64_t number, bool is_size, char *text)
{
    if (number == UNKNOWN)
        return "?";
    if (is_size)
        return wharf_cli_size_text(number, text);
    snprintf(text, WHARF_CLI_SIZE_TEXT, "%" PRIu64, number);
    return text;
}

static void print_name(const char *name)
{
    for (; *name; name++)
        putchar((unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name);
    putchar('\n');
}

static void print_line(const struct listing *listing, bool is_first)
{
    char texts[4][WHARF_CLI_SIZE_TEXT];
    char ratio[WHARF_CLI_SIZE_TEXT] = "?";
    char codecs[MAX_CODECS_TEXT];

    if (is_first)
        printf("%-6s %-8s %8s %10s %11s %11s %7s %-7s %s\n", "FORMAT", "CODEC", "CHUNKS", "LARGEST",
               "PACKED", "UNPACKED", "RATIO", "CHECK", "NAME");
    codecs_text(listing->codecs, "", codecs, sizeof(codecs));
    if (ratio_of(listing) > 0)
        snprintf(ratio, sizeof(ratio), "%.2f", ratio_of(listing));
    printf("%-6s %-8s %8s %10s %11s %11s %7s %-7s ", listing->format, codecs[0] ? codecs : "-",
           text_of(listing->n_chunks, false, texts[0]),
           text_of(listing->chunk_nbytes, true, texts[1]),
           text_of(listing->in_nbytes, true, texts[2]),
           text_of(listing->out_nbytes, true, texts[3]), ratio, listing->check);
    print_name(listing->name);
}

static void print(struct settings *settings, const struct listing *listing)
{
    if (settings->is_json)
        print_json(listing, !settings->has_printed);
    else
        print_line(listing, !settings->has_printed);
    settings->has_printed = true;
}

/* ---- all together ------------------------------------------------------------------------- */

static int list_input(struct wharf_cli_task *task, struct settings *settings)
{
    struct listing listing = {
        .name = task->input->name,
        .n_chunks = UNKNOWN,
        .chunk_nbytes = UNKNOWN,
        .in_nbytes = UNKNOWN,
        .out_nbytes = UNKNOWN,
    };
    enum wharf_source_kind kind;
    int status = wharf_cli_any_detect(task, &kind);

    if (status == WHARF_CLI_GOOD && wharf_cli_any_is_spent(task, kind))
        return status;
    if (status == WHARF_CLI_GOOD)
        status = list_kind(task, kind, settings->is_exact, &listing);
    if (status == WHARF_CLI_GOOD && settings->is_exact)
        status = measure(task, &listing);
    if (status == WHARF_CLI_GOOD)
        print(settings, &listing);
    return status;
}

static void list_file(struct wharf_cli_task *task, const char *path, struct settings *settings)
{
    if (wharf_cli_task_open_input(task, path) != WHARF_CLI_GOOD)
        return;
    list_input(task, settings);
    wharf_cli_input_close(task->input);
}

static int finish(const struct settings *settings, const struct wharf_cli_tally *tally)
{
    int status;

    if (settings->is_json)
        puts(settings->has_printed ? "\n]" : "[]");
    status = wharf_cli_end_output();
    return tally->status != WHARF_CLI_GOOD ? tally->status : status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {0};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = argc};
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_service service;
    struct wharf_cli_task task = {.options = &options,
                                  .tally = &tally,
                                  .input = &input,
                                  .output = &output,
                                  .service = &service};
    int status = wharf_cli_parse(&wharf_cli_list, argc, argv, &settings, &options, &operands);

    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_usual(&options, NULL, false, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    wharf_cli_begin_output();
    wharf_cli_output_open_sink(&output);
    wharf_cli_tally_init(&tally);
    for (int i = 0; i < operands.n; i++)
        list_file(&task, argv[operands.first + i], &settings);
    if (operands.n == 0)
        list_file(&task, "-", &settings);
    status = finish(&settings, &tally);
    wharf_cli_service_close(&service);
    if (options.report)
        wharf_cli_tally_report(&tally);
    return status;
}

const struct wharf_cli_command wharf_cli_list = {
    .name = "list",
    .summary = "print what compressed files are made of",
    .usage = "[OPTION...] [FILE...]",
    .help = "Prints format, codecs, number of chunks (blocks, streams), the largest one's\n"
            "size, sizes, ratio and kind of check of each FILE, or of standard input.  Only\n"
            "headers are read: what they do not tell for certain is `?`.\n\n"
            "      --exact          decode and verify all, and print what comes of it\n"
            "      --json           print a JSON array\n",
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
