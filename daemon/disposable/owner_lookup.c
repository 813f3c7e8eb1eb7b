/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_lookup.c: from a uid to its owner, by files like /etc/subuid and /etc/passwd or by the
 * services that stand for them.
 */
#include "daemon/disposable/owner_lookup.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/disposable/owner_service.h"

static void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

/* ---- users --------------------------------------------------------------------------------- */

/* The first line for `name` or, if that is NULL, `uid`; valid until the next call. */
static const struct passwd *find_line_of_passwd(const char *path, const char *name, uid_t uid)
{
    WHARF_CLEANUP(close_file) FILE *file = fopen(path, "re");
    const struct passwd *user;

    while (file && (user = fgetpwent(file)))
        if (name ? strcmp(user->pw_name, name) == 0 : user->pw_uid == uid)
            return user;
    return NULL;
}

static bool find_in_passwd(const char *path, const char *name, uid_t uid, uid_t *ret_uid)
{
    const struct passwd *user = find_line_of_passwd(path, name, uid);

    if (user)
        *ret_uid = user->pw_uid;
    return user != NULL;
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == 0;
}

/* Whose a line of subuid is: a user's name, or a uid. */
static bool find_owner(const struct wharf_owner_files *files, const char *name, uid_t *ret_uid)
{
    if (files->passwd[0] && find_in_passwd(files->passwd, name, 0, ret_uid))
        return true;
    const struct passwd *user = files->passwd[0] ? NULL : getpwnam(name);
    if (user) {
        *ret_uid = user->pw_uid;
        return true;
    }
    unsigned long uid = strtoul(name, NULL, 10);
    if (!is_number(name) || uid >= UINT32_MAX)
        return false;
    *ret_uid = (uid_t)uid;
    return true;
}

static bool is_account(const struct wharf_owner_files *files, uid_t uid)
{
    uid_t found;

    return files->passwd[0] ? find_in_passwd(files->passwd, NULL, uid, &found)
                            : getpwuid(uid) != NULL;
}

/* ---- a file like /etc/subuid --------------------------------------------------------------- */

struct line {
    char *name;
    uint64_t first;
    uint64_t last;
};

/* NAME:FIRST:COUNT; whether it is one with any uids. */
static bool parse_line(char *text, struct line *ret_line)
{
    uint64_t count;
    char *end;

    text[strcspn(text, "\n")] = 0;
    char *first = strchr(text, ':');
    if (*text == '#' || !first)
        return false;
    *first++ = 0;
    ret_line->name = text;
    errno = 0;
    ret_line->first = strtoull(first, &end, 10);
    if (errno || end == first || *end != ':')
        return false;
    first = end + 1;
    count = strtoull(first, &end, 10);
    if (errno || end == first || *end || count == 0 || ret_line->first >= UINT32_MAX)
        return false;
    uint64_t most = UINT32_MAX - 1 - ret_line->first;
    ret_line->last = ret_line->first + (count - 1 < most ? count - 1 : most);
    return true;
}

/* Of a range that is known to hold the uid, only what another line begins or ends in goes. */
static void clip(struct wharf_owner_answer *range, uid_t uid, const struct line *line)
{
    if (line->first > uid && line->first <= range->last)
        range->last = (uint32_t)line->first - 1;
    if (line->last < uid && line->last >= range->first)
        range->first = (uint32_t)line->last + 1;
    if (line->first <= uid && line->last >= uid) {
        if (line->first > range->first)
            range->first = (uint32_t)line->first;
        if (line->last < range->last)
            range->last = (uint32_t)line->last;
    }
}

/*
 * Of lines that overlap the first one counts whose user is there.  If that is nobody's, the first
 * uid of the range stands for its owner: it is one all the same.  Returns 1 with the owner and the
 * part of the range for which the same lines speak; 0: it is in none; or -errno.
 */
static int look_into_file(const struct wharf_owner_files *files, const char *path, uid_t uid,
                          struct wharf_owner_answer *ret_answer)
{
    struct wharf_owner_answer found = {.first = 0, .last = UINT32_MAX - 1};
    WHARF_CLEANUP(close_file) FILE *file = fopen(path, "re");
    WHARF_CLEANUP_FREE char *text = NULL;
    size_t n_room = 0;
    bool is_in_any = false, is_found = false;
    struct line line;

