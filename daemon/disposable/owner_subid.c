/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_subid.c: subordinate uids of the service that nsswitch.conf names, by libsubid.
 *
 * The library is loaded when it is needed, in the process that looks up owners alone: it brings PAM
 * and SELinux's policy tools along, which have no business in the core.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <shadow/subid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/disposable/owner_service.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define LIBRARY "libsubid.so." TEXT(SUBID_ABI_MAJOR)

static struct {
    bool is_tried;
    __typeof__(subid_get_uid_owners) *owners;
    __typeof__(subid_get_uid_ranges) *ranges;
} library;

static void load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    library.is_tried = true;
    if (!handle)
        return;
    __typeof__(subid_init) *init = (__typeof__(subid_init) *)dlsym(handle, "subid_init");
    library.owners = (__typeof__(subid_get_uid_owners) *)dlsym(handle, "subid_get_uid_owners");
    library.ranges = (__typeof__(subid_get_uid_ranges) *)dlsym(handle, "subid_get_uid_ranges");
    if (!init || !library.ranges || !init("wharfd", NULL))
        library.owners = NULL;
}

/* Whether nsswitch.conf names another service than files for subordinate uids: libsubid asks the
 * first one. */
static bool has_service(void)
{
    char line[256], service[64];
    bool found = false;
    FILE *file = fopen("/etc/nsswitch.conf", "re");

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, " subid: %63s", service) == 1)
            found = strcmp(service, "files") != 0;
    if (file)
        fclose(file);
    return found;
}

/* The owner's range that holds the uid; or that alone if none is found. */
static void find_range(uid_t uid, struct wharf_owner_answer *answer)
{
    const struct passwd *user = getpwuid(answer->owner);
    struct subid_range *ranges = NULL;
    int n = user ? library.ranges(user->pw_name, &ranges) : 0;

    for (int i = 0; i < n; i++) {
        unsigned long first = ranges[i].start, count = ranges[i].count;
        if (uid < first || uid - first >= count || first >= UINT32_MAX)
            continue;
        unsigned long most = UINT32_MAX - 1 - first;
        answer->first = (uint32_t)first;
        answer->last = (uint32_t)(first + (count - 1 < most ? count - 1 : most));
    }
    free(ranges);
}

int wharf_owner_ask_service(uid_t uid, struct wharf_owner_answer *ret_answer)
{
    struct wharf_owner_answer answer = {.first = uid, .last = uid};
    uid_t *owners = NULL;

    if (!has_service())
        return -ENOENT;
    if (!library.is_tried)
        load();
    if (!library.owners)
        return -ELIBACC;
    int n = library.owners(uid, &owners);
    if (n <= 0) {
        free(owners);
        return n < 0 ? -EREMOTEIO : 0;
    }
    answer.owner = owners[0];
    for (int i = 1; i < n; i++)
        answer.owner = owners[i] < answer.owner ? owners[i] : answer.owner;
    free(owners);
    /* What several own they may own in part. */
    if (n == 1)
        find_range(uid, &answer);
    *ret_answer = answer;
    return 1;
}
