/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as a service: sockets that are handed over, and what systemd is told.  Without
 * systemd; tests/integration/systemd_test.sh boots one. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_service.h"
#include "tests/lib/test_worker.h"

/* Long enough for a sanitized daemon on a busy machine; what comes, comes in milliseconds. */
#define SOON 100000

static struct test_service service;

static void start(const char *config)
{
    test_service_init(&service, config);
    test_service_spawn(&service);
    cr_assert(test_service_hears(&service, "READY=1", SOON), "%s", service.heard);
}

static void rewrite_config(const char *text)
{
    FILE *file = fopen(service.daemon.config, "we");

    fputs(text, file);
    fclose(file);
}

/* ---- sockets ------------------------------------------------------------------------------- */

/* The client is there before the daemon: its connection waits in the socket. */
Test(wharfd_service, first_client_is_served_by_the_daemon_that_it_starts)
{
    struct test_client *client = test_client_new();

    test_service_init(&service, "");
    cr_assert_eq(test_client_connect(client, service.daemon.socket), 0);
    test_service_spawn(&service);
    cr_assert_eq(test_client_hello(client), 0);
    cr_assert(test_service_hears(&service, "READY=1", SOON));
    test_client_free(client);
    test_service_deinit(&service);
}

/* The socket is not the daemon's: it stays, and so do those who wait there. */
Test(wharfd_service, socket_outlives_daemons)
{
    struct test_client *client = test_client_new();

    start("");
    cr_assert_eq(test_wharfd_stop(&service.daemon), 0);
    cr_assert_eq(test_client_connect(client, service.daemon.socket), 0);
    test_service_forget(&service);
    test_service_spawn(&service);
    cr_assert_eq(test_client_hello(client), 0);
    test_wharfd_kill(&service.daemon);
    cr_assert_eq(test_client_wait_for_end(client), 0);
    test_client_free(client);
    client = test_client_new();
    cr_assert_eq(test_client_connect(client, service.daemon.socket), 0);
    test_service_spawn(&service);
    cr_assert_eq(test_client_hello(client), 0);
    test_client_free(client);
    test_service_deinit(&service);
}

Test(wharfd_service, sockets_are_told_apart_by_their_names)
{
    char second[128];

    test_service_init(&service, "[listen pods]\ntenant = socket\n");
    test_service_add_socket(&service, SOCK_SEQPACKET);
    service.names = "wharfd.socket:pods";
    test_service_spawn(&service);
    snprintf(second, sizeof(second), "%s2", service.daemon.socket);
    struct test_client *own = test_client_greeted(service.daemon.socket);
    struct test_client *pod = test_client_greeted(second);
    char uid[32];
    snprintf(uid, sizeof(uid), "uid:%u", (unsigned)getuid());
    cr_assert_eq(test_client_metric(own, "wharf_connections", "", uid), 1);
    cr_assert_eq(test_client_metric(own, "wharf_connections", "", "socket:pods"), 1);
    test_client_free(own);
    test_client_free(pod);
    test_service_deinit(&service);
}

Test(wharfd_service, sockets_of_another_kind_are_refused)
{
    test_service_init(&service, "");
    test_service_add_socket(&service, SOCK_STREAM);
    service.names = "wharfd.socket:web";
    test_service_spawn(&service);
    cr_assert_eq(test_wharfd_wait(&service.daemon), 1);
    cr_assert(test_wharfd_says(&service.daemon,
                               "hands over as web is no listening SOCK_SEQPACKET socket"));
    cr_assert_eq(test_service_count(&service, "READY", 0), 0);
    test_service_deinit(&service);
}

/* An environment that was meant for another process, inherited by this one. */
Test(wharfd_service, sockets_for_another_process_are_left_alone)
{
    test_service_init(&service, "");
    close(service.listen_fds[0]);
    service.listen_fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    service.listen_pid = "1";
    test_service_spawn(&service);
    cr_assert(test_service_hears(&service, "READY=1", SOON));
    struct test_client *client = test_client_greeted(service.daemon.socket);
    test_client_free(client);
    test_service_deinit(&service);
}

/* ---- ready --------------------------------------------------------------------------------- */

