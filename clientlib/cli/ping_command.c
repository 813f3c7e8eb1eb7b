/* SPDX-License-Identifier: Apache-2.0 */
/* wharf ping: whether a daemon answers, and how soon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/service.h"
#include "clientlib/now.h"

/* The second at most some ms each: seconds in all. */
enum { DEFAULT_COUNT = 10, MAX_COUNT = 1000 };

static const struct option own_options[] = {
    {"count", required_argument, NULL, 'n'},
    {0},
};

static const char *take_option(void *own, int option, const char *argument)
{
    (void)option; /* there is only one */
    return wharf_cli_parse_number(argument, 1, MAX_COUNT, own) ? NULL : "a number from 1 to 1000";
}

/* ---- measuring ------------------------------------------------------------------------- */

static int ask(const struct wharf_cli_service *service)
{
    return wharf_ping(service->wharf);
}

/* A job that does nothing goes the way of all jobs. */
static int run_job(const struct wharf_cli_service *service)
{
    struct wharf_completion completion;
    int r = wharf_submit_noop(service->wharf, 0);

    if (r == 0)
        r = wharf_cli_service_wait(service, &completion, 1);
    return r < 0 ? r : 0;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static int measure(const struct wharf_cli_service *service,
                   int (*way)(const struct wharf_cli_service *), const char *name, int64_t count)
{
    uint64_t times[MAX_COUNT];

    for (int64_t i = 0; i < count; i++) {
        uint64_t start_ns = wharf_client_now_ns();
        int r = way(service);

        if (r < 0)
            return r;
        times[i] = wharf_client_now_ns() - start_ns;
    }
    qsort(times, (size_t)count, sizeof(times[0]), compare_times);
    printf("%s: %.1f us (%.1f to %.1f)\n", name, (double)times[count / 2] / 1e3,
           (double)times[0] / 1e3, (double)times[count - 1] / 1e3);
    return 0;
}

static int ping(const struct wharf_cli_service *service, const void *own)
{
    int64_t count = *(const int64_t *)own;
    int r;

    printf("wharfd %s answers; median of %d (least to most)\n", service->info.daemon_version,
           (int)count);
    r = measure(service, ask, "  question and answer", count);
    if (r == 0)
        r = measure(service, run_job, "  job that does nothing", count);
    if (r < 0)
        return wharf_cli_service_say_error(service, r, wharf_error_message());
    return wharf_cli_end_output();
}

static int run(int argc, char **argv)
{
    int64_t count = DEFAULT_COUNT;

    return wharf_cli_service_run(&wharf_cli_ping, argc, argv, &count, ping);
}

const struct wharf_cli_command wharf_cli_ping = {
    .name = "ping",
    .summary = "see whether the daemon answers, and how soon",
    .usage = "[OPTION...]",
    .help = "Asks the daemon, and runs jobs that do nothing.  Exit status 3 if none answers.\n\n"
            "  -n, --count N        so many of each, up to 1000; default 10\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
