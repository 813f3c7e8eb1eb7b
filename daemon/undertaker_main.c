/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undertaker_main.c: the undertaker's process.  It never closes anything: its end does.
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/undertaker.h"
#include "proto/control.h"

int wharf_undertaker_main(int fd, int parent)
{
    struct wharf_control_receiver receiver;

    prctl(PR_SET_NAME, "wharfd-closer");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* It may have died before that. */
    if (getppid() != parent)
        return 1;
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    while (wharf_control_receive(fd, &receiver, 0) == 0 && receiver.nbytes > 0) {
    }
    return 0;
}
