/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_gpu.c: the GPUs of the machine, what their driver needs, the daemon's worker for them, and
 * whether it has them.
 */
#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clientlib/cli/doctor.h"

#define WITHOUT_GPU "no job runs on a GPU: CPUs do all"

/* ---- hardware ------------------------------------------------------------------------------- */

/* Display and 3D controllers of NVIDIA's. */
static bool is_gpu(const char *folder)
{
    static const struct wharf_cli_doctor here = {.root = ""};
    char path[PATH_MAX], vendor[32], class[32];

    snprintf(path, sizeof(path), "%s/vendor", folder);
    if (!wharf_cli_doctor_read(&here, path, vendor, sizeof(vendor)) ||
        strcmp(vendor, "0x10de") != 0)
        return false;
    snprintf(path, sizeof(path), "%s/class", folder);
    return wharf_cli_doctor_read(&here, path, class, sizeof(class)) &&
           strncmp(class, "0x03", 4) == 0;
}

static unsigned count_gpus(const struct wharf_cli_doctor *doctor)
{
    char path[PATH_MAX];
    glob_t found;
    unsigned n = 0;

    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/*", doctor->root);
    if (glob(path, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        n += is_gpu(found.gl_pathv[i]);
    globfree(&found);
    return n;
}

static bool is_there(const struct wharf_cli_doctor *doctor, const char *pattern)
{
    return wharf_cli_doctor_find(doctor, pattern, NULL, 0) > 0;
}

/* ---- the driver ----------------------------------------------------------------------------- */

static bool has_module(const struct wharf_cli_doctor *doctor)
{
    static const char *const places[] = {
        "updates/dkms", "extra", "extra/*", "updates", "kernel/drivers/video", "kernel/nvidia*"};
    struct utsname kernel;
    char pattern[PATH_MAX];

    if (uname(&kernel) < 0)
        return false;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(pattern, sizeof(pattern), "/lib/modules/%s/%s/nvidia*.ko*", kernel.release,
                 places[i]);
        if (is_there(doctor, pattern))
            return true;
    }
    return false;
}

static bool has_library(const struct wharf_cli_doctor *doctor)
{
    return is_there(doctor, "/usr/lib/*/libcuda.so.1") ||
           is_there(doctor, "/usr/lib/libcuda.so.1") ||
           is_there(doctor, "/usr/lib64/libcuda.so.1") || is_there(doctor, "/lib/*/libcuda.so.1");
}

/* The word of a version, as in "580.82.07", of the line about the module; "" if there is none. */
static void find_version(const struct wharf_cli_doctor *doctor, char version[32])
{
    char line[256], *rest = line, *word;

    strcpy(version, "");
    if (!wharf_cli_doctor_read(doctor, "/proc/driver/nvidia/version", line, sizeof(line)))
        return;
    while ((word = strtok_r(rest, " \t", &rest)))
        if (isdigit((unsigned char)*word) && strchr(word, '.')) {
            snprintf(version, 32, "%s", word);
            return;
        }
    strcpy(version, "of an unknown version");
}

static void say_no_driver(struct wharf_cli_doctor *doctor, const char *mend, const char *found)
{
    struct wharf_cli_finding *finding =
        wharf_cli_doctor_note(doctor, "driver", WHARF_CLI_HEALTH_MISSING, "%s", found);

    wharf_cli_finding_cost(finding, WITHOUT_GPU);
    wharf_cli_finding_mend(finding, "%s", mend);
}

static void look_at_driver(struct wharf_cli_doctor *doctor)
{
    char version[32], node[PATH_MAX];

    find_version(doctor, version);
    if (doctor->n_gpus == 0)
        wharf_cli_doctor_note(doctor, "driver", WHARF_CLI_HEALTH_OK,
                              "not needed: there is no NVIDIA GPU");
    else if (!*version)
        say_no_driver(
            doctor, has_module(doctor) ? "sudo modprobe nvidia" : "sudo apt install nvidia-driver",
            has_module(doctor) ? "NVIDIA's kernel module is not loaded"
                               : "NVIDIA's driver is not installed");
    else if (wharf_cli_doctor_find(doctor, "/dev/nvidiactl", node, sizeof(node)) == 0)
        say_no_driver(doctor, "sudo nvidia-modprobe -u -c0", "there is no /dev/nvidiactl");
    else if (!has_library(doctor))
        say_no_driver(doctor, "sudo apt install libcuda1", "there is no libcuda.so.1");
    else
        wharf_cli_doctor_note(doctor, "driver", WHARF_CLI_HEALTH_OK, "NVIDIA's driver %s", version);
}

