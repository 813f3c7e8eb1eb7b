/* SPDX-License-Identifier: Apache-2.0 */
/* service.c: opens and closes the command's handle of libwharf, and explains its errors. */
#include "clientlib/cli/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/message.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/tally.h"

/* ---- what went wrong ----------------------------------------------------------------------- */

/* Whether there is no daemon that this user can reach.  Otherwise a daemon has refused. */
static bool is_no_daemon(int error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
    case ECONNRESET:
    case EACCES:
    case EPROTO:
    case EPROTOTYPE:
    case ENOTSOCK:
    case ETIMEDOUT:
    case ENOTCONN:
        return true;
    default:
        return false;
    }
}

static int status_of(int error)
{
    if (error == -EINVAL)
        return WHARF_CLI_USAGE;
    return is_no_daemon(error) ? WHARF_CLI_NO_DAEMON : WHARF_CLI_FAILED;
}

int wharf_cli_service_say_error(const struct wharf_cli_service *service, int error,
                                const char *text)
{
    const struct wharf_cli_options *options = service->options;
    bool is_daemons = options->engine == WHARF_ENGINE_GPU || options->engine == WHARF_ENGINE_SIMT;
    int status = status_of(error);

    wharf_cli_say("%s%s", status == WHARF_CLI_NO_DAEMON ? "no daemon: " : "", text);
    if (status != WHARF_CLI_USAGE && !options->needs_daemon)
        wharf_cli_say(
            "--embedded%s%s%s%s%s does the work in this process%s",
            options->socket || is_daemons ? " in place of " : "", options->socket ? "--socket" : "",
            options->socket && is_daemons ? " and " : "", is_daemons ? "--engine " : "",
            is_daemons ? wharf_engine_name(options->engine) : "", is_daemons ? ", on the CPU" : "");
    return status;
}

const char *wharf_cli_service_path(const struct wharf_cli_service *service)
{
    const char *path = service->options->socket ? service->options->socket : getenv("WHARF_SOCKET");

    return path && *path ? path : WHARF_DEFAULT_SOCKET;
}

/* ---- connecting ---------------------------------------------------------------------------- */

static int open_handle(struct wharf_cli_service *service, uint32_t engine, size_t arena_nbytes)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    int r;

    options.flags = WHARF_OPEN_DAEMON;
    options.engine = engine;
    options.socket_path = service->options->socket;
    options.patience_ms = service->options->patience_ms;
    options.arena_nbytes = arena_nbytes;
    /* Commands about the daemon ask for one job at a time, so that they work even for a user who
     * may have few jobs or has most of them in flight. */
    options.max_jobs = service->options->needs_daemon ? 1 : 0;
    r = wharf_open(&options, &service->wharf);
    if (r < 0)
        return r;
    service->info.struct_nbytes = sizeof(service->info);
    service->arena_nbytes = arena_nbytes;
    return wharf_get_info(service->wharf, &service->info);
}

static void close_handle(struct wharf_cli_service *service)
{
    wharf_close(service->wharf);
    service->wharf = NULL;
    service->arena_nbytes = 0;
}

/* Whether less memory may help.  Only these two limits count bytes; after any other refusal, each
 * try would only be counted as one more refusal. */
bool wharf_cli_service_may_have_less(int error)
{
    const char *message = wharf_error_message();

    return error == -ENOMEM ||
           (error == -EDQUOT && (strstr(message, "max_memory") || strstr(message, "max_arena")));
}

/* Opens a handle with less and less room until the daemon accepts it. */
static int open_with_room(struct wharf_cli_service *service, size_t slot_nbytes, unsigned *n_slots)
{
    for (;;) {
        int r = open_handle(service, service->options->engine, *n_slots * slot_nbytes);

        if (!wharf_cli_service_may_have_less(r) || *n_slots == 1)
            return r;
        *n_slots /= 2;
    }
}

int wharf_cli_service_reserve(struct wharf_cli_service *service, size_t slot_nbytes,
                              unsigned *n_slots)
{
    if (*n_slots > service->info.max_jobs)
        *n_slots = service->info.max_jobs;
    if (*n_slots * slot_nbytes <= service->arena_nbytes)
        return 0;
    close_handle(service);
    return open_with_room(service, slot_nbytes, n_slots);
}

int wharf_cli_service_wait(const struct wharf_cli_service *service,
                           struct wharf_completion *completions, unsigned max)
{
    int64_t patience_ns = (int64_t)service->options->patience_ms * 1000000;

    for (;;) {
        int r = wharf_wait(service->wharf, completions, max, 1, patience_ns);

        if (r == 0)
            r = wharf_ping(service->wharf);
        if (r != 0)
            return r;
    }
}

int wharf_cli_service_recover(struct wharf_cli_service *service)
{
    if (!service->is_lost)
        return 0;
    if (service->is_demanded)
        return -ENOTCONN;
    /* Closes the handle with its arena, into which a dying daemon may still write. */
    close_handle(service);
    service->is_lost = false;
    return 0;
}

bool wharf_cli_is_verdict(uint32_t result)
{
    switch (result) {
    case WHARF_OK:
    case WHARF_BAD_DATA:
    case WHARF_OUTPUT_TOO_SMALL:
    case WHARF_OUTPUT_SHORT:
    case WHARF_BAD_CHECKSUM:
    case WHARF_UNSUPPORTED:
        return true;
    default:
        return false;
    }
}

