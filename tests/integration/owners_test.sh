#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Subordinate uids of a directory service, which nsswitch.conf names: a service of the test's own,
# in a mount namespace with another nsswitch.conf.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=tests/lib/daemon.sh
. "$(dirname "$0")/../lib/daemon.sh"
set -o pipefail
unset WHARF_SOCKET

# A service that gives the user `daemon`, who is uid 1 on Debian, a range of uids; and that fails to
# say whose a uid is where the file `broken` is in its folder.
make_service() {
    cat > service.c << END
#include <shadow/subid.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
enum subid_status shadow_subid_has_range(const char *owner, unsigned long start,
                                         unsigned long count, enum subid_type type, bool *result)
{
    *result = 0;
    return SUBID_STATUS_SUCCESS;
}
enum subid_status shadow_subid_list_owner_ranges(const char *owner, enum subid_type type,
                                                 struct subid_range **ranges, int *count)
{
    *count = strcmp(owner, "daemon") == 0;
    *ranges = calloc(1, sizeof(**ranges));
    (*ranges)->start = 7000000;
    (*ranges)->count = 65536;
    return SUBID_STATUS_SUCCESS;
}
enum subid_status shadow_subid_find_subid_owners(unsigned long id, enum subid_type type,
                                                 uid_t **uids, int *count)
{
    *count = id >= 7000000 && id < 7065536;
    *uids = calloc(1, sizeof(**uids));
    **uids = 1;
    return access("$PWD/broken", F_OK) == 0 ? SUBID_STATUS_ERROR : SUBID_STATUS_SUCCESS;
}
END
    gcc -shared -fPIC -o libsubid_wharf.so service.c
    { grep -v '^subid:' /etc/nsswitch.conf || true; echo 'subid: wharf'; } > nsswitch.conf
}

# start_with_service: the daemon of a folder whose users may be anybody, and that service.
start_with_service() {
    [ "$(id -u)" -eq 0 ] || skip "needs root, to be other users"
    [ -e /usr/include/shadow/subid.h ] || skip "there is no libsubid"
    unshare -m true 2> /dev/null || skip "there are no mount namespaces here"
    [ -e /etc/nsswitch.conf ] || skip "there is no nsswitch.conf"
    make_service
    chmod 755 .
    printf '%s\n' '[daemon]' 'socket_mode = 0666' 'socket_group =' '[gpu]' 'engine = cpu' > config
    # shellcheck disable=SC2016 # for the shell inside
    LD_LIBRARY_PATH="$PWD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" unshare -m sh -c \
        'mount --bind nsswitch.conf /etc/nsswitch.conf && exec "$0" "$@"' \
        "$BUILD/wharfd" --socket "$PWD/s" --config config < /dev/null > /dev/null 2> daemon.log &
    daemon=$!
    trap 'kill_daemon' EXIT
    for _ in $(seq 3000); do
        [ ! -S s ] || ! grep -q 'serves with' daemon.log || return 0
        sleep 0.02
    done
    cat daemon.log
    return 1
}

# tenant_of UID: as whom a client of that uid is known.
tenant_of() {
    cp "$WHARF" command
    setpriv --reuid "$1" --regid "$1" --clear-groups "$PWD/command" stats --socket "$PWD/s" --json |
        grep -o '"tenant": *"[a-z0-9:]*"' | sort -u | sed 's/.*"\(.*\)"$/\1/'
}

test_uids_of_a_service_are_their_owners() {
    start_with_service
    [ "$(tenant_of 7000000)" = uid:1 ]
    [ "$(tenant_of 7065535)" = uid:1 ]
    [ "$(tenant_of 7065536)" = uid:7065536 ]
    [ "$(tenant_of 1)" = uid:1 ]
}

# Some services do not know whose a uid is: users are themselves all the same, and nobody else is.
test_service_that_cannot_say_makes_no_tenants_of_uids() {
    start_with_service
    : > broken
    [ "$(tenant_of 7000000)" = unknown ]
    [ "$(tenant_of 7000001)" = unknown ]
    [ "$(tenant_of 1)" = uid:1 ]
}

run_tests
