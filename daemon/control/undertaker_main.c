/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undertaker_main.c: the undertaker's process.  It never closes anything: its end does.
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/control/undertaker.h"

int wharf_undertaker_main(int fd, int parent)
{
    char byte;

    prctl(PR_SET_NAME, "wharfd-closer");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* It may have died before that. */
    if (getppid() != parent)
        return 1;
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    /* Ends when the front has closed its copies, of which the last must not be. */
    while (read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
    return 0;
}