#define IN_THIS_PROCESS "--embedded decodes it in this process"

const char *wharf_cli_service_limit(const struct wharf_cli_service *service, uint32_t reason,
                                    char *text, size_t text_nbytes)
{
    const struct wharf_info *info = &service->info;
    char size[WHARF_CLI_SIZE_TEXT];

    switch (reason) {
    case WHARF_REASON_REQUEST_SIZE:
        snprintf(text, text_nbytes,
                 "source and output together may be %s, [quota] max_job of the daemon's "
                 "wharfd.conf; " IN_THIS_PROCESS,
                 wharf_cli_size_text(info->max_job_nbytes, size));
        return text;
    case WHARF_REASON_GPU_LARGE:
        snprintf(text, text_nbytes,
                 "for a GPU source and output together may be %s, [gpu] large of the daemon's "
                 "wharfd.conf; " IN_THIS_PROCESS,
                 wharf_cli_size_text(info->max_gpu_large_nbytes, size));
        return text;
    case WHARF_REASON_GPU_CODEC:
        snprintf(text, text_nbytes,
                 "the GPU has no decoder for this codec; --engine auto decodes it on the CPU");
        return text;
    case WHARF_REASON_GPU_LARGE_TIME:
        snprintf(text, text_nbytes,
                 "a GPU may take %" PRIu64 " s for it, [gpu] large_longest of the daemon's "
                 "wharfd.conf; " IN_THIS_PROCESS,
                 info->max_gpu_large_ns / 1000000000);
        return text;
    default:
        return NULL;
    }
}

/* Lists the engines that the daemon has. */
static void list_engines(const struct wharf_cli_service *service, char *text, size_t text_nbytes)
{
    struct wharf_cli_service any = {.options = service->options};

    snprintf(text, text_nbytes, "others");
    if (open_handle(&any, WHARF_ENGINE_AUTO, 1) == 0) {
        size_t used = 0;
        for (uint32_t engine = WHARF_ENGINE_CPU; engine <= WHARF_ENGINE_SIMT; engine++)
            if (any.info.engines & 1u << engine && used < text_nbytes)
                used += (size_t)snprintf(text + used, text_nbytes - used, "%s%s", used ? ", " : "",
                                         wharf_engine_name(engine));
    }
    close_handle(&any);
}

static int say_no_engine(const struct wharf_cli_service *service)
{
    char engines[128];

    list_engines(service, engines, sizeof(engines));
    wharf_cli_say("the daemon has no engine %s; it has %s; `wharf doctor` says why",
                  wharf_engine_name(service->options->engine), engines);
    return WHARF_CLI_FAILED;
}

/* Whether to report that the daemon is not used.  A machine that never had a daemon is not worth a
 * message. */
static bool is_remarkable(const struct wharf_cli_service *service, int error)
{
    return !service->options->quiet && (error != -ENOENT || getenv("WHARF_SOCKET"));
}

/* Writes the report of a command that ends before it has begun. */
static void report_failure(const struct wharf_cli_service *service, int error, int status)
{
    struct wharf_cli_tally tally;

    wharf_cli_tally_init(&tally);
    wharf_cli_tally_failure(&tally, wharf_cli_service_path(service), error, status);
    wharf_cli_tally_report(&tally);
}

static int settle_failure(struct wharf_cli_service *service, int error)
{
    int status;

    if (!service->is_demanded) {
        if (is_remarkable(service, error))
            wharf_cli_say("%s; decoding in this process", wharf_error_message());
        return WHARF_CLI_GO_ON;
    }
    status = error == -EOPNOTSUPP
                 ? say_no_engine(service)
                 : wharf_cli_service_say_error(service, error, wharf_error_message());
    if (service->options->report)
        report_failure(service, error, status);
    return status;
}

int wharf_cli_service_open(const struct wharf_cli_options *options, unsigned n_slots,
                           size_t slot_nbytes, size_t wished_nbytes,
                           struct wharf_cli_service *ret_service)
{
    struct wharf_cli_service service = {.options = options};
    int status = WHARF_CLI_GO_ON;
    int r;

    service.is_demanded =
        options->needs_daemon || options->socket || options->engine >= WHARF_ENGINE_GPU;
    if (!options->embedded) {
        r = wished_nbytes ? open_handle(&service, options->engine, wished_nbytes) : -ENOMEM;
        if (r < 0 && (wished_nbytes == 0 || wharf_cli_service_may_have_less(r)))
            r = open_with_room(&service, slot_nbytes, &n_slots);
        if (r < 0) {
            close_handle(&service);
            status = settle_failure(&service, r);
        }
    }
    *ret_service = service;
    return status;
}

int wharf_cli_service_open_small(const struct wharf_cli_options *options,
                                 struct wharf_cli_service *ret_service)
{
    return wharf_cli_service_open(options, 1, 1, 0, ret_service);
}

void wharf_cli_service_close(struct wharf_cli_service *service)
{
    close_handle(service);
    free(service->loads);
    service->loads = NULL;
}

int wharf_cli_service_run(const struct wharf_cli_command *command, int argc, char **argv, void *own,
                          int (*use)(const struct wharf_cli_service *service, const void *own))
{
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 0};
    struct wharf_cli_service service;
    int status = wharf_cli_parse(command, argc, argv, own, &options, &operands);

    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_small(&options, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    wharf_cli_begin_output();
    status = use(&service, own);
    wharf_cli_service_close(&service);
    return status;
}
