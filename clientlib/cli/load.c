/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c: memory for loads, and their decoding here or by the daemon (load.h).
 *
 * Through a daemon, neighbouring jobs of one codec and parameter are a group, which is one batch of
 * the daemon.  A load is complete when all groups that were sent have come back.
 */
#include "clientlib/cli/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/pipeline.h"
#include "clientlib/cli/stream_size.h"

/* Allocations of wharf_alloc are multiples of this. */
enum { ARENA_UNIT = 64 };

/* Beside what a stream takes: what its source and output are rounded up by. */
enum { WISHED_BESIDE_NBYTES = 4 * ARENA_UNIT };

enum { USUAL_NBYTES = 1 << 20, USUAL_PADDING_NBYTES = 4 << 10 };

/* Bytes of the arena that the library needs for each chunk of a batch: see wharf_submit_batch. */
enum { TABLE_ENTRY_NBYTES = 56 };

/* ---- memory -------------------------------------------------------------------------------- */

static size_t round_up(size_t nbytes)
{
    return (nbytes + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT;
}

/* The size of a load in the arena: its buffers, and the library's tables for its batches. */
static size_t arena_nbytes_of(size_t in_avail, size_t out_avail)
{
    /* Each batch's table is rounded up by itself. */
    const size_t tables = (size_t)WHARF_CLI_LOAD_MAX_JOBS * TABLE_ENTRY_NBYTES +
                          (size_t)WHARF_CLI_LOAD_MAX_GROUPS * ARENA_UNIT;

    return round_up(in_avail) + round_up(out_avail) + round_up(tables);
}

int wharf_cli_service_open_usual(const struct wharf_cli_options *options, const char *first,
                                 bool discards, struct wharf_cli_service *ret_service)
{
    /* As for a container: payloads with their padding, and output. */
    size_t nbytes = arena_nbytes_of(USUAL_NBYTES + USUAL_PADDING_NBYTES, USUAL_NBYTES);

    uint64_t wished = first && !options->embedded && options->engine >= WHARF_ENGINE_GPU
                          ? wharf_cli_stream_file_guess(first, discards)
                          : 0;

    return wharf_cli_service_open(options, wharf_cli_pipeline_n_slots(options->n_threads), nbytes,
                                  wished ? wished + WISHED_BESIDE_NBYTES : 0, ret_service);
}

static struct wharf_cli_load *load_at(void *slots, size_t slot_nbytes, unsigned number)
{
    return (struct wharf_cli_load *)((uint8_t *)slots + number * slot_nbytes);
}

static int take_memory(struct wharf_cli_service *service, size_t nbytes, uint8_t **ret_memory)
{
    void *memory = NULL;
    int r = 0;

    if (service->wharf)
        r = wharf_alloc(service->wharf, nbytes, &memory);
    else if (!(memory = malloc(nbytes)))
        r = -ENOMEM;
    *ret_memory = memory;
    return r;
}

static int init_load(struct wharf_cli_service *service, struct wharf_cli_load *load,
                     size_t in_avail, size_t out_avail)
{
    int r = take_memory(service, in_avail, &load->in);

    load->in_avail = in_avail;
    load->out_avail = out_avail;
    return r < 0 ? r : take_memory(service, out_avail, &load->out);
}

/* Sets how many groups a load may have, and how many jobs a group. */
static void set_limits(const struct wharf_cli_service *service, struct wharf_cli_load *load,
                       unsigned n_slots)
{
    const struct wharf_info *info = &service->info;

    load->max_groups = WHARF_CLI_LOAD_MAX_GROUPS;
    load->max_group_jobs = WHARF_CLI_LOAD_MAX_JOBS;
    if (!service->wharf)
        return;
    if (info->max_jobs / n_slots < load->max_groups)
        load->max_groups = info->max_jobs / n_slots;
    if (info->max_batch_chunks < load->max_group_jobs)
        load->max_group_jobs = info->max_batch_chunks ? (unsigned)info->max_batch_chunks : 1;
}

/* Reserves room at the daemon, for as many slots as it allows. */
static int prepare_daemon(struct wharf_cli_service *service, unsigned *n_slots, size_t in_avail,
                          size_t out_avail)
{
    int r = wharf_cli_service_reserve(service, arena_nbytes_of(in_avail, out_avail), n_slots);

    if (r < 0)
        return wharf_cli_service_may_stand_in(service) ? 0 : r;
    free(service->loads);
    service->loads = calloc(*n_slots, sizeof(*service->loads));
    return service->loads ? 0 : -ENOMEM;
}

int wharf_cli_loads_init(struct wharf_cli_service *service, void *slots, size_t slot_nbytes,
                         unsigned *n_slots, size_t in_avail, size_t out_avail)
{
    int r = wharf_cli_service_recover(service);

    if (r == 0 && service->wharf)
        r = prepare_daemon(service, n_slots, in_avail, out_avail);
    for (unsigned i = 0; i < *n_slots && r == 0; i++) {
        struct wharf_cli_load *load = load_at(slots, slot_nbytes, i);
        load->number = i;
        set_limits(service, load, *n_slots);
        if (service->wharf)
            service->loads[i] = load;
        r = init_load(service, load, in_avail, out_avail);
    }
    return r;
}

int wharf_cli_loads_say_error(struct wharf_cli_task *task, const char *what, int error)
{
    if (task->service->is_lost)
        return wharf_cli_task_daemon_error(task, error, "the daemon was lost before");
    if (error != -ENOMEM && task->service->is_demanded)
        return wharf_cli_task_daemon_error(task, error, wharf_error_message());
    return wharf_cli_task_error(task, what, error);
}

/* ---- filling ------------------------------------------------------------------------------- */

void wharf_cli_load_clear(struct wharf_cli_load *load)
{
    load->n_jobs = 0;
    load->is_in_files = false;
    load->n_good = 0;
    load->n_groups = 0;
    load->n_sent = 0;
    load->n_back = 0;
    load->engines = 0;
    load->error = 0;
}

static bool begins_group(const struct wharf_cli_load *load, uint32_t codec, uint32_t parameter)
{
    return load->n_jobs == 0 || load->jobs[load->n_jobs - 1].codec != codec ||
           load->jobs[load->n_jobs - 1].setting.parameter != parameter ||
           load->n_jobs - load->group_first[load->n_groups - 1] == load->max_group_jobs;
}

bool wharf_cli_load_has_room(const struct wharf_cli_load *load, uint32_t codec, uint32_t parameter)
{
    return load->n_jobs < WHARF_CLI_LOAD_MAX_JOBS &&
           (load->n_groups < load->max_groups || !begins_group(load, codec, parameter));
}

void wharf_cli_load_add(struct wharf_cli_load *load, const struct wharf_decode_job *job)
{
    if (begins_group(load, job->codec, job->setting.parameter))
        load->group_first[load->n_groups++] = (uint16_t)load->n_jobs;
    load->jobs[load->n_jobs++] = *job;
    load->group_first[load->n_groups] = (uint16_t)load->n_jobs;
}

/* ---- in this process ----------------------------------------------------------------------- */

/* Runs jobs from `first` to `end`, or to the first bad one, which is then n_good. */
static void run_jobs(const struct wharf_cli_service *service, struct wharf_cli_load *load,
                     unsigned first, unsigned end)
{
    int reference = service->options->engine == WHARF_ENGINE_REFERENCE;

    load->engines |= 1u << (reference ? WHARF_ENGINE_REFERENCE : WHARF_ENGINE_CPU);
    for (unsigned i = first; i < end; i++) {
        struct wharf_outcome outcome;

        wharf_decode_job_run(&load->jobs[i], reference, &outcome);
        if (outcome.result != WHARF_OK) {
            load->n_good = i;
            load->outcome = outcome;
            return;
        }
    }
}

void wharf_cli_load_run(const struct wharf_cli_service *service, struct wharf_cli_load *load)
{
    load->n_good = load->n_jobs;
    run_jobs(service, load, 0, load->n_jobs);
}

/* ---- through a daemon ---------------------------------------------------------------------- */

/* The user_data of a group, by which its completion is found. */
static uint64_t name_of(const struct wharf_cli_load *load, unsigned group)
{
    return (uint64_t)load->number << 16 | group;
}

static int send_chunk(struct wharf *wharf, const struct wharf_decode_job *from, uint64_t name)
{
    struct wharf_job job = WHARF_JOB_INIT;
    int r;

    job.codec = from->codec;
    job.parameter = from->setting.parameter;
    job.flags = from->flags;
    job.checksum = from->checksum;
    job.in = from->in;
    job.in_nbytes = from->in_nbytes;
    job.out = from->out;
    job.out_avail = from->out_avail;
    job.user_data = name;
    r = wharf_submit(wharf, &job, 1);
    return r < 0 ? r : 0;
}

static int send_batch(struct wharf *wharf, const struct wharf_decode_job *jobs, unsigned n,
                      uint64_t name)
{
    struct wharf_batch_chunk chunks[WHARF_CLI_LOAD_MAX_JOBS];
    struct wharf_batch batch = WHARF_BATCH_INIT;

    for (unsigned i = 0; i < n; i++)
        chunks[i] = (struct wharf_batch_chunk){
            .in = jobs[i].in,
            .out = jobs[i].out,
            .in_nbytes = (uint32_t)jobs[i].in_nbytes,
            .out_avail = (uint32_t)jobs[i].out_avail,
            .checksum = jobs[i].checksum,
        };
    batch.codec = jobs[0].codec;
    batch.parameter = jobs[0].setting.parameter;
    batch.flags = jobs[0].flags;
    batch.user_data = name;
    batch.chunks = chunks;
    batch.n_chunks = n;
    return wharf_submit_batch(wharf, &batch);
}

void wharf_cli_load_send(const struct wharf_cli_service *service, struct wharf_cli_load *load)
{
    unsigned n_sent = 0;
    int r = 0;

    load->n_good = load->n_jobs;
    for (; n_sent < load->n_groups; n_sent++) {
        unsigned first = load->group_first[n_sent];
        unsigned n = load->group_first[n_sent + 1] - first;

        r = n == 1 ? send_chunk(service->wharf, &load->jobs[first], name_of(load, n_sent))
                   : send_batch(service->wharf, &load->jobs[first], n, name_of(load, n_sent));
        if (r < 0)
            break;
    }
    /* From here on, the writer may read these members. */
    load->n_sent = n_sent;
    load->error = r;
    if (r < 0)
        snprintf(load->error_text, sizeof(load->error_text), "%s", wharf_error_message());
}

static void take_back(const struct wharf_cli_service *service,
                      const struct wharf_completion *completion)
{
    struct wharf_cli_load *load = service->loads[completion->user_data >> 16];
    unsigned group = completion->user_data & 0xffff;
    unsigned first = load->group_first[group];
    unsigned bad = first + completion->first_bad_chunk;

    load->n_back++;
    if (completion->engine != WHARF_ENGINE_AUTO)
        load->engines |= 1u << completion->engine;
    if (completion->result == WHARF_OK || bad >= load->n_good)
        return;
    if (!wharf_cli_is_verdict(completion->result) && !load->is_in_files &&
        wharf_cli_service_may_stand_in(service)) {
        unsigned end = load->group_first[group + 1];
        run_jobs(service, load, first, end < load->n_good ? end : load->n_good);
        return;
    }
    load->n_good = bad;
    load->outcome = (struct wharf_outcome){
        .result = completion->result,
        .reason = completion->reason,
        .bit_offset = completion->bit_offset,
    };
    /* Our requests are well-formed, so a bad one is outside the daemon's limits. */
    if (completion->result == WHARF_BAD_REQUEST)
        load->outcome.result = WHARF_QUOTA;
}

/* Takes completions of all loads until this one is complete.  0 or -errno. */
static int wait_back(const struct wharf_cli_service *service, struct wharf_cli_load *load)
{
    struct wharf_completion completions[64];

    while (load->n_back < load->n_sent) {
        int n = wharf_cli_service_wait(service, completions, 64);

        if (n < 0)
            return n;
        for (int i = 0; i < n; i++)
            take_back(service, &completions[i]);
    }
    return 0;
}

int wharf_cli_load_await(struct wharf_cli_task *task, struct wharf_cli_load *load)
{
    struct wharf_cli_service *service = task->service;
    int r = wait_back(service, load);

    if (r < 0) {
        service->is_lost = true;
        return wharf_cli_task_daemon_error(task, r, wharf_error_message());
    }
    if (load->error < 0 && load->is_in_files) {
        load->n_good = 0;
        load->outcome = (struct wharf_outcome){.result = WHARF_FILE_ERROR};
        return WHARF_CLI_GOOD;
    }
    if (load->error < 0)
        return wharf_cli_task_daemon_error(task, load->error, load->error_text);
    task->tally->engines |= load->engines;
    task->tally->through_daemon |= load->n_back > 0;
    return WHARF_CLI_GOOD;
}

void wharf_cli_loads_deinit(struct wharf_cli_service *service, void *slots, size_t slot_nbytes,
                            unsigned n_slots)
{
    for (unsigned i = 0; i < n_slots; i++) {
        struct wharf_cli_load *load = load_at(slots, slot_nbytes, i);
        if (!service->wharf) {
            free(load->in);
            free(load->out);
            continue;
        }
        if (!service->is_lost && wait_back(service, load) < 0)
            service->is_lost = true;
        if (service->is_lost)
            continue; /* what is left of the daemon may write there: it goes with the handle */
        wharf_free(service->wharf, load->in);
        wharf_free(service->wharf, load->out);
    }
}
