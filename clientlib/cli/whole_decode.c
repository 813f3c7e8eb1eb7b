/* SPDX-License-Identifier: Apache-2.0 */
/* whole_decode.c: decodes one stream in memory, by a daemon or in this process. */
#include "clientlib/cli/whole_decode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clientlib/cli/daemon_decode.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/runs_decode.h"
#include "clientlib/wharf.h"
#include "encoders/decode_job.h"
#include "encoders/little_endian.h"
#include "encoders/rans/rans_format.h"
#include "encoders/run_scan.h"

enum { FIRST_NBYTES = 1 << 20 };

struct whole {
    struct wharf_cli_task *task;
    const struct wharf_cli_whole *wanted;
    uint64_t offset;
    uint64_t max_output_nbytes;
    uint8_t *in;
    size_t in_nbytes;
    uint8_t *out; /* from mmap; NULL through a daemon */
    size_t out_avail;
    struct wharf_cli_daemon_decode there;
    const uint8_t *decoded; /* the output, wherever it is */
    struct wharf_outcome outcome;
};

/*
 * How much input makes sense for an output of at most so much: no encoder makes its worst case more
 * than twice as long (rle1 bytes over 127), and 1 MiB is for small outputs and some bytes behind
 * the stream.
 */
static uint64_t max_input_nbytes(uint64_t max_output_nbytes)
{
    uint64_t more = max_output_nbytes + (1 << 20);

    return max_output_nbytes > PTRDIFF_MAX - more ? PTRDIFF_MAX : max_output_nbytes + more;
}

/* How more output can be had than the limit allows.  The text stays. */
static const char *allow_more(const struct whole *whole)
{
    static char text[96];

    snprintf(text, sizeof(text), "wharf decode --codec %s --max-output SIZE allows more",
             wharf_codec_name(whole->wanted->codec));
    return text;
}

static int tell_too_much(const struct whole *whole)
{
    char limit[WHARF_CLI_SIZE_TEXT];

    wharf_cli_say("%s: too much to decode in memory for an output of at most %s; %s",
                  whole->task->input->name, wharf_cli_size_text(whole->max_output_nbytes, limit),
                  whole->wanted->is_exact ? "that is what --count makes it" : allow_more(whole));
    return wharf_cli_tally_error(whole->task->tally, whole->task->input->name, -EFBIG);
}

/* Reads up to `avail` bytes in all.  1: that was the end, 0: there is more, or -errno. */
static int read_up_to(struct whole *whole, size_t avail)
{
    uint8_t *in = realloc(whole->in, avail);
    int64_t n;

    if (!in)
        return -ENOMEM;
    whole->in = in;
    n = wharf_cli_input_read_at(whole->task->input, whole->offset + whole->in_nbytes,
                                in + whole->in_nbytes, avail - whole->in_nbytes);
    if (n < 0)
        return (int)n;
    whole->in_nbytes += (size_t)n;
    return whole->in_nbytes < avail;
}

static int read_input(struct whole *whole)
{
    uint64_t max = max_input_nbytes(whole->max_output_nbytes);
    size_t avail = FIRST_NBYTES;
    int r;

    while ((r = read_up_to(whole, avail)) == 0) {
        if (avail > max)
            return tell_too_much(whole);
        avail = avail > max / 2 ? max + 1 : 2 * avail;
    }
    return r < 0 ? wharf_cli_task_read_error(whole->task, r) : WHARF_CLI_GOOD;
}

/* A file that can be read again goes directly to where a daemon reads it.  Hints at what may be
 * wrong with streams of rans look into them here. */
static bool is_read_there(const struct whole *whole)
{
    return whole->task->service->wharf && whole->task->input->is_seekable &&
           whole->task->input->nbytes > whole->offset && whole->wanted->codec != WHARF_CODEC_RANS &&
           !wharf_run_scan_knows(whole->wanted->codec);
}

/* For who decodes here. */
static int load_input(struct whole *whole)
{
    if (whole->in)
        return WHARF_CLI_GOOD;
    whole->in_nbytes = 0;
    return read_input(whole);
}

static int measure_input(struct whole *whole)
{
    uint64_t nbytes = whole->task->input->nbytes - whole->offset;

    if (nbytes > max_input_nbytes(whole->max_output_nbytes))
        return tell_too_much(whole);
    whole->in_nbytes = (size_t)nbytes;
    return WHARF_CLI_GOOD;
}

