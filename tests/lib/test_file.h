/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_file.h: whole files in memory, and the files of a folder in a fixed order.
 */
#ifndef WHARF_TESTS_TEST_FILE_H
#define WHARF_TESTS_TEST_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a whole file.  Returns memory that the caller frees, with a zero byte after the file's
 * bytes, so that text can be used as a string; or NULL with errno set.
 */
uint8_t *test_file_read(const char *path, size_t *ret_nbytes);

struct test_file_list {
    char **paths;
    size_t n_paths;
};

/*
 * Lists all regular files under `folder`, at any depth, as paths that begin with `folder`, sorted
 * by bytes.  Returns 0, or -1 with errno set, for example if the folder is missing.
 */
int test_file_list_init(struct test_file_list *list, const char *folder);
void test_file_list_deinit(struct test_file_list *list);

#endif
