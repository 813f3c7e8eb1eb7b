/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h: a load: the chunks of a pipeline's slot, with their memory, decoded together.
 *
 * Without a daemon, a worker of the pipeline decodes a load.  Through a daemon, the reader sends a
 * load as soon as its slot is full, so that the loads of all slots are in flight together, and the
 * writer waits for each in order.  The memory is then in the daemon's arena, and nothing is copied.
 */
#ifndef WHARF_CLI_LOAD_H
#define WHARF_CLI_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clientlib/cli/service.h"
#include "clientlib/cli/task.h"
#include "encoders/decode_job.h"

enum {
    WHARF_CLI_LOAD_MAX_JOBS = 512,
    /* The most groups: neighbouring jobs of one codec and parameter, which are one batch. */
    WHARF_CLI_LOAD_MAX_GROUPS = 128,
};

struct wharf_cli_load {
    uint8_t *in; /* sources */
    uint8_t *out;
    size_t in_avail;
    size_t out_avail;

    struct wharf_decode_job jobs[WHARF_CLI_LOAD_MAX_JOBS]; /* in the order of their data */
    unsigned n_jobs;
    bool is_in_files; /* in handed-over files (handover.h): this process cannot run the jobs */

    /* The result: the number of jobs before the first bad one, and that one's outcome. */
    unsigned n_good;
    struct wharf_outcome outcome;
    uint32_t engines; /* bits 1 << enum wharf_engine: the engines that ran them */

    /* For the daemon.  The reader's until the load is sent, then the writer's. */
    unsigned number;
    unsigned max_groups;
    unsigned max_group_jobs;
    unsigned n_groups;
    uint16_t group_first[WHARF_CLI_LOAD_MAX_GROUPS + 1]; /* first job of each group, and the end */
    unsigned n_sent;                                     /* groups sent */
    unsigned n_back;
    int error; /* -errno of sending, or 0 */
    char error_text[256];
};

/* wharf_cli_service_open with room for a pipeline's usual number of slots; or for `first`, the
 * first file, unless NULL, where only a GPU is wanted and decodes that as one job: memory that was
 * registered for nothing would have to leave the GPU before it.  `discards`: its output is not
 * wanted. */
int wharf_cli_service_open_usual(const struct wharf_cli_options *options, const char *first,
                                 bool discards, struct wharf_cli_service *ret_service);

/*
 * Allocates the memory of a service's loads.  A load is the first member of each of *n_slots slots
 * of slot_nbytes, which are zeroed; with a daemon, *n_slots may be reduced.  If the daemon has no
 * room and this process may decode instead, service->wharf is NULL afterwards.  Returns 0 or
 * -errno; call wharf_cli_loads_deinit in both cases.
 */
int wharf_cli_loads_init(struct wharf_cli_service *service, void *slots, size_t slot_nbytes,
                         unsigned *n_slots, size_t in_avail, size_t out_avail);

/* Reports why wharf_cli_loads_init failed.  Returns the exit status. */
int wharf_cli_loads_say_error(struct wharf_cli_task *task, const char *what, int error);

/* Waits until none of the loads is in flight, and frees their memory. */
void wharf_cli_loads_deinit(struct wharf_cli_service *service, void *slots, size_t slot_nbytes,
                            unsigned n_slots);

/* Empties a load. */
void wharf_cli_load_clear(struct wharf_cli_load *load);

/* Whether a job of this codec and parameter fits. */
bool wharf_cli_load_has_room(const struct wharf_cli_load *load, uint32_t codec, uint32_t parameter);

/* Adds a job, for which there is room. */
void wharf_cli_load_add(struct wharf_cli_load *load, const struct wharf_decode_job *job);

/* Decodes the load in the calling thread. */
void wharf_cli_load_run(const struct wharf_cli_service *service, struct wharf_cli_load *load);

/* Sends the load to the daemon.  wharf_cli_load_await reports errors. */
void wharf_cli_load_send(const struct wharf_cli_service *service, struct wharf_cli_load *load);

/*
 * Waits until the load is complete.  Returns WHARF_CLI_GOOD, or the exit status after reporting
 * that the daemon failed.  For a load in files, such a failure is an outcome instead, and is not
 * reported.
 */
int wharf_cli_load_await(struct wharf_cli_task *task, struct wharf_cli_load *load);

#endif
