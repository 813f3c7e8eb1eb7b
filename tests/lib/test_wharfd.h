/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wharfd.h: a private daemon for a test.  It is the wharfd of the build that the test program
 * belongs to (build/VARIANT/tests/NAME runs build/VARIANT/wharfd).
 */
#ifndef WHARF_TESTS_TEST_WHARFD_H
#define WHARF_TESTS_TEST_WHARFD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wharf;

struct test_wharfd {
    pid_t pid;
    char folder[64]; /* its own, with everything below */
    char socket[96];
    char config[96];
    char log[96]; /* what it says on standard error */
};

/* The program, in the build's folder: "wharfd", unless a test sets another one. */
extern const char *test_wharfd_program;

/* Starts one with that configuration file's text, in its folder, and waits until it serves.  Ends
 * the program when that does not work.  What the text does not say of hello_timeout,
 * unread_timeout, gate_timeout and start_timeout is far above what a loaded machine takes. */
void test_wharfd_start(struct test_wharfd *daemon, const char *config);

/* Starts one with a GPU (a word of the setting engine), the first one alone, for which all memory
 * is pinned at once; `more` settings of section gpu, and further sections. */
void test_wharfd_start_gpu(struct test_wharfd *daemon, const char *engine, const char *more);

/* Starts one that waits by `io` (auto, io_uring or epoll), logs all and has `more` settings. */
void test_wharfd_start_by(struct test_wharfd *daemon, const char *io, const char *more);

/* Stops it, which has to go well, and removes the folder. */
void test_wharfd_finish(struct test_wharfd *daemon);

/* Starts it again in the same folder, after it has ended. */
void test_wharfd_restart(struct test_wharfd *daemon);

/* Only runs the program, in that folder. */
void test_wharfd_spawn(struct test_wharfd *daemon);

/* Makes the folder, with that configuration; runs nothing. */
void test_wharfd_prepare(struct test_wharfd *daemon, const char *config);

/* For a forked child: becomes the program.  Without `takes_path` it listens where its environment
 * says. */
_Noreturn void test_wharfd_become(const struct test_wharfd *daemon, int takes_path);

/* Waits for its end and returns its exit status (128 + the signal that killed it). */
int test_wharfd_wait(struct test_wharfd *daemon);

/* Stops it by SIGTERM and waits; leaves the folder. */
int test_wharfd_stop(struct test_wharfd *daemon);

/* Kills and waits. */
void test_wharfd_kill(struct test_wharfd *daemon);

/* Ends it in any state, and removes the folder. */
void test_wharfd_remove(struct test_wharfd *daemon);

/* A handle of it, with a minute's patience; 0 for the usual number of jobs, or arena.  Ends the
 * program when there is none. */
struct wharf *test_wharfd_open(const struct test_wharfd *daemon, uint32_t engine, uint32_t max_jobs,
                               size_t arena_nbytes);

/* One of its metrics now, as test_client_metric gives it. */
double test_wharfd_metric(const struct test_wharfd *daemon, const char *name,
                          const char *label_value);

/* Whether its log has this text, or has it soon. */
int test_wharfd_says(const struct test_wharfd *daemon, const char *text);
/* The same of a text that it says several times. */
int test_wharfd_says_times(const struct test_wharfd *daemon, const char *text, unsigned n);

/* Its child of that name, which is there or comes by itself; the one that receives clients'
 * descriptors. */
pid_t test_wharfd_child(const struct test_wharfd *daemon, const char *name);
pid_t test_wharfd_fd_filter(const struct test_wharfd *daemon);

/* Its open descriptors, its mappings of memfds, and its memory in KiB: resident private and shared,
 * and its own alone. */
int test_wharfd_n_fds(const struct test_wharfd *daemon);
int test_wharfd_n_memfds(const struct test_wharfd *daemon);
long test_wharfd_kib(const struct test_wharfd *daemon);
long test_wharfd_own_kib(const struct test_wharfd *daemon);

#endif
