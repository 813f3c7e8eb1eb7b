/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h: the chunks of a pipeline's slot, with their memory, decoded in parallel.
 *
 * In this process a worker of the pipeline decodes a slot's load.  Through a daemon the reader
 * sends it off as soon as the slot is filled, so that the loads of all slots are in flight
 * together, and the writer waits for it when its turn comes; the memory is the daemon's arena, and
 * nothing is copied.
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
    /* Neighbours of one codec are one batch; a load has as many batches at most. */
    WHARF_CLI_LOAD_MAX_GROUPS = 128,
};

struct wharf_cli_load {
    uint8_t *in; /* sources */
    uint8_t *out;
    size_t in_avail;
    size_t out_avail;

    struct wharf_decode_job jobs[WHARF_CLI_LOAD_MAX_JOBS]; /* between `in` and `out`, in order */
    unsigned n_jobs;
    bool is_in_files; /* handed over (handover.h): this process cannot run the jobs */

    /* What became of them: the jobs before the first bad one, and that one's outcome. */
    unsigned n_good;
    struct wharf_outcome outcome;
    uint32_t engines; /* bits 1 << enum wharf_engine: what ran them */

    /* Through a daemon.  The reader's until it is sent, then the writer's. */
    unsigned number;
    unsigned max_groups;
    unsigned max_group_jobs;
    unsigned n_groups;
    uint16_t group_first[WHARF_CLI_LOAD_MAX_GROUPS + 1]; /* job; and behind the last one */
    unsigned n_sent;                                     /* groups */
    unsigned n_back;
    int error; /* -errno of sending, or 0 */
    char error_text[256];
};

/* wharf_cli_service_open with room for as many slots as a pipeline usually has. */
int wharf_cli_service_open_usual(const struct wharf_cli_options *options,
                                 struct wharf_cli_service *ret_service);

/*
 * Gives a service's loads their memory.  Each stands at the beginning of one of *n_slots slots of
 * slot_nbytes, which are zeroed; through a daemon there may be fewer in the end.  Where the daemon
 * has no room and this process may stand in, service->wharf is NULL afterwards.  Returns 0, or
 * -errno: also then they are to be freed.
 */
int wharf_cli_loads_init(struct wharf_cli_service *service, void *slots, size_t slot_nbytes,
                         unsigned *n_slots, size_t in_avail, size_t out_avail);

/* Tells why _init failed.  Returns the exit status. */
int wharf_cli_loads_say_error(struct wharf_cli_task *task, const char *what, int error);

/* Waits until nothing of them is in flight, and frees their memory. */
void wharf_cli_loads_deinit(struct wharf_cli_service *service, void *slots, size_t slot_nbytes,
                            unsigned n_slots);

/* Empties it, to be filled anew. */
void wharf_cli_load_clear(struct wharf_cli_load *load);

/* Whether one more job of this codec and parameter fits. */
bool wharf_cli_load_has_room(const struct wharf_cli_load *load, uint32_t codec, uint32_t parameter);

/* Adds a job.  There is room. */
void wharf_cli_load_add(struct wharf_cli_load *load, const struct wharf_decode_job *job);

/* Decodes it in the calling thread. */
void wharf_cli_load_run(const struct wharf_cli_service *service, struct wharf_cli_load *load);

/* Hands it to the daemon.  What goes wrong is told by _await. */
void wharf_cli_load_send(const struct wharf_cli_service *service, struct wharf_cli_load *load);

/* Waits until it is back.  Returns WHARF_CLI_GOOD, or the exit status after saying that the daemon
 * failed.  Of a load in files whatever is no verdict on data is an outcome, and is said by nobody.
 */
int wharf_cli_load_await(struct wharf_cli_task *task, struct wharf_cli_load *load);

#endif
