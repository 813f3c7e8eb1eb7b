/* SPDX-License-Identifier: Apache-2.0 */
/* config_table.h: the table of settings. */
#ifndef WHARF_DAEMON_BASE_CONFIG_TABLE_H
#define WHARF_DAEMON_BASE_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wharf_setting_type {
    WHARF_SETTING_COUNT,
    WHARF_SETTING_BYTES,    /* 4096, 64K, 16M, 1G, 1T: powers of 1024 */
    WHARF_SETTING_DURATION, /* 50us, 500ms, 2s, 1min; kept in nanoseconds */
    WHARF_SETTING_MODE,     /* octal */
    WHARF_SETTING_CHOICE,   /* one of some words */
    WHARF_SETTING_TEXT,     /* a text; max is the size of the array */
    WHARF_SETTING_GPUS,     /* a text: a list as in gpu_list.h */
    WHARF_SETTING_UIDS,     /* a text: a list as in uid_ranges.h */
    WHARF_SETTING_CPUS,     /* a text: a list as in cpu_set.h, or empty */
};

struct wharf_setting_choice {
    const char *word; /* NULL ends the list */
    uint64_t value;
};

struct wharf_setting {
    const char *section;
    const char *key;
    enum wharf_setting_type type;
    bool reloads;          /* can change while the daemon runs */
    size_t offset;         /* in the section's struct */
    const char *otherwise; /* the default */
    uint64_t min, max;
    const struct wharf_setting_choice *choices;
    const char *summary;
};

static inline bool wharf_setting_is_text(const struct wharf_setting *setting)
{
    return setting->type == WHARF_SETTING_TEXT || setting->type == WHARF_SETTING_GPUS ||
           setting->type == WHARF_SETTING_UIDS || setting->type == WHARF_SETTING_CPUS;
}

/* Units of numbers: the text after the number, and what it multiplies by; text NULL ends a list. */
struct wharf_config_suffix {
    const char *text;
    uint64_t factor;
};
extern const struct wharf_config_suffix wharf_config_byte_suffixes[];
extern const struct wharf_config_suffix wharf_config_duration_suffixes[];

/* The words of [gpu] engine, which are also those of the command line. */
extern const struct wharf_setting_choice wharf_config_gpu_engines[];

/* Rows of one section are contiguous.  The last row's section is NULL. */
extern const struct wharf_setting wharf_settings[];

#endif
