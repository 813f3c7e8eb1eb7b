/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/whole_decode.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "clientlib/cli/number.h"
#include "clientlib/wharf.h"

enum { FIRST_NBYTES = 1 << 20 };

struct whole {
    struct wharf_cli_task *task;
    uint64_t offset;
    uint64_t max_output_nbytes;
    uint8_t *in;
    size_t in_nbytes;
    uint8_t *out; /* from mmap */
    size_t out_avail;
    struct wharf_outcome outcome;
};

/*
 * How much input makes sense for an output of at most so much: no codec stores its worst case in
 * more than an eighth more, and 1 MiB is for small outputs and some bytes behind the stream.
 */
static uint64_t max_input_nbytes(uint64_t max_output_nbytes)
{
    uint64_t more = max_output_nbytes / 8 + (1 << 20);

    return max_output_nbytes > PTRDIFF_MAX - more ? PTRDIFF_MAX : max_output_nbytes + more;
}

static int tell_too_much(const struct whole *whole)
{
    char limit[WHARF_CLI_SIZE_TEXT];

    wharf_cli_say("%s: too much to decode in memory for an output of at most %s; wharf decode "
                  "--max-output SIZE allows more",
                  whole->task->input->name, wharf_cli_size_text(whole->max_output_nbytes, limit));
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

/* Address space for what the input can give at most, as far as the limit allows.  The system
 * gives memory to it as it is written to. */
static int map_output(struct whole *whole, uint32_t codec)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
    uint64_t nbytes = whole->max_output_nbytes;

    if (!wharf_codec_may_yield(ops, whole->in_nbytes, nbytes))
        nbytes = (uint64_t)whole->in_nbytes * ops->max_ratio + ops->max_constant;
    if (nbytes == 0)
        return WHARF_CLI_GOOD;
    whole->out = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole->out == MAP_FAILED) {
        whole->out = NULL;
        wharf_cli_say(
            "no address space for the output: wharf decode --max-output SIZE asks for less");
        return wharf_cli_tally_error(whole->task->tally, whole->task->output->name, -ENOMEM);
    }
    whole->out_avail = nbytes;
    return WHARF_CLI_GOOD;
}

static int decompress(struct whole *whole, uint32_t codec)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf *wharf;
    int r;

    options.engine = whole->task->options->engine;
    job.codec = codec;
    job.in = whole->in;
    job.in_nbytes = whole->in_nbytes;
    job.out = whole->out;
    job.out_avail = whole->out_avail;
    r = wharf_open(&options, &wharf);
    if (r < 0)
        return r;
    r = wharf_decompress(wharf, &job, &whole->outcome);
    wharf_close(wharf);
    return r;
}

static int deliver(struct whole *whole, uint64_t *ret_end)
{
    struct wharf_cli_task *task = whole->task;
    const struct wharf_outcome *outcome = &whole->outcome;
    uint64_t end = whole->offset + outcome->in_nbytes;
    int r = wharf_cli_output_write(task->output, whole->out, outcome->out_nbytes);

    if (r < 0)
        return wharf_cli_task_write_error(task, r);
    r = wharf_cli_input_unread(task->input, end, whole->in + outcome->in_nbytes,
                               whole->in_nbytes - outcome->in_nbytes);
    if (r < 0)
        return wharf_cli_task_error(task, "cannot decode", r);
    task->tally->in_nbytes += outcome->in_nbytes;
    task->tally->n_chunks++;
    wharf_cli_task_move(task, end, outcome->out_nbytes);
    *ret_end = end;
    return WHARF_CLI_GOOD;
}

static int decode(struct whole *whole, uint32_t codec, uint64_t *ret_end)
{
    struct wharf_cli_fault fault = {.chunk = WHARF_CLI_NO_CHUNK};
    int r;

    r = map_output(whole, codec);
    if (r != WHARF_CLI_GOOD)
        return r;
    r = decompress(whole, codec);
    if (r < 0)
        return wharf_cli_task_error(whole->task, "cannot decode", r);
    if (whole->outcome.result == WHARF_OK)
        return deliver(whole, ret_end);
    fault.result = whole->outcome.result;
    fault.reason = whole->outcome.reason;
    fault.bit_offset = 8 * whole->offset + whole->outcome.bit_offset;
    return wharf_cli_task_fault(whole->task, &fault, 0);
}

int wharf_cli_whole_decode(struct wharf_cli_task *task, uint32_t codec, uint64_t offset,
                           uint64_t max_output_nbytes, uint64_t *ret_end)
{
    struct whole whole = {
        .task = task,
        .offset = offset,
        .max_output_nbytes = max_output_nbytes < PTRDIFF_MAX ? max_output_nbytes : PTRDIFF_MAX,
    };
    int status = read_input(&whole);

    if (status == WHARF_CLI_GOOD)
        status = decode(&whole, codec, ret_end);
    free(whole.in);
    if (whole.out)
        munmap(whole.out, whole.out_avail);
    return status;
}