/* What is left of an earlier daemon has the lock: no client would be answered. */
Test(wharfd_service, ready_waits_for_what_is_left_of_an_earlier_daemon)
{
    char path[128];

    test_service_init(&service, "");
    snprintf(path, sizeof(path), "%s/wharfd.lock", service.daemon.folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_eq(flock(lock, LOCK_EX), 0);
    test_service_spawn(&service);
    cr_assert(test_service_hears(
        &service, "STATUS=Waiting for what is left of an earlier daemon to end", SOON));
    kill(service.daemon.pid, SIGHUP);
    cr_assert_eq(test_service_count(&service, "READY", 200), 0, "%s", service.heard);
    close(lock);
    cr_assert(test_service_hears(&service, "READY=1", SOON));
    cr_assert(test_service_hears(&service, "STATUS=Serving 0 connections", 0));
    struct test_client *client = test_client_greeted(service.daemon.socket);
    test_client_free(client);
    test_service_deinit(&service);
}

Test(wharfd_service, never_ready_with_a_bad_configuration)
{
    test_service_init(&service, "[cpu]\nshare = none\n");
    test_service_spawn(&service);
    cr_assert_eq(test_wharfd_wait(&service.daemon), 2);
    cr_assert(test_wharfd_says(&service.daemon, ":2: share = none: not a number"));
    cr_assert_eq(test_service_count(&service, "READY", 0), 0);
    test_service_deinit(&service);
}

/* Why it does not start was missing from the unit's log: entries of processes that have ended are
 * nobody's, but what came through the standard error that systemd made is the unit's. */
Test(wharfd_service, journal_gets_errors_of_the_start_by_standard_error)
{
    test_service_init(&service, "[cpu]\nshare = none\n");
    service.is_in_journal = true;
    test_service_spawn(&service);
    cr_assert_eq(test_wharfd_wait(&service.daemon), 2);
    cr_assert(test_wharfd_says(&service.daemon, "<3>/"));
    cr_assert(test_wharfd_says(&service.daemon, ":2: share = none: not a number"));
    test_service_deinit(&service);
}

/* systemd has stopped, or has much else to do.  Once everybody waited for it. */
Test(wharfd_service, notify_socket_that_nobody_reads_is_not_waited_for)
{
    test_service_init(&service, "");
    service.watchdog_us = 300000;
    test_service_fill(&service);
    test_service_spawn(&service);
    struct test_client *client = test_client_greeted(service.daemon.socket);
    kill(service.daemon.pid, SIGHUP);
    cr_assert(test_wharfd_says(&service.daemon, "read the configuration again"));
    cr_assert_eq(test_client_ping(client), 0);
    test_client_free(client);
    cr_assert(test_service_hears(&service, "READY=1", SOON), "%s", service.heard);
    const char *reloading = strstr(service.heard, "RELOADING=1\nMONOTONIC_USEC=");
    cr_assert(reloading && reloading < strstr(service.heard, "READY=1"), "%s", service.heard);
    cr_assert(test_service_hears(&service, "WATCHDOG=1", SOON), "%s", service.heard);
    test_service_deinit(&service);
}

/* ---- reload -------------------------------------------------------------------------------- */

static void reload(const char *config, const char *says)
{
    rewrite_config(config);
    test_service_forget(&service);
    kill(service.daemon.pid, SIGHUP);
    cr_assert(test_service_hears(&service, "READY=1", SOON), "%s", service.heard);
    const char *reloading = strstr(service.heard, "RELOADING=1\nMONOTONIC_USEC=");
    cr_assert(reloading && reloading < strstr(service.heard, "READY=1"), "%s", service.heard);
    cr_assert(test_wharfd_says(&service.daemon, says), "%s", says);
}

Test(wharfd_service, reload_is_told_from_its_beginning_to_its_end)
{
    start("");
    reload("[daemon]\nlog_level = debug\n", "read the configuration again");
    reload("[daemon]\nlog_level = loud\n", "the configuration stays as it was");
    struct test_client *client = test_client_greeted(service.daemon.socket);
    cr_assert(test_wharfd_says(&service.daemon, "says Hello"), "debug messages had been on");
    test_client_free(client);
    test_service_deinit(&service);
}

/* ---- stop ---------------------------------------------------------------------------------- */

/* And asks for the time that the configuration gives it, and 3 s. */
Test(wharfd_service, stop_is_told_with_the_time_that_it_may_take)
{
    start("[daemon]\ndrain_timeout = 40s\n");
    kill(service.daemon.pid, SIGTERM);
    cr_assert(test_service_hears(&service, "STOPPING=1", SOON));
    cr_assert(test_service_hears(&service, "EXTEND_TIMEOUT_USEC=43000000", 0), "%s", service.heard);
    cr_assert_eq(test_wharfd_wait(&service.daemon), 0);
    test_service_deinit(&service);
}

Test(wharfd_service, stop_is_told_when_a_client_asks_for_it)
{
    start("");
    struct test_client *client = test_client_greeted(service.daemon.socket);
    cr_assert_eq(test_client_drain(client), 0);
    cr_assert(test_service_hears(&service, "STOPPING=1", SOON));
    cr_assert_eq(test_wharfd_wait(&service.daemon), 0);
    test_client_free(client);
    test_service_deinit(&service);
}

/* ---- watchdog ------------------------------------------------------------------------------ */

Test(wharfd_service, watchdog_is_fed_while_the_daemon_runs)
{
    test_service_init(&service, "");
    service.watchdog_us = 300000;
    test_service_spawn(&service);
    cr_assert(test_service_hears(&service, "READY=1", SOON));
    for (unsigned i = 0; i < 3; i++) {
        test_service_forget(&service);
        cr_assert(test_service_hears(&service, "WATCHDOG=1", SOON), "%s", service.heard);
    }
    test_process_stop(service.daemon.pid);
    test_service_forget(&service);
    cr_assert_eq(test_service_count(&service, "WATCHDOG=1", 500), 0, "%s", service.heard);
    kill(service.daemon.pid, SIGCONT);
    cr_assert(test_service_hears(&service, "WATCHDOG=1", SOON));
    test_service_deinit(&service);
}

Test(wharfd_service, watchdog_of_another_process_is_not_fed)
{
    test_service_init(&service, "");
    service.watchdog_us = 30000;
    service.watchdog_pid = "1";
    test_service_spawn(&service);
    cr_assert(test_service_hears(&service, "READY=1", SOON));
    cr_assert_eq(test_service_count(&service, "WATCHDOG", 200), 0);
    test_service_deinit(&service);
}
