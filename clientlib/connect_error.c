/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect_error.c: explains why a daemon's socket cannot be reached.
 */
#include "clientlib/connect_error.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/wharf.h"

enum { NAME_NBYTES = WHARF_CLIENT_NAME_NBYTES, LOOKUP_NBYTES = 16384 };

/* Names where there are any, else numbers. */
static void get_user_name(uid_t uid, char *name)
{
    char memory[1024];
    struct passwd entry, *found = NULL;

    if (getpwuid_r(uid, &entry, memory, sizeof(memory), &found) == 0 && found)
        snprintf(name, NAME_NBYTES, "%s", found->pw_name);
    else
        snprintf(name, NAME_NBYTES, "%u", (unsigned)uid);
}

static bool lists_member(const struct group *group, const char *user)
{
    for (char **member = group->gr_mem; *member; member++)
        if (strcmp(*member, user) == 0)
            return true;
    return false;
}

/* Also whether `user` is a member in the data base, though this process may not be. */
static bool get_group_name(gid_t gid, const char *user, char *name)
{
    char memory[LOOKUP_NBYTES];
    struct group entry, *found = NULL;

    if (getgrgid_r(gid, &entry, memory, sizeof(memory), &found) != 0 || !found) {
        snprintf(name, NAME_NBYTES, "%u", (unsigned)gid);
        return false;
    }
    snprintf(name, NAME_NBYTES, "%s", found->gr_name);
    return lists_member(found, user);
}

static bool is_in_process(gid_t gid)
{
    gid_t groups[1024];
    int n = getgroups(sizeof(groups) / sizeof(groups[0]), groups);

    for (int i = 0; i < n; i++)
        if (groups[i] == gid)
            return true;
    return getegid() == gid;
}

bool wharf_client_look_up_member(const char *name, char user[NAME_NBYTES], bool *ret_is_listed,
                                 bool *ret_is_in_process)
{
    char memory[LOOKUP_NBYTES];
    struct group entry, *found = NULL;

    get_user_name(geteuid(), user);
    if (getgrnam_r(name, &entry, memory, sizeof(memory), &found) != 0 || !found)
        return false;
    *ret_is_listed = lists_member(found, user);
    *ret_is_in_process = is_in_process(found->gr_gid);
    return true;
}

static void find_denied(const char *path, struct wharf_client_obstacle *obstacle)
{
    struct stat file;

    obstacle->kind = WHARF_CLIENT_CLOSED_FOLDER;
    if (stat(path, &file) < 0)
        return;
    get_user_name(geteuid(), obstacle->user);
    get_user_name(file.st_uid, obstacle->owner);
    bool is_member = get_group_name(file.st_gid, obstacle->user, obstacle->group);
    /* Its owner's own group is nobody's to join, and root's least of all. */
    if (file.st_gid == 0 || strcmp(obstacle->owner, obstacle->group) == 0)
        obstacle->kind = WHARF_CLIENT_OWNER_ALONE;
    else
        obstacle->kind = is_member ? WHARF_CLIENT_NEW_MEMBER : WHARF_CLIENT_NOT_MEMBER;
}

/* Whether systemd runs this machine and has our units: where packages and `make install` put them,
 * and where administrators do. */
static bool has_service(void)
{
    static const char *const units[] = {
        "/etc/systemd/system/wharfd.socket",           "/run/systemd/system/wharfd.socket",
        "/usr/local/lib/systemd/system/wharfd.socket", "/usr/lib/systemd/system/wharfd.socket",
        "/lib/systemd/system/wharfd.socket",
    };
    bool has_unit = false;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        has_unit = has_unit || access(units[i], F_OK) == 0;
    return has_unit && access("/run/systemd/system", F_OK) == 0;
}

/* What stands there if it is no socket, or NULL.  The system refuses to connect to either alike. */
static const char *other_kind(const char *path)
{
    struct stat file;

    if (stat(path, &file) < 0 || S_ISSOCK(file.st_mode))
        return NULL;
    if (S_ISREG(file.st_mode))
        return "a regular file";
    return S_ISDIR(file.st_mode) ? "a folder" : "a device or pipe";
}

