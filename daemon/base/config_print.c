/* SPDX-License-Identifier: Apache-2.0 */
/* config_print.c: prints a configuration file with all settings (wharfd --print-config). */
#include <inttypes.h>
#include <string.h>

#include "daemon/base/config.h"
#include "daemon/base/config_table.h"
#include "daemon/base/config_value.h"

static void print_setting(FILE *out, const struct wharf_setting *s)
{
    fprintf(out, "\n# %s\n# ", s->summary);
    if (s->type == WHARF_SETTING_CHOICE) {
        for (const struct wharf_setting_choice *c = s->choices; c->word; c++)
            fprintf(out, "%s%s", c == s->choices ? "One of " : ", ", c->word);
    } else if (wharf_setting_is_text(s)) {
        fprintf(out, "At most %" PRIu64 " bytes", s->max - 1);
    } else {
        char min[WHARF_CONFIG_NUMBER_TEXT], max[WHARF_CONFIG_NUMBER_TEXT];
        fprintf(out, "%s to %s", wharf_config_value_number(s, s->min, min),
                wharf_config_value_number(s, s->max, max));
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
                fputs("\n# [group NAME] has the same settings as [quota], and goes before it for"
                      "\n# each member of a group of users who has no [tenant] section that says"
                      "\n# otherwise.  Of several groups the first one here counts.\n"
                      "\n# [tenant user:NAME], [tenant uid:NUMBER], [tenant block:NUMBER],"
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
