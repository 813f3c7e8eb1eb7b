/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants may use, and that they get it back. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((uint64_t)1 << 20)

static struct test_wharfd wharfd;

Test(wharfd_quota, connections_have_a_quota)
{
    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_connections = 3\n");
    struct test_client *clients[3];

    for (unsigned i = 0; i < 3; i++)
        clients[i] = test_client_greeted_in_time(wharfd.socket);
    struct test_client *fourth = test_client_greeted(wharfd.socket);
    cr_assert_eq(test_client_open_with(fourth, 64, 0, 0, 0), -EDQUOT);
    cr_assert(strstr(fourth->error, "max_connections"), "%s", fourth->error);
    test_client_free(fourth);
    test_client_free(clients[0]);
    clients[0] = test_client_greeted_in_time(wharfd.socket);
    for (unsigned i = 0; i < 3; i++)
        test_client_free(clients[i]);
    test_wharfd_finish(&wharfd);
}

/* Once, a user at his limit of connections or jobs could not even ask for a drain. */
Test(wharfd_quota, operators_have_some_small_connections_beyond_it)
{
    enum { N_RESERVED = 4 };
    struct test_client *reserved[N_RESERVED];

    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_connections = 1\nmax_jobs = 2\n");
    struct test_client *client = test_client_start(wharfd.socket, 2, 4096);
    for (unsigned i = 0; i < N_RESERVED; i++) {
        reserved[i] = test_client_greeted(wharfd.socket);
        cr_assert_eq(test_client_open_with(reserved[i], 32, 4096, 0, 0), -EDQUOT);
        cr_assert_eq(test_client_open_with(reserved[i], 2, MiB, 0, 0), -EDQUOT);
        cr_assert_eq(test_client_open_with(reserved[i], 2, 4096, 0, 0), 0);
        cr_assert_eq(test_client_ping(reserved[i]), 0);
    }
    struct test_client *beyond = test_client_connected(wharfd.socket);
    int r = test_client_hello(beyond);
    cr_assert(r == -EDQUOT || r == -EPIPE, "%d", r);
    test_client_ended(beyond);
    /* Places that are given back are there again. */
    test_client_free(reserved[0]);
    reserved[0] = test_client_greeted_in_time(wharfd.socket);
    cr_assert_eq(test_client_drain(reserved[0]), 0);
    for (unsigned i = 0; i < N_RESERVED; i++)
        test_client_free(reserved[i]);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* Those that have ended give back what they had, but not at once. */
static void open_in_time(struct test_client *client, uint32_t n_entries, uint64_t arena_nbytes)
{
    int r;

    TEST_WAIT((r = test_client_open_with(client, n_entries, arena_nbytes, 0, 0)) != -EDQUOT);
    cr_assert_eq(r, 0, "%d", r);
}

/* The tenant's sessions share jobs and memory; ends give them back. */
Test(wharfd_quota, sessions_share_quotas_and_give_them_back)
{
    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_jobs = 128\nmax_memory = 8M\n");

    for (unsigned round = 0; round < 20; round++) {
        struct test_client *first = test_client_greeted(wharfd.socket),
                           *second = test_client_greeted(wharfd.socket);
        open_in_time(first, 64, 4 * MiB);
        cr_assert_eq(test_client_open_with(second, 128, 0, 0, 0), -EDQUOT);
        cr_assert(strstr(second->error, "max_jobs"), "%s", second->error);
        /* Jobs are short as long as the round before has not given all back. */
        TEST_WAIT(test_client_open_with(second, 64, 4 * MiB, 0, 0) != -EDQUOT ||
                  strstr(second->error, "max_memory"));
        cr_assert(strstr(second->error, "max_memory"), "%s", second->error);
        open_in_time(second, 64, 3 * MiB);
        test_client_free(first);
        test_client_free(second);
    }
    test_wharfd_finish(&wharfd);
}

Test(wharfd_quota, tenant_of_a_socket_has_its_own_quota)
{
    char config[256];

    test_wharfd_start_by(&wharfd, "auto", "");
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    snprintf(
        config, sizeof(config),
        "[listen pods]\npath = %s/pods\ntenant = socket\n[tenant socket:pods]\nmax_entries = 2\n",
        wharfd.folder);
    FILE *file = fopen(wharfd.config, "we");
    fputs(config, file);
    fclose(file);
    test_wharfd_restart(&wharfd);
    struct test_client *client = test_client_greeted(wharfd.socket);
    cr_assert_gt(client->limits.max_entries, 2);
    test_client_free(client);
    strcpy(wharfd.socket + strlen(wharfd.folder), "/pods");
    client = test_client_greeted(wharfd.socket);
    cr_assert_eq(client->limits.max_entries, 2);
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", "socket:pods"), 1);
    /* Whoever it is there, root too: containers have roots of their own. */
    snprintf(config, sizeof(config), "uid:%u", (unsigned)getuid());
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", config), -1);
    cr_assert_eq(test_client_drain(client), -EPERM);
    cr_assert_eq(test_client_ping(client), 0);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}
