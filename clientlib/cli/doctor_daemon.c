/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_daemon.c: the group, the socket, and who answers there.
 *
 * The socket is tried without libwharf first: its error tells what is there, and the credentials of
 * who listens tell the daemon's process, whose limits count.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clientlib/cli/doctor.h"
#include "clientlib/cli/number.h"
#include "clientlib/now.h"

#define DEFAULT_GROUP "wharf"
#define WITHOUT_DAEMON "each program decodes in its own process, on CPUs alone, and no GPU is used"

/* Where nobody else can put a socket in its place. */
#define PRIVATE_DAEMON "wharfd --socket ~/.wharf.sock & export WHARF_SOCKET=~/.wharf.sock"

/* ---- commands ------------------------------------------------------------------------------ */

enum { QUOTED_NBYTES = 4 * 108 + 3 };

/* The path as a word of a shell. */
static const char *quote(const char *path, char quoted[QUOTED_NBYTES])
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:";
    char *to = quoted;

    if (path[strspn(path, plain)] == 0 && strlen(path) < QUOTED_NBYTES) {
        strcpy(quoted, path);
        return quoted;
    }
    *to++ = '\'';
    for (; *path && to - quoted < QUOTED_NBYTES - 6; path++) {
        if (*path == '\'')
            to = stpcpy(to, "'\\'");
        *to++ = *path;
    }
    strcpy(to, "'");
    return quoted;
}

static void mend_by_start(const struct wharf_cli_doctor *doctor, struct wharf_cli_finding *finding)
{
    const struct wharf_client_obstacle *obstacle = &doctor->obstacle;
    char quoted[QUOTED_NBYTES];

    if (obstacle->is_default && obstacle->has_service)
        wharf_cli_finding_mend(finding, "sudo systemctl start wharfd.socket");
    else if (obstacle->is_default && wharf_cli_doctor_has_program("wharfd"))
        wharf_cli_finding_mend(finding, PRIVATE_DAEMON);
    else if (obstacle->is_default)
        wharf_cli_finding_mend_by_package(finding, "wharfd", false);
    else
        wharf_cli_finding_mend(finding, "wharfd --socket %s &", quote(doctor->path, quoted));
}

static void mend_by_other_socket(const struct wharf_cli_doctor *doctor,
                                 struct wharf_cli_finding *finding)
{
    char quoted[QUOTED_NBYTES];

    quote(doctor->path, quoted);
    if (doctor->obstacle.is_default)
        wharf_cli_finding_mend(finding, "sudo mv %s %s.old && sudo systemctl restart wharfd.socket",
                               quoted, quoted);
    else if (!doctor->options->socket)
        wharf_cli_finding_mend(finding, "unset WHARF_SOCKET");
    else
        wharf_cli_finding_mend(finding, "mv %s %s.old && wharfd --socket %s &", quoted, quoted,
                               quoted);
}

void wharf_cli_finding_mend_by_restart(const struct wharf_cli_doctor *doctor,
                                       struct wharf_cli_finding *finding)
{
    char quoted[QUOTED_NBYTES];

    quote(doctor->path, quoted);
    if (doctor->obstacle.is_default)
        wharf_cli_finding_mend(finding, "sudo systemctl restart wharfd.service");
    else if (doctor->daemon_pid)
        wharf_cli_finding_mend(finding, "kill -KILL %d; wharfd --socket %s &",
                               (int)doctor->daemon_pid, quoted);
    else
        wharf_cli_finding_mend(finding, "wharfd --socket %s &", quoted);
}

/* ---- the group ------------------------------------------------------------------------------ */

static void mend_by_group(struct wharf_cli_finding *finding, const char *group, const char *user,
                          bool is_listed)
{
    wharf_cli_finding_cost(finding, WITHOUT_DAEMON);
    if (is_listed)
        wharf_cli_finding_mend(finding, "newgrp %s", group);
    else
        wharf_cli_finding_mend(finding, "sudo usermod -aG %s %s", group, user);
}

/* Before there is a socket: the service's will have this group. */
static void look_at_default_group(struct wharf_cli_doctor *doctor)
{
    char user[WHARF_CLIENT_NAME_NBYTES];
    bool is_listed = false, is_in_process = false;
    struct wharf_cli_finding *finding;

    if (!wharf_client_look_up_member(DEFAULT_GROUP, user, &is_listed, &is_in_process)) {
        finding = wharf_cli_doctor_note(doctor, "group", WHARF_CLI_HEALTH_WARNING,
                                        "there is no group " DEFAULT_GROUP);
        wharf_cli_finding_cost(finding, "the service cannot give its socket to it");
        if (doctor->obstacle.has_service)
            wharf_cli_finding_mend(finding, "sudo systemd-sysusers");
        else
            wharf_cli_finding_mend_by_package(finding, "wharfd", false);
    } else if (is_in_process || geteuid() == 0)
        wharf_cli_doctor_note(doctor, "group", WHARF_CLI_HEALTH_OK, "%s may use the service", user);
    else
        mend_by_group(wharf_cli_doctor_note(doctor, "group", WHARF_CLI_HEALTH_MISSING,
                                            is_listed ? "%s is in the group " DEFAULT_GROUP
                                                        ", but this process began before that"
                                                      : "%s is not in the group " DEFAULT_GROUP,
                                            user),
                      DEFAULT_GROUP, user, is_listed);
}