    if (!file)
        return errno == ENOENT ? 0 : -errno;
    while (getline(&text, &n_room, file) >= 0) {
        if (!parse_line(text, &line))
            continue;
        clip(&found, uid, &line);
        if (line.first > uid || line.last < uid || is_found)
            continue;
        is_found = find_owner(files, line.name, &found.owner);
        if (!is_found && !is_in_any)
            found.owner = (uint32_t)line.first;
        is_in_any = true;
    }
    if (ferror(file))
        return -EIO;
    if (is_in_any)
        *ret_answer = found;
    return is_in_any;
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Returns 1, 0 or -errno as above. */
static int look_up(const struct wharf_owner_files *files, uid_t uid,
                   struct wharf_owner_answer *ret_answer)
{
    if (files->subuid[0])
        return look_into_file(files, files->subuid, uid, ret_answer);
    int r = wharf_owner_ask_service(uid, ret_answer);
    if (r >= 0)
        return r;
    int in_file = look_into_file(files, "/etc/subuid", uid, ret_answer);
    if (in_file != 0 || r == -ENOENT)
        return in_file;
    /* Some services know who has which uids, and not whose a uid is.  A user is no subordinate. */
    return is_account(files, uid) ? 0 : r;
}

void wharf_owner_look_up(const struct wharf_owner_files *files, uid_t uid,
                         struct wharf_owner_answer *ret_answer)
{
    struct wharf_owner_answer itself = {.first = uid, .last = uid, .owner = uid};
    int r = look_up(files, uid, ret_answer);

    /* A user whose uid root may map into containers (root:1000:1) is no subordinate of root's. */
    if (r == 0 || (r > 0 && ret_answer->owner == 0 && is_account(files, uid)))
        *ret_answer = itself;
    else if (r < 0)
        *ret_answer = (struct wharf_owner_answer){.error = r, .first = uid, .last = uid};
}

/* ---- groups -------------------------------------------------------------------------------- */

/* More than the kernel lets a process have. */
#define MOST_GIDS 65536

static uint32_t number_of_group(const struct wharf_owner_files *files, const char *name)
{
    for (uint32_t i = 0; i < files->n_groups; i++)
        if (strcmp(files->groups[i], name) == 0)
            return i;
    return WHARF_OWNER_NO_GROUP;
}

static bool has_member(const struct group *group, const struct passwd *user)
{
    if (group->gr_gid == user->pw_gid)
        return true;
    for (char **member = group->gr_mem; *member; member++)
        if (strcmp(*member, user->pw_name) == 0)
            return true;
    return false;
}

/* The first group of the settings, of those that a file gives the user. */
static int look_into_group_file(const struct wharf_owner_files *files, const struct passwd *user,
                                uint32_t *ret_group)
{
    WHARF_CLEANUP(close_file) FILE *file = fopen(files->group, "re");
    const struct group *group;
    uint32_t first = WHARF_OWNER_NO_GROUP;

    if (!file)
        return errno == ENOENT ? 0 : -errno;
    while ((group = fgetgrent(file))) {
        uint32_t number = number_of_group(files, group->gr_name);
        if (number < first && has_member(group, user))
            first = number;
    }
    *ret_group = first;
    return ferror(file) ? -EIO : 0;
}

static bool is_in(const gid_t *gids, int n, gid_t gid)
{
    for (int i = 0; i < n; i++)
        if (gids[i] == gid)
            return true;
    return false;
}

/* The same by what the machine says. */
static int ask_for_groups(const struct wharf_owner_files *files, const struct passwd *user,
                          uint32_t *ret_group)
{
    int n = MOST_GIDS;
    WHARF_CLEANUP_FREE gid_t *gids = calloc((size_t)n, sizeof(*gids));

    if (!gids)
        return -ENOMEM;
    if (getgrouplist(user->pw_name, user->pw_gid, gids, &n) < 0)
        return -E2BIG;
    for (uint32_t i = 0; i < files->n_groups; i++) {
        errno = 0;
        const struct group *group = getgrnam(files->groups[i]);
        if (!group && (errno == EIO || errno == EMFILE || errno == ENFILE || errno == ENOMEM))
            return -errno;
        if (!group || !is_in(gids, n, group->gr_gid))
            continue;
        *ret_group = i;
        return 0;
    }
    return 0;
}

void wharf_owner_find_group(const struct wharf_owner_files *files, uid_t uid,
                            struct wharf_owner_answer *ret_answer)
{
    struct wharf_owner_answer answer = {.first = uid, .last = uid, .owner = WHARF_OWNER_NO_GROUP};
    const struct passwd *user;

    errno = 0;
    user = files->passwd[0] ? find_line_of_passwd(files->passwd, NULL, uid) : getpwuid(uid);
    /* Of a uid without a name glibc says anything but these. */
    if (!user && (errno == EIO || errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        answer.error = -errno;
    else if (user)
        answer.error = files->group[0] ? look_into_group_file(files, user, &answer.owner)
                                       : ask_for_groups(files, user, &answer.owner);
    *ret_answer = answer;
}