/* ---- the daemon's worker -------------------------------------------------------------------- */

/* Where wharfd looks for it, beside the command or installed. */
static bool has_worker(const struct wharf_cli_doctor *doctor, char ret_path[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n > 0 && !*doctor->root) {
        self[n] = 0;
        *strrchr(self, '/') = 0;
        snprintf(ret_path, PATH_MAX, "%.4000s/wharfd-gpu", self);
        if (access(ret_path, X_OK) == 0)
            return true;
        snprintf(ret_path, PATH_MAX, "%.4000s/../libexec/wharf/wharfd-gpu", self);
        if (access(ret_path, X_OK) == 0)
            return true;
    }
    return wharf_cli_doctor_find(doctor, "/usr/libexec/wharf/wharfd-gpu", ret_path, PATH_MAX) > 0 ||
           wharf_cli_doctor_find(doctor, "/usr/local/libexec/wharf/wharfd-gpu", ret_path,
                                 PATH_MAX) > 0;
}

static void look_at_toolkit(struct wharf_cli_doctor *doctor)
{
    bool has_nvcc = is_there(doctor, "/usr/local/cuda/bin/nvcc") ||
                    (!*doctor->root && wharf_cli_doctor_has_program("nvcc"));
    char path[PATH_MAX];
    struct wharf_cli_finding *finding;

    if (doctor->n_gpus == 0) {
        wharf_cli_doctor_note(doctor, "toolkit", WHARF_CLI_HEALTH_OK,
                              "not needed: there is no NVIDIA GPU");
        return;
    }
    if (has_worker(doctor, path)) {
        wharf_cli_doctor_note(doctor, "toolkit", WHARF_CLI_HEALTH_OK, "not needed: %s is built",
                              path);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "toolkit", WHARF_CLI_HEALTH_MISSING,
                                    has_nvcc ? "wharfd-gpu, the daemon's worker for GPUs, is not "
                                               "built, and nvcc is there"
                                             : "wharfd-gpu, the daemon's worker for GPUs, is not "
                                               "there, nor nvcc, which builds it");
    wharf_cli_finding_cost(finding, WITHOUT_GPU);
    wharf_cli_finding_mend(finding, has_nvcc ? "make gpu-worker && sudo make install"
                                             : "sudo apt install cuda-toolkit");
}

/* ---- the daemon's GPUs ---------------------------------------------------------------------- */

static double sum(const struct wharf_cli_doctor *doctor, const char *family)
{
    return wharf_cli_metrics_sum(&doctor->metrics, family, "", NULL, NULL);
}

static void look_at_workers(struct wharf_cli_doctor *doctor)
{
    double n_up = sum(doctor, "wharf_gpus_up"), n_expected = sum(doctor, "wharf_gpus_expected");
    bool is_lost = n_up < n_expected;
    bool is_unused = !is_lost && n_up == 0 && doctor->n_gpus > 0;
    struct wharf_cli_finding *finding;

    if (!doctor->wharf) {
        finding = wharf_cli_doctor_note(
            doctor, "gpus", doctor->n_gpus ? WHARF_CLI_HEALTH_WARNING : WHARF_CLI_HEALTH_OK,
            "%u in this machine; there is no daemon to use them", doctor->n_gpus);
        if (doctor->n_gpus)
            wharf_cli_finding_follow(doctor, finding, "daemon");
        return;
    }
    finding = wharf_cli_doctor_note(
        doctor, "gpus",
        is_lost     ? WHARF_CLI_HEALTH_MISSING
        : is_unused ? WHARF_CLI_HEALTH_WARNING
                    : WHARF_CLI_HEALTH_OK,
        "%.0f of %.0f that the daemon expects are up; %u in this machine%s", n_up, n_expected,
        doctor->n_gpus, is_lost || is_unused ? "; the daemon's log says why" : "");
    if (!is_lost && !is_unused)
        return;
    wharf_cli_finding_cost(finding, "%s", n_up > 0 ? "fewer GPUs do all jobs" : WITHOUT_GPU);
    wharf_cli_finding_mend_by_restart(doctor, finding);
}

void wharf_cli_doctor_look_at_gpus(struct wharf_cli_doctor *doctor)
{
    doctor->n_gpus = count_gpus(doctor);
    /* Some virtual machines show none on the bus. */
    if (doctor->n_gpus == 0)
        doctor->n_gpus = (unsigned)wharf_cli_doctor_find(doctor, "/dev/nvidia[0-9]*", NULL, 0);
    look_at_driver(doctor);
    look_at_toolkit(doctor);
    look_at_workers(doctor);
}
