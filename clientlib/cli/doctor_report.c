/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_report.c: the list of findings: how it is filled, and how it is printed. */
#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/doctor.h"
#include "clientlib/cli/json.h"

static const char *const health_names[] = {"ok", "warning", "missing"};

/* ---- findings ------------------------------------------------------------------------------ */

struct wharf_cli_finding *wharf_cli_doctor_note(struct wharf_cli_doctor *doctor, const char *check,
                                                enum wharf_cli_health health, const char *format,
                                                ...)
{
    /* Every check appends once: there is room for more of them than there are. */
    unsigned i = doctor->n_findings < WHARF_CLI_MAX_FINDINGS ? doctor->n_findings++
                                                             : WHARF_CLI_MAX_FINDINGS - 1;
    struct wharf_cli_finding *finding = &doctor->findings[i];
    va_list arguments;

    *finding = (struct wharf_cli_finding){.check = check, .health = health};
    va_start(arguments, format);
    vsnprintf(finding->found, sizeof(finding->found), format, arguments);
    va_end(arguments);
    return finding;
}

void wharf_cli_finding_mend(struct wharf_cli_finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->mend, sizeof(finding->mend), format, arguments);
    va_end(arguments);
}

void wharf_cli_finding_cost(struct wharf_cli_finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->cost, sizeof(finding->cost), format, arguments);
    va_end(arguments);
}

void wharf_cli_finding_follow(const struct wharf_cli_doctor *doctor,
                              struct wharf_cli_finding *finding, const char *check)
{
    for (unsigned i = 0; i < doctor->n_findings; i++) {
        const struct wharf_cli_finding *earlier = &doctor->findings[i];
        if (strcmp(earlier->check, check) != 0 || !*earlier->mend)
            continue;
        wharf_cli_finding_cost(finding, "%s", earlier->cost);
        wharf_cli_finding_mend(finding, "%s", earlier->mend);
    }
}

/* ---- the system's files --------------------------------------------------------------------- */

size_t wharf_cli_doctor_find(const struct wharf_cli_doctor *doctor, const char *pattern,
                             char *ret_path, size_t path_nbytes)
{
    char whole[PATH_MAX];
    glob_t found;
    size_t n;

    snprintf(whole, sizeof(whole), "%s%s", doctor->root, pattern);
    if (glob(whole, 0, NULL, &found) != 0)
        return 0;
    n = found.gl_pathc;
    if (ret_path)
        snprintf(ret_path, path_nbytes, "%s", found.gl_pathv[0]);
    globfree(&found);
    return n;
}

bool wharf_cli_doctor_read(const struct wharf_cli_doctor *doctor, const char *path, char *ret_line,
                           size_t line_nbytes)
{
    char whole[PATH_MAX];

    snprintf(whole, sizeof(whole), "%s%s", doctor->root, path);
    FILE *file = fopen(whole, "re");
    if (!file)
        return false;
    bool is_there = fgets(ret_line, (int)line_nbytes, file) != NULL;
    fclose(file);
    if (is_there)
        ret_line[strcspn(ret_line, "\n")] = 0;
    return is_there;
}

bool wharf_cli_doctor_has_program(const char *name)
{
    const char *place = getenv("PATH");
    char path[PATH_MAX];

    while (place && *place) {
        size_t n = strcspn(place, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)n, place, name);
        if (n > 0 && access(path, X_OK) == 0)
            return true;
        place += n + (place[n] == ':');
    }
    return false;
}

/* ---- the report ----------------------------------------------------------------------------- */

static unsigned count(const struct wharf_cli_doctor *doctor, enum wharf_cli_health health)
{
    unsigned n = 0;

    for (unsigned i = 0; i < doctor->n_findings; i++)
        n += doctor->findings[i].health == health;
    return n;
}

/* Names of files and a daemon's words may hold what a terminal takes for commands. */
static void print_clean(const char *before, const char *text)
{
    fputs(before, stdout);
    for (; *text; text++)
        putchar(iscntrl((unsigned char)*text) ? '?' : *text);
    putchar('\n');
}

static void print_finding(const struct wharf_cli_finding *finding)
{
    printf("%-10s %-8s", finding->check, health_names[finding->health]);
    print_clean(" ", finding->found);
    if (*finding->cost)
        print_clean("           costs    ", finding->cost);
    if (*finding->mend)
        print_clean("           mend     ", finding->mend);
}

void wharf_cli_doctor_print_text(const struct wharf_cli_doctor *doctor, bool only_bad)
{
    for (unsigned i = 0; i < doctor->n_findings; i++)
        if (!only_bad || doctor->findings[i].health != WHARF_CLI_HEALTH_OK)
            print_finding(&doctor->findings[i]);
    if (!only_bad)
        printf("ok %u, warnings %u, missing %u\n", count(doctor, WHARF_CLI_HEALTH_OK),
               count(doctor, WHARF_CLI_HEALTH_WARNING), count(doctor, WHARF_CLI_HEALTH_MISSING));
}

static void put_member(const char *before, const char *name, const char *text)
{
    printf("%s\"%s\":", before, name);
    wharf_cli_json_string(stdout, *text ? text : NULL);
}

void wharf_cli_doctor_print_json(const struct wharf_cli_doctor *doctor)
{
    put_member("{", "version", wharf_version());
    put_member(",", "socket", doctor->path);
    printf(",\"ok\":%u,\"warnings\":%u,\"missing\":%u,\"checks\":[",
           count(doctor, WHARF_CLI_HEALTH_OK), count(doctor, WHARF_CLI_HEALTH_WARNING),
           count(doctor, WHARF_CLI_HEALTH_MISSING));
    for (unsigned i = 0; i < doctor->n_findings; i++) {
        const struct wharf_cli_finding *finding = &doctor->findings[i];
        put_member(i ? ",{" : "{", "check", finding->check);
        put_member(",", "state", health_names[finding->health]);
        put_member(",", "found", finding->found);
        put_member(",", "costs", finding->cost);
        put_member(",", "mend", finding->mend);
        putchar('}');
    }
    printf("]}\n");
}
