/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h: where a command's chunks are decoded: through a daemon, or in this process.
 *
 * A daemon is used if there is one.  Where it was asked for (--socket, or an engine that only a
 * daemon has) nothing else takes its place; otherwise this process does what it cannot do.
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
    struct wharf *wharf;    /* NULL: in this process */
    bool is_demanded;       /* this process must not take the daemon's place */
    bool is_lost;           /* the daemon went away for good, with jobs in flight */
    size_t arena_nbytes;    /* of the handle */
    struct wharf_info info; /* what the daemon can do */

    /* Loads by the numbers that their jobs carry, see load.h. */
    struct wharf_cli_load **loads;
};

/*
 * Connects, with room for n_slots of slot_nbytes each, or for fewer if the daemon allows no more.
 * Returns WHARF_CLI_GO_ON, after a remark if there is a daemon that cannot be used; or the exit
 * status, after saying what is wrong and what to do.  Only after GO_ON the service is to be closed.
 */
int wharf_cli_service_open(const struct wharf_cli_options *options, unsigned n_slots,
                           size_t slot_nbytes, struct wharf_cli_service *ret_service);

/* For commands that need no more than the connection. */
int wharf_cli_service_open_small(const struct wharf_cli_options *options,
                                 struct wharf_cli_service *ret_service);

/*
 * What a command about the daemon does: parses its command line, which has no operands, connects,
 * and calls `use` with `own`, as of wharf_cli_parse().  Returns the exit status, which is that of
 * `use` if it came to it.
 */
int wharf_cli_service_run(const struct wharf_cli_command *command, int argc, char **argv, void *own,
                          int (*use)(const struct wharf_cli_service *service, const void *own));

/* Jobs in flight are given up. */
void wharf_cli_service_close(struct wharf_cli_service *service);

/* Whether a smaller arena may be allowed where opening or reserving ended with this error. */
bool wharf_cli_service_may_have_less(int error);

/*
 * Makes room in the arena, which must be empty, for *n_slots of slot_nbytes each; *n_slots becomes
 * less, but not 0, if the daemon allows no more.  Returns 0, or -errno when there is no room for
 * one, with `wharf` NULL then.
 */
int wharf_cli_service_reserve(struct wharf_cli_service *service, size_t slot_nbytes,
                              unsigned *n_slots);

/*
 * Takes completions of jobs in flight, at least one, however long they take; but a daemon that is
 * gone, or does not answer any more, for longer than --patience is an error.  Returns how many, or
 * -errno.
 */
int wharf_cli_service_wait(const struct wharf_cli_service *service,
                           struct wharf_completion *completions, unsigned max);

/*
 * Before a file: goes on in this process, if it may, where the daemon was lost with an earlier one.
 * Returns 0 or -ENOTCONN.
 */
int wharf_cli_service_recover(struct wharf_cli_service *service);

/* Whether this process may decode what the daemon cannot. */
static inline bool wharf_cli_service_may_stand_in(const struct wharf_cli_service *service)
{
    return !service->is_demanded;
}

/* Whether a daemon's result is about the data, and not about an engine or a daemon that could not
 * decode it. */
bool wharf_cli_is_verdict(uint32_t result);

/* Writes into `text`, and returns, which limit of the daemon a job with result QUOTA exceeded, its
 * value and its setting; NULL: the reason does not tell. */
const char *wharf_cli_service_limit(const struct wharf_cli_service *service, uint32_t reason,
                                    char *text, size_t text_nbytes);

/* Where the daemon is. */
const char *wharf_cli_service_path(const struct wharf_cli_service *service);

/* Says that the daemon failed, -errno, with the library's text.  Returns the exit status. */
int wharf_cli_service_say_error(const struct wharf_cli_service *service, int error,
                                const char *text);

#endif
