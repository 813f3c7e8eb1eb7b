/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_callers.c: what serves programs as they are: the library that `wharf run` preloads, and
 * the package for Python.
 */
#include <limits.h>
#include <string.h>

#include "clientlib/cli/doctor.h"
#include "clientlib/cli/preload_library.h"

static void look_at_preload(struct wharf_cli_doctor *doctor)
{
    char path[PATH_MAX];
    struct wharf_cli_finding *finding;

    if (wharf_cli_find_preload_library(path) == 0) {
        wharf_cli_doctor_note(doctor, "preload", WHARF_CLI_HEALTH_OK, "%.500s", path);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "preload", WHARF_CLI_HEALTH_WARNING,
                                    "libwharf-preload.so is neither beside this command nor "
                                    "installed with it");
    wharf_cli_finding_cost(finding, "`wharf run` serves no program");
    wharf_cli_finding_mend_by_package(finding, "wharf", true);
}

/*
 * What Python says of the package: its version.  Not of a folder `wharf` that happens to be where
 * the command was started: whoever can write there would run programs as this user.
 */
static const char script[] =
    "import sys; sys.path = [p for p in sys.path if p]; import wharf; print(wharf.__version__)";

static bool ask_python(char *text, size_t text_nbytes)
{
    char *const arguments[] = {"python3", "-c", (char *)script, NULL};
    bool is_there = wharf_cli_doctor_ask(arguments, text, text_nbytes);

    text[strcspn(text, "\n")] = 0;
    return is_there;
}

static void look_at_python(struct wharf_cli_doctor *doctor)
{
    char version[64];
    struct wharf_cli_finding *finding;

    if (!wharf_cli_doctor_has_program("python3")) {
        wharf_cli_doctor_note(doctor, "python", WHARF_CLI_HEALTH_OK, "there is no python3");
        return;
    }
    bool is_there = ask_python(version, sizeof(version));
    if (is_there && strcmp(version, wharf_version()) == 0) {
        wharf_cli_doctor_note(doctor, "python", WHARF_CLI_HEALTH_OK, "the package wharf %s",
                              version);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "python", WHARF_CLI_HEALTH_WARNING,
                                    is_there ? "the package is wharf %s"
                                             : "python3 does not find the package wharf%s",
                                    is_there ? version : "");
    wharf_cli_finding_cost(finding, is_there ? "it is not of this version"
                                             : "Python programs decode without wharf");
    wharf_cli_finding_mend_by_package(finding, "python3-wharf", false);
}

void wharf_cli_doctor_look_at_callers(struct wharf_cli_doctor *doctor)
{
    look_at_preload(doctor);
    look_at_python(doctor);
}
