#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# wharf cdi: the specification that it prints is one, and names what is there.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

schema="$TOP/tests/lib/cdi_schema.py"

# get EXPRESSION: of the specification `spec` in the file wharf.json.
get() {
    python3 -c "import json; spec = json.load(open('wharf.json')); print($1)"
}

# The check takes nothing that it should not: else what follows would say little.
test_schema_is_strict() {
    good='{"cdiVersion": "0.6.0", "kind": "a.io/b", "devices": [{"name": "c", "containerEdits": {"env": ["D=e"]}}]}'
    echo "$good" > good
    "$schema" good
    number=0
    while read -r change; do
        echo "$good" | sed "$change" > bad
        expect_status 1 cmp -s good bad
        expect_status 1 "$schema" bad 2> message
        number=$((number + 1))
    done << 'EOS'
s/0.6.0/9.6.0/
s/"cdiVersion": "0.6.0", //
s/a.io.b/a.io/
s/a.io.b/-a.io\/b/
s/a.io.b/a.io\/1/
s/"devices".*/"devices": []}/
s/"name": "c"/"name": "c d"/
s/"name": "c"/"name": ""/
s/"name": "c", //
s/D=e/De/
s/"D=e"/1/
s/{"env".*"]}/{}/
s/"env": .*"]}/"mounts": [{"hostPath": "\/a"}]}/
s/"env": .*"]}/"mounts": [{"hostPath": "a", "containerPath": "\/b"}]}/
s/"env": .*"]}/"mounts": [{"hostPath": "\/a", "containerPath": "\/b", "options": "ro"}]}/
s/"env": .*"]}/"hooks": [{"hookName": "later", "path": "\/b"}]}/
s/"env"/"environment"/
s/}$//
EOS
    expect_text 18 "$number"
}

test_it_gives_the_socket_read_only_and_says_where_it_is() {
    "$WHARF" cdi -q --library /usr/lib/libwharf.so.0 > wharf.json 2> message
    test ! -s message
    "$schema" wharf.json
    expect_text 'wharf.io/daemon' "$(get 'spec["kind"]')"
    expect_text 'socket all' "$(get '*(d["name"] for d in spec["devices"])')"
    for device in 0 1; do
        expect_text WHARF_SOCKET=/run/wharf/wharfd.sock "$(get "*spec['devices'][$device]['containerEdits']['env']")"
        expect_text True "$(get "all('ro' in m['options'] for m in spec['devices'][$device]['containerEdits']['mounts'])")"
    done
    expect_text '/run/wharf-pods /run/wharf' \
        "$(get '*(m[p] for m in spec["devices"][0]["containerEdits"]["mounts"] for p in ("hostPath", "containerPath"))')"
    expect_text '/run/wharf-pods /run/wharf /usr/lib/libwharf.so.0 /usr/lib/libwharf.so.0' \
        "$(get '*(m[p] for m in spec["devices"][1]["containerEdits"]["mounts"] for p in ("hostPath", "containerPath"))')"
}

test_socket_and_folder_can_be_chosen() {
    "$WHARF" cdi -q --socket '/srv/a "b"/my.sock' --target /var/wharf > wharf.json
    "$schema" wharf.json
    expect_text WHARF_SOCKET=/var/wharf/my.sock "$(get '*spec["devices"][0]["containerEdits"]["env"]')"
    expect_text '/srv/a "b"' "$(get 'spec["devices"][0]["containerEdits"]["mounts"][0]["hostPath"]')"
}

test_library_is_found_beside_the_command_or_installed() {
    make_here prefix="$PWD/usr" install > installed
    for program in "$WHARF" "$PWD/usr/bin/wharf"; do
        "$program" cdi -q > wharf.json
        path=$(get 'spec["devices"][1]["containerEdits"]["mounts"][1]["hostPath"]')
        test -e "$path"
        expect_text libwharf.so.0 "$(basename "$path")"
    done
    case $path in "$(realpath "$PWD")"/usr/lib/*) ;; *) false ;; esac
    # Without it there is no device for it.
    mkdir bin
    cp "$WHARF" bin/wharf
    bin/wharf cdi > wharf.json 2> message
    grep -q "there is no device .all." message
    expect_text socket "$(get '*(d["name"] for d in spec["devices"])')"
    "$schema" wharf.json
}

test_what_is_probably_not_wanted_is_remarked() {
    "$WHARF" cdi --socket /run/wharf/wharfd.sock > wharf.json 2> message
    grep -q 'root of a container is an operator of this daemon' message
    "$WHARF" cdi --socket "$PWD/none/s" > wharf.json 2> message
    grep -q "$PWD/none/s: there is no socket yet" message
    "$schema" wharf.json
}

# Engines follow the paths as root.
test_paths_are_checked() {
    for path in s ./s /s / /a/../b/s /a/./s //a/s /a/s/ "/a/$(printf 'b\nc')/s" "/a/$(printf '\377')/s" \
        "/$(printf '%02000d' 0)/s"; do
        expect_status 2 "$WHARF" cdi -q --socket "$path" > out 2> message
        test ! -s out
        test -s message
    done
    expect_status 2 "$WHARF" cdi -q --target run > out 2> message
    expect_status 2 "$WHARF" cdi -q --library /usr/lib/.. > out 2> message
    expect_status 2 "$WHARF" cdi --no-such > out 2> message
    grep -q "there is no option '--no-such'" message
    expect_status 2 "$WHARF" cdi --socket > out 2> message
    expect_status 2 "$WHARF" cdi operand > out 2> message
    "$WHARF" help cdi > text
    grep -q 'Container Device Interface' text
    expect_status 4 "$WHARF" cdi -q > /dev/full 2> message
}

run_tests
