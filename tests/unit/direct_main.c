/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct_main.c: runs Criterion tests without Criterion's runner, for the sanitizers.
 *
 * Criterion starts each test in a process that shares a memory arena with it, at an address that
 * the thread sanitizer has no room for, and so aborts at its start.  Under the address sanitizer
 * such a start takes 50 ms, more than most tests, and leaks are not looked for at a test's end.
 * This main() runs the same tests, registered in the same section by the same Test() macro, each in
 * a plain fork.  The functions that the macros call are defined here and so take precedence over
 * the library's.
 *
 *     NAME_test [--tap=FILE]
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a test's process leaves with: no values that exit() in a test or a sanitizer would use. */
enum { STATUS_FAILED = 121, STATUS_SKIPPED = 122 };

/* The linker makes these from the section's name. */
extern struct criterion_test *const __start_cr_tst[];
extern struct criterion_test *const __stop_cr_tst[];

static const struct criterion_test *running;

void criterion_internal_test_setup(void)
{
    if (running->data->init)
        running->data->init();
}

void criterion_internal_test_main(void (*test)(void))
{
    test();
}

void criterion_internal_test_teardown(void)
{
    if (running->data->fini)
        running->data->fini();
}

void criterion_send_assert(struct criterion_assert_stats *stats)
{
    if (!stats->passed)
        fprintf(stderr, "%s:%u: %s\n", stats->file, stats->line, stats->message);
}

void cri_asserts_passed_incr(void) {}

void criterion_abort_test(void)
{
    exit(STATUS_FAILED);
}

void criterion_skip_test(const char *format, ...)
{
    (void)format;
    exit(STATUS_SKIPPED);
}

static int run_in_fork(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (running->data->kind_ != CR_TEST_NORMAL) {
            fprintf(stderr, "parameterized tests cannot run here: loop inside one test\n");
            exit(STATUS_FAILED);
        }
        running->test();
        exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork");
        exit(1);
    }
    return status;
}

/* As Criterion has it: the signal, or else the exit status, that the test was declared with. */
static int is_expected(int status)
{
    if (running->data->signal != 0)
        return WIFSIGNALED(status) && WTERMSIG(status) == running->data->signal;
    return WIFEXITED(status) && WEXITSTATUS(status) == running->data->exit_code;
}

int main(int argc, char **argv)
{
    static const char tap_option[] = "--tap=";
    const size_t n = sizeof(tap_option) - 1;
    FILE *tap = stdout;
    int failed = 0;

    if (argc == 2 && strncmp(argv[1], tap_option, n) == 0)
        tap = fopen(argv[1] + n, "we");
    if (argc > 2 || !tap) {
        fprintf(stderr, "usage: %s [--tap=FILE]\n", argv[0]);
        return 2;
    }
    setvbuf(tap, NULL, _IOLBF, 0);
    fprintf(tap, "1..%td\n", __stop_cr_tst - __start_cr_tst);
    for (struct criterion_test *const *at = __start_cr_tst; at < __stop_cr_tst; at++) {
        running = *at;
        int status = run_in_fork();
        int skipped = WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIPPED;
        int good = skipped || is_expected(status);
        failed |= !good;
        fprintf(tap, "%s - %s::%s%s\n", good ? "ok" : "not ok", running->category, running->name,
                skipped ? " # SKIP" : "");
    }
    return failed;
}