void wharf_client_find_obstacle(const char *path, int err,
                                struct wharf_client_obstacle *ret_obstacle)
{
    struct wharf_client_obstacle obstacle = {
        .kind = WHARF_CLIENT_OTHER_ERROR,
        .error = err,
        .is_default = strcmp(path, WHARF_DEFAULT_SOCKET) == 0,
        .has_service = has_service(),
    };

    if (err == ENOENT)
        obstacle.kind = WHARF_CLIENT_NO_SOCKET;
    else if (err == EPROTOTYPE)
        obstacle.kind = WHARF_CLIENT_WRONG_TYPE;
    else if (err == EACCES)
        find_denied(path, &obstacle);
    else if (err == ECONNREFUSED) {
        obstacle.thing = other_kind(path);
        obstacle.kind = obstacle.thing ? WHARF_CLIENT_NOT_SOCKET : WHARF_CLIENT_NOBODY;
    }
    *ret_obstacle = obstacle;
}

/* ---- in words ------------------------------------------------------------------------------ */

static void explain_absent(const char *path, const struct wharf_client_obstacle *obstacle,
                           char *text, size_t text_nbytes)
{
    const char *what =
        obstacle->kind == WHARF_CLIENT_NOBODY ? "nobody listens there" : "no such socket";

    if (obstacle->is_default && obstacle->has_service)
        snprintf(text, text_nbytes,
                 "%s: %s: start the daemon with `sudo systemctl start wharfd.socket`", path, what);
    else if (obstacle->is_default)
        snprintf(text, text_nbytes,
                 "%s: %s, and no service wharfd.socket is installed here: start a daemon with "
                 "`wharfd --socket PATH` and set WHARF_SOCKET=PATH",
                 path, what);
    else
        snprintf(text, text_nbytes, "%s: %s: start a daemon with `wharfd --socket %s`", path, what,
                 path);
}

static void explain_denied(const char *path, const struct wharf_client_obstacle *obstacle,
                           char *text, size_t text_nbytes)
{
    const char *user = obstacle->user, *group = obstacle->group;

    if (obstacle->kind == WHARF_CLIENT_OWNER_ALONE)
        snprintf(text, text_nbytes,
                 "%s: permission denied: this daemon serves the user %s alone: start another one "
                 "with `wharfd --socket PATH`, or set socket_group in its wharfd.conf to a group "
                 "that has the user %s as a member",
                 path, obstacle->owner, user);
    else if (obstacle->kind == WHARF_CLIENT_NEW_MEMBER)
        snprintf(text, text_nbytes,
                 "%s: permission denied: %s is in the group %s that may use it, but this process "
                 "began before that: log in again",
                 path, user, group);
    else
        snprintf(text, text_nbytes,
                 "%s: permission denied: only the group %s may use it, and %s is not in it: run "
                 "`sudo usermod -aG %s %s`, then log in again",
                 path, group, user, group, user);
}

void wharf_client_explain_connect(const char *path, int err, char *text, size_t text_nbytes)
{
    struct wharf_client_obstacle obstacle;

    wharf_client_find_obstacle(path, err, &obstacle);
    switch (obstacle.kind) {
    case WHARF_CLIENT_NO_SOCKET:
    case WHARF_CLIENT_NOBODY:
        explain_absent(path, &obstacle, text, text_nbytes);
        return;
    case WHARF_CLIENT_NOT_SOCKET:
        snprintf(text, text_nbytes, "%s: is %s, not a daemon's socket: another path may be meant",
                 path, obstacle.thing);
        return;
    case WHARF_CLIENT_WRONG_TYPE:
        snprintf(text, text_nbytes, "%s: not a daemon's socket: it is of another type", path);
        return;
    case WHARF_CLIENT_CLOSED_FOLDER:
        snprintf(text, text_nbytes,
                 "%s: permission denied: a folder on the way is closed to you: `wharf doctor` says "
                 "what to do",
                 path);
        return;
    case WHARF_CLIENT_OWNER_ALONE:
    case WHARF_CLIENT_NOT_MEMBER:
    case WHARF_CLIENT_NEW_MEMBER:
        explain_denied(path, &obstacle, text, text_nbytes);
        return;
    default:
        snprintf(text, text_nbytes, "%s: %s", path, strerror(err));
    }
}
