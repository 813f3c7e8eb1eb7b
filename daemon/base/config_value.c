/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_value.c: converts values of settings from and to text, with units and limits.
 */
#include "daemon/base/config_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/config_table.h"
#include "daemon/base/cpu_set.h"
#include "daemon/base/gpu_list.h"
#include "daemon/base/nearest.h"
#include "daemon/base/uid_ranges.h"

/* ---- numbers ------------------------------------------------------------------------------- */

static const struct wharf_config_suffix no_suffixes[] = {{"", 1}, {NULL, 0}};

static const char *unit_error(const struct wharf_config_suffix *suffixes)
{
    if (suffixes == wharf_config_duration_suffixes)
        return "a time needs a number and a unit: us, ms, s or min";
    if (suffixes == wharf_config_byte_suffixes)
        return "not a number of bytes, or of units K, M, G or T";
    return "not a number";
}

static const char *parse_number(const char *text, int base,
                                const struct wharf_config_suffix *suffixes, uint64_t *ret_value)
{
    uint64_t value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, base);
    if (end == text || *text == '-' || *text == '+')
        return unit_error(suffixes);
    if (errno)
        return "too large";
    while (*end == ' ')
        end++;
    const struct wharf_config_suffix *unit = suffixes;
    while (unit->text && strcmp(end, unit->text) != 0)
        unit++;
    if (!unit->text)
        return unit_error(suffixes);
    if (__builtin_mul_overflow(value, unit->factor, ret_value))
        return "too large";
    return NULL;
}

bool wharf_config_value_is_uid(const char *text, uint64_t *ret_uid)
{
    return !parse_number(text, 10, no_suffixes, ret_uid) && *ret_uid < UINT32_MAX;
}

static const struct wharf_config_suffix *suffixes_of(const struct wharf_setting *setting,
                                                     const char *text)
{
    if (setting->type == WHARF_SETTING_BYTES)
        return wharf_config_byte_suffixes;
    /* 0 needs no unit. */
    if (setting->type == WHARF_SETTING_DURATION && strcmp(text, "0") != 0)
        return wharf_config_duration_suffixes;
    return no_suffixes;
}

static bool set_number(const struct wharf_setting *setting, const char *text, uint64_t *ret_value,
                       struct wharf_config_why *ret_why)
{
    char min[WHARF_CONFIG_NUMBER_TEXT], max[WHARF_CONFIG_NUMBER_TEXT];
    uint64_t value = 0;
    const char *wrong = parse_number(text, setting->type == WHARF_SETTING_MODE ? 8 : 10,
                                     suffixes_of(setting, text), &value);

    if (wrong) {
        snprintf(ret_why->text, sizeof(ret_why->text), "%s", wrong);
        return false;
    }
    if (value < setting->min || value > setting->max) {
        snprintf(ret_why->text, sizeof(ret_why->text), "out of its limits, %s to %s",
                 wharf_config_value_number(setting, setting->min, min),
                 wharf_config_value_number(setting, setting->max, max));
        return false;
    }
    *ret_value = value;
    return true;
}

/* ---- words and texts ----------------------------------------------------------------------- */

static bool set_choice(const struct wharf_setting *setting, const char *text, uint64_t *ret_value,
                       struct wharf_config_why *ret_why)
{
    struct wharf_nearest nearest;
    size_t n;

    wharf_nearest_begin(&nearest, text);
    for (const struct wharf_setting_choice *choice = setting->choices; choice->word; choice++) {
        if (strcmp(choice->word, text) == 0) {
            *ret_value = choice->value;
            return true;
        }
        wharf_nearest_offer(&nearest, choice->word);
    }
    n = (size_t)snprintf(ret_why->text, sizeof(ret_why->text), "not one of the words");
    for (const struct wharf_setting_choice *choice = setting->choices; choice->word; choice++)
        n += (size_t)snprintf(ret_why->text + n, sizeof(ret_why->text) - n, "%s %s",
                              choice == setting->choices ? ""
                              : choice[1].word           ? ","
                                                         : " and",
                              choice->word);
    if (nearest.name)
        snprintf(ret_why->text + n, sizeof(ret_why->text) - n, "; did you mean %s?", nearest.name);
    return false;
}

