/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.h: converts values of settings from and to text. */
#ifndef WHARF_DAEMON_BASE_CONFIG_VALUE_H
#define WHARF_DAEMON_BASE_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/config_table.h"

/* Why a value is wrong, as a sentence. */
struct wharf_config_why {
    char text[256];
};

/* Stores a value in its member of the section's struct.  False if the setting cannot have it. */
bool wharf_config_value_set(const struct wharf_setting *setting, void *base, const char *text,
                            struct wharf_config_why *ret_why);

/* Whether `text` is a uid in decimal. */
bool wharf_config_value_is_uid(const char *text, uint64_t *ret_uid);

/* Room for a number of any type of setting. */
#define WHARF_CONFIG_NUMBER_TEXT 24

/* A number in the setting's largest unit that divides it.  Returns `text`. */
const char *wharf_config_value_number(const struct wharf_setting *setting, uint64_t value,
                                      char text[WHARF_CONFIG_NUMBER_TEXT]);

/* The value of a setting in its section's struct; `text` is used for numbers. */
const char *wharf_config_value_text(const struct wharf_setting *setting, const void *base,
                                    char text[WHARF_CONFIG_NUMBER_TEXT]);

#endif
