#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What of the Debian packages can be told without building them; `make deb` does that.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

debian=$TOP/systemd/debian

# Into the folders that systemd/debian/rules chooses.
stage_all() {
    make_here prefix=/usr libdir=/usr/lib/triplet unitdir=/lib/systemd/system \
        zshcompletiondir=/usr/share/zsh/vendor-completions DESTDIR="$PWD/stage" install > installed
}

# A new row of the Makefile's list has to go into a package too.
test_every_installed_file_is_in_one_package() {
    stage_all
    cd stage
    for list in "$debian"/*.install; do
        # Made, and installed, only where nvcc was.
        case $list in
        *-cuda*) [ -e usr/lib/triplet/libwharf-cuda.so.0 ] || continue ;;
        # And where Python's headers were.
        *python3-*) [ -e usr/lib/python3 ] || continue ;;
        # And HDF5's.
        *hdf5*) [ -e usr/lib/triplet/wharf/hdf5 ] || continue ;;
        esac
        # shellcheck disable=SC2046 # a list of patterns
        find $(sed -e '/^#/d' -e 's/ .*//' "$list") ! -type d
    done | sort > ../packed
    # systemd/debian/rules takes the GPU's worker, which is only there where nvcc was, and the units.
    find . ! -type d ! -name wharfd-gpu ! -path './lib/systemd/system/wharfd.s*' | sed 's|^\./||' | sort > ../staged
    diff ../staged ../packed
}

# Without tests and git: a new file at the top that the Makefile reads has to be in its list.
test_tree_of_which_packages_are_built_has_all_that_it_takes() {
    # shellcheck disable=SC2016 # make's own variable
    make_here --eval 'show-tree: ; @echo $(deb_tree)' show-tree > names
    mkdir tree
    # shellcheck disable=SC2046 # a list of words
    (cd "$TOP" && cp -r $(cat "$OLDPWD/names") "$OLDPWD/tree")
    cd tree
    make -n NVCC= all > ../commands
    test -s ../commands
}

test_versions_agree() {
    expect_text "$("$WHARF" --version)" \
        "$(sed -n '1s/^wharf (\([^)]*\)) .*/wharf \1/p' "$debian/changelog")"
}

# Each version node of the library is one line, with the version that brought it.
test_symbols_are_those_of_the_library() {
    expect_text "$(grep -oE '^[A-Z]+_[0-9.]+' "$TOP/clientlib/libwharf.map")" \
        "$(grep -oE '\(symver\)[^ ]*' "$debian/libwharf0.symbols" | sed 's/(symver)//')"
    expect_text "$(grep -oE '^[A-Z_]+_[0-9.]+' "$TOP/clientlib/cuda/libwharf-cuda.map")" \
        "$(grep -oE '\(symver\)[^ ]*' "$debian/libwharf-cuda0.symbols" | sed 's/(symver)//')"
}

# ---- whom the daemon runs as ---------------------------------------------------------------

# has DATABASE NAME NUMBER: in passwd or group of the machine that is played by the folder root.
has() {
    mkdir -p root/etc
    echo "$2:x:$3:$3::/home/$2:/bin/bash" >> "root/etc/$1"
}

preinst() {
    DPKG_ROOT=$PWD/root "$debian/wharfd.preinst" "$@"
}

# refuses DATABASE NAME NUMBER WORD: says which, and its number; and so does `make install`.
refuses() {
    rm -rf root
    has "$1" "$2" "$3"
    expect_status 1 preinst install 2> message
    cat message
    grep -qF "the $4 $2 is there already" message
    grep -qF "its number is $3," message
    expect_status 1 preinst upgrade 0.0.1 2> message
    expect_status 2 make_here prefix=/usr DESTDIR="$PWD/root" install > installed 2> message
    grep -qF "the $4 $2 is there already" message
    expect_text "etc/$1" "$(cd root && find . ! -type d | sed 's|^./||')"
}

# systemd-sysusers would take them for the daemon's.
test_account_of_a_person_is_refused_by_its_name() {
    refuses passwd wharfd 1000 user
    refuses passwd wharfd 60001 user
    refuses passwd wharfd 0 user
    refuses group wharf 1000 group
    refuses group wharfd 4000 group
}

test_account_of_a_system_is_kept() {
    mkdir root
    preinst install
    has passwd wharfd 999
    has group wharfd 999
    has group wharf 100
    # People of other names.
    has passwd wharfdale 1000
    has passwd alice 1001
    preinst install
    preinst upgrade 0.0.1
}

# The restart comes after the check, and not where that fails; systemd_test.sh upgrades a real one.
# shellcheck disable=SC2016 # the programs' own words
test_running_daemon_stays_where_the_new_one_refuses_its_file() {
    unshare -rm true 2> /dev/null || skip 'no namespaces here'
    sed '/^#DEBHELPER#$/d' "$TOP/systemd/debian/wharfd.postinst" > postinst
    mkdir bin
    for name in systemctl deb-systemd-invoke wharfd; do
        printf '#!/bin/sh\necho %s "$@" >> %s/calls\n' "$name" "$PWD" > "bin/$name"
        chmod +x "bin/$name"
    done
    # postinst_calls ARGUMENT...: which programs it calls, where systemd runs.
    postinst_calls() {
        : > calls
        PATH=$PWD/bin:$PATH unshare -rm sh -c 'mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system &&
            exec sh postinst "$@"' sh "$@" 2> message
        cut -d' ' -f1-3 calls
    }
    expect_text 'systemctl -q is-active
systemctl --system daemon-reload
systemctl reload wharfd.service
deb-systemd-invoke try-restart wharfd.service' "$(postinst_calls configure 0.0.1)"
    expect_text '' "$(postinst_calls configure)"
    # Now the reload fails.
    printf '[ "$1" != reload ]\n' >> bin/systemctl
    expect_text 'systemctl -q is-active
systemctl --system daemon-reload
systemctl reload wharfd.service
wharfd --check-config' "$(postinst_calls configure 0.0.1)"
    postinst_calls configure 0.0.1
    grep -q 'The daemon of version 0.0.1 goes on' message
    printf '[ "$2" != is-active ]\n' >> bin/systemctl
    expect_text 'systemctl -q is-active' "$(postinst_calls configure 0.0.1)"
}

test_machine_says_where_the_numbers_of_people_begin() {
    has passwd wharfd 700
    preinst install
    printf 'UID_MIN\t\t500\n#GID_MIN 100\n' > root/etc/login.defs
    expect_status 1 preinst install 2> message
    grep -qF 'those of system users are 1 to 499' message
    rm root/etc/passwd
    has group wharf 700
    preinst install
}

run_tests
