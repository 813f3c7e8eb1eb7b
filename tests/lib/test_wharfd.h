/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wharfd.h: a private daemon for a test: the wharfd of the same build as the test program
 * (build/VARIANT/tests/NAME runs build/VARIANT/wharfd).
 */
#ifndef WHARF_TESTS_TEST_WHARFD_H
#define WHARF_TESTS_TEST_WHARFD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wharf;

struct test_wharfd {
    pid_t pid;
    char folder[64]; /* its own; contains everything below */
    char socket[96];
    char config[96];
    char log[96]; /* its standard error */
};

/* The program in the build's folder: "wharfd", unless a test sets another. */
extern const char *test_wharfd_program;

/* Starts a daemon with this text as its configuration file, and waits until it serves.  Failures
 * end the program.  Unless the text sets them, hello_timeout, unread_timeout, gate_timeout and
 * start_timeout are far above what a loaded machine needs. */
void test_wharfd_start(struct test_wharfd *daemon, const char *config);

/* Starts a daemon with one GPU (`engine` as in the setting), for which all memory is pinned at
 * once.  `more` has further settings of section gpu, and further sections. */
void test_wharfd_start_gpu(struct test_wharfd *daemon, const char *engine, const char *more);

/* Starts a daemon that waits by `io` (auto, io_uring or epoll), logs everything, and has `more`
 * settings. */
void test_wharfd_start_by(struct test_wharfd *daemon, const char *io, const char *more);

/* Stops the daemon, which must end properly, and removes the folder. */
void test_wharfd_finish(struct test_wharfd *daemon);

/* Starts it again in the same folder, after it has ended. */
void test_wharfd_restart(struct test_wharfd *daemon);

/* Only starts the program, in that folder. */
void test_wharfd_spawn(struct test_wharfd *daemon);

/* Makes the folder with this configuration.  Starts nothing. */
void test_wharfd_prepare(struct test_wharfd *daemon, const char *config);

/* In a forked child: becomes the program.  Without `takes_path`, it listens where its environment
 * says. */
_Noreturn void test_wharfd_become(const struct test_wharfd *daemon, int takes_path);

/* Waits for the daemon's end.  Returns its exit status, or 128 + the signal that killed it. */
int test_wharfd_wait(struct test_wharfd *daemon);

/* Stops it by SIGTERM, and waits.  Keeps the folder. */
int test_wharfd_stop(struct test_wharfd *daemon);

/* Kills it, and waits for as long as the kernel takes. */
void test_wharfd_kill(struct test_wharfd *daemon);

/* Ends it in any state, and removes the folder. */
void test_wharfd_remove(struct test_wharfd *daemon);

/* Opens a handle of the daemon, with a minute's patience.  0: the default number of jobs or arena.
 * Failures end the program. */
struct wharf *test_wharfd_open(const struct test_wharfd *daemon, uint32_t engine, uint32_t max_jobs,
                               size_t arena_nbytes);

/* The present value of a metric, as by test_client_metric. */
double test_wharfd_metric(const struct test_wharfd *daemon, const char *name,
                          const char *label_value);

/* Whether its log has this text, or soon has it. */
int test_wharfd_says(const struct test_wharfd *daemon, const char *text);
/* Whether it has it already. */
int test_wharfd_says_now(const struct test_wharfd *daemon, const char *text);
/* Whether it has it n times, or soon has. */
int test_wharfd_says_times(const struct test_wharfd *daemon, const char *text, unsigned n);

/* The daemon's child of that name, which exists or will; and the one that filters clients'
 * descriptors. */
pid_t test_wharfd_child(const struct test_wharfd *daemon, const char *name);
pid_t test_wharfd_fd_filter(const struct test_wharfd *daemon);

/* The daemon's open descriptors; its mappings of memfds; and its resident memory in KiB: private
 * and shared, and private alone. */
int test_wharfd_n_fds(const struct test_wharfd *daemon);
int test_wharfd_n_memfds(const struct test_wharfd *daemon);
long test_wharfd_kib(const struct test_wharfd *daemon);
long test_wharfd_own_kib(const struct test_wharfd *daemon);

#endif
