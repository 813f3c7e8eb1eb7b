/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h: where a command's chunks are decoded: by a daemon or in this process.
 *
 * A daemon is used if there is one.  If the user asked for it (--socket, or an engine that only a
 * daemon has), nothing else may take its place.  Otherwise this process does what the daemon
 * cannot.
 */
#ifndef WHARF_CLI_SERVICE_H
#define WHARF_CLI_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "clientlib/cli/options.h"
#include "clientlib/wharf.h"

struct wharf_cli_load;

struct wharf_cli_service {
    const struct wharf_cli_options *options;
    struct wharf *wharf;    /* NULL: this process decodes */
    bool is_demanded;       /* this process must not take the daemon's place */
    bool is_lost;           /* the daemon has gone for good, with jobs in flight */
    size_t arena_nbytes;    /* of the handle */
    struct wharf_info info; /* the daemon's limits */

    /* Loads by their numbers, which their jobs carry (load.h). */
    struct wharf_cli_load **loads;
};

/*
 * Connects, with wished_nbytes of memory, or, if that is 0 or more than the daemon allows, with
 * room for n_slots of slot_nbytes each, or for fewer if the daemon allows no more. Returns
 * WHARF_CLI_GO_ON, after a warning if there is a daemon that cannot be used; or the exit status,
 * after reporting the error and what to do.  Close the service only after GO_ON.
 */
int wharf_cli_service_open(const struct wharf_cli_options *options, unsigned n_slots,
                           size_t slot_nbytes, size_t wished_nbytes,
                           struct wharf_cli_service *ret_service);

/* For commands that need only the connection. */
int wharf_cli_service_open_small(const struct wharf_cli_options *options,
                                 struct wharf_cli_service *ret_service);

/*
 * Runs a command about the daemon: parses its command line, which has no operands and the options
 * `own` (as for wharf_cli_parse), connects, and calls `use`.  Returns the exit status, which is
 * that of `use` if it was called.
 */
int wharf_cli_service_run(const struct wharf_cli_command *command, int argc, char **argv, void *own,
                          int (*use)(const struct wharf_cli_service *service, const void *own));

/* Abandons jobs in flight. */
void wharf_cli_service_close(struct wharf_cli_service *service);

/* Whether a smaller arena might be allowed after opening or reserving has failed with this
 * error. */
bool wharf_cli_service_may_have_less(int error);

/*
 * Makes room for *n_slots of slot_nbytes each in the arena, which must be empty.  Reduces *n_slots,
 * but not to 0, if the daemon allows no more.  Returns 0; or -errno, with `wharf` NULL, if there is
 * no room for one.
 */
int wharf_cli_service_reserve(struct wharf_cli_service *service, size_t slot_nbytes,
                              unsigned *n_slots);

/*
 * Takes completions of jobs in flight, at least one, however long the jobs take.  A daemon that is
 * gone or does not answer for longer than --patience is an error.  Returns their number or -errno.
 */
int wharf_cli_service_wait(const struct wharf_cli_service *service,
                           struct wharf_completion *completions, unsigned max);

/*
 * Call this before each file: if the daemon was lost with an earlier one, continues in this process
 * if that is allowed.  Returns 0 or -ENOTCONN.
 */
int wharf_cli_service_recover(struct wharf_cli_service *service);

/* Whether this process may decode what the daemon cannot. */
static inline bool wharf_cli_service_may_stand_in(const struct wharf_cli_service *service)
{
    return !service->is_demanded;
}

/* Whether a daemon's result is about the data, rather than about an engine or a daemon that could
 * not decode it. */
bool wharf_cli_is_verdict(uint32_t result);

/* Writes to `text`, and returns, which limit of the daemon a job with the result QUOTA exceeded,
 * its value and its setting.  NULL if the reason does not tell. */
const char *wharf_cli_service_limit(const struct wharf_cli_service *service, uint32_t reason,
                                    char *text, size_t text_nbytes);

/* The path of the daemon's socket. */
const char *wharf_cli_service_path(const struct wharf_cli_service *service);

/* Reports that the daemon failed with -errno, with the library's text.  Returns the exit status. */
int wharf_cli_service_say_error(const struct wharf_cli_service *service, int error,
                                const char *text);

#endif
