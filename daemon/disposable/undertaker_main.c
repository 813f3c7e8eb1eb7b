/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undertaker_main.c: the undertaker's process.  It never closes anything: its end does.
 */
#include <errno.h>
#include <unistd.h>

#include "daemon/disposable/disposable.h"
#include "daemon/disposable/undertaker.h"

int wharf_undertaker_main(int fd, int parent)
{
    char byte;

    if (!wharf_disposable_begin("wharfd-closer", parent))
        return 1;
    /* Ends when the front has closed its copies, of which the last must not be. */
    while (read(fd, &byte, 1) < 0 && errno == EINTR) {
    }
    return 0;
}