/* What the input can give at most, as far as the limit allows. */
static uint64_t most_output_nbytes(const struct whole *whole)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(whole->wanted->codec)->ops;

    if (whole->wanted->is_exact ||
        wharf_codec_may_yield(ops, whole->in_nbytes, whole->max_output_nbytes))
        return whole->max_output_nbytes;
    return (uint64_t)whole->in_nbytes * ops->max_ratio + ops->max_constant;
}

/* ---- in this process ----------------------------------------------------------------------- */

/* Address space for the output.  The system gives memory to it as it is written to. */
static int map_output(struct whole *whole, uint64_t nbytes)
{
    if (nbytes == 0)
        return WHARF_CLI_GOOD;
    whole->out = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole->out == MAP_FAILED) {
        whole->out = NULL;
        wharf_cli_say("no address space for the output: %s asks for less",
                      whole->wanted->is_exact ? "a smaller --count"
                                              : "wharf decode --max-output SIZE");
        return wharf_cli_tally_error(whole->task->tally, whole->task->output->name, -ENOMEM);
    }
    whole->out_avail = nbytes;
    return WHARF_CLI_GOOD;
}

static uint32_t flags_of(const struct whole *whole)
{
    return whole->wanted->is_exact ? WHARF_JOB_EXACT_OUTPUT : 0;
}

static int decode_here(struct whole *whole)
{
    int reference = whole->task->options->engine == WHARF_ENGINE_REFERENCE;
    int status = load_input(whole);

    if (status == WHARF_CLI_GOOD)
        status = map_output(whole, most_output_nbytes(whole));
    struct wharf_decode_job job = {
        .codec = whole->wanted->codec,
        .flags = flags_of(whole),
        .setting = {.parameter = whole->wanted->image ? 0 : whole->wanted->parameter,
                    .model = whole->wanted->image},
        .in = whole->in,
        .in_nbytes = whole->in_nbytes,
        .out = whole->out,
        .out_avail = whole->out_avail,
    };

    if (status != WHARF_CLI_GOOD)
        return status;
    wharf_decode_job_run(&job, reference, &whole->outcome);
    whole->decoded = whole->out;
    whole->task->tally->engines |= 1u << (reference ? WHARF_ENGINE_REFERENCE : WHARF_ENGINE_CPU);
    return WHARF_CLI_GOOD;
}

/* ---- through a daemon ---------------------------------------------------------------------- */

/* Only the whole GPU, which decodes large streams of these, can do without a place for the output.
 */
static bool is_discarded(const struct whole *whole)
{
    const struct wharf_cli_task *task = whole->task;
    uint32_t codec = whole->wanted->codec;

    return task->output->is_sink && task->options->engine >= WHARF_ENGINE_GPU &&
           whole->in_nbytes > task->service->info.max_gpu_chunk_nbytes &&
           (codec == WHARF_CODEC_DEFLATE || codec == WHARF_CODEC_ZLIB || codec == WHARF_CODEC_GZIP);
}

static int decode_there(struct whole *whole)
{
    struct wharf_cli_daemon_decode *there = &whole->there;
    int status;

    *there = (struct wharf_cli_daemon_decode){
        .task = whole->task,
        .codec = whole->wanted->codec,
        .parameter = whole->wanted->parameter,
        .model = whole->wanted->model,
        .model_nbytes = whole->wanted->model_nbytes,
        .in = whole->in,
        .offset = whole->offset,
        .in_nbytes = whole->in_nbytes,
        .most_nbytes = most_output_nbytes(whole),
        .is_exact = whole->wanted->is_exact,
        .discards = is_discarded(whole),
        .job = WHARF_JOB_INIT,
    };
    status = wharf_cli_daemon_decode(there);
    if (status == WHARF_CLI_GO_ON)
        return decode_here(whole);
    whole->outcome = there->outcome;
    whole->decoded = there->out;
    return status;
}

/* ---- in pieces ----------------------------------------------------------------------------- */

static bool is_for_pieces(const struct whole *whole)
{
    return wharf_run_scan_knows(whole->wanted->codec) &&
           whole->in_nbytes >= WHARF_CLI_RUNS_MIN_NBYTES;
}

static int decode_pieces(struct whole *whole)
{
    int status = map_output(whole, most_output_nbytes(whole));
    const struct wharf_cli_runs runs = {
        .codec = whole->wanted->codec,
        .parameter = whole->wanted->parameter,
        .in = whole->in,
        .in_nbytes = whole->in_nbytes,
        .out = whole->out,
        .out_avail = whole->out_avail,
        .is_exact = whole->wanted->is_exact,
    };

    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_runs_decode(whole->task, &runs, &whole->outcome);
    whole->decoded = whole->out;
    return status;
}

