/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_decode.c: decodes one stream in memory as one job of the daemon. */
#include "clientlib/cli/daemon_decode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clientlib/cli/input_wide.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/stream_size.h"

/* Each further try has so many times the room. */
enum { GROWTH = 8 };

/* How near the search for the largest room that the daemon allows comes to it. */
enum { NEAR_NBYTES = 64 << 10 };

/* What wharf_alloc rounds sizes up to. */
enum { ARENA_UNIT = 64 };

static struct wharf_cli_service *service_of(const struct wharf_cli_daemon_decode *decode)
{
    return decode->task->service;
}

static void free_job(struct wharf_cli_daemon_decode *decode)
{
    const struct wharf_cli_service *service = service_of(decode);
    struct wharf_job *job = &decode->job;

    if (service->wharf && !service->is_lost) {
        wharf_free(service->wharf, (void *)job->in);
        wharf_free(service->wharf, job->out);
        if (job->parameter >= WHARF_FIRST_MODEL)
            wharf_unregister_model(service->wharf, job->parameter);
    }
    *job = (struct wharf_job)WHARF_JOB_INIT;
}

void wharf_cli_daemon_decode_deinit(struct wharf_cli_daemon_decode *decode)
{
    free_job(decode);
}

static int register_model(struct wharf_cli_daemon_decode *decode)
{
    struct wharf_model model = WHARF_MODEL_INIT;

    model.codec = decode->codec;
    model.data = decode->model;
    model.nbytes = decode->model_nbytes;
    return wharf_register_model(service_of(decode)->wharf, &model, &decode->job.parameter);
}

/* Puts the input into memory, of which a file that has become shorter leaves some free. */
static int fill(const struct wharf_cli_daemon_decode *decode, struct wharf_job *job, void *memory)
{
    const struct wharf_cli_task *task = decode->task;
    int64_t n = (int64_t)decode->in_nbytes;

    if (decode->in)
        memcpy(memory, decode->in, decode->in_nbytes);
    else
        n = wharf_cli_input_read_wide(task->input, decode->offset, memory, decode->in_nbytes,
                                      task->options->n_threads);
    job->in = memory;
    job->in_nbytes = n < 0 ? 0 : (size_t)n;
    return n < 0 ? (int)n : 0;
}

/* Nothing else is in the arena meanwhile. */
static int prepare_job(struct wharf_cli_daemon_decode *decode, uint64_t out_avail)
{
    struct wharf_cli_service *service = service_of(decode);
    struct wharf_job *job = &decode->job;
    unsigned n_slots = 1;
    void *memory;
    int r;

    free_job(decode);
    if (decode->in_nbytes + out_avail > service->info.max_job_nbytes)
        return -EMSGSIZE;
    r = wharf_cli_service_reserve(
        service, decode->in_nbytes + (decode->discards ? 0 : out_avail) + 2 * ARENA_UNIT, &n_slots);
    if (r == 0)
        r = wharf_alloc(service->wharf, decode->in_nbytes, &memory);
    if (r < 0)
        return r;
    r = fill(decode, job, memory);
    decode->is_unreadable = r < 0;
    if (r < 0)
        return r;
    job->codec = decode->codec;
    job->flags = decode->is_exact ? WHARF_JOB_EXACT_OUTPUT : 0;
    job->parameter = decode->parameter;
    if (decode->model)
        r = register_model(decode);
    job->out_avail = out_avail;
    if (decode->discards)
        job->flags |= WHARF_JOB_DISCARD;
    else if (r == 0 && (r = wharf_alloc(service->wharf, out_avail, &memory)) == 0)
        job->out = memory;
    return r;
}