static void look_at_group(struct wharf_cli_doctor *doctor)
{
    const struct wharf_client_obstacle *obstacle = &doctor->obstacle;
    struct wharf_cli_finding *finding;

    switch (doctor->connect_error == EACCES ? obstacle->kind : WHARF_CLIENT_OTHER_ERROR) {
    case WHARF_CLIENT_NEW_MEMBER:
    case WHARF_CLIENT_NOT_MEMBER:
        finding =
            wharf_cli_doctor_note(doctor, "group", WHARF_CLI_HEALTH_MISSING,
                                  obstacle->kind == WHARF_CLIENT_NEW_MEMBER
                                      ? "%s is in the group %s, but this process began before that"
                                      : "%s is not in the group %s, which alone may use the daemon",
                                  obstacle->user, obstacle->group);
        mend_by_group(finding, obstacle->group, obstacle->user,
                      obstacle->kind == WHARF_CLIENT_NEW_MEMBER);
        return;
    case WHARF_CLIENT_OWNER_ALONE:
        finding = wharf_cli_doctor_note(doctor, "group", WHARF_CLI_HEALTH_MISSING,
                                        "the daemon serves the user %s alone", obstacle->owner);
        wharf_cli_finding_cost(finding, WITHOUT_DAEMON);
        wharf_cli_finding_mend(finding, PRIVATE_DAEMON);
        return;
    default:
        if (doctor->connect_error == 0)
            wharf_cli_doctor_note(doctor, "group", WHARF_CLI_HEALTH_OK,
                                  "this user may use the daemon");
        else if (obstacle->is_default)
            look_at_default_group(doctor);
        else
            wharf_cli_doctor_note(doctor, "group", WHARF_CLI_HEALTH_OK,
                                  "a private daemon needs none");
    }
}

/* ---- the socket ----------------------------------------------------------------------------- */

static bool is_wharfd(pid_t pid, pid_t *ret_parent)
{
    char path[64], line[256];
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_it = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    is_it = is_it && sscanf(line, "%*d (wharfd) %*c %d", &parent) == 1;
    *ret_parent = parent;
    return is_it;
}

/* systemd listens for the service: its child is the daemon, if that runs. */
static pid_t find_service(void)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t parent, found = 0;

    while (folder && !found && (entry = readdir(folder))) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && is_wharfd(pid, &parent) && parent == 1)
            found = pid;
    }
    if (folder)
        closedir(folder);
    return found;
}

static int try_socket(struct wharf_cli_doctor *doctor)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred listener = {0};
    socklen_t nbytes = sizeof(listener);
    pid_t parent;

    if (strlen(doctor->path) >= sizeof(address.sun_path))
        return ENAMETOOLONG;
    strcpy(address.sun_path, doctor->path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int error = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
    if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &nbytes) == 0) {
        if (listener.pid == 1)
            doctor->daemon_pid = find_service();
        else if (listener.pid > 1 && is_wharfd(listener.pid, &parent))
            doctor->daemon_pid = listener.pid;
    }
    close(fd);
    /* So many wait that there is no place: somebody listens, or should. */
    return error == EAGAIN ? 0 : error;
}

static void look_at_socket(struct wharf_cli_doctor *doctor)
{
    static const char *const texts[] = {
        [WHARF_CLIENT_NO_SOCKET] = "there is none",
        [WHARF_CLIENT_NOBODY] = "nobody listens there: its daemon has ended",
        [WHARF_CLIENT_WRONG_TYPE] = "a socket of another type than the daemon's",
        [WHARF_CLIENT_CLOSED_FOLDER] = "a folder on the way is closed to this user",
    };
    const struct wharf_client_obstacle *obstacle = &doctor->obstacle;
    struct wharf_cli_finding *finding;

    if (doctor->connect_error == 0 || obstacle->kind == WHARF_CLIENT_OWNER_ALONE ||
        obstacle->kind == WHARF_CLIENT_NOT_MEMBER || obstacle->kind == WHARF_CLIENT_NEW_MEMBER) {
        wharf_cli_doctor_note(doctor, "socket", WHARF_CLI_HEALTH_OK, "%s", doctor->path);
        return;
    }
    if (obstacle->kind == WHARF_CLIENT_NOT_SOCKET)
        finding = wharf_cli_doctor_note(doctor, "socket", WHARF_CLI_HEALTH_MISSING,
                                        "%s: is %s, not a daemon's socket", doctor->path,
                                        obstacle->thing);
    else
        finding = wharf_cli_doctor_note(
            doctor, "socket", WHARF_CLI_HEALTH_MISSING, "%s: %s", doctor->path,
            obstacle->kind == WHARF_CLIENT_OTHER_ERROR ? strerror(doctor->connect_error)
                                                       : texts[obstacle->kind]);
    wharf_cli_finding_cost(finding, WITHOUT_DAEMON);
    if (obstacle->kind == WHARF_CLIENT_NO_SOCKET || obstacle->kind == WHARF_CLIENT_NOBODY)
        mend_by_start(doctor, finding);
    else
        mend_by_other_socket(doctor, finding);
}