static int deliver(struct whole *whole, uint64_t *ret_end)
{
    /* Goes nowhere, so nobody looks at its bytes. */
    static const uint8_t discarded[1];
    struct wharf_cli_task *task = whole->task;
    const struct wharf_outcome *outcome = &whole->outcome;
    uint64_t end = whole->offset + outcome->in_nbytes;
    int r = whole->in ? wharf_cli_input_unread(task->input, end, whole->in + outcome->in_nbytes,
                                               whole->in_nbytes - outcome->in_nbytes)
                      : 0;
    if (r < 0)
        return wharf_cli_task_error(task, "cannot decode", r);
    task->tally->in_nbytes += outcome->in_nbytes;
    task->tally->n_chunks++;
    *ret_end = end;
    return wharf_cli_task_write(task, end, whole->decoded ? whole->decoded : discarded,
                                outcome->out_nbytes);
}

/* What may be wrong with the command and not with the data; NULL: nothing. */
static const char *hint_at_model(const struct whole *whole)
{
    bool has_model = wharf_load_le32(whole->in + 8) != 0;

    if (!whole->wanted->model)
        return has_model ? NULL : "the stream leaves its model out: --model FILE names it";
    return has_model ? "the stream brings its model with it: leave --model away"
                     : "the stream was coded with another model than that of --model";
}

/* The same of a rans stream whose header or model is bad. */
static const char *hint_at_rans(const struct whole *whole)
{
    if (whole->wanted->codec != WHARF_CODEC_RANS || whole->in_nbytes < WHARF_RANS_HEADER_NBYTES)
        return NULL;
    if (!whole->wanted->model && whole->wanted->parameter + 1 == 3u - whole->in[2])
        return whole->in[2] == 1 ? "the stream has symbols of 1 byte: --type u8"
                                 : "the stream has symbols of 2 bytes: --type u16";
    return hint_at_model(whole);
}

/* The same of any stream. */
static const char *hint_at_command(const struct whole *whole)
{
    if (whole->outcome.result == WHARF_OUTPUT_TOO_SMALL && !whole->wanted->is_exact)
        return allow_more(whole);
    switch (whole->outcome.reason) {
    case WHARF_REASON_RANS_HEADER:
    case WHARF_REASON_RANS_MODEL:
        return hint_at_rans(whole);
    case WHARF_REASON_RLE_VALUE:
        return "unless --type is wrong, it is damaged: get it again";
    case WHARF_REASON_OUTPUT_FULL:
    case WHARF_REASON_OUTPUT_MISSING:
        return whole->wanted->is_exact ? "unless --count is wrong, it is damaged: get it again"
                                       : NULL;
    default:
        return NULL;
    }
}

static int decode(struct whole *whole, uint64_t *ret_end)
{
    struct wharf_cli_fault fault = {.chunk = WHARF_CLI_NO_CHUNK};
    int r = wharf_cli_service_recover(whole->task->service);

    if (r < 0)
        return wharf_cli_task_daemon_error(whole->task, r, "the daemon was lost before");
    if (is_for_pieces(whole))
        r = decode_pieces(whole);
    else
        r = whole->task->service->wharf ? decode_there(whole) : decode_here(whole);
    if (r != WHARF_CLI_GOOD)
        return r;
    if (whole->outcome.result == WHARF_OK)
        return deliver(whole, ret_end);
    fault.advice = hint_at_command(whole);
    fault.result = whole->outcome.result;
    fault.reason = whole->outcome.reason;
    /* More than there has to be is no matter of room. */
    if (whole->wanted->is_exact && fault.result == WHARF_OUTPUT_TOO_SMALL)
        fault.result = WHARF_BAD_DATA;
    fault.bit_offset = 8 * whole->offset + whole->outcome.bit_offset;
    return wharf_cli_task_fault(whole->task, &fault, 0);
}

int wharf_cli_whole_decode(struct wharf_cli_task *task, const struct wharf_cli_whole *wanted,
                           uint64_t offset, uint64_t *ret_end)
{
    struct whole whole = {
        .task = task,
        .wanted = wanted,
        .offset = offset,
        .max_output_nbytes =
            wanted->max_output_nbytes < PTRDIFF_MAX ? wanted->max_output_nbytes : PTRDIFF_MAX,
        .there = {.task = task, .job = WHARF_JOB_INIT},
    };
    int status = is_read_there(&whole) ? measure_input(&whole) : read_input(&whole);

    if (status == WHARF_CLI_GOOD)
        status = decode(&whole, ret_end);
    wharf_cli_daemon_decode_deinit(&whole.there);
    free(whole.in);
    if (whole.out)
        munmap(whole.out, whole.out_avail);
    return status;
}
