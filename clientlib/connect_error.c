/* SPDX-License-Identifier: Apache-2.0 */
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

enum { NAME_NBYTES = 64, LOOKUP_NBYTES = 16384 };

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
    for (char **member = found->gr_mem; *member; member++)
        if (strcmp(*member, user) == 0)
            return true;
    return false;
}

static void explain_denied(const char *path, char *text, size_t text_nbytes)
{
    char user[NAME_NBYTES], owner[NAME_NBYTES], group[NAME_NBYTES];
    struct stat file;

    if (stat(path, &file) < 0) {
        snprintf(text, text_nbytes, "%s: permission denied: a folder on the way is closed to you",
                 path);
        return;
    }
    get_user_name(geteuid(), user);
    get_user_name(file.st_uid, owner);
    bool is_member = get_group_name(file.st_gid, user, group);
    /* Its owner's own group is nobody's to join, and root's least of all. */
    if (file.st_gid == 0 || strcmp(owner, group) == 0)
        snprintf(text, text_nbytes,
                 "%s: permission denied: this daemon serves the user %s alone: start another one "
                 "with `wharfd --socket PATH`, or set socket_group in its wharfd.conf to a group "
                 "that has the user %s as a member",
                 path, owner, user);
    else if (is_member)
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

static void explain_absent(const char *path, const char *what, char *text, size_t text_nbytes)
{
    bool is_default = strcmp(path, WHARF_DEFAULT_SOCKET) == 0;

    if (is_default && has_service())
        snprintf(text, text_nbytes,
                 "%s: %s: start the daemon with `sudo systemctl start wharfd.socket`", path, what);
    else if (is_default)
        snprintf(text, text_nbytes,
                 "%s: %s, and no service wharfd.socket is installed here: start a daemon with "
                 "`wharfd --socket PATH` and set WHARF_SOCKET=PATH",
                 path, what);
    else
        snprintf(text, text_nbytes, "%s: %s: start a daemon with `wharfd --socket %s`", path, what,
                 path);
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

static void explain_refused(const char *path, char *text, size_t text_nbytes)
{
    const char *kind = other_kind(path);

    if (kind)
        snprintf(text, text_nbytes, "%s: is %s, not a daemon's socket: another path may be meant",
                 path, kind);
    else
        explain_absent(path, "nobody listens there", text, text_nbytes);
}

void wharf_client_explain_connect(const char *path, int err, char *text, size_t text_nbytes)
{
    switch (err) {
    case ENOENT:
        explain_absent(path, "no such socket", text, text_nbytes);
        return;
    case ECONNREFUSED:
        explain_refused(path, text, text_nbytes);
        return;
    case EACCES:
        explain_denied(path, text, text_nbytes);
        return;
    case EPROTOTYPE:
        snprintf(text, text_nbytes, "%s: not a daemon's socket: it is of another type", path);
        return;
    default:
        snprintf(text, text_nbytes, "%s: %s", path, strerror(err));
    }
}
