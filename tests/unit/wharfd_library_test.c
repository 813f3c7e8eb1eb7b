/* SPDX-License-Identifier: Apache-2.0 */
/* libwharf with the daemon, where parts of that die. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

static struct test_wharfd wharfd;

static struct wharf *open_handle(void)
{
    return test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 4096);
}

static struct wharf_memory new_memory(void)
{
    struct wharf_memory memory = WHARF_MEMORY_INIT;

    memory.nbytes = 4096;
    memory.fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(memory.fd >= 0 && ftruncate(memory.fd, 4096) == 0);
    cr_assert_eq(fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    memory.address = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
    cr_assert_neq(memory.address, MAP_FAILED);
    return memory;
}

static void free_memory(struct wharf_memory *memory)
{
    munmap(memory->address, memory->nbytes);
    close(memory->fd);
}

static void *kill_soon(void *data)
{
    usleep(20000);
    kill(*(pid_t *)data, SIGKILL);
    return NULL;
}

/* Copies the arena's text by a job. */
static void expect_text(struct wharf *wharf, const char *text, void *out)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;

    job.in = text;
    job.in_nbytes = job.out_avail = 6;
    job.out = out;
    memset(out, 0, 6);
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1, "%s", wharf_error_message());
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_arr_eq(out, "wharf\n", 6);
}

/* The connection ends with the filter that had its packet.  It was closed as if the client had
 * broken a rule, and the arena was empty afterwards. */
Test(wharfd_library, arena_outlives_an_fd_filter_that_dies_with_a_descriptor, .timeout = 600)
{
    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = open_handle();
    struct wharf_memory first = new_memory();
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    void *text, *out;

    cr_assert_eq(wharf_alloc(wharf, 6, &text), 0);
    cr_assert_eq(wharf_alloc(wharf, 6, &out), 0);
    memcpy(text, "wharf\n", 6);
    cr_assert_eq(wharf_register(wharf, &first), 0, "%s", wharf_error_message());
    /* A filter that ends before the packet has come to it takes no connection along. */
    while (info.n_reconnects < 5) {
        struct wharf_memory memory = new_memory();
        pid_t filter = test_wharfd_fd_filter(&wharfd);
        pthread_t killer;

        cr_assert_gt(filter, 0);
        kill(filter, SIGSTOP);
        cr_assert_eq(pthread_create(&killer, NULL, kill_soon, &filter), 0);
        cr_assert_eq(wharf_register(wharf, &memory), 0, "%s", wharf_error_message());
        pthread_join(killer, NULL);
        expect_text(wharf, text, out);
        cr_assert_eq(wharf_unregister(wharf, memory.address), 0);
        free_memory(&memory);
        cr_assert_eq(wharf_get_info(wharf, &info), 0);
    }
    wharf_close(wharf);
    free_memory(&first);
    test_wharfd_remove(&wharfd);
}

/* As it is where all of a container is stopped for a while: the filter has had no time to answer.
 * That was taken for the client's doing, and its jobs were lost. */
Test(wharfd_library, arena_outlives_an_fd_filter_that_is_late, .timeout = 600)
{
    test_wharfd_start(&wharfd, "[daemon]\ngate_timeout = 500ms\n");
    struct wharf *wharf = open_handle();
    struct wharf_memory memory = new_memory();
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    void *text, *out;

    cr_assert_eq(wharf_alloc(wharf, 6, &text), 0);
    cr_assert_eq(wharf_alloc(wharf, 6, &out), 0);
    memcpy(text, "wharf\n", 6);
    pid_t filter = test_wharfd_fd_filter(&wharfd);
    cr_assert_gt(filter, 0);
    kill(filter, SIGSTOP);
    /* The next one may be late by itself, where a machine does much else. */
    cr_assert(TEST_WAIT(wharf_register(wharf, &memory) == 0), "%s", wharf_error_message());
    expect_text(wharf, text, out);
    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    cr_assert_geq(info.n_reconnects, 1);
    wharf_close(wharf);
    free_memory(&memory);
    test_wharfd_remove(&wharfd);
}

static void *go_on_soon(void *data)
{
    usleep(20000);
    kill(*(pid_t *)data, SIGCONT);
    return NULL;
}

/*
 * The packet that tells of a completion is read by a call that looked for completions before it
 * came.  The descriptor said nothing of it then, nor did the daemon again: programs that poll it
 * slept until their own timeout.
 */
Test(wharfd_library, descriptor_tells_of_what_came_during_another_call, .timeout = 600)
{
    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = open_handle();
    struct wharf_completion completion;

    for (unsigned i = 0; i < 10; i++) {
        struct pollfd descriptor = {.fd = wharf_fd(wharf), .events = POLLIN};
        pthread_t waker;
        int status;

        kill(wharfd.pid, SIGSTOP);
        cr_assert_eq(waitpid(wharfd.pid, &status, WUNTRACED), wharfd.pid);
        cr_assert_eq(wharf_submit_noop(wharf, i), 0, "%s", wharf_error_message());
        cr_assert_eq(wharf_poll(wharf, &completion, 1), 0);
        cr_assert_eq(pthread_create(&waker, NULL, go_on_soon, &wharfd.pid), 0);
        cr_assert_eq(wharf_ping(wharf), 0, "%s", wharf_error_message());
        pthread_join(waker, NULL);
        /* As a program does that sleeps on it. */
        cr_assert_eq(poll(&descriptor, 1, TEST_PATIENCE_MS), 1, "nothing tells of completion %u",
                     i);
        cr_assert_eq(wharf_poll(wharf, &completion, 1), 1);
        cr_assert_eq(completion.user_data, i);
    }
    wharf_close(wharf);
    test_wharfd_remove(&wharfd);
}

/* Its connections, as somebody sees it who has one. */
static void expect_connections(double n)
{
    struct test_client *client = test_client_greeted(wharfd.socket);
    char tenant[32];
    double value;

    snprintf(tenant, sizeof(tenant), "uid:%u", (unsigned)geteuid());
    TEST_WAIT((value = test_client_metric(client, "wharf_connections", "", tenant)) == n);
    cr_assert_eq(value, n, "%g connections", value);
    test_client_free(client);
}

/* The child has a copy of the socket.  The daemon did not notice that the handle was closed, and
 * the connection counted, before the child had ended. */
Test(wharfd_library, connection_ends_with_its_handle_and_not_with_forked_children)
{
    test_wharfd_start(&wharfd, "");
    struct wharf *wharf = open_handle();
    pid_t child = fork();

    if (child == 0)
        for (;;)
            pause();
    expect_connections(2);
    wharf_close(wharf);
    expect_connections(1);
    cr_assert_eq(kill(child, SIGKILL), 0);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    test_wharfd_finish(&wharfd);
}
