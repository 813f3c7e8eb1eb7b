/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "daemon/base/config.h"
#include "daemon/base/config_table.h"

static void print_bytes(FILE *out, uint64_t value)
{
    size_t i = 4;

    while (i > 0 && (value == 0 || value % wharf_config_byte_suffixes[i].factor))
        i--;
    fprintf(out, "%" PRIu64 "%s", value / wharf_config_byte_suffixes[i].factor,
            wharf_config_byte_suffixes[i].text);
}

static void print_duration(FILE *out, uint64_t value)
{
    size_t i = 3;

    while (i > 0 && value % wharf_config_duration_suffixes[i].factor)
        i--;
    if (value == 0)
        fputs("0", out);
    else
        fprintf(out, "%" PRIu64 "%s", value / wharf_config_duration_suffixes[i].factor,
                wharf_config_duration_suffixes[i].text);
}

static void print_number(FILE *out, const struct wharf_setting *s, uint64_t value)
{
    if (s->type == WHARF_SETTING_BYTES)
        print_bytes(out, value);
    else if (s->type == WHARF_SETTING_DURATION)
        print_duration(out, value);
    else
        fprintf(out, s->type == WHARF_SETTING_MODE ? "%04" PRIo64 : "%" PRIu64, value);
}

static void print_setting(FILE *out, const struct wharf_setting *s)
{
    fprintf(out, "\n# %s\n# ", s->summary);
    if (s->type == WHARF_SETTING_CHOICE) {
        for (const struct wharf_setting_choice *c = s->choices; c->word; c++)
            fprintf(out, "%s%s", c == s->choices ? "One of " : ", ", c->word);
    } else if (wharf_setting_is_text(s)) {
        fprintf(out, "At most %" PRIu64 " bytes", s->max - 1);
    } else {
        print_number(out, s, s->min);
        fputs(" to ", out);
        print_number(out, s, s->max);
    }
    fprintf(out, "%s\n", s->reloads ? "." : ".  Takes effect when the daemon starts.");
    fprintf(out, "#%s =%s%s\n", s->key, *s->otherwise ? " " : "", s->otherwise);
}

void wharf_config_print(FILE *out)
{
    const char *section = "";

    fputs("# Configuration of wharfd.  Every setting is here with its default.\n"
          "# SIGHUP makes the daemon read it again.\n",
          out);
    for (const struct wharf_setting *s = wharf_settings; s->section; s++) {
        if (strcmp(section, s->section) != 0) {
            section = s->section;
            if (strcmp(section, "quota") == 0)
                fputs("\n# [tenant user:NAME], [tenant uid:NUMBER], [tenant block:NUMBER],"
                      "\n# [tenant socket:NAME] and [tenant unknown] have the same settings as"
                      "\n# [quota], and go before it for one tenant.\n",
                      out);
            if (strcmp(section, "listen") == 0)
                fputs("\n# One section for each further socket.\n#[listen NAME]\n", out);
            else
                fprintf(out, "\n[%s]\n", section);
        }
        print_setting(out, s);
    }
}