static int run_job(struct wharf_cli_daemon_decode *decode)
{
    struct wharf_cli_service *service = service_of(decode);
    struct wharf_cli_tally *tally = decode->task->tally;
    struct wharf_completion completion;
    int r = wharf_submit(service->wharf, &decode->job, 1);

    if (r > 0)
        r = wharf_cli_service_wait(service, &completion, 1);
    if (r < 0) {
        service->is_lost = true;
        return r;
    }
    decode->outcome = (struct wharf_outcome){
        .result = completion.result,
        .reason = completion.reason,
        .bit_offset = completion.bit_offset,
        .in_nbytes = completion.in_nbytes,
        .out_nbytes = completion.out_nbytes,
    };
    tally->through_daemon = true;
    if (completion.engine != WHARF_ENGINE_AUTO)
        tally->engines |= 1u << completion.engine;
    return 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t guess_room(const struct wharf_cli_daemon_decode *decode)
{
    size_t n = decode->in_nbytes;
    uint8_t end[WHARF_CLI_STREAM_END_NBYTES];
    bool has_end = n >= sizeof(end);

    if (has_end && decode->in)
        memcpy(end, decode->in + n - sizeof(end), sizeof(end));
    else if (has_end)
        has_end = wharf_cli_input_read_bare(decode->task->input, decode->offset + n - sizeof(end),
                                            end, sizeof(end)) == (int64_t)sizeof(end);
    return wharf_cli_stream_guess(decode->codec, n, has_end ? end : NULL);
}

/* The room of the first try: the GPU's usual places, if only a GPU is wanted and the input fits
 * there, since they are faster than those for large chunks. */
static uint64_t first_room(const struct wharf_cli_daemon_decode *decode)
{
    const struct wharf_cli_service *service = service_of(decode);
    uint64_t usual = service->info.max_gpu_chunk_nbytes;
    uint64_t most = service->info.max_gpu_large_nbytes;

    /* Room that is not there costs nothing. */
    if (decode->discards && most > decode->in_nbytes)
        return most - decode->in_nbytes;
    if (service->options->engine >= WHARF_ENGINE_GPU && decode->in_nbytes <= usual)
        return usual;
    return guess_room(decode);
}

/* After a room that is too small, the next one; from `refused` on none is to be had. */
static uint64_t next_room(uint64_t avail, uint64_t refused)
{
    if (refused == UINT64_MAX)
        return avail * GROWTH;
    return refused - avail > NEAR_NBYTES ? avail + (refused - avail) / 2 : refused;
}

static int try_daemon(struct wharf_cli_daemon_decode *decode)
{
    uint64_t allowed = service_of(decode)->info.max_job_nbytes;
    uint64_t most = allowed > decode->in_nbytes ? allowed - decode->in_nbytes : 0;
    uint64_t avail = decode->is_exact ? decode->most_nbytes : first_room(decode);
    uint64_t too_small = 0, refused = UINT64_MAX;
    int r;

    most = least_of(most, decode->most_nbytes);
    for (;;) {
        avail = least_of(avail, most);
        r = prepare_job(decode, avail);
        if (!decode->is_exact && wharf_cli_service_may_have_less(r) &&
            avail - too_small > NEAR_NBYTES) {
            refused = avail;
            avail = too_small + (avail - too_small) / 2;
            continue;
        }
        if (r == 0)
            r = run_job(decode);
        if (r == 0 && decode->discards && !wharf_cli_is_verdict(decode->outcome.result)) {
            decode->discards = false;
            avail = decode->is_exact ? decode->most_nbytes : first_room(decode);
            continue;
        }
        if (r < 0 || decode->outcome.result != WHARF_OUTPUT_TOO_SMALL || avail == most)
            break;
        too_small = avail;
        avail = next_room(avail, refused);
    }
    decode->out = decode->job.out;
    if (r == 0 && decode->outcome.result == WHARF_OUTPUT_TOO_SMALL && most < decode->most_nbytes)
        r = -EMSGSIZE;
    return r;
}

static int tell_error(struct wharf_cli_daemon_decode *decode, int error)
{
    char size[WHARF_CLI_SIZE_TEXT], text[160];

    if (error != -EMSGSIZE)
        return wharf_cli_task_daemon_error(decode->task, error, wharf_error_message());
    snprintf(text, sizeof(text),
             "source and output together are more than the daemon takes in one job: %s, [quota] "
             "max_job of its wharfd.conf",
             wharf_cli_size_text(service_of(decode)->info.max_job_nbytes, size));
    return wharf_cli_task_daemon_error(decode->task, error, text);
}

int wharf_cli_daemon_decode(struct wharf_cli_daemon_decode *decode)
{
    struct wharf_cli_service *service = service_of(decode);
    int r = try_daemon(decode);
    bool is_here = r < 0 ? !service->is_lost : !wharf_cli_is_verdict(decode->outcome.result);

    if (decode->is_unreadable)
        return wharf_cli_task_read_error(decode->task, r);
    if (is_here && wharf_cli_service_may_stand_in(service))
        return WHARF_CLI_GO_ON;
    if (r < 0)
        return tell_error(decode, r);
    /* Our requests make sense: it is the daemon's limits that they are outside of. */
    if (decode->outcome.result == WHARF_BAD_REQUEST)
        decode->outcome.result = WHARF_QUOTA;
    return WHARF_CLI_GOOD;
}
