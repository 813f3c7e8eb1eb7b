/* SPDX-License-Identifier: Apache-2.0 */
/* test_file.c: reads files, and lists folders. */
#include "tests/lib/test_file.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the rest of a file, which may be a pipe. */
static uint8_t *read_all(FILE *file, size_t *ret_nbytes)
{
    uint8_t *data = NULL;
    size_t nbytes = 0;
    size_t room = 0;

    for (;;) {
        if (room - nbytes < 2) {
            room = room ? 2 * room : 1 << 16;
            uint8_t *larger = realloc(data, room);
            if (!larger)
                break;
            data = larger;
        }
        size_t n = fread(data + nbytes, 1, room - nbytes - 1, file);
        nbytes += n;
        if (n == 0 && feof(file)) {
            data[nbytes] = 0;
            *ret_nbytes = nbytes;
            return data;
        }
        if (n == 0)
            break;
    }
    free(data);
    return NULL;
}

uint8_t *test_file_read(const char *path, size_t *ret_nbytes)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return NULL;
    uint8_t *data = read_all(file, ret_nbytes);
    int error = errno;
    fclose(file);
    errno = error;
    return data;
}

/* nftw() passes no argument to its callback. */
static _Thread_local struct test_file_list *list_being_filled;

static int add_path(const char *path, const struct stat *status, int type, struct FTW *where)
{
    struct test_file_list *list = list_being_filled;
    (void)status;
    (void)where;
    if (type != FTW_F)
        return 0;
    char **longer = realloc(list->paths, (list->n_paths + 1) * sizeof(*longer));
    if (!longer)
        return -1;
    list->paths = longer;
    if (!(list->paths[list->n_paths] = strdup(path)))
        return -1;
    list->n_paths++;
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int test_file_list_init(struct test_file_list *list, const char *folder)
{
    enum { MAX_OPEN_FOLDERS = 16 };
    *list = (struct test_file_list){0};
    list_being_filled = list;
    if (nftw(folder, add_path, MAX_OPEN_FOLDERS, FTW_PHYS) != 0) {
        test_file_list_deinit(list);
        return -1;
    }
    if (list->n_paths > 0)
        qsort(list->paths, list->n_paths, sizeof(*list->paths), compare_paths);
    return 0;
}

void test_file_list_deinit(struct test_file_list *list)
{
    for (size_t i = 0; i < list->n_paths; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct test_file_list){0};
}
