/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer_main.c: the closer process's process.  It never closes anything: its end does.
 */
#include <errno.h>
#include <unistd.h>

#include "daemon/disposable/closer_process.h"
#include "daemon/disposable/disposable.h"

int wharf_closer_main(int fd, int parent)
{
    char byte;

    if (!wharf_disposable_begin("wharfd-closer", parent))
        return 1;
    /* Ends when the core has closed its copies, of which the last must not be. */
    while (read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
    return 0;
}
