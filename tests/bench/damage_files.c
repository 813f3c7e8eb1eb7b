/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/damage_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void *damage_map(const char *path, int may_write)
{
    int fd = open(path, may_write ? O_RDWR : O_RDONLY);
    struct stat status;
    void *p = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0)
        p = mmap(NULL, (size_t)status.st_size, may_write ? PROT_READ | PROT_WRITE : PROT_READ,
                 MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        perror(path);
        exit(4);
    }
    close(fd);
    return p;
}
