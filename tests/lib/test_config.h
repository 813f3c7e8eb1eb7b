/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.h: configurations from texts. */
#ifndef WHARF_TESTS_TEST_CONFIG_H
#define WHARF_TESTS_TEST_CONFIG_H

#include "daemon/base/config.h"

/* Reads a text as if it were the file "test.conf", over the values in `config`.  Returns the number
 * of errors; `problems` gets all errors and warnings as lines. */
size_t test_config_parse(struct wharf_config *config, const char *text, size_t text_nbytes,
                         char problems[], size_t problems_nbytes);

#endif
