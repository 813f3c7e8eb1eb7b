/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_file.h: whole files in memory, and the files of a folder in a fixed order.
 */
#ifndef WHARF_TESTS_TEST_FILE_H
#define WHARF_TESTS_TEST_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a file whole.  Returns memory for the caller to free, one byte longer than the file and
 * ended with a zero byte, so that text can be used as a string; NULL with errno set when the file
 * cannot be read.
 */
uint8_t *test_file_read(const char *path, size_t *ret_nbytes);

struct test_file_list {
    char **paths;
    size_t n_paths;
};

/*
 * All plain files under `folder`, at any depth, as paths that begin with `folder`, sorted by
 * bytes.  Returns 0, or -1 with errno set (a missing folder, for one).
 */
int test_file_list_init(struct test_file_list *list, const char *folder);
void test_file_list_deinit(struct test_file_list *list);

#endif