/* ---- the daemon ----------------------------------------------------------------------------- */

static void say_unreached(struct wharf_cli_doctor *doctor, int error, const char *text)
{
    struct wharf_cli_finding *finding =
        wharf_cli_doctor_note(doctor, "daemon", WHARF_CLI_HEALTH_MISSING, "%s", text);

    wharf_cli_finding_cost(finding, WITHOUT_DAEMON);
    if (error != -EDQUOT)
        wharf_cli_finding_mend_by_restart(doctor, finding);
    else if (doctor->obstacle.is_default)
        wharf_cli_finding_mend(finding, "sudoedit /etc/wharf/wharfd.conf && sudo systemctl reload "
                                        "wharfd.service");
    else
        wharf_cli_finding_mend(finding, "wharfd --print-config | less +/%s",
                               strstr(text, "max_memory") ? "max_memory" : "max_connections");
}

static double sum(const struct wharf_cli_doctor *doctor, const char *family)
{
    return wharf_cli_metrics_sum(&doctor->metrics, family, "", NULL, NULL);
}

/* It answers: what it is, and how soon. */
static void look_at_answer(struct wharf_cli_doctor *doctor)
{
    const char *version = doctor->info.daemon_version;
    bool is_same = strcmp(version, wharf_version()) == 0;
    uint64_t start_ns = wharf_client_now_ns();
    struct wharf_cli_finding *finding;

    int r = wharf_ping(doctor->wharf);
    uint64_t took_ns = wharf_client_now_ns() - start_ns;
    if (r == 0)
        r = wharf_cli_metrics_get(doctor->wharf, &doctor->metrics);
    if (r < 0) {
        say_unreached(doctor, r, wharf_error_message());
        return;
    }
    finding = wharf_cli_doctor_note(
        doctor, "daemon", is_same ? WHARF_CLI_HEALTH_OK : WHARF_CLI_HEALTH_WARNING,
        "wharfd %s%s%s answers in %.0f us; %.0f of %.0f workers busy, %.0f jobs queued", version,
        is_same ? "" : ", and this is wharf ", is_same ? "" : wharf_version(),
        (double)took_ns / 1e3, sum(doctor, "wharf_workers_busy"), sum(doctor, "wharf_workers"),
        sum(doctor, "wharf_jobs_queued"));
    if (is_same)
        return;
    wharf_cli_finding_cost(finding, "what only the newer one has is not used");
    wharf_cli_finding_mend_by_restart(doctor, finding);
}

static int open_daemon(struct wharf_cli_doctor *doctor)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    int r;

    options.flags = WHARF_OPEN_DAEMON;
    options.engine = doctor->options->engine;
    options.socket_path = doctor->path;
    options.patience_ms = doctor->options->patience_ms;
    options.max_jobs = 1;
    options.arena_nbytes = 1;
    r = wharf_open(&options, &doctor->wharf);
    doctor->info.struct_nbytes = sizeof(doctor->info);
    return r < 0 ? r : wharf_get_info(doctor->wharf, &doctor->info);
}

void wharf_cli_doctor_look_at_daemon(struct wharf_cli_doctor *doctor)
{
    doctor->connect_error = try_socket(doctor);
    wharf_client_find_obstacle(doctor->path, doctor->connect_error, &doctor->obstacle);
    look_at_group(doctor);
    look_at_socket(doctor);
    if (doctor->connect_error) {
        struct wharf_cli_finding *finding =
            wharf_cli_doctor_note(doctor, "daemon", WHARF_CLI_HEALTH_MISSING, "cannot be asked");
        wharf_cli_finding_follow(doctor, finding, "group");
        wharf_cli_finding_follow(doctor, finding, "socket");
        return;
    }
    int r = open_daemon(doctor);
    if (r < 0) {
        char text[sizeof(doctor->findings[0].found)];
        snprintf(text, sizeof(text), "%s", wharf_error_message());
        char *advice = strstr(text, ": `wharf doctor`");
        if (advice)
            *advice = 0;
        wharf_close(doctor->wharf);
        doctor->wharf = NULL;
        say_unreached(doctor, r, text);
        return;
    }
    look_at_answer(doctor);
}