/* Checks a text of a given form.  Returns an error message or NULL. */
static const char *check_text(const struct wharf_setting *setting, const char *text)
{
    struct wharf_gpu_list gpus;
    struct wharf_uid_ranges uids;
    cpu_set_t cpus;

    if (setting->type == WHARF_SETTING_GPUS)
        return wharf_gpu_list_parse(text, &gpus);
    if (setting->type == WHARF_SETTING_UIDS)
        return wharf_uid_ranges_parse(text, &uids);
    if (setting->type == WHARF_SETTING_CPUS && *text && wharf_cpu_set_parse(text, &cpus) < 0)
        return "processors are numbers, as in 3, or ranges, as in 0-7, with commas between them";
    return NULL;
}

static bool set_text(const struct wharf_setting *setting, const char *text, char *member,
                     struct wharf_config_why *ret_why)
{
    size_t n = strlen(text);
    const char *wrong = n < setting->min    ? "must not be empty"
                        : n >= setting->max ? "too long"
                                            : check_text(setting, text);

    if (wrong) {
        snprintf(ret_why->text, sizeof(ret_why->text), "%s", wrong);
        return false;
    }
    memcpy(member, text, n);
    /* Clears the rest of the array, so that equal settings have equal bytes. */
    memset(member + n, 0, setting->max - n);
    return true;
}

bool wharf_config_value_set(const struct wharf_setting *setting, void *base, const char *text,
                            struct wharf_config_why *ret_why)
{
    char *member = (char *)base + setting->offset;

    if (wharf_setting_is_text(setting))
        return set_text(setting, text, member, ret_why);
    if (setting->type == WHARF_SETTING_CHOICE)
        return set_choice(setting, text, (uint64_t *)(void *)member, ret_why);
    return set_number(setting, text, (uint64_t *)(void *)member, ret_why);
}

/* ---- to text ------------------------------------------------------------------------------- */

static const char *print_in_units(const struct wharf_config_suffix *units, uint64_t value,
                                  char text[])
{
    const struct wharf_config_suffix *unit = units;

    while (unit[1].text && value != 0 && value % unit[1].factor == 0)
        unit++;
    snprintf(text, WHARF_CONFIG_NUMBER_TEXT, "%" PRIu64 "%s", value / unit->factor,
             value ? unit->text : "");
    return text;
}

const char *wharf_config_value_number(const struct wharf_setting *setting, uint64_t value,
                                      char text[WHARF_CONFIG_NUMBER_TEXT])
{
    if (setting->type == WHARF_SETTING_BYTES)
        return print_in_units(wharf_config_byte_suffixes, value, text);
    if (setting->type == WHARF_SETTING_DURATION)
        return print_in_units(wharf_config_duration_suffixes, value, text);
    snprintf(text, WHARF_CONFIG_NUMBER_TEXT,
             setting->type == WHARF_SETTING_MODE ? "%04" PRIo64 : "%" PRIu64, value);
    return text;
}

const char *wharf_config_value_text(const struct wharf_setting *setting, const void *base,
                                    char text[WHARF_CONFIG_NUMBER_TEXT])
{
    const char *member = (const char *)base + setting->offset;
    uint64_t value;

    if (wharf_setting_is_text(setting))
        return member;
    memcpy(&value, member, sizeof(value));
    if (setting->type != WHARF_SETTING_CHOICE)
        return wharf_config_value_number(setting, value, text);
    const struct wharf_setting_choice *choice = setting->choices;
    while (choice->word && choice->value != value)
        choice++;
    return choice->word ? choice->word : "";
}
