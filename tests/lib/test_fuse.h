/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fuse.h: a file system that hangs whoever closes its files, even after SIGKILL, until it
 * ends.  Files named by a number from 1 on can be closed, until a whole page is written to them.
 * Needs root and /dev/fuse.
 */
#ifndef WHARF_TESTS_TEST_FUSE_H
#define WHARF_TESTS_TEST_FUSE_H

#include <sys/types.h>

struct test_fuse {
    pid_t server;    /* its own process */
    char folder[64]; /* the mount point; every name in it is a file */
};

/* Returns 0, or -errno if this is not possible here. */
int test_fuse_start(struct test_fuse *fuse);

/* Ends it, which releases what hangs. */
void test_fuse_stop(struct test_fuse *fuse);

#endif
