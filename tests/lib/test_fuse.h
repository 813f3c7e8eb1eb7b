/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fuse.h: a file system whose files hang whoever closes them, beyond SIGKILL, until it ends.
 * Those that are named by a number from 1 on can be closed, until a whole page was written to them.
 * Needs root and /dev/fuse.
 */
#ifndef WHARF_TESTS_TEST_FUSE_H
#define WHARF_TESTS_TEST_FUSE_H

#include <sys/types.h>

struct test_fuse {
    pid_t server;    /* a process of its own */
    char folder[64]; /* where it is mounted; every name in it is a file */
};

/* Returns 0, or -errno where it cannot be done. */
int test_fuse_start(struct test_fuse *fuse);

/* Ends it: what hangs comes back. */
void test_fuse_stop(struct test_fuse *fuse);

#endif
