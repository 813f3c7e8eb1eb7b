/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.h: a configuration from a text. */
#ifndef WHARF_TESTS_TEST_CONFIG_H
#define WHARF_TESTS_TEST_CONFIG_H

#include "daemon/base/config.h"

/* Reads a text as the file "test.conf" over what `config` holds.  Returns how many errors there
 * were, and all errors and warnings as lines of `problems`. */
size_t test_config_parse(struct wharf_config *config, const char *text, size_t text_nbytes,
                         char problems[], size_t problems_nbytes);

#endif
