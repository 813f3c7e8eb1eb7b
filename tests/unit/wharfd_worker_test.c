/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_worker_test: a worker of a GPU as its core speaks to it, with the GPU's code on the
 * CPU. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/config.h"
#include "daemon/core/segment.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/gpu/worker_message.h"
#include "kernels/work_queue.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

enum { N_ENTRIES = 64 };

static struct wharf_worker_link link_;
static struct wharf_segment queue, memory;

/* Starts a worker that has read nothing and reads nothing before go_on(). */
static void start_stopped(void)
{
    int status;

    cr_assert_eq(wharf_worker_link_start(test_worker_program(), "0", -1, &link_), 0);
    kill(link_.pid, SIGSTOP);
    cr_assert_eq(waitpid(link_.pid, &status, WUNTRACED), link_.pid);
    cr_assert(WIFSTOPPED(status));
}

static void tell(const struct wharf_worker_message *message, int fd)
{
    cr_assert_eq(wharf_worker_link_send(&link_, message, fd), 0);
}

static void tell_setup(void)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_SETUP};

    snprintf(message.setup.version, sizeof(message.setup.version), "%s", WHARF_VERSION);
    message.setup.engine = WHARF_ENGINE_SIMT;
    message.setup.n_entries = N_ENTRIES;
    message.setup.chunk_nbytes = 4096;
    message.setup.kernel = WHARF_GPU_KERNEL_AUTO;
    message.setup.idle_ns = 1000000;
    tell(&message, queue.fd);
}

static void tell_register(uint32_t number)
{
    tell(&(struct wharf_worker_message){.kind = WHARF_WORKER_REGISTER,
                                        .number = number,
                                        .nbytes = memory.nbytes},
         memory.fd);
}

static void tell_forget(uint32_t number)
{
    tell(&(struct wharf_worker_message){.kind = WHARF_WORKER_FORGET, .number = number}, -1);
}

static void expect(uint32_t kind, uint32_t number)
{
    struct wharf_worker_message message;
    struct pollfd fd = {.fd = link_.socket, .events = POLLIN};

    cr_assert_eq(poll(&fd, 1, TEST_PATIENCE_MS), 1, "no answer");
    cr_assert_eq(wharf_worker_link_receive(&link_, &message), 1);
    cr_expect(message.kind == kind && message.number == number && message.error == 0,
              "kind %u, number %u, error %d; expected kind %u, number %u", message.kind,
              message.number, message.error, kind, number);
}

static void expect_registered(uint32_t number)
{
    expect(WHARF_WORKER_REGISTERING, number);
    expect(WHARF_WORKER_REGISTERED, number);
}

/* It has its setup to read, and what the test tells it next. */
static void set_up(void)
{
    cr_assert_eq(
        wharf_segment_make(WHARF_SEGMENT_WORKER, wharf_worker_queues_nbytes(N_ENTRIES), &queue), 0);
    cr_assert_eq(wharf_segment_make(WHARF_SEGMENT_ARENA, 4096, &memory), 0);
    start_stopped();
    tell_setup();
}

static void tear_down(void)
{
    int status;

    wharf_worker_link_kill(&link_);
    cr_expect(TEST_WAIT(wharf_worker_link_is_gone(&link_, &status)));
    wharf_segment_free(&queue);
    wharf_segment_free(&memory);
}

/* As long as registrations came behind what was to be let go of, it did them while no kernel was
 * there, at 0.75 s for a GiB: items that it had waited for longer than 0.1 s. */
Test(wharfd_worker, registers_nothing_while_the_kernel_is_away, .init = set_up, .fini = tear_down)
{
    tell_register(1);
    tell_register(2);
    tell_forget(1);
    tell_register(3);
    tell_forget(2);
    tell_register(4);
    kill(link_.pid, SIGCONT);
    expect(WHARF_WORKER_READY, 0);
    expect_registered(1);
    expect_registered(2);
    expect(WHARF_WORKER_FORGOTTEN, 1);
    expect(WHARF_WORKER_FORGOTTEN, 2);
    expect_registered(3);
    expect_registered(4);
}

/* More than it puts off are done all the same, in their order, with what is to be let go of. */
Test(wharfd_worker, answers_all_in_their_order, .init = set_up, .fini = tear_down)
{
    tell_register(1);
    tell_forget(1);
    for (uint32_t i = 0; i < 30; i++)
        tell_register(10 + i);
    tell_forget(39);
    kill(link_.pid, SIGCONT);
    expect(WHARF_WORKER_READY, 0);
    expect_registered(1);
    expect(WHARF_WORKER_FORGOTTEN, 1);
    for (uint32_t i = 0; i < 30; i++)
        expect_registered(10 + i);
    expect(WHARF_WORKER_FORGOTTEN, 39);
}
